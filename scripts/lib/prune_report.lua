-- One page about a pruning: size, accuracy, time, memory and energy before and after; the scan, the steps,
-- and where each layer's weights lie. Its pictures are in it, and beside it as files.
local c = require "cnnrun"
local draw = require "lib.draw"
local plot = require "lib.plot"
local pruning = require "lib.pruning"
local M = {}

local entities = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }
local function escaped(text) return (tostring(text):gsub('[&<>"]', entities)) end

-- The line of a net that nothing was cut from.
local function unpruned(from, to, accuracy)
  return { { { from, accuracy }, { to, accuracy } }, label = "unpruned", dash = { 4, 3 }, colour = { .5, .5, .5 } }
end

local function shown(format, value)
  if value == nil then return "&ndash;" end
  return (format:format(value):gsub("(%d),(%d)", "%1.%2"))
end

local function row(...) return "<tr><td>" .. table.concat({ ... }, "</td><td>") .. "</td></tr>" end

-- An SVG as the address of a picture: several of them in one page would share the names of their glyphs.
local function embedded(svg)
  return '<img src="data:image/svg+xml,' .. svg:gsub('[%%#<>"\r\n]', function(ch)
    return ("%%%02X"):format(ch:byte())
  end) .. '">'
end

local Page = {}
Page.__index = Page

function Page:picture(name, title, drawn)
  if not self.able then return end
  drawn:save(self.folder .. "/" .. name .. ".png")
  drawn:save(self.folder .. "/" .. name .. ".svg")
  local svg = c.text(self.folder .. "/" .. name .. ".svg")
  self:add("<figure>%s<figcaption>%s</figcaption></figure>", embedded(svg), escaped(title))
end

