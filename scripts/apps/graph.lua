-- Draws a graph in the language DOT: cnnrun graph NET.dot NET.svg (.png, .html); show -o calls it.
local c = require "cnnrun"
local args = require "lib.args"

local page = [[
<!doctype html>
<html><head><meta charset="utf-8"><title>%s</title>
<style>body { font-family: sans-serif; margin: 1em } svg { max-width: 100%%; height: auto }</style></head>
<body><h1>%s</h1>
%s</body></html>
]]

-- The text for HTML: & < > and " as entities.
local function escape(text)
  return (text:gsub("[&<>\"]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }))
end

-- Writes the net's graph to the output, in the format of its ending.
local function draw(options)
  local from, to = options[1], options[2]
  local format = to:match("%.(%w+)$")
  if format ~= "svg" and format ~= "png" and format ~= "html" then
    error(to .. ": want a name that ends with .svg, .png or .html", 0)
  end
  c.output(to, from)
  local good, dot = pcall(c.object, "dot")
  if not good then
    error("drawing graphs needs the plugin draw-graphviz, which is built if libgraphviz-dev is installed; " ..
          from .. " is there for Graphviz's own dot: " .. args.plain(dot), 0)
  end
  local picture = dot:render(c.text(from), format == "html" and "svg" or format)
  if format == "html" then
    local title = escape(from:match("([^/]*)%.%w+$") or from)
    picture = page:format(title, title, picture:match("<svg.*$"))
  end
  c.write(to, picture)
  return 0
end

return args.application({ operands = "GRAPH.dot PICTURE", least = 2, most = 2, without = "it draws a graph, no net runs",
                          example = "cnnrun graph net.dot net.svg",
                          about = "Lays a graph in the language DOT out and draws it as .svg, .png or .html.",
                          flags = {} }, draw)
