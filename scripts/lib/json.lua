-- Converts values to JSON and back. Tables with [1], or with `n` = 0, are arrays. Others are
-- objects, whose keys are written in order. null is json.null, or a missing element.
local c = require "cnnrun"

---JSON.
---@class lib.json
---@field null table what stands for null
local M = {}

M.null = setmetatable({}, { __tostring = function() return "null" end })

local deepest = 100

-- ---- to text ----

-- A text in quotes, with control characters, " and \ as \uXXXX.
local function quote(text)
  return '"' .. text:gsub('[%c"\\\127]', function(ch)
    return ("\\u%04x"):format(ch:byte())
  end) .. '"'
end

-- A number as text; one that is not finite: null.
local function number(v, digits)
  if v ~= v or v == math.huge or v == -math.huge then return "null" end
  if math.type(v) == "integer" then return ("%d"):format(v) end
  for d = digits or 15, digits or 17 do
    local text = ("%%.%dg"):format(d):format(v):gsub(",", ".")
    if d == (digits or 17) or tonumber(text) == v then return text end
  end
end

-- Invalid UTF-8 would make the whole line unreadable.
local function text(v)
  if utf8.len(v) then return quote(v) end
  return quote((v:gsub("[\128-\255]", "?")))
end

-- A value as JSON; depth: the levels above it.
local function encode(v, digits, depth)
  local kind = type(v)
  if v == nil or v == M.null then return "null" end
  if kind == "number" then return number(v, digits) end
  if kind == "string" then return text(v) end
  if kind == "boolean" then return tostring(v) end
  if kind ~= "table" then error(("a %s value has no form in JSON"):format(kind), 0) end
  if depth > deepest then error("tables more than 100 deep (is one inside itself?)", 0) end
  local parts = {}
  if v[1] ~= nil or v.n == 0 then
    for i = 1, #v do parts[i] = encode(v[i], digits, depth + 1) end
    return "[" .. table.concat(parts, ",") .. "]"
  end
  local keys = {}
  for key in pairs(v) do
    if type(key) ~= "string" then error(("a key that is a %s: want texts"):format(type(key)), 0) end
    keys[#keys + 1] = key
  end
  table.sort(keys)
  for i, key in ipairs(keys) do parts[i] = text(key) .. ":" .. encode(v[key], digits, depth + 1) end
  return "{" .. table.concat(parts, ",") .. "}"
end

---The text of a value, or throws if it has none. Numbers have all their digits, or so many
---significant ones. @param v any @param digits? integer @return string
---@param v any
---@param digits? integer
---@return string
function M.encode(v, digits)
  local good, result = pcall(encode, v, digits, 1)
  return good and result or error(result, 2)
end

-- ---- from text ----

local escapes = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", ['"'] = '"', ["\\"] = "\\",
                  ["/"] = "/" }

-- Raises an error: at byte `at` something else is wanted.
local function wrong(at, want) error(("byte %d: want %s"):format(at, want), 0) end

-- A unit of four hexadecimal digits, and the place after it.
local function unit(s, at)
  local code = tonumber(s:match("^%x%x%x%x", at) or wrong(at, "four hexadecimal digits"), 16)
  return code, at + 4
end

-- The text whose first quote lies before `at`.
local function read_text(s, at)
  local parts = {}
  while true do
    local stop = s:find('[\0-\31"\\]', at) or wrong(#s + 1, "a closing quote")
    parts[#parts + 1] = s:sub(at, stop - 1)
    local ch = s:sub(stop, stop)
    if ch == '"' then return table.concat(parts), stop + 1 end
    if ch ~= "\\" then wrong(stop, "no control character in a text") end
    local code
    ch, at = s:sub(stop + 1, stop + 1), stop + 2
    if ch == "u" then
      code, at = unit(s, at)
      if code >= 0xd800 and code < 0xdc00 and s:sub(at, at + 1) == "\\u" then
        local low, after = unit(s, at + 2)
        if low >= 0xdc00 and low < 0xe000 then
          code, at = 0x10000 + (code - 0xd800) * 0x400 + low - 0xdc00, after
        end
      end
      parts[#parts + 1] = (code >= 0xd800 and code < 0xe000) and "\u{fffd}" or utf8.char(code)
    else parts[#parts + 1] = escapes[ch] or wrong(stop + 1, "a valid escape") end
  end
end

local read

-- The place of the next byte that is no blank.
local function skip(s, at) return s:find("[^ \t\r\n]", at) or #s + 1 end

-- Reads items up to `close`; there may be none. one(at) reads one.
local function read_items(s, at, close, one)
  at = skip(s, at)
  if s:sub(at, at) == close then return at + 1, 0 end
  local n = 0
  while true do
    at, n = skip(s, one(at)), n + 1
    local ch = s:sub(at, at)
    if ch == close then return at + 1, n end
    if ch ~= "," then wrong(at, ("a comma or %s"):format(close)) end
    at = skip(s, at + 1)
  end
end

-- Reads an array or object; returns it and the place after it.
local function read_table(s, at, depth)
  local result, n = {}, nil
  if depth > deepest then wrong(at, "at most 100 levels") end
  if s:sub(at, at) == "[" then
    at, n = read_items(s, at + 1, "]", function(from)
      local v, after = read(s, from, depth + 1)
      result[#result + 1] = v
      return after
    end)
    if n == 0 then result.n = 0 end
    return result, at
  end
  return result, (read_items(s, at + 1, "}", function(from)
    if s:sub(from, from) ~= '"' then wrong(from, "a key in quotes") end
    local key, after = read_text(s, from + 1)
    after = skip(s, after)
    if s:sub(after, after) ~= ":" then wrong(after, "a colon") end
    result[key], after = read(s, skip(s, after + 1), depth + 1)
    return after
  end))
end

-- Reads a value; returns it and the place after it.
function read(s, at, depth)
  local ch = s:sub(at, at)
  if ch == "{" or ch == "[" then return read_table(s, at, depth) end
  if ch == '"' then return read_text(s, at + 1) end
  local word = s:match("^%a+", at)
  if word == "true" or word == "false" then return word == "true", at + #word end
  if word == "null" then return M.null, at + 4 end
  local digits = s:match("^-?%d+%.?%d*[eE]?[+-]?%d*", at)
  local good = digits and not digits:find "^-?0%d" and not digits:find "%.%D"
  good = good and not digits:find "%.$"
  local v = good and tonumber(digits)
  if not v then wrong(at, "a value") end
  return v, at + #digits
end

---The value of a text. An error gives the byte position.
---@param s string
---@return any
function M.decode(s)
  local good, v, at = pcall(read, s, skip(s, 1), 1)
  if not good then error(v, 2) end
  at = skip(s, at)
  if at <= #s then error(("byte %d: want the end"):format(at), 2) end
  return v
end

---Writes a value to a file.
---@param path string
---@param v any
function M.write(path, v) c.write(path, M.encode(v) .. "\n") end

---Reads the value of a file.
---@param path string
---@return any
function M.read(path) return M.decode(c.text(path)) end

return M
