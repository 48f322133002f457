-- Values as JSON: tables with [1], or with `n` = 0, are arrays, others objects with sorted keys.
local M = {}

local function quote(text)
  return '"' .. text:gsub('[%c"\\\127]', function(ch)
    return ("\\u%04x"):format(ch:byte())
  end) .. '"'
end

local function number(v)
  if v ~= v or v == math.huge or v == -math.huge then return "null" end
  if math.type(v) == "integer" then return ("%d"):format(v) end
  return (("%.7g"):format(v):gsub(",", "."))
end

-- What is no UTF-8 would make the whole line unreadable.
local function text(v)
  if utf8.len(v) then return quote(v) end
  return quote((v:gsub("[\128-\255]", "?")))
end

function M.encode(v)
  local kind = type(v)
  if kind == "number" then return number(v) end
  if kind == "string" then return text(v) end
  if kind ~= "table" then return tostring(v == nil and "null" or v) end
  local parts = {}
  if v[1] ~= nil or v.n == 0 then
    for i = 1, #v do parts[i] = M.encode(v[i]) end
    return "[" .. table.concat(parts, ",") .. "]"
  end
  local keys = {}
  for key in pairs(v) do keys[#keys + 1] = key end
  table.sort(keys)
  for i, key in ipairs(keys) do parts[i] = text(key) .. ":" .. M.encode(v[key]) end
  return "{" .. table.concat(parts, ",") .. "}"
end

return M
