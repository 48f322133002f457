-- Tables as comma-separated values, quoted as in RFC 4180. Numbers have a decimal point in every
-- locale, and all their digits.
--
--   csv.write("out.csv", { "keep", "top1" }, { { 0.5, 0.98 }, { 0.1, 0.91 } })
--   for _, row in ipairs(csv.read "out.csv") do print(row[1], row.top1) end
local c = require "cnnrun"

---Tables as comma-separated values.
---@class lib.csv
local M = {}

-- A number as text that reads back the same; nan, inf and -inf by name.
local function number(v)
  if math.type(v) == "integer" then return ("%d"):format(v) end
  if v ~= v then return "nan" end
  if v == math.huge or v == -math.huge then return v > 0 and "inf" or "-inf" end
  for digits = 15, 17 do
    local text = ("%%.%dg"):format(digits):format(v):gsub(",", ".")
    if digits == 17 or tonumber(text) == v then return text end
  end
end

-- A value as a field, in quotes where that is needed.
local function field(v)
  if v == nil then return "" end
  if type(v) == "number" then return number(v) end
  local text = tostring(v)
  if text:find '[",\r\n]' or text:find "^%s" or text:find "%s$" then
    return '"' .. text:gsub('"', '""') .. '"'
  end
  return text
end

---The text of a table: a line of names, then a line for each row. A row is a list, or has its
---values by name.
---@param columns string[]
---@param rows any[]
---@return string
function M.encode(columns, rows)
  local lines, fields = {}, {}
  for k, name in ipairs(columns) do fields[k] = field(name) end
  lines[1] = table.concat(fields, ",")
  for i, row in ipairs(rows) do
    if type(row) ~= "table" then error(("row %d: want a table"):format(i), 2) end
    local named = row[1] == nil
    for k, name in ipairs(columns) do
      local v = row[k]
      if named then v = row[name] end
      fields[k] = field(v)
    end
    lines[i + 1] = table.concat(fields, ",", 1, #columns)
  end
  lines[#lines + 1] = ""
  return table.concat(lines, "\n")
end

---The same table with a last column "simulated", true in each row, if times and joules are those of
---a simulated board; else the table itself.
---@param columns string[]
---@param rows any[]
---@return string[] columns
---@return any[] rows
function M.marked(columns, rows)
  local n, marked = #columns, {}
  if not c.simulated() or columns[n] == "simulated" then return columns, rows end
  for i, row in ipairs(rows) do
    local copy, named = {}, row[1] == nil
    for k, name in ipairs(columns) do
      if named then copy[k] = row[name] else copy[k] = row[k] end
    end
    copy[n + 1] = true
    marked[i] = copy
  end
  local names = table.move(columns, 1, n, 1, {})
  names[n + 1] = "simulated"
  return names, marked
end

---Writes a table to a file, marked as simulated if it is.
---@param path string
---@param columns string[]
---@param rows any[]
function M.write(path, columns, rows) c.write(path, M.encode(M.marked(columns, rows))) end

-- The value of a field without quotes: a number if it reads as one, else the text.
local function value(text)
  if text:find "^[+-]?%.?%d" and not text:find "[xX]" then return tonumber(text) or text end
  return text
end

-- The fields of the record that begins at `at`, and the start of the next one.
local function record(text, at, line)
  local fields = {}
  while true do
    if text:sub(at, at) == '"' then
      local parts, from = {}, at + 1
      while true do
        local quote = text:find('"', from, true)
        if not quote then error(("line %d: a quote is not closed"):format(line), 3) end
        parts[#parts + 1] = text:sub(from, quote - 1)
        at = quote + 1
        if text:sub(at, at) ~= '"' then break end
        parts[#parts + 1], from = '"', at + 1
      end
      fields[#fields + 1] = table.concat(parts)
    else
      local stop = text:find("[,\r\n]", at) or #text + 1
      fields[#fields + 1] = value(text:sub(at, stop - 1))
      at = stop
    end
    local next = text:sub(at, at)
    if next == "" then return fields, at end
    if next == "\r" and text:sub(at + 1, at + 1) == "\n" then return fields, at + 2 end
    if next == "\n" then return fields, at + 1 end
    if next ~= "," then error(("line %d: want a comma after a quoted field"):format(line), 3) end
    at = at + 1
  end
end

---The rows after the line of names, each a list that also has its values by name; and the names. A
---field without quotes that looks like a number is a number.
---@param text string
---@return table[] rows
---@return string[] columns
function M.decode(text)
  local rows, at, line = {}, 1, 1
  if text:sub(1, 3) == "\u{feff}" then at = 4 end -- The byte order mark of some programs.
  local columns
  columns, at = record(text, at, line)
  for k, name in ipairs(columns) do columns[k] = tostring(name) end
  while at <= #text do
    local row
    line = line + 1
    row, at = record(text, at, line)
    if #row ~= #columns then
      error(("record %d: %d fields, and %d names"):format(line, #row, #columns), 2)
    end
    for k, name in ipairs(columns) do row[name] = row[k] end
    rows[#rows + 1] = row
  end
  return rows, columns
end

---Reads a file.
---@param path string
---@return table[] rows
---@return string[] columns
function M.read(path) return M.decode(c.text(path)) end

return M