function Page:add(format, ...) self[#self + 1] = format:format(...) end

-- ---- the parts ----

local function summary(page, r)
  local energy = r.pruned.energy_source and ("energy of a run, J (%s)"):format(r.pruned.energy_source) or
                 "energy of a run, J"
  local function both(what, format, before, after)
    page:add("%s", row(what, shown(format, before), shown(format, after),
                       before and after and before ~= 0 and shown("%.1f %%", 100 * after / before) or "&ndash;"))
  end
  page:add("<table><tr><th></th><th>before</th><th>after</th><th>of it</th></tr>")
  both("weights that are not 0", "%.2f %%", 100, 100 * r.kept)
  both("file, bytes", "%d", r.bytes[1], r.bytes[2])
  both("right in validation", "%.2f %%", 100 * r.validation[1], 100 * (r.encoded or r.validation[2]))
  if r.test then both("right in the test", "%.2f %%", 100 * r.test[1], 100 * r.test[2]) end
  both("a run, ms", "%.3f", r.dense.ms, r.pruned.ms)
  both("from file to first result, ms", "%.2f", r.dense.load_ms, r.pruned.load_ms)
  both("arena, bytes", "%d", r.dense.arena_bytes, r.pruned.arena_bytes)
  if r.pruned.joules then
    both(energy, "%.4g", r.dense.joules, r.pruned.joules)
    both("energy of loading, J", "%.4g", r.dense.load_joules, r.pruned.load_joules)
  else page:add("%s", row("energy", "unmeasured", "unmeasured", "no meter")) end
  page:add("</table><p>%d pictures for validation%s.</p>", r.validated,
           r.test and (", %d for the test, which was looked at once"):format(r.tested) or "; no test")
end

local function layers(page, dense, pruned)
  local after = {}
  for _, layer in ipairs(pruning.able(pruned)) do after[layer.name] = layer end
  page:add("<h2>Layers</h2><table><tr><th>layer</th><th>weights</th><th>shape before</th><th>after</th>" ..
           "<th>not 0</th><th>of all</th></tr>")
  for _, layer in ipairs(pruning.able(dense)) do
    local now = after[layer.name]
    local some = math.floor(pruned:weight(now.weight):density() * now.n + 0.5)
    page:add("%s", row(escaped(layer.name), layer.n, table.concat(layer.shape, " &times; "),
                       table.concat(now.shape, " &times; "), some, shown("%.2f %%", 100 * some / layer.n)))
  end
  page:add("</table>")
end

local function scan(page, rows, base)
  if #rows == 0 then return end
  local series, by = {}, {}
  for _, r in ipairs(rows) do
    if not by[r.layer] then
      by[r.layer] = { {}, label = r.layer }
      series[#series + 1] = by[r.layer]
    end
    table.insert(by[r.layer][1], { r.keep, r.accuracy })
  end
  series[#series + 1] = unpruned(0.05, 1, base)
  page:add("<h2>How much each layer can lose</h2>")
  page:picture("scan", "One layer pruned at a time, nothing trained (scan.csv)",
               plot.lines(series, { x = "share of the layer that is kept", y = "right in validation", width = 640 }))
end

local function steps(page, rows, base)
  local cut, trained, kept = {}, {}, {}
  for _, r in ipairs(rows) do
    cut[#cut + 1], trained[#trained + 1] = { r.step, r.cut }, { r.step, r.accuracy }
    kept[#kept + 1] = { r.step, r.kept }
  end
  page:add("<h2>Cut and train in turns</h2>")
  page:picture("steps", "Right in validation at each step (steps.csv)", plot.lines(
    { { trained, label = "trained on" }, { cut, label = "just cut" },
      unpruned(1, math.max(2, #rows), base) },
    { x = "step", y = "right in validation", width = 640 }))
  page:picture("kept", "Weights that are not 0", plot.lines({ { kept } }, { x = "step", y = "share kept", width = 640 }))
end

-- The numbers of a tensor that are not 0.
local function some(t)
  local list = {}
  for _, i in ipairs(t:above(0)) do list[#list + 1] = t[i] end
  for _, i in ipairs(t:times(-1):above(0)) do list[#list + 1] = t[i] end
  return list
end

local function flat(t)
  local n = 1
  for _, size in ipairs(t:shape()) do n = n * size end
  return t:reshaped { n }
end

local function histograms(page, work, dense, pruned)
  page:add("<h2>Weights before and after</h2><p>Those that are 0 afterwards are left out.</p>")
  for _, layer in ipairs(work.layers) do
    local before, after = flat(dense:weight(layer.weight)), some(flat(pruned:weight(layer.weight)))
    if #after > 0 then
      page:picture("weights-" .. layer.name:gsub("[^%w_.-]", "_"), layer.name .. ": before", plot.histogram(
        before, { x = "weight", y = "how many", title = layer.name .. ", before" }))
      page:picture("pruned-" .. layer.name:gsub("[^%w_.-]", "_"), layer.name .. ": after", plot.histogram(
        after, { x = "weight", y = "how many", title = layer.name .. ", after" }))
    end
  end
end

local style = [[body{font:16px/1.4 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}
table{border-collapse:collapse;margin:1em 0}td,th{padding:.2em .8em;border-bottom:1px solid #ccc;text-align:right}
td:first-child,th:first-child{text-align:left}figure{display:inline-block;margin:.5em}img{max-width:100%}
figcaption{color:#555;font-size:.9em}]]

-- Writes report.html and the pictures into the work's folder.
---@param work table
---@param of { scan: table[], steps: table[], result: table, dense: cnnrun.Net, pruned: cnnrun.Net }
function M.write(work, of)
  local able, why = draw.available()
  local page = setmetatable({ folder = work.folder, able = able }, Page)
  if not able then c.note(why) end
  page:add('<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>%s, pruned</title><style>%s</style>' ..
           "</head><body><h1>%s, pruned</h1><p>%s</p>", escaped(work.options[1]), style, escaped(work.options[1]),
           escaped(work.schedule.about or ""))
  summary(page, of.result)
  layers(page, of.dense, of.pruned)
  scan(page, of.scan, work.base.top1)
  steps(page, of.steps, work.base.top1)
  histograms(page, work, of.dense, of.pruned)
  page:add("</body></html>\n")
  c.write(work.folder .. "/report.html", table.concat(page, "\n"))
end

return M
