-- The thesis of 2019 on stored plans and on quantisation: tables 6.2 to 6.4 for twelve nets, here with random weights.
--
--   cnnrun --trust scripts/documents/x19.lua [--quick] [--table 6.2] [-o FOLDER] [--device cpu] [--data SPEC]
local c = require "cnnrun"
local args = require "lib.args"
local document = require "documents.document"

-- Name, file, then numbers of the thesis. Table 6.2: seconds to compile, to compile and save, and with a stored plan; top-1
-- and top-5 in %. Table 6.3: MB before and after. Table 6.4: pictures per second before and after, top-1 and top-5 after.
local nets = {
  { "ResNet-18", "resnet18", 640.076, 756.91, 95.928, 66.51, 87.46, 17, 9.6, 1741, 2103, 66.23, 87.60 },
  { "ResNet-34", "resnet34", 1090.24, 1284.82, 157.66, 71.10, 90.03, 35, 19, 1022.33, 1302.67, 70.93, 89.95 },
  { "ResNet-50", "resnet50", 3112.29, 3254.73, 189.187, 73.01, 91.07, 35, 20, 645.67, 781.33, 72.91, 91.05 },
  { "ResNet-101", "resnet101", 7075.01, 7421.33, 306.75, 74.36, 91.90, 73, 37, 369.33, 465.33, 74.12, 90.37 },
  { "ResNet-152", "resnet152", 12211.2, 12817.4, 481.026, 74.79, 92.19, 181, 63, 261.33, 326, 73.98, 91.64 },
  { "VGG16", "vgg16", 1562.58, 1717.09, 928.119, 70.85, 88.68, 187, 134, 289, 416.67, 70.37, 88.53 },
  { "VGG19", "vgg19", 1873.26, 2003.45, 941.409, 70.25, 89.76, 269, 211, 214, 335, 69.79, 89.03 },
  { "AlexNet", "alexnet", 938.387, 1119.93, 423.322, 57.13, 80.21, 44, 39, 996.33, 1466.33, 56.73, 79.96 },
  { "GoogLeNet", "googlenet", 1275.37, 1334.38, 53.8, 68.75, 88.37, 16, 6.6, 1307.67, 1335.33, 68.23, 88.01 },
  { "MobileNet", "mobilenet_v1", 1466.71, 1531.22, 51.619, 70.81, 89.85, 14, 4.9, 1633.33, 1734.33, 69.53, 88.76 },
  { "SqueezeNet", "squeezenet_v1_0", 747.705, 907.378, 298.191, 57.07, 80.01, 3.4, 1.8, 1842.67, 2125.67, 56.43, 79.21 },
  { "Inception v3", "inception_v3", 2875.93, 3025.54, 165.192, 78.23, 94.20, 49, 18, 855, 929.67, 78.02, 93.89 },
}
local quick = { squeezenet_v1_0 = true }

-- Loads a net and returns the seconds of its first run, and the result. phases (or nil): gets `again`, the seconds of a
-- later run, and `kernels`, the seconds that kernels take of it.
local function start(name, options, phases)
  local net <close> = c.load("nets." .. name, options)
  local shape = net:inputs()[1].sizes
  shape[1] = 1
  local x = c.tensor { shape = shape, dtype = "f32" }
  local begun = c.now()
  local y = net:run { x }
  local seconds = c.now() - begun
  if phases then
    phases.again, phases.kernels = seconds, 0
    for _ = 1, 3 do
      begun = c.now()
      net:run { x }
      phases.again = math.min(phases.again, c.now() - begun)
    end
    for _, step in ipairs(net:profile { runs = 3, warm = 0 }) do phases.kernels = phases.kernels + step.ms_min * 1e-3 end
    phases.kernels = math.min(phases.kernels, phases.again)
  end
  return seconds, y
end

-- True: two tensors of the same shape are equal.
local function same(a, b)
  for _, norm in ipairs(a:plus(b, -1):norms()) do
    if norm ~= 0 then return false end
  end
  return true
end

-- Section 3.1: adds the phases of a net's first run.
local function phases_of(d, n, device, why, t)
  -- Adds a row of experiment 3.1 for the present net: the document's number and ours.
  local function row(phase, quantity, number, ours)
    d:row { experiment = "3.1", row = ("%s, %s"):format(n[1], phase), quantity = quantity, document = number, ours = ours,
            kind = document.measured, on = device, why = why }
  end
  row("compiling, of a first start", "ratio", .99, t and (t.first - t.again) / t.first)
  if not t then return end
  d.starts = (d.starts or 0) + 1
  if t.first > 2 * t.again then d.compiling = (d.compiling or 0) + 1 end
  row("compile", "seconds", nil, t.first - t.again)
  if t.saved then row("save", "seconds", nil, t.saved - t.first) end
  if t.hit then row("load what is stored", "seconds", nil, t.hit - t.again) end
  row("copy, and wait for the device", "seconds", nil, t.again - t.kernels)
  row("compute", "seconds", nil, t.kernels)
