-- Which device runs which layer best? The net is timed on each device of this machine.
--
--   cnnrun scripts/experiments/devices.lua scripts/nets/lenet5.lua -o out
local c, plot = require "cnnrun", require "lib.plot"
local experiment = require "lib.experiment"

return experiment.main({
  name = "devices", words = "NET",
  about = "Times a net on each device of this machine, layer by layer.",
  flags = {
    { "--devices LIST", "only these: cpu,opencl:0" },
    { "--runs COUNT", "number of timed runs (20)" },
    { "--batch COUNT", "batch size (1)" } } },
  function(options, say)
    local names = {}
    if options.devices then
      for name in options.devices:gmatch "[^,]+" do names[#names + 1] = name end
    else
      for i, device in ipairs(c.devices()) do names[i] = device.name end
    end
    local rows, of, total = {}, {}, { "all" }
    -- The row of a node; made at its first use.
    local function row(node)
      if not of[node] then
        of[node] = { node }
        rows[#rows + 1] = of[node]
      end
      return of[node]
    end
    for i, name in ipairs(names) do
      local net <close> = c.load(options[1], { weights = options.weights, device = name })
      local steps = net:profile { runs = options.runs or 20, batch = options.batch or 1 }
      for _, step in ipairs(steps) do
        local r = row(step.node)
        r[i + 1] = (r[i + 1] or 0) + step.ms
      end
      total[i + 1] = steps.ms_median
      say("%s: %.3f ms", name, steps.ms_median)
    end
    for _, r in ipairs(rows) do
      for i = 1, #names do r[i + 1] = r[i + 1] or 0 end -- It belongs to another step there.
    end
    local chart = plot.bars(rows, { x = "time / ms", horizontal = true, labels = names })
    rows[#rows + 1] = total
    return { "layer", table.unpack(names) }, rows, chart
  end)
