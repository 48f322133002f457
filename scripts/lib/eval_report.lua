-- One page about an evaluation: confusions, the reliability of scores, and the worst mistakes as
-- pictures. One file holds all.
local c = require "cnnrun"
local draw = require "lib.draw"
local page = require "lib.page"
local plot = require "lib.plot"
local M = {}

local MOST_CELLS, MOST_PAIRS, MOST_MISTAKES, BINS = 32, 20, 24, 10
local tile = 128
local escaped, shown, row = page.escaped, page.shown, page.row

local style = [[
.confusion td,.confusion th{padding:.15em .4em;text-align:right;border:1px solid #eee;font-size:.85em}
.mistakes figure{width:10em;vertical-align:top;text-align:center;margin:.4em}.mistakes img{height:8em}
td:last-child:has(.bar){text-align:left}
.bar{display:inline-block;height:.8em;background:#1f77b4}]]

local Report = {}
Report.__index = Report

-- Adds a line to the page, formatted as by string.format.
function Report:add(format, ...) self[#self + 1] = format:format(...) end

-- A label as people know it: the class's name, else its number; "?" below 0.
function Report:name(label)
  if label < 0 then return "?" end
  local name = self.about.named and self.net and self.net:label(label)
  return name and name ~= "" and name or tostring(label)
end

-- ---- confusions ----

-- For each label: the number of samples, of right ones, and of answers with it; and the pairs that
-- are confused.
local function tally(rows)
  local labels, pairs_of, most = {}, {}, -1
  -- The counts of a label; made at its first use.
  local function of(label)
    labels[label] = labels[label] or { label = label, n = 0, right = 0, answered = 0 }
    most = math.max(most, label)
    return labels[label]
  end
  for _, r in ipairs(rows) do
    local l = of(r.label)
    l.n = l.n + 1
    if r.answer >= 0 then of(r.answer).answered = of(r.answer).answered + 1 end
    if r.answer == r.label then l.right = l.right + 1
    else
      local key = r.label .. " " .. r.answer
      pairs_of[key] = pairs_of[key] or { label = r.label, answer = r.answer, n = 0 }
      pairs_of[key].n = pairs_of[key].n + 1
    end
  end
  local list, mixed = {}, {}
  for label = 0, most do list[#list + 1] = labels[label] end
  for _, pair in pairs(pairs_of) do mixed[#mixed + 1] = pair end
  table.sort(mixed, function(a, b)
    if a.n ~= b.n then return a.n > b.n end
    if a.label ~= b.label then return a.label < b.label end
    return a.answer < b.answer
  end)
  return list, mixed, pairs_of
end

-- A cell of the matrix, coloured by its share of the row.
local function cell(n, all, right)
  if n == 0 then return "<td></td>" end
  local part = n / math.max(1, all)
  local colour = right and "31,119,180" or "214,39,40"
  return ('<td style="background:rgba(%s,%s)">%d</td>'):format(colour, shown("%.2f", .1 + .6 * part), n)
end

-- Adds the confusion matrix, or its most frequent mistakes.
function Report:confusion(list, mixed, pairs_of)
  self:add("<h2>Confusion matrix</h2>")
  if #list <= MOST_CELLS then
    self:add('<p>A row for each label, a column for each answer.</p><table class="confusion"><tr><th></th>')
    for _, l in ipairs(list) do self:add("<th>%s</th>", escaped(self:name(l.label))) end
    self:add("</tr>")
    for _, l in ipairs(list) do
      local cells = {}
      for i, a in ipairs(list) do
        local pair = pairs_of[l.label .. " " .. a.label]
        cells[i] = cell(a == l and l.right or pair and pair.n or 0, l.n, a == l)
      end
      self:add("<tr><th>%s</th>%s</tr>", escaped(self:name(l.label)), table.concat(cells))
    end
    self:add("</table>")
  elseif self.able then
    local cells, index = {}, {}
    for i, l in ipairs(list) do index[l.label], cells[i] = i, {} end
    for i, l in ipairs(list) do
      for k in ipairs(list) do cells[i][k] = 0 end
      cells[i][i] = l.right / math.max(1, l.n)
    end
    for _, pair in ipairs(mixed) do
      local i, k = index[pair.label], index[pair.answer]
      if k then cells[i][k] = pair.n / math.max(1, list[i].n) end
    end
    local step = math.max(1, math.ceil(#list / 200))
    if step == 1 then
      self:plot("A row for each label, a column for each answer: parts of the label's pictures",
                plot.heat(cells, { x = "answer", y = "label", values = false, width = 720 }))
    end
  end
  if #mixed == 0 then return end
  self:add("<h3>Most frequent confusions</h3><table><tr><th>label</th><th>answer</th><th>pictures</th></tr>")
  for i = 1, math.min(MOST_PAIRS, #mixed) do
    local pair = mixed[i]
    self:add("%s", row(escaped(self:name(pair.label)), escaped(self:name(pair.answer)), pair.n))
  end
  self:add("</table>")
end

-- Adds the table of labels, the worst first.
function Report:classes(list)
  local worst = {}
  for _, l in ipairs(list) do
    if l.n > 0 then worst[#worst + 1] = l end
  end
  table.sort(worst, function(a, b)
    local x, y = a.right / a.n, b.right / b.n
    if x ~= y then return x < y end
    return a.label < b.label
  end)
  self:add("<h2>Labels, the worst first</h2><table><tr><th>label</th><th>pictures</th><th>found (recall)</th>" ..
           "<th>right when answered (precision)</th></tr>")
  for i = 1, math.min(MOST_CELLS, #worst) do
    local l = worst[i]
    self:add("%s", row(escaped(self:name(l.label)), l.n, shown("%.1f %%", 100 * l.right / l.n),
                       shown("%.1f %%", l.answered > 0 and 100 * l.right / l.answered or nil)))
  end
  self:add("</table>")
  if #worst > MOST_CELLS then self:add("<p>%d more labels are better.</p>", #worst - MOST_CELLS) end
end

-- ---- reliability of scores ----

-- Answers grouped by their score, and the expected calibration error.
local function bins_of(rows)
  local bins, off = {}, 0
  for b = 1, BINS do bins[b] = { n = 0, right = 0, share = 0 } end
  for _, r in ipairs(rows) do
    local b = bins[math.max(1, math.min(BINS, math.floor(r.share * BINS) + 1))]
    b.n, b.share, b.right = b.n + 1, b.share + r.share, b.right + (r.answer == r.label and 1 or 0)
  end
  for _, b in ipairs(bins) do off = off + math.abs(b.share - b.right) end
  return bins, off / math.max(1, #rows)
end

-- Adds how far shares and right answers differ.
function Report:calibration(rows)
  local bins, off = bins_of(rows)
  self:add("<h2>Calibration</h2><p>Of the answers that get a share of 0.9, nine of ten should be right. The mean " ..
           "distance from that (expected calibration error, %d bins) is %s.</p>", BINS, shown("%.4f", off))
  local curve = {}
  for _, b in ipairs(bins) do
    if b.n > 0 then curve[#curve + 1] = { b.share / b.n, b.right / b.n } end
  end
  if self.able then
    self:plot("Part that is right, by the share that the answer got", plot.lines(
      { { curve, label = "this net" },
        { { { 0, 0 }, { 1, 1 } }, label = "calibrated", dash = { 4, 3 }, colour = { .5, .5, .5 } } },
      { x = "share of the answer", y = "part that is right", x_range = { 0, 1 }, y_range = { 0, 1 }, width = 520 }))
  end
  self:add("<table><tr><th>share of the answer</th><th>pictures</th><th>mean share</th><th>right</th><th></th></tr>")
  for i, b in ipairs(bins) do
    if b.n > 0 then
      self:add("%s", row(shown("%.1f", (i - 1) / BINS) .. " &ndash; " .. shown("%.1f", i / BINS), b.n,
                         shown("%.3f", b.share / b.n), shown("%.3f", b.right / b.n),
                         ('<span class="bar" style="width:%dpx"></span>'):format(200 * b.n // #rows)))
    end
  end
  self:add("</table>")
end

-- ---- mistakes ----

-- Adds the pictures of the surest wrong answers.
function Report:mistakes(rows)
  local wrong = {}
  for _, r in ipairs(rows) do
    if r.answer ~= r.label then wrong[#wrong + 1] = r end
  end
  table.sort(wrong, function(a, b)
    if a.share ~= b.share then return a.share > b.share end
    return a.index < b.index
  end)
  self:add("<h2>Worst mistakes</h2>")
  if #wrong == 0 then return self:add("<p>There is none.</p>") end
  self:add("<p>%d of %d answers are wrong. These were given with the highest shares.</p>", #wrong, #rows)
  local samples = self.able and c.samples(self.about.data, self.about.data_split)
  self:add('<div class="mistakes">')
  for i = 1, math.min(MOST_MISTAKES, #wrong) do
    local r = wrong[i]
    local picture, _, name
    if samples then
      picture, _, name = samples:at(r.index)
      picture = page.embedded(self:small(picture))
    end
    self:add("<figure>%s<figcaption>%s, not %s<br>%s against %s<br><small>%s</small></figcaption></figure>",
             picture or "", escaped(self:name(r.answer)), escaped(self:name(r.label)), shown("%.3f", r.share),
             shown("%.3f", r.label_share), escaped(tostring(name or r.index):match("[^/]*$")))
  end
  self:add("</div>")
  if not self.able then self:add("<p>Pictures and curves: %s.</p>", escaped(self.why)) end
end

-- The picture as an SVG, no larger than a tile.
function Report:small(picture)
  local shape = picture:shape()
  local zoom = tile / math.max(shape[1], shape[2])
  local width, height = math.max(1, shape[2] * zoom // 1 | 0), math.max(1, shape[1] * zoom // 1 | 0)
  local scaled = c.object("canvas", { width = width, height = height })
  scaled:picture(picture, { 0, 0, width, height })
  local canvas = c.object("canvas", { width = width, height = height, svg = true })
  canvas:picture(scaled:pixels(), { 0, 0, width, height })
  return canvas:svg()
end

-- Adds a drawn figure with its title.
function Report:plot(title, drawn)
  self:add("<figure>%s<figcaption>%s</figcaption></figure>", page.embedded(drawn:svg()), escaped(title))
end

-- ---- the page ----

---Writes the page. Rows are those of net:evaluate { rows = true }; about has data, data_split,
---title, top1, top5, loss, seconds, and named (labels are the names of the net's classes).
---@param path string
---@param net cnnrun.Net?
---@param rows table[]
---@param about table
function M.write(path, net, rows, about)
  local able, why = draw.available()
  local report = setmetatable({ net = net, about = about, able = able, why = why }, Report)
  c.output(path)
  report:add("%s", page.head(about.title .. ", evaluated", style))
  report:add("<h1>%s, evaluated</h1><table>", escaped(about.title))
  report:add("%s%s", row("data", escaped(about.data .. (about.data_split and " (" .. about.data_split .. ")" or ""))),
             row("pictures", #rows))
  report:add("%s%s%s", row("top-1", shown("%.2f %%", 100 * about.top1)), row("top-5", shown("%.2f %%", 100 * about.top5)),
             row("loss (mean of -log of the label's share)", shown("%.4f", about.loss)))
  local names = {}
  for name in pairs(about.metrics or {}) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local value = about.metrics[name]
    report:add("%s", row(escaped(name), type(value) == "number" and shown("%.4f", value) or "-"))
  end
  report:add("%s</table>", row("pictures a second", shown("%.1f", about.seconds > 0 and #rows / about.seconds or nil)))
  local list, mixed, pairs_of = tally(rows)
  report:confusion(list, mixed, pairs_of)
  report:classes(list)
  report:calibration(rows)
  report:mistakes(rows)
  report:add("</body></html>\n")
  c.write(path, table.concat(report, "\n"))
end

return M