end

-- Table 6.2 on one device. why: the reason if it can't be measured, else nil.
local function stored_plans(d, n, device, why)
  local compile, save, hit, replaced, equal
  local phases = {}
  if not why then
    local good, t = pcall(d.keep, d, ("%s, starts on %s"):format(n[2], device), function()
      local cache, phases = ("%s/x19-plans/%s"):format(d.options.output, n[2]), {}
      c.folder(d.options.output .. "/x19-plans")
      c.folder(cache)
      -- Starts with these weights and this folder (nil: none).
      local function first(seed, folder, into)
        return start(n[2], { weights = "random:" .. seed, device = device, cache = folder, no_cache = not folder }, into)
      end
      for _, file in ipairs(c.files(cache)) do c.remove(cache .. "/" .. file.name) end -- plans of an earlier call
      local compiled = first(1, nil, phases)
      local saved, a = first(1, cache)
      local again, b = first(1, cache)
      local other, e = first(2, cache)
      local _, fresh = first(2)
      return { compile = compiled, save = saved, hit = again, replaced = other, equal = same(a, b) and same(e, fresh), phases = phases }
    end)
    if good then compile, save, hit, replaced, equal, phases = t.compile, t.save, t.hit, t.replaced, t.equal, t.phases
    else why = args.plain(t) end
  end
  -- Adds a row of table 6.2 for the present net: the document's number and ours.
  local function row(what, quantity, number, ours)
    d:row { experiment = "table 6.2", row = ("%s, %s"):format(n[1], what), quantity = quantity, document = number, ours = ours,
            kind = document.measured, on = device, why = why }
  end
  row("compiled", "seconds", n[3], compile)
  row("compiled and saved", "seconds", n[4], save)
  row("a hit", "seconds", n[5], hit)
  row("weights replaced", "seconds", nil, replaced)
  row("saving over compiled", "ratio", n[4] / n[3] - 1, save and save / compile - 1)
  row("a hit over compiled", "ratio", n[5] / n[3], hit and hit / compile)
  for _, top in ipairs { { "top-1", n[6] }, { "top-5", n[7] } } do
    d:cannot("table 6.2", n[1] .. ", " .. top[1] .. ", first and by a hit", "%", top[2], "wants ImageNet and nets trained on it", true)
  end
  phases.first, phases.saved, phases.hit = compile, save, hit
  phases_of(d, n, device, why, hit and phases)
  if not hit then return end
  d:claim("table 6.2", n[1] .. ": a hit is faster than to compile", hit < save)
  d:claim("table 6.2", n[1] .. ": answers are the same by a hit, and with weights replaced", equal)
  return { n[1], compile, save, hit, replaced }
end

-- Table 6.3: MB of the weights as 16-bit floats, and as int8 with their scales.
local function sizes(d, n, why)
  local before, after
  if not why then
    local good, t = pcall(d.keep, d, n[2] .. ", sizes", function()
      local net <close> = c.load("nets." .. n[2], { weights = "random:1" })
      local bytes, total, count = 0, 0, {}
      for _, layer in ipairs(net:layers()) do
        for _, weight in ipairs(layer.weights) do count[weight] = true end
      end
      for name in pairs(count) do
        local elements = 1
        for _, size in ipairs(net:weight(name):shape()) do elements = elements * size end
        bytes = bytes + 4 * elements
      end
      local _, was, is = net:encode "int8"
      total = bytes - was -- bytes of weights that are not quantised
      return { bytes / 2e6, (total / 2 + is) * 1e-6 }
    end)
    if good then before, after = t[1], t[2] else why = args.plain(t) end
  end
  -- Adds a row of table 6.3 for the present net: the document's number and ours.
  local function row(what, quantity, number, ours)
    d:row { experiment = "table 6.3", row = ("%s, %s"):format(n[1], what), quantity = quantity, document = number, ours = ours,
            kind = document.measured, on = "this machine", why = why }
  end
  row("fp16", "MB", n[8], before)
  row("int8", "MB", n[9], after)
  row("fp16 over int8", "ratio", n[8] / n[9], before and before / after)
  if not before then return end
  d:claim("table 6.3", n[1] .. ": int8 is smaller", after < before)
  return { n[1], before, after }
end

