-- Pages of HTML in one file: text, tables and pictures inside.
local M = {}

local entities = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }

---The value as text for HTML: & < > and quotes as entities. @param text any @return string
---@param text any
---@return string
function M.escaped(text) return (tostring(text):gsub('[&<>"]', entities)) end

-- An SVG as a data URL. Several SVGs in one page would share the names of their glyphs.
---@param svg string
---@return string
function M.embedded(svg)
  return '<img src="data:image/svg+xml,' .. svg:gsub('[%%#<>"\r\n]', function(ch)
    return ("%%%02X"):format(ch:byte())
  end) .. '">'
end

-- The number in that format, with a decimal point in any locale; nil: a dash (&ndash;).
---@param format string
---@param value number?
---@return string
function M.shown(format, value)
  if value == nil then return "&ndash;" end
  return (format:format(value):gsub("(%d),(%d)", "%1.%2"))
end

-- A row of a table.
---@param ... any
---@return string
function M.row(...) return "<tr><td>" .. table.concat({ ... }, "</td><td>") .. "</td></tr>" end

M.style = [[body{font:16px/1.4 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}
table{border-collapse:collapse;margin:1em 0}td,th{padding:.2em .8em;border-bottom:1px solid #ccc;text-align:right}
td:first-child,th:first-child{text-align:left}figure{display:inline-block;margin:.5em}img{max-width:100%}
figcaption{color:#555;font-size:.9em}]]

---@param title string
---@param style? string more of it
---@return string
function M.head(title, style)
  return ('<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>%s</title><style>%s</style></head><body>')
    :format(M.escaped(title), M.style .. (style or ""))
end

return M
