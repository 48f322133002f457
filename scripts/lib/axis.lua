-- The axis of a plot: its range, the positions of its ticks, and their labels (few, round numbers).
local M = {}

local superscripts = { ["-"] = "⁻", ["0"] = "⁰", ["1"] = "¹", ["2"] = "²", ["3"] = "³", ["4"] = "⁴",
                       ["5"] = "⁵", ["6"] = "⁶", ["7"] = "⁷", ["8"] = "⁸", ["9"] = "⁹" }

-- A power of ten as text, such as "10³".
local function power(e)
  return "10" .. ("%d"):format(e):gsub(".", superscripts)
end

---Formats a number with so many decimal places and a true minus sign. By default it has the places
---that it needs, at most six.
---@param v number
---@param digits? integer
---@return string
function M.text(v, digits)
  local text
  if digits then text = ("%%.%df"):format(digits):format(v)
  else text = ("%.6g"):format(v) end
  text = text:gsub(",", ".") -- The decimal point of every locale.
  if tonumber(text) == 0 then text = text:gsub("^%-", "") end
  return (text:gsub("^%-", "−"):gsub("e([+-]?)0*(%d+)$", function(sign, e)
    return "×" .. power(math.tointeger((sign == "-" and -1 or 1) * tonumber(e)))
  end))
end

---Formats a number with so many significant digits.
---@param v number
---@param digits integer
---@return string
function M.rounded(v, digits)
  local text = ("%%.%dg"):format(digits):format(v):gsub(",", ".")
  return M.text(tonumber(text))
end

-- The smallest step of at least `raw` that is 1, 2, 2.5 or 5 times a power of ten.
local function round_step(raw)
  local unit = 10.0 ^ math.floor(math.log(raw, 10) + 1e-9)
  for _, m in ipairs { 1, 2, 2.5, 5 } do
    if m * unit >= raw * (1 - 1e-9) then return m * unit end
  end
  return 10 * unit
end

-- The number of decimal places that distinguish multiples of the step.
local function digits_of(step)
  for d = 0, 12 do
    local scaled = step * 10.0 ^ d
    if math.abs(scaled - math.floor(scaled + .5)) < 1e-6 * scaled then return d end
  end
  return 12
end

---At most about `most` ticks between two numbers. The last result is the label of the axis' end if
---the ticks are to be multiplied by a power of ten: "×10⁶".
---@param low number
---@param high number
---@param most integer
---@param whole? boolean at whole numbers alone
---@return { at: number, text: string }[]
---@return string?
function M.linear(low, high, most, whole)
  local step = round_step((high - low) / math.max(1, most))
  if whole then step = math.max(1, math.ceil(step)) end
  local largest, e = math.max(math.abs(low), math.abs(high)), 0
  if largest >= 1e5 or largest < 1e-3 then e = math.floor(math.log(largest, 10) / 3 + 1e-9) * 3 end
  local digits, ticks = digits_of(step / 10.0 ^ e), {}
  local first, last = math.ceil(low / step - 1e-6), math.floor(high / step + 1e-6)
  for i = first, last do
    ticks[#ticks + 1] = { at = i * step, text = M.text(i * step / 10.0 ^ e, digits) }
  end
  return ticks, e ~= 0 and "×" .. power(e) or nil
end

-- 0.01, 1, 1000; larger and smaller ones as powers.
local function decade_text(e, plain)
  if plain then return M.text(10.0 ^ e, math.max(0, -e)) end
  return power(e)
end

---The same for logarithms of positive numbers; ticks without a label are minor ones.
---@param low number
---@param high number
---@param most integer
---@return { at: number, text: string? }[]
function M.logarithmic(low, high, most)
  local first = math.floor(math.log(low, 10) + 1e-9)
  local last = math.ceil(math.log(high, 10) - 1e-9)
  local decades = math.log(high / low, 10)
  if decades < .7 then return (M.linear(low, high, most)) end
  local plain, stride = first >= -4 and last <= 4, math.ceil(decades / math.max(1, most))
  local named = decades < 2 and most >= 4 and { [2] = true, [5] = true } or {}
  local ticks = {}
  for e = first, last do
    for m = 1, stride > 1 and 1 or 9 do
      local at, text = m * 10.0 ^ e, nil
      if m == 1 and (e - first) % stride == 0 then text = decade_text(e, plain)
      elseif named[m] then text = M.text(at) end
      if at >= low * (1 - 1e-9) and at <= high * (1 + 1e-9) then
        ticks[#ticks + 1] = { at = at, text = text }
      end
    end
  end
  return ticks
end

-- ---- axes: { low, high, log } or { names } ----

-- True: v is a number, neither infinite nor not-a-number.
function M.finite(v) return type(v) == "number" and v - v == 0 end

-- `given`: { low, high }; without it the range follows from the data.
function M.new(log, given)
  local axis = { log = log, low = math.huge, high = -math.huge }
  if given then
    local low, high = given[1], given[2]
    if not (M.finite(low) and M.finite(high) and low < high and (not log or low > 0)) then
      error("a range: want { low, high }" .. (log and ", above 0 on a logarithmic axis" or ""), 4)
    end
    axis.fixed = { low, high }
  end
  return axis
end

-- True: v has a place on the axis.
function M.shows(axis, v) return M.finite(v) and (not axis.log or v > 0) end

-- Widens the axis, in place, until it reaches v; nothing if the axis can't show v.
function M.cover(axis, v)
  if not M.shows(axis, v) then return end
  axis.low, axis.high = math.min(axis.low, v), math.max(axis.high, v)
end

-- Adds a margin around the data, but not below a `floor` on which the data stands.
function M.settle(axis, floor)
  if axis.names then
    axis.low, axis.high = .5, #axis.names + .5
    return
  end
  local low, high = axis.low, axis.high
  if low > high then low, high = axis.log and 1 or 0, axis.log and 10 or 1 end
  if axis.log then
    if low == high then low, high = low / 2, high * 2 end
    local room = (high / low) ^ .05
    axis.low, axis.high = low / room, high * room
  else
    if low == high then
      local room = low == 0 and 1 or math.abs(low) * .1
      low, high = low - room, high + room
    end
    local room = (high - low) * .05
    axis.low = (floor and low >= floor) and floor or low - room
    axis.high = (floor and high <= floor) and floor or high + room
  end
  if axis.fixed then axis.low, axis.high = table.unpack(axis.fixed) end
end

-- The position on the axis, from 0 to 1.
function M.along(axis, v)
  if axis.log then return math.log(v / axis.low) / math.log(axis.high / axis.low) end
  return (v - axis.low) / (axis.high - axis.low)
end

-- About so many ticks of an axis, { at, text }, and the label of its end.
function M.ticks(axis, most)
  if axis.names then
    local list = {}
    for i, name in ipairs(axis.names) do list[i] = { at = i, text = name } end
    return list
  end
  if axis.log then return M.logarithmic(axis.low, axis.high, most) end
  return M.linear(axis.low, axis.high, most, axis.whole)
end

return M