-- The spec of pictures for calibration: those of --data, or generated ones in a folder, which are
-- good enough for random weights; nil without --output.
local function data_of(d)
  if d.options.data or not d.options.output then return d.options.data end
  local folder = d.options.output .. "/x19-pictures"
  c.folder(folder)
  for picture = 1, 4 do
    local data = {}
    for i = 0, 64 * 64 * 3 - 1 do
      local pixel, colour = i // 3, i % 3
      data[i + 1] = math.floor(127.5 + 127 * math.sin((pixel % 64) * picture * .07 + colour) * math.cos((pixel // 64) * .11 * (colour + 1)))
    end
    c.tensor { shape = { 64, 64, 3 }, data = data, dtype = "u8" }:save(("%s/%d.png"):format(folder, picture))
  end
  return folder
end

-- Table 6.4: pictures per second with weights as 16-bit floats, and of the quantised net.
local function throughput(d, n, device, data, why)
  local before, after
  if not why then
    local good, t = pcall(d.keep, d, ("%s, fp16 and int8 on %s"):format(n[2], device), function()
      local net <close> = c.load("nets." .. n[2], { weights = "random:1", device = device, weights_type = "fp16" })
      local halves = 1e3 / net:profile { runs = 5, warm = 1 }.ms_median
      -- Only its time is a row: one picture to calibrate on, by which no biases are corrected.
      local whole <close> = net:quantize { data = data, limit = 1, check = 0, all = true, method = "minmax" }
      return { halves, 1e3 / whole:profile { runs = 5, warm = 1 }.ms_median }
    end)
    if good then before, after = t[1], t[2] else why = args.plain(t) end
  end
  -- Adds a row of table 6.4 for the present net: the document's number and ours.
  local function row(what, quantity, number, ours)
    d:row { experiment = "table 6.4", row = ("%s, %s"):format(n[1], what), quantity = quantity, document = number, ours = ours,
            kind = document.measured, on = device, why = why or "fp16: stored so, where the device has such kernels" }
  end
  row("fp16", "pictures a second", n[10], before)
  row("int8", "pictures a second", n[11], after)
  row("gain", "ratio", n[11] / n[10], before and after and after / before)
  for _, top in ipairs { { "top-1", n[12] }, { "top-5", n[13] } } do
    d:cannot("table 6.4", n[1] .. ", " .. top[1] .. " of int8", "%", top[2], "wants ImageNet and nets trained on it", true)
  end
  if not after then return end
  d:claim("table 6.4", n[1] .. ": int8 is faster than fp16", after > before)
  return { n[1], before, after }
end

-- Phases on a device that compiles its kernels, as in the thesis. Uses LeNet-5, since a larger net takes minutes there.
local function compiled(d, clock)
  for _, device in ipairs(d.devices) do
    if device:find "^opencl" and clock and not d.options.quick then
      local good, t = pcall(d.keep, d, "lenet5, start on " .. device, function()
        local phases = {}
        phases.first = start("lenet5", { weights = "random:1", device = device }, phases)
        return phases
      end)
      phases_of(d, { "LeNet-5" }, device, not good and args.plain(t) or nil, good and t)
    end
  end
end

return document.main({ name = "x19", usage = "--trust",
  about = "Tables 6.2 to 6.4 of the thesis of 2019, beside this machine. Times of starts want --trust before the script.",
  flags = { { "--data SPEC", "pictures to calibrate on, for table 6.4: a folder, mnist:DIR (some that are drawn)" },
            { "--table N", "only table 6.2, 6.3 or 6.4 (all)" } } },
  function(d)
    local device, bars, megabytes, rates = d.devices[1], {}, {}, {}
    local clock, data, only = pcall(c.now), nil, d.options.table
    if only and not ("6.2 6.3 6.4"):find(only, 1, true) then error("--table: want 6.2, 6.3 or 6.4", 0) end
    -- The reason for which a table is left out; nil: it is wanted.
    local function left_out(table) return only and only ~= table and "--table " .. only or nil end
    if device and not left_out "6.4" then data = data_of(d) end
    for _, n in ipairs(nets) do
      local none = not device and "--device none" or d.options.quick and not quick[n[2]] and "--quick" or nil
      local plans = left_out "6.2" or none or not clock and "--trust is missing: a clock" or not d.options.output and "-o FOLDER is missing, for plans" or nil
      bars[#bars + 1] = stored_plans(d, n, device, plans)
      megabytes[#megabytes + 1] = sizes(d, n, left_out "6.3" or none)
      rates[#rates + 1] = throughput(d, n, device, data, left_out "6.4" or none or not data and "neither --data SPEC nor -o FOLDER, for pictures to calibrate on" or nil)
    end
    if not left_out "6.2" then compiled(d, clock) end
    if d.starts then d:claim("3.1", "in most nets compiling takes most of a first start", (d.compiling or 0) > d.starts / 2,
      "a processor's kernels are compiled already: what is left is planning and packing of weights") end
    d:bars("table-6-2", "Table 6.2: seconds to the first answer", bars, { "compiled", "compiled and saved", "a hit", "weights replaced" }, { simulated = false })
    d:bars("table-6-3", "Table 6.3: MB of weights", megabytes, { "fp16", "int8" }, { simulated = false })
    d:bars("table-6-4", "Table 6.4: pictures a second", rates, { "fp16", "int8" }, { simulated = false })
  end)
