-- Where does the time go? A bar for each layer, with its kernel. share: of the run's time; gflops:
-- the operator's arithmetic per second; kernel_gflops: the kernel's own, which is less for other
-- algorithms (Winograd).
--
--   cnnrun scripts/experiments/layers.lua scripts/nets/lenet5.lua -o out
local c, plot = require "cnnrun", require "lib.plot"
local experiment = require "lib.experiment"

return experiment.main({
  name = "layers", words = "NET", about = "Times each layer of a net.",
  flags = {
    { "--device NAME", "where to run: cpu, opencl:0 (the best)" },
    { "--runs COUNT", "number of timed runs (50)" },
    { "--batch COUNT", "batch size (1)" } } },
  function(options, say)
    local net = c.load(options[1], { weights = options.weights, device = options.device })
    local steps = net:profile { runs = options.runs or 50, batch = options.batch or 1 }
    local rows, bars, sum = {}, {}, 0
    for _, s in ipairs(steps) do sum = sum + s.ms end
    local unit, scale = "ms", 1
    if sum < 1 then unit, scale = "µs", 1000 end
    for i, s in ipairs(steps) do
      rows[i] = { s.node, s.operator, s.kernel, s.device, s.ms, s.ms / sum, s.flops / s.ms * 1e-6,
                  s.kernel_flops / s.ms * 1e-6 }
      bars[i] = { s.node, s.ms * scale }
    end
    say("%.3f ms a run", steps.ms_median)
    return { "layer", "operator", "kernel", "device", "ms", "share", "gflops", "kernel_gflops" }, rows,
           plot.bars(bars, { x = "time / " .. unit, horizontal = true })
  end)
