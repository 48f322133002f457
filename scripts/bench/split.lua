-- Measures whether the parts of a divided layer run at the same time. In turns, it runs one convolution
-- on each of two devices alone, and divided between them by their speeds. tests/bench/split.sh runs it
-- under equal conditions: a core for each device, and the same scalar matrix kernel (`--kernel`) on
-- both. --kernel DEVICE=NAME applies to that device, alone and in parts.
local c = require "cnnrun"
local args = require "lib.args"
local json = require "lib.json"

-- Loads a net of one convolution of o's sizes, placed so.
local function net_of(o, place)
  return c.load(c.net { name = "layer", input = { "x", shape = { 1, o.maps, o.side, o.side } },
                        c.conv2d { "conv", out = o.out, kernel = o.window, pad = o.window // 2, place = place } },
                { weights = "random:1", device = o.names[1], kernels = o.forced })
end

-- Measures the nets in turns; returns the least time of each in ms.
local function by_turns(nets, rounds)
  local least = {}
  for _ = 1, rounds do
    for name, net in pairs(nets) do least[name] = math.min(least[name] or math.huge, net:profile { runs = 3 }.ms_min) end
  end
  return least
end

-- The benchmark: one layer split over two devices.
local function work(o)
  o.side, o.maps, o.out, o.window = o.side or 56, o.maps or 64, o.out or 128, o.window or 3
  o.rounds, o.names = o.rounds or 15, {}
  o.forced = {}
  for _, word in ipairs(o.kernel or {}) do
    local device, kernel = word:match "^(.-)=(.+)$"
    if not device then error("--kernel: want DEVICE=NAME", 0) end
    table.insert(o.forced, "conv@" .. device .. "=" .. kernel)
  end
  for name in (o.devices or "cpu,opencl:0"):gmatch "[^,]+" do o.names[#o.names + 1] = name end
  if #o.names ~= 2 then error("--devices: want two names", 0) end
  local a, b = o.names[1], o.names[2]
  local alone = by_turns({ [a] = net_of(o, a), [b] = net_of(o, b) }, 5)
  local share = (1 / alone[a]) / (1 / alone[a] + 1 / alone[b])
  local ms = by_turns({ [a] = net_of(o, a), [b] = net_of(o, b),
                        divided = net_of(o, { axis = 1, [a] = share, [b] = 1 - share }) }, o.rounds)
  local row = { devices = o.names, share = share, ms = ms, ratio = ms.divided / math.min(ms[a], ms[b]),
                ideal = 1 / (1 / ms[a] + 1 / ms[b]) / math.min(ms[a], ms[b]) }
  if o.json then return print(json.encode(row)) end
  print(("%s %.3f ms, %s %.3f ms, divided (%.1f%% on %s) %.3f ms: %.3f of the faster one; without any loss it would be %.3f")
        :format(a, ms[a], b, ms[b], share * 100, a, ms.divided, row.ratio, row.ideal))
end

return function(words)
  return args.main(words, { usage = "split.lua [options]", about = "A layer on two devices alone, and divided between them.",
    flags = { { "--devices NAMES", "two, with a comma between (cpu,opencl:0)" }, { "--kernel WORD", "DEVICE=NAME: that the device is to use (repeatable)", many = true },
              { "--maps COUNT", "maps that the layer reads (64)" }, { "--out COUNT", "and makes (128)" }, { "--window COUNT", "its window (3)" },
              { "--side COUNT", "its picture's (56)" }, { "--rounds COUNT", "turns (15)" }, { "--json", "an object" } } }, work)
end
