-- Boards: parameters that say where they come from, and the sums that a simulated machine does.
-- plugins/device-sim/model.c does the same in C, at run time.
local board = {}

-- ---- parameters ----

local mark = {}
local function marker(kind)
  return function(value, of)
    assert(type(of) == "string" and of ~= "", "a parameter says what it is from")
    return { [mark] = kind, value = value, of = of }
  end
end
board.sheet = marker("data sheet")  -- of whom
board.fitted = marker("fitted")     -- to which row: fit.lua finds the value again
board.assumed = marker("assumed")   -- why

local function plain(t, path, list)
  local out = {}
  for key, value in pairs(t) do
    local at = path == "" and tostring(key) or path .. "." .. tostring(key)
    if type(value) == "table" and value[mark] then
      list[#list + 1] = { path = at, kind = value[mark], value = value.value, of = value.of }
      value = value.value
    end
    out[key] = type(value) == "table" and plain(value, at, list) or value
  end
  return out
end

-- The plain table, with `parameters` { path, kind, value, of } in the order of their paths.
function board.new(t)
  local list = {}
  local out = plain(t, "", list)
  table.sort(list, function(a, b) return a.path < b.path end)
  out.parameters = list
  out.clock = out.clock == nil and "simulated" or out.clock
  for key, value in pairs { dry = false, simulate = "auto", machine = "" } do
    if out[key] == nil then out[key] = value end
  end
  return out
end

-- Frequencies and voltages, { 177, .8125, 266, .8625 ... }, as steps.
function board.steps(list)
  local out = {}
  for i = 1, #list, 2 do out[#out + 1] = { mhz = list[i], volts = list[i + 1] } end
  return out
end

-- A list of units, rails or clocks, by name.
function board.named(list, name)
  for _, entry in ipairs(list) do
    if entry.name == name then return entry end
  end
  error("the board has no '" .. tostring(name) .. "'", 2)
end

-- ---- what work takes: work = { op =, flops =, bytes =, share = (of it; nil: all) } ----

local function matches(pattern, text)
  return text:find("^" .. pattern:gsub("%W", "%%%0"):gsub("%%%*", ".*") .. "$") ~= nil
end

local function class_of(unit, op)
  for _, class in ipairs(unit.classes or {}) do
    if matches(class.op, op) then return class end
  end
end

-- Speed and power of the unit's clock, as parts of those at its fastest step.
local function pace(b, unit, mhz)
  if not unit.clock then return 1, 1 end
  local steps = board.named(b.clocks, unit.clock).steps
  local top, is = steps[#steps], steps[#steps]
  for _, step in ipairs(steps) do
    if mhz and step.mhz <= mhz then is = step end
  end
  if mhz and mhz < steps[1].mhz then is = steps[1] end
  return is.mhz / top.mhz, is.volts ^ 2 * is.mhz / (top.volts ^ 2 * top.mhz)
end

local function rates(b, unit, op, mhz)
  local class = class_of(unit, op)
  if class then return (class.gflops or 0) * 1e9 * pace(b, unit, mhz), (class.gbytes or 0) * 1e9 end
  local flops, bytes = 0, 0
  for _, name in ipairs(unit.members or {}) do
    local f, m = rates(b, board.named(b.units, name), op, mhz)
    flops, bytes = flops + f, bytes + m
  end
  return flops, bytes
end

-- Seconds of a piece of work, without what a split costs.
function board.seconds(b, unit, work, mhz)
  local flops, bytes = rates(b, unit, work.op, mhz)
  local share = work.share or 1
  local compute = flops > 0 and work.flops * share / flops or 0
  local memory = bytes > 0 and work.bytes * share / bytes or 0
  return (unit.launch or 0) + math.max(compute, memory)
end

-- Watts above idle while it works.
function board.watts(b, unit, op, mhz)
  if unit.members then
    local sum = 0
    for _, name in ipairs(unit.members) do sum = sum + board.watts(b, board.named(b.units, name), op, mhz) end
    return sum
  end
  local class, _, power = class_of(unit, op), pace(b, unit, mhz)
  return (unit.power.static or 0) + (unit.power.dynamic or 0) * power * (class and class.activity or 1)
end

function board.idle_watts(b)
  local sum = 0
  for _, rail in ipairs(b.rails) do sum = sum + (rail.idle or 0) end
  return sum
end

local function per_byte(b)
  local sum = 0
  for _, rail in ipairs(b.rails) do sum = sum + (rail.per_byte or 0) end
  return sum
end

-- Where shares of `size` pieces end, as the planner rounds them.
function board.ranges(shares, size)
  local out, sum, at = {}, 0, 0
  for i, share in ipairs(shares) do
    sum = sum + share
    local stop = i == #shares and size or math.max(at, math.min(size, (sum * size + 0.5) // 1))
    out[i] = stop - at
    at = stop
  end
  return out
end

-- One piece of work on one unit: seconds, joules above idle.
function board.work(b, unit, work, part, mhz)
  local seconds = board.seconds(b, unit, work, mhz)
  local joules = seconds * board.watts(b, unit, work.op, mhz) + work.bytes * (work.share or 1) * per_byte(b)
  if part and unit.split then
    seconds = seconds + (unit.split.seconds or 0)
    joules = joules + (unit.split.joules or 0)
  end
  return seconds, joules
end

-- Layers, each { op, flops, bytes, size (pieces it may be cut into; nil: none) }, by shares of units,
-- { { unit =, share = } ... }; the parts of a layer run at once. Seconds, joules above idle, and what
-- each layer takes. Nothing for moving values about: the units share a memory.
function board.run(b, layers, shares)
  local seconds, joules, each = 0, 0, {}
  local list = {}
  for i, s in ipairs(shares) do list[i] = s.share end
  for i, layer in ipairs(layers) do
    local most, sum = 0, 0
    local sizes = layer.size and #shares > 1 and board.ranges(list, layer.size)
    for k, s in ipairs(shares) do
      local share = sizes and sizes[k] / layer.size or (k == 1 and 1 or 0)
      if share > 0 then
        local work = { op = layer.op, flops = layer.flops, bytes = layer.bytes, share = share }
        local t, e = board.work(b, board.named(b.units, s.unit), work, sizes and true)
        most, sum = math.max(most, t), sum + e
      end
    end
    each[i] = { seconds = most, joules = sum }
    seconds, joules = seconds + most, joules + sum
  end
  return seconds, joules, each
end

return board
