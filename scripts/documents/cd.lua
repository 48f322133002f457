-- CNNdroid (2016): numerical accuracy, time, power and energy of its three nets in batches of 16.
--
--   cnnrun scripts/documents/cd.lua [--quick] [-o FOLDER] [--device cpu]
local c = require "cnnrun"
local args = require "lib.args"
local board = require "lib.board"
local document = require "documents.document"
local nets = require "boards.nets"

local three = { { "LeNet-5", "nets.lenet5" }, { "CIFAR-10", "nets.cifar10_full" }, { "AlexNet", "nets.alexnet" } }
local batch = 16

-- ---- simulated ----

-- Adds the rows of CNNdroid's two phones, as simulated boards.
local function phones(d)
  d:board("htc_one_m9", function() return true end)
  local rows = {}
  for _, spec in ipairs { "htc_one_m9", "galaxy_note_4" } do
    local b, alexnet = board.load(spec), nets.alexnet()
    local cpu, cpu_joules = board.run(b, alexnet, { { unit = "cpu", share = 1 } })
    local gpu, gpu_joules = board.run(b, alexnet, { { unit = "gpu", share = 1 } })
    d:columns("fig 8", "AlexNet, sequential", spec, cpu, cpu_joules)
    d:columns("fig 8", "AlexNet, on the GPU", spec, gpu, gpu_joules)
    rows[#rows + 1] = { spec, cpu, gpu }
    d:claim("4.2", spec .. ": the GPU is faster than sequential", gpu < cpu)
    d:claim("4.3", spec .. ": the GPU takes less joules", gpu_joules < cpu_joules)
    if spec == "htc_one_m9" then
      d:row { experiment = "4.3", row = "joules of an image, sequential over the GPU", quantity = "ratio", document = 129,
              ours = cpu_joules / gpu_joules, kind = document.fitted, on = spec, why = "follows from both joules" }
      d:row { experiment = "5", row = "seconds, sequential over the GPU", quantity = "ratio", document = 60, ours = cpu / gpu,
              kind = document.predicted, on = spec, why = "its own joules and watts make 28.9" }
    end
  end
  d:bars("fig-8-simulated", "Figure 8: AlexNet, seconds of an image", rows, { "sequential", "GPU" }, { log = "y" })
end

-- ---- measured here ----

local loops = { conv = "conv_f32_naive", dense = "dense_f32_w18", max_pool = "max_pool_f32_w18", relu = "relu_f32_w18" }

-- Load options that run each operator of the net by its reference, in one thread of the processor. `plainly`: uses
-- plain loops in single precision, as CNNdroid's sequential mode does, for operators that have one.
local function references(name, plainly)
  local list, seen = {}, {}
  do
    local net <close> = c.load(name, { weights = "random:1" })
    for _, layer in ipairs(net:layers()) do
      local op = layer.operator
      if not seen[op] and op ~= "dropout" and op ~= "flatten" then list[#list + 1] = op .. "=" .. (plainly and loops[op] or "reference") end
      seen[op] = true
    end
  end
  return { device = "cpu", weights = "random:1", kernels = list, no_rewrite = { "fuse" } }
end

-- Measures a net: { ms and joules per image, convolution = ms per image of its slowest convolution }; nil and why not.
local function timed(d, net, device, sequential, size)
  local name = ("%s, batch of %d, %s on %s"):format(net, size, sequential and "sequential" or "parallel", device)
  local m, why = d:measure(name, net, sequential and references(net, true) or { device = device, weights = "random:1" }, size)
  if not m then return nil, why end
  return { ms = m.ms / size, convolution = (m.slowest.conv or 0) / size, joules = m.joules and m.joules / size, remark = m.remark }
end

-- Measures the nets sequentially and on each device, and adds the rows of figure 8.
local function speed(d)
  local rows, best, device = {}, nil, d.devices[1]
  for _, n in ipairs(three) do
    local large = n[1] == "AlexNet"
    if not (large and d.options.quick) then
      local base, why = timed(d, n[2], "cpu", true, large and 1 or batch)
      for _, name in ipairs(d.devices) do
        local fast, problem = timed(d, n[2], name, false, batch)
        -- Adds a row of figure 8 for this net and batch: what is measured, its quantity and our
        -- number.
        local function row(what, quantity, ours)
          d:row { experiment = "fig 8", row = ("%s, batch of %d, %s"):format(n[1], batch, what), quantity = quantity, ours = ours,
                  kind = document.measured, on = name, why = problem or why or fast and fast.remark or base and base.remark }
        end
        row("parallel", "ms of an image", fast and fast.ms)
        row("parallel, slowest convolution", "ms of an image", fast and fast.convolution)
        row("sequential over parallel", "ratio", fast and base and base.ms / fast.ms)
        row("slowest convolution, sequential over parallel", "ratio", fast and base and base.convolution / fast.convolution)
        if fast and fast.joules then row("parallel", "J of an image", fast.joules) end
        if fast and base and name == device then
          rows[#rows + 1] = { n[1], base.ms, fast.ms }
          best = math.max(best or 0, base.ms / fast.ms)
          d:claim("fig 8", ("%s: parallel on %s is faster than sequential"):format(n[1], name), fast.ms < base.ms)
        end
      end
    end
  end
  d:row { experiment = "5", row = "the most that parallel gains over sequential", quantity = "ratio", document = 60, ours = best,
          kind = document.measured, on = device, why = "no net could be timed" }
  d:bars("fig-8-measured", "Figure 8: ms of an image in a batch of 16", rows, { "sequential", "parallel" }, { log = "y", simulated = false })
end

-- Adds the mean squared error of each net's scores against the reference operators, which add in double precision.
local function accuracy(d)
  for _, n in ipairs(three) do
    for _, device in ipairs(d.devices) do
      local good, mse = pcall(d.keep, d, ("%s, errors on %s"):format(n[2], device), function()
        if n[1] == "AlexNet" and d.options.quick then error("--quick", 0) end
        local exact <close> = c.load(n[2], references(n[2]))
        local ours <close> = c.load(n[2], { weights = "random:1", device = device })
        local shape, count, data = ours:inputs()[1].sizes, 1, {}
        for i, size in ipairs(shape) do shape[i] = math.type(size) == "integer" and size > 0 and size or 1 count = count * shape[i] end
        for i = 1, count do data[i] = math.sin(i * .37) end
        local x = c.tensor { shape = shape, data = data, dtype = "f32" }
        local a, b = ours:run { x }, exact:run { x }
        local sum, elements = 0, 1
        for _, size in ipairs(a:shape()) do elements = elements * size end
        for _, norm in ipairs(a:plus(b, -1):norms()) do sum = sum + norm ^ 2 end
        return { sum / elements }
      end)
      d:row { experiment = "4.1", row = n[1] .. ", mean squared error of the scores", quantity = "MSE", document = 1e-12,
              ours = good and mse[1] or nil, kind = document.measured, on = device,
              why = good and "against the references, not against Caffe" or args.plain(mse) }
      if good then d:claim("4.1", ("%s on %s: no more than 1e-12"):format(n[1], device), mse[1] <= 1e-12) end
    end
  end
end

return document.main({ name = "cd", about = "CNNdroid's measurements beside its simulated phones and this machine." },
  function(d)
    if d.boards then phones(d) end
    if #d.devices == 0 then return end
    speed(d)
    accuracy(d)
  end)
