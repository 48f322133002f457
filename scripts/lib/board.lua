-- Boards: parameters with their origin, and the predicted time and energy of nets.
local board = {}

-- ---- parameters ----

local mark = {}
-- A function that marks a parameter as of this kind, with where it is from.
local function marker(kind)
  return function(value, of)
    assert(type(of) == "string" and of ~= "", "a parameter says what it is from")
    return { [mark] = kind, value = value, of = of }
  end
end
board.sheet = marker("data sheet")  -- The manufacturer.
board.fitted = marker("fitted")     -- The row; fit.lua finds the value from it.
board.assumed = marker("assumed")   -- The reason.

-- A copy of t without marks; list receives each marked value by its path.
local function plain(t, path, list)
  local out = {}
  for key, value in pairs(t) do
    local at, entry = path == "" and tostring(key) or path .. "." .. tostring(key), nil
    if type(value) == "table" and value[mark] then
      entry = { path = at, kind = value[mark], of = value.of }
      list[#list + 1] = entry
      value = value.value
    end
    if type(value) == "table" then value = plain(value, at, list) end
    out[key] = value
    if entry then entry.value = value end
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

-- The board that `--board SPEC` names: "odroid_xu3,library=ch3". Values are names and numbers.
function board.load(spec)
  local name, values = spec:match "^[^,]+", {}
  for key, value in spec:gmatch ",([^,=]+)=?([^,]*)" do values[key] = tonumber(value) or value end
  local b = require("boards." .. name)
  return type(b) == "function" and b(values) or b
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

-- ---- the cost of work: work = { op =, flops =, products = (of those), bytes =, share = (of it; nil: all) } ----

-- Adds a line a value to out, with its path.
local function lines(out, path, value)
  if type(value) == "table" then
    if path ~= "" then out[#out + 1] = path .. "=" .. #value end
    for key, inner in pairs(value) do lines(out, path == "" and key or path .. "." .. key, inner) end
  else
    if type(value) == "boolean" then value = value and 1 or 0 end
    out[#out + 1] = path .. "=" .. (type(value) == "number" and ("%.17g"):format(value) or value)
  end
  return out
end

local machines = setmetatable({}, { __mode = "k" })

-- The simulated machine that the board describes, which answers all questions below. Its clocks are
-- at the highest step unless they are set. `anew`: the board may have changed.
function board.machine(b, anew)
  if anew or not machines[b] then
    local told = {} -- The part of the description that is simulated; the rest only says where it comes from.
    for _, key in ipairs { "rails", "clocks", "units", "heat" } do told[key] = b[key] end
    machines[b] = require "cnnrun".object("simulated", { board = table.concat(lines({}, "", told), "\n") })
  end
  return machines[b]
end

-- Watts of all of the board's rails together when nothing runs.
function board.idle_watts(b)
  local sum = 0
  for _, rail in ipairs(b.rails) do sum = sum + (rail.idle or 0) end
  return sum
end

-- The ends of the shares of `size` pieces, rounded as by the planner.
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

-- One piece of work on one unit: returns seconds, and joules above idle.
function board.work(b, unit, work, part)
  local share = work.share or 1
  return board.machine(b):takes(unit.name, work.op, { work.flops * share, (work.products or 0) * share,
                                                      work.bytes * share, part and 1 or 0 })
end

-- Layers, each { op, flops, bytes, size (pieces into which it may be divided; nil: none) }, by
-- shares of units, { { unit =, share = } ... }; the parts of a layer run at once. Returns seconds,
-- joules above idle, and the cost of each layer. Moving values costs nothing: the units share a
-- memory.
function board.run(b, layers, shares)
  local seconds, joules, each = 0, 0, {}
  local list = {}
  board.machine(b, true)
  for i, s in ipairs(shares) do list[i] = s.share end
  for i, layer in ipairs(layers) do
    local most, sum = 0, 0
    local sizes = layer.size and #shares > 1 and board.ranges(list, layer.size)
    for k, s in ipairs(shares) do
      local share = sizes and sizes[k] / layer.size or (k == 1 and 1 or 0)
      if share > 0 then
        local work = { op = layer.op, flops = layer.flops, products = layer.products, bytes = layer.bytes, share = share }
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
