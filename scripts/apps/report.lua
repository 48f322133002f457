-- Measures this machine: devices, kernels, nets of the zoo with random weights, joules, throttling.
--   cnnrun report --trust -o board.json [--seconds 300]
-- scripts/boards/measured.lua makes a board description and a table of such files.
local c = require "cnnrun"
local args = require "lib.args"
local gauges = require "lib.gauges"
local json = require "lib.json"

-- Nets and the 1e9 operations for a picture. The cheapest come first, so that a slow machine has
-- done most of them when its time is over.
local zoo = {
  { "shufflenet_v2", 0.29 }, { "mobilenet_v3", 0.433 }, { "mobilenet_v2", 0.602 },
  { "efficientnet_b0", 0.772 }, { "squeezenet_v1_1", 0.775 }, { "mobilenet_v1", 1.14 }, { "alexnet", 1.45 },
  { "googlenet", 3.17 }, { "resnet18", 3.63 }, { "yolov4_tiny", 6.91 }, { "tiny_yolo_voc", 6.97 },
  { "resnet50", 8.18 }, { "inception_v3", 11.4 }, { "vgg16", 30.9 },
}
local steady = "squeezenet_v1_1" -- Runs continuously, to see whether the machine gets slower.

-- ---- what the machine is ----

-- The text of a file, without its end; nil: it cannot be read or is empty.
local function text_of(path)
  local good, text = pcall(c.text, path)
  text = good and text:gsub("%z", ""):gsub("%s+$", "") or ""
  return text ~= "" and text or nil
end

-- The machine's name, from its device tree, firmware or /proc/cpuinfo, else "unknown"; "a simulated
-- board" on one.
local function machine()
  if c.simulated() then return "a simulated board" end
  return text_of "/proc/device-tree/model" or text_of "/sys/class/dmi/id/product_name" or
         (text_of "/proc/cpuinfo" or ""):match "model name%s*: ([^\n]+)" or "unknown"
end

