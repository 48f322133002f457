-- One page about a pruning: size, accuracy, time, memory and energy before and after; the scan, the
-- steps, and the distribution of each layer's weights. Pictures are in the page, and beside it as
-- files.
local c = require "cnnrun"
local draw = require "lib.draw"
local page = require "lib.page"
local plot = require "lib.plot"
local pruning = require "lib.pruning"
local M = {}

local escaped, embedded, shown, row = page.escaped, page.embedded, page.shown, page.row

-- The curve of the net before pruning: a dashed line at its accuracy.
local function unpruned(from, to, accuracy)
  return { { { from, accuracy }, { to, accuracy } }, label = "unpruned", dash = { 4, 3 }, colour = { .5, .5, .5 } }
end

local Page = {}
Page.__index = Page

-- Writes a drawing and adds it to the page.
function Page:picture(name, title, drawn)
  if not self.able then return end
  drawn:save(self.folder .. "/" .. name .. ".png")
  drawn:save(self.folder .. "/" .. name .. ".svg")
  c.barrier() -- Several processes: rank 0 wrote the file.
  local svg = c.text(self.folder .. "/" .. name .. ".svg")
  self:add("<figure>%s<figcaption>%s</figcaption></figure>", embedded(svg), escaped(title))
end

-- Adds a line to the page, formatted as by string.format.
function Page:add(format, ...) self[#self + 1] = format:format(...) end

-- ---- parts of the page ----

-- Adds the table of before and after to the report.
local function summary(report, r)
  local energy = r.pruned.energy_source and ("energy of a run, J (%s)"):format(r.pruned.energy_source) or
                 "energy of a run, J"
  -- Adds a row of before and after, with their quotient.
  local function both(what, format, before, after)
    report:add("%s", row(what, shown(format, before), shown(format, after),
                       before and after and before ~= 0 and shown("%.1f %%", 100 * after / before) or "&ndash;"))
  end
  report:add("<table><tr><th></th><th>before</th><th>after</th><th>of it</th></tr>")
  both("nonzero weights", "%.2f %%", 100, 100 * r.kept)
  both("file, bytes", "%d", r.bytes[1], r.bytes[2])
  both("right in validation", "%.2f %%", 100 * r.validation[1], 100 * (r.encoded or r.validation[2]))
  if r.test then both("right in the test", "%.2f %%", 100 * r.test[1], 100 * r.test[2]) end
  both("a run, ms", "%.3f", r.dense.ms, r.pruned.ms)
  both("from file to first result, ms", "%.2f", r.dense.load_ms, r.pruned.load_ms)
  both("arena, bytes", "%d", r.dense.arena_bytes, r.pruned.arena_bytes)
  if r.pruned.joules then
    both(energy, "%.4g", r.dense.joules, r.pruned.joules)
    both("energy of loading, J", "%.4g", r.dense.load_joules, r.pruned.load_joules)
  else report:add("%s", row("energy", "unmeasured", "unmeasured", "no meter")) end
  report:add("</table>%s<p>%d pictures for validation%s.</p>",
           r.pruned.simulated and "<p>Milliseconds and joules are a simulated board's.</p>" or "", r.validated,
           r.test and (", %d for the test, which was used once"):format(r.tested) or "; no test")
end

-- Adds the table of layers: weights before and after.
local function layers(report, dense, pruned)
  local after = {}
  for _, layer in ipairs(pruning.able(pruned)) do after[layer.name] = layer end
  report:add("<h2>Layers</h2><table><tr><th>layer</th><th>weights</th><th>shape before</th><th>after</th>" ..
           "<th>not 0</th><th>of all</th></tr>")
  for _, layer in ipairs(pruning.able(dense)) do
    local now = after[layer.name]
    local some = math.floor(pruned:weight(now.weight):density() * now.n + 0.5)
    report:add("%s", row(escaped(layer.name), layer.n, table.concat(layer.shape, " &times; "),
                       table.concat(now.shape, " &times; "), some, shown("%.2f %%", 100 * some / layer.n)))
  end
  report:add("</table>")
end

-- Adds the curves of the scan: accuracy (r.accuracy) over the share kept (r.keep), one for each r.layer, and a line at
-- base, the accuracy of the net that was not pruned. Without rows it adds nothing.
local function scan(report, rows, base)
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
  report:add("<h2>How much each layer can lose</h2>")
  report:picture("scan", "One layer pruned at a time, nothing trained (scan.csv)",
               plot.lines(series, { x = "share of the layer that is kept", y = "right in validation", width = 640 }))
end

-- Adds the curves of the steps: accuracy after cutting and after training.
local function steps(report, rows, base)
  local cut, trained, kept = {}, {}, {}
  for _, r in ipairs(rows) do
    cut[#cut + 1], trained[#trained + 1] = { r.step, r.cut }, { r.step, r.accuracy }
    kept[#kept + 1] = { r.step, r.kept }
  end
  report:add("<h2>Pruning and training in turns</h2>")
  report:picture("steps", "Right in validation at each step (steps.csv)", plot.lines(
    { { trained, label = "trained on" }, { cut, label = "just cut" },
      unpruned(1, math.max(2, #rows), base) },
    { x = "step", y = "right in validation", width = 640 }))
  report:picture("kept", "Nonzero weights", plot.lines({ { kept } }, { x = "step", y = "share kept", width = 640 }))
end

-- The nonzero elements of a tensor, as a list.
local function some(t)
  local list = {}
  for _, i in ipairs(t:above(0)) do list[#list + 1] = t[i] end
  for _, i in ipairs(t:times(-1):above(0)) do list[#list + 1] = t[i] end
  return list
end

-- The tensor as a vector.
local function flat(t)
  local n = 1
  for _, size in ipairs(t:shape()) do n = n * size end
  return t:reshaped { n }
end

-- Adds the histograms of each layer's weights, before and after.
local function histograms(report, work, dense, pruned)
  report:add("<h2>Weights before and after</h2><p>Those that are 0 afterwards are left out.</p>")
  for _, layer in ipairs(work.layers) do
    local before, after = flat(dense:weight(layer.weight)), some(flat(pruned:weight(layer.weight)))
    if #after > 0 then
      report:picture("weights-" .. layer.name:gsub("[^%w_.-]", "_"), layer.name .. ": before", plot.histogram(
        before, { x = "weight", y = "how many", title = layer.name .. ", before" }))
      report:picture("pruned-" .. layer.name:gsub("[^%w_.-]", "_"), layer.name .. ": after", plot.histogram(
        after, { x = "weight", y = "how many", title = layer.name .. ", after" }))
    end
  end
end

-- Writes report.html and the pictures into the work's folder.
---@param work table
---@param of { scan: table[], steps: table[], result: table, dense: cnnrun.Net, pruned: cnnrun.Net }
function M.write(work, of)
  local able, why = draw.available()
  local report = setmetatable({ folder = work.folder, able = able }, Page)
  if not able then c.note(why) end
  report:add("%s", page.head(work.options[1] .. ", pruned"))
  report:add("<h1>%s, pruned</h1><p>%s</p>", escaped(work.options[1]), escaped(work.schedule.about or ""))
  summary(report, of.result)
  layers(report, of.dense, of.pruned)
  scan(report, of.scan, work.base.top1)
  steps(report, of.steps, work.base.top1)
  histograms(report, work, of.dense, of.pruned)
  report:add("</body></html>\n")
  c.write(work.folder .. "/report.html", table.concat(report, "\n"))
end

return M
