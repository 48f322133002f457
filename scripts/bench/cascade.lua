-- Measures the tracker on one core, and with its detector on a device: whole frames; the detector's
-- stages variance, ferns and nearest neighbour (on the device with transfers); and 2,000 patches
-- compared with 500 (S16, figures 4.9 to 4.13).
--
--   cnnrun --trust --threads 1 scripts/bench/cascade.lua DIR --box X,Y,W,H [--device opencl:0]
local c = require "cnnrun"
local args = require "lib.args"
local cascade = require "lib.cascade"
local experiment = require "lib.experiment"
local follow = require "lib.follow"
local json = require "lib.json"

local spec = {
  usage = "--trust --threads 1 scripts/bench/cascade.lua DIR --box X,Y,W,H [--device NAME]",
  about = "DIR: a folder of pictures of one size.",
  flags = {
    { "--box LIST", "object to track: X,Y,WIDTH,HEIGHT in the first picture" },
    { "--device NAME", "where the detector runs beside the processor (cpu)" },
    { "--frames COUNT", "at most (60)" },
    { "--set TEXT", "NAME=VALUE, an option of the tracker, such as candidates=2000; repeatable", many = true },
    { "--json", "an object a row" },
  },
  least = 1,
}

-- The median of the list, which is sorted then; 0: it is empty.
local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2] or 0
end

-- The tracker's options from the words of --set.
local function tracker_options(options)
  local list = { seed = 1 }
  for _, word in ipairs(options.set or {}) do
    local name, value = word:match "^([%w_]+)=(.+)$"
    list[name or word] = tonumber(value) or error(("--set %s: want NAME=NUMBER"):format(word), 0)
  end
  return list
end

-- Milliseconds per frame: by the clock, and the tracker's own times by module.
local function frames(options, box, device)
  local tracker = c.object("tld", tracker_options(options))
  local by = device and cascade.new(tracker, { device = device }, true)
  if by then by.clock = c.now end
  local led, wall, parts, right = follow.start(tracker, box, false, by), {}, { {}, {}, {}, {}, {} }, 0
  local size, windows, past
  follow.each(options[1], nil, function(frame, picture)
    if not picture or frame > (options.frames or 60) then return end
    local begun = c.now()
    local r = led:frame(picture)
    if frame <= 3 then return end -- The first frames include compilation and allocations.
    wall[#wall + 1] = (c.now() - begun) * 1000
    local t, shape = tracker:times(), picture:shape()
    for k = 1, 5 do parts[k][#wall] = t[k] end
    if by then parts[5][#wall] = t[5] + by.took * 1000 end -- Includes the transfers of patches and results.
    right = right + (r.box and 1 or 0)
    size, windows, past = ("%dx%d"):format(shape[2], shape[1]), t[8], t[9]
  end)
  for k = 1, 5 do parts[k] = median(parts[k]) end
  return { wall = median(wall), parts = parts, seen = right / math.max(1, #wall), size = size,
           windows = math.tointeger(windows), past = math.tointeger(past) }
end

-- The benchmark: the tracker's cascade on the CPU and on a device.
local function work(options)
  local box = {}
  for word in (options.box or ""):gmatch("[^,]+") do box[#box + 1] = tonumber(word) end
  if #box ~= 4 then error("--box: want X,Y,WIDTH,HEIGHT", 0) end
  local device = options.device or "cpu"
  local core, other = frames(options, box), frames(options, box, device)
  local variance, ferns = cascade.alone(c.samples(options[1]):at(1), box, device, tracker_options(options))
  local nn, nn_all = cascade.patches("cpu", 2000, 500)
  local nn_there, nn_there_all = cascade.patches(device, 2000, 500)
  local columns = { "what", "core_ms", "device_ms", "times" }
  local rows = { { "frame", core.wall, other.wall },
                 { "variance", core.parts[3], variance },
                 { "ferns", core.parts[4], ferns },
                 { "third stage, while tracking", core.parts[5], other.parts[5] },
                 { "2000 x 500 patches", nn, nn_there },
                 { "the same, brought there", nn_all, nn_there_all },
                 { "picture (always on a core)", core.parts[1], other.parts[1] },
                 { "flow (always on a core)", core.parts[2], other.parts[2] } }
  for _, row in ipairs(rows) do row[4] = row[2] and row[3] and row[2] / row[3] end
  if options.json then
    for _, row in ipairs(rows) do
      print(json.encode({ what = row[1], core_ms = row[2], device_ms = row[3], times = row[4], device = device }, 5))
    end
    return
  end
  print(("%s, %d windows, %d past the variance; seen in %.0f%% and %.0f%% of the frames; %s"):format(
    core.size, core.windows, core.past, 100 * core.seen, 100 * other.seen, device))
  experiment.print(columns, rows)
end

return function(words) return args.main(words, spec, work) end