-- Devices of this machine; of a simulated machine only simulated ones.
local function devices(only)
  local simulated, list = c.simulated(), {}
  for _, d in ipairs(c.devices { measure = not simulated }) do
    if (not simulated or d.family == "sim") and (not only or d.name == only) then list[#list + 1] = d end
  end
  if #list == 0 then error((only or "devices") .. ": no such device here", 0) end
  return list
end

-- True: a gauge of the list measures energy or power and gave a value.
local function has_meter(list)
  for _, g in ipairs(list) do
    if (g.quantity == "energy" or g.quantity == "power") and g.value then return true end
  end
  return false
end

-- ---- a net ----

-- Product of the sizes: the number of elements.
local function count(sizes)
  local n = 1
  for _, size in ipairs(sizes) do n = n * size end
  return n
end

-- The bytes of values that each layer reads and writes, by its name, without weights.
local function moved(net)
  local size, bytes = {}, {}
  for _, port in ipairs(net:inputs()) do
    local n = 1
    for _, d in ipairs(port.sizes) do n = n * (math.type(d) == "integer" and d or 1) end
    size[port.name] = n
  end
  for _, layer in ipairs(net:layers()) do
    local sum = count(layer.sizes)
    size[layer.name] = sum
    for _, input in ipairs(layer.inputs) do sum = sum + (size[input] or 0) end
    bytes[layer.name] = 4 * sum
  end
  return bytes
end

-- A profile's steps summed by operator and kernel, with the bytes that they move, as a list.
local function kernels(net, profile)
  local bytes, by, list = moved(net), {}, {}
  for _, row in ipairs(profile) do
    local key = row.operator .. " " .. row.kernel
    local sum = by[key]
    if not sum then
      sum = { op = row.operator, kernel = row.kernel, steps = 0, ms = 0, flops = 0, bytes = 0 }
      by[key], list[#list + 1] = sum, sum
    end
    sum.steps, sum.ms, sum.flops = sum.steps + 1, sum.ms + row.ms, sum.flops + row.flops
    sum.bytes = sum.bytes + (bytes[row.node] or 0)
  end
  return list
end

-- Joules and watts of a profile; empty: none were measured.
local function energy_of(p)
  local e = p.energy
  if not e or not e.joules then return {} end
  return { joules = e.joules, joules_net = e.joules_net, watts = e.watts, idle_watts = e.idle_watts,
           energy_source = e.source }
end

-- `left`: seconds available for it. Returns a row, or one that says that there was no time.
local function measure(name, gflop, device, load, left, metered)
  local row = { net = name, device = device.name }
  local guess = device.rate and 4e9 * gflop / device.rate
  if guess and guess > left then
    row.skipped = ("would take about %.0f s, %.0f are left"):format(guess, left)
    return row
  end
  local net <close> = c.load("nets." .. name, load)
  local once = net:time(1).ms_min
  local runs = math.floor(math.max(1, math.min(20, 1000 * left / 20 / math.max(once, 0.01))))
  local p = net:profile { runs = runs, warm = 1, energy = metered }
  row.runs, row.ms_min, row.ms_median, row.ms_max = runs, p.ms_min, p.ms_median, p.ms_max
  row.flops, row.arena_bytes, row.weight_bytes = p.flops, p.arena_bytes, p.weight_bytes
  for key, value in pairs(energy_of(p)) do row[key] = value end
  row.kernels = kernels(net, p)
  device.rate = math.max(device.rate or 0, 1000 * p.flops / p.ms_median)
  return row
end

-- ---- throttling ----

-- Median of list[from] to list[to], cut to the list; the list stays as it is.
local function middle(list, from, to)
  local some = table.move(list, math.max(1, from), math.min(#list, to), 1, {})
  table.sort(some)
  return some[(#some + 1) // 2]
end

-- Runs a net for so long, a row for each second. `slower`: the time in the last quarter over that
-- in the first.
local function sustained(device, load, seconds)
  local net <close> = c.load("nets." .. steady, load)
  local once = net:time(1).ms_min
  local rows, times, begin, watch = {}, {}, c.now(), gauges.new()
  repeat
    local ms = net:time(math.max(1, math.floor(1000 / math.max(once, 0.05)))).ms_median
    local seen = watch:state(c.now(), {})
    rows[#rows + 1] = { seconds = c.now() - begin, ms = ms, temperature = seen.temperature, hz = seen.hz }
    times[#times + 1] = ms
  until c.now() - begin >= seconds
  local quarter = math.max(1, #times // 4)
  return { net = steady, device = device.name, rows = rows,
           slower = middle(times, #times - quarter + 1, #times) / middle(times, 1, quarter) }
end

-- ---- all of it ----

-- Prints one row of the report, or why there is none.
local function print_row(row)
  local what = row.skipped or row.error or ("%.2f ms"):format(row.ms_median) ..
                 (row.joules and (", %.4g J"):format(row.joules) or "")
  print(("%-16s %-10s %s"):format(row.net, row.device, what))
end

-- The loading options with this device and random weights.
local function with_device(load, device)
  local own = { weights = "random:1" }
  for key, value in pairs(load) do own[key] = value end
  own.device = device.name
  return own
end

-- The application: measures each net on each device.
local function report(options)
  local trusted, begin = pcall(c.now)
  if not trusted then error("it reads the clock and the machine's description from Linux: cnnrun report --trust", 0) end
  local limit = options.seconds or 300
  -- Seconds left of the limit; negative: it is over.
  local function left() return limit - (c.now() - begin) end
  if options.output then c.output(options.output) end
  if not options.quiet then c.note("measuring devices") end
  local out = { report = 1, machine = options.name or machine(), system = text_of "/proc/version",
                simulated = c.simulated(), complete = false, seconds = limit, nets = { n = 0 } }
  out.devices, out.gauges = devices(options.load.device), c.gauges()
  local metered, for_steady = has_meter(out.gauges), math.min(60, limit / 5)
  -- Writes what is measured so far as JSON, if there is an output file.
  local function keep() if options.output then c.write(options.output, json.encode(out) .. "\n") end end
  keep()
  for i, entry in ipairs(zoo) do
    local name, gflop = table.unpack(entry)
    for k, device in ipairs(out.devices) do
      local share = (left() - for_steady) / ((#zoo - i + 1) * #out.devices - k + 1)
      local row = { net = name, device = device.name, skipped = "no time was left" }
      if not options.quiet then c.note(("%d of %d: %s on %s"):format(i, #zoo, name, device.name)) end
      if share > 0 or i == 1 then
        local good, got = pcall(measure, name, gflop, device, with_device(options.load, device), 2 * share, metered)
        row = good and got or { net = name, device = device.name, error = args.plain(got) }
      end
      table.insert(out.nets, row)
      if not options.json then print_row(row) end
      keep()
    end
  end
  if not options.quiet then c.note(("%s for %.0f s, to check for throttling"):format(steady, for_steady)) end
  out.sustained = sustained(out.devices[1], with_device(options.load, out.devices[1]), for_steady)
  out.seconds, out.complete = c.now() - begin, true
  keep()
  if options.json then print(json.encode(out))
  else
    print(("%-16s %-10s %.2f times as long at the end of %.0f s"):format(steady, out.devices[1].name,
                                                                         out.sustained.slower, for_steady))
  end
  return 0
end

local refused = { ["--weights"] = "weights are random", ["--labels"] = "no class is named", ["--net"] = "nets are the zoo's" }
for _, name in ipairs { "preset", "resize", "crop", "mean", "std", "scale", "channels", "letterbox" } do
  refused["--" .. name] = "inputs are random, no picture is read"
end

return args.application({
  operands = "", most = 0, nets = true,
  example = "cnnrun report --trust -o board.json",
  about = "Measures this machine: its devices, 14 nets of the zoo with random weights on each, their " ..
          "kernels, joules where a meter is, and whether it gets slower with time.",
  more = "It needs --trust for the clock and the machine's description from Linux. The file is written\n" ..
         "again after each net, so that Ctrl-C keeps the measurements so far.\n" ..
         "cnnrun scripts/boards/measured.lua board.json makes a table and a board description from it.\n" ..
         "JSON: {\"report\", \"machine\", \"system\", \"devices\", \"gauges\", \"nets\", \"sustained\", \"seconds\",\n" ..
         "       \"complete\"}",
  flags = { { "-o, --output FILE", "the results, as JSON" }, { "--seconds NUMBER", "time limit (300)" },
            { "--name TEXT", "the machine's name (as Linux tells it)" } },
  refused = refused,
}, report)
