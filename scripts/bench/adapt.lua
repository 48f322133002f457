-- Compares the EDP of what --adapt decides on a simulated board with the least EDP of all sets of its units. The board may
-- simulate contention between units, heat and varying times, which estimates do not know but runs measure.
--
--   cnnrun --board disturbed,seed=7,dry scripts/bench/adapt.lua [--layers 3] [--runs 12] [--json]
--
-- The optimum is found by running plans: each assignment of whole layers to units; and for each set of units, each choice of
-- layers that are divided among the set by the units' speeds, while one unit of the set runs the other layers. Each plan runs
-- for --warm seconds of simulated time, until the temperature is stable, then --runs times for its mean EDP. The best tenth
-- is measured again with four times as many runs. tests/bench/adapt.py --boards draws the boards.
local c = require "cnnrun"
local args = require "lib.args"
local json = require "lib.json"
local energy = require "cnnrun".energy

-- A net of this many layers, drawn by the seed.
local function net_of(layers, seed)
  local body = {}
  for i = 1, layers do
    body[#body + 1] = c.conv { out = 32 << ((seed + i) % 3), kernel = i % 2 == 0 and 1 or 3, pad = i % 2 == 0 and 0 or 1, name = "layer" .. i }
  end
  return c.net { name = "drawn", input = { "x", shape = { 1, 16, 112, 112 } }, body = body }
end

-- Returns the mean EDP of a run in J s over `runs` runs, and its mean time in seconds.
local function edp_of(net, input, warm, runs)
  local hot = 0
  while hot < warm do hot = hot + energy(function() for _ = 1, 5 do net:run(input) end end, { no_idle = true }).seconds end
  local e = energy(function() for _ = 1, runs do net:run(input) end end, { no_idle = true })
  return e.joules / runs * (e.seconds / runs), e.seconds / runs
end

-- Calls take(set) for each non-empty set of the names.
local function each_set(names, take)
  for mask = 1, (1 << #names) - 1 do
    local set = {}
    for i, name in ipairs(names) do
      if mask >> (i - 1) & 1 == 1 then set[#set + 1] = name end
    end
    take(set)
  end
end

-- Lists all plans, as tables for the option `place`. speeds: by unit, from which shares follow.
local function plans_of(names, layers, speeds)
  local list = {}
  -- Adds to the list each placement of the layers from i on.
  local function assign(place, i)
    if i > layers then
      local copy = {}
      for key, value in pairs(place) do copy[key] = value end
      list[#list + 1] = copy
      return
    end
    for _, name in ipairs(names) do
      place["layer" .. i] = name
      assign(place, i + 1)
    end
  end
  assign({}, 1)
  each_set(names, function(set)
    for mask = 1, #set > 1 and (1 << layers) - 1 or 0 do
      for _, other in ipairs(mask == (1 << layers) - 1 and { set[1] } or set) do
        local place, shares, sum = {}, {}, 0
        for _, name in ipairs(set) do sum = sum + speeds[name] end
        for _, name in ipairs(set) do shares[name] = speeds[name] / sum end
        for i = 1, layers do place["layer" .. i] = mask >> (i - 1) & 1 == 1 and shares or other end
        list[#list + 1] = place
      end
    end
  end)
  return list
end

-- The benchmark: prints the EDP (J s) that an adapting placement keeps and how far it lies above the best plan's, as a
-- line, or with o.json as JSON. Options: layers, runs, warm, seed, json. Raises an error unless the board is simulated.
local function work(o)
  if not c.simulated() then error("adapt.lua: want a simulated board: cnnrun --board drawn,seed=7,dry ...", 0) end
  local layers, runs, warm = o.layers or 3, o.runs or 12, o.warm or 0
  local description, names, speeds = net_of(layers, o.seed or 1), {}, {}
  for _, device in ipairs(c.devices()) do
    if device.name:find "^sim:" then names[#names + 1] = device.name end
  end
  local input = c.tensor { shape = { 1, 16, 112, 112 } }
  -- Loads the net with random weights and these options, which it changes.
  local function load(options)
    options.weights = "random:1"
    return c.load(description, options)
  end
  local row = { units = #names, layers = layers, alone = math.huge, optimum = math.huge }
  for _, name in ipairs(names) do
    local net <close> = load { device = name }
    local edp, seconds = edp_of(net, input, warm, runs)
    speeds[name], row.alone = 1 / seconds, math.min(row.alone, edp)
    row.default = row.default or edp
  end
  local measured = {}
  -- The energy-delay product, in joule seconds, of a fixed placement.
  local function measure(place, times)
    local net <close> = load { devices = names, place = place }
    return (edp_of(net, input, warm, runs * times))
  end
  for i, place in ipairs(plans_of(names, layers, speeds)) do measured[i] = { place = place, edp = measure(place, 1) } end
  table.sort(measured, function(a, b) return a.edp < b.edp end)
  for i = 1, math.max(1, #measured // 10) do row.optimum = math.min(row.optimum, measure(measured[i].place, 4)) end
  row.plans = #measured
  local net <close> = load { devices = names, adapt = true }
  for i = 1, 400 do
    net:run(input)
    local state = net:adapted()
    if state.phase == "settled" then
      row.decided, row.runs = state.decided, i
      break
    end
  end
  row.kept = edp_of(net, input, warm, runs * 4)
  row.optimum = math.min(row.optimum, row.kept, row.alone) -- A policy may divide each layer differently, so it may beat the plans above.
  row.above = row.kept / row.optimum - 1
  if o.json then print(json.encode(row)) return end
  print(("%d units, %d plans: default %.4g, alone %.4g, optimum %.4g, kept %.4g J s (%+.1f%%) after %s runs: %s"):format(row.units,
        row.plans, row.default, row.alone, row.optimum, row.kept, row.above * 100, row.runs or "no", row.decided or "not settled"))
end

return function(words)
  return args.main(words, { usage = "adapt.lua [options]", about = "Compares what --adapt keeps on a simulated board with the least EDP.",
    flags = { { "--layers COUNT", "layers of the net (3)" }, { "--runs COUNT", "of each plan (12)" }, { "--warm NUMBER", "seconds of the board's time before them (0)" },
              { "--seed COUNT", "by which the net is drawn (1)" }, { "--json", "as one object" } } }, work)
end
