-- The experiments of one document: rows that compare our numbers with its own, claims about orders, and figures. They are
-- printed, and written as CSV and as pictures.
--
--   return document.main({ name = "cd", title = "CNNdroid", about = "..." }, function(d) d:row(...) end)
--
-- A row: { experiment = "table 3.1", row = "product on the CPU", quantity = "EDP", document = 1402.8,
-- ours = 1339.5, kind = document.predicted, on = "odroid_xu3,library=ch3", why = "..." }.
local c = require "cnnrun"
local args = require "lib.args"
local board = require "lib.board"
local csv = require "lib.csv"
local fit = require "lib.fit"
local json = require "lib.json"
local kept = require "documents.kept"
local plot = require "lib.plot"

local M = { measured = "measured", fitted = "simulated: fitted", predicted = "simulated: predicted",
            silent = "no number in the text", cannot = "can't" }
local kinds = { M.measured, M.fitted, M.predicted, M.silent, M.cannot }
local columns = { "experiment", "row", "quantity", "document", "ours", "error", "kind", "on", "why" }

local Document = {}
Document.__index = Document

-- ---- rows ----

-- Adds a row. Its kind becomes M.silent if the document has no number, M.cannot if we have none (r.why: the reason).
function Document:row(r)
  if r.ours == nil then r.kind = M.cannot end
  if r.document == nil and r.kind ~= M.cannot then r.kind = M.silent end
  assert(r.kind and (r.kind ~= M.cannot or r.why), r.row)
  if type(r.document) == "number" and type(r.ours) == "number" then r.error = r.ours / r.document - 1 end
  self.rows[#self.rows + 1] = r
end

-- Adds a row that cannot be computed, and why.
function Document:cannot(experiment, row, quantity, number, why, wants_imagenet)
  self:row { experiment = experiment, row = row, quantity = quantity, document = number, why = why,
             apart = wants_imagenet }
end

-- Splits a name such as "W18 fig 3.4, im2col on the GPU, watts" into experiment (without the document's own name), row and
-- quantity.
local function parts_of(name, own)
  local experiment, rest = name:match "^([^,]+), (.*)$"
  if experiment:sub(1, #own + 1) == own .. " " then experiment = experiment:sub(#own + 2) end
  local row, quantity = rest:match "^(.*), ([^,]+)$"
  return experiment, row or rest, quantity or "ratio"
end

-- Adds the rows that boards/recipes.lua computes for the board `spec`, each once. keep(name) selects rows.
function Document:board(spec, keep)
  local rows = {}
  for _, r in ipairs(require "boards.rows") do rows[r.name] = r end
  for _, entry in ipairs(require "boards.recipes") do
    if entry.name == spec then
      fit.tell(entry.recipe, board.load(spec), function(name, ours)
        local r = rows[name]
        if self.seen[name] or not keep(name) then return end
        self.seen[name] = true
        local experiment, row, quantity = parts_of(name, self.spec.name:upper())
        self:row { experiment = experiment, row = row, quantity = quantity, document = r.value, ours = ours,
                   kind = r.role == "predicted" and M.predicted or M.fitted, on = spec, why = r.from, name = name }
      end)
    end
  end
end

-- Adds seconds, joules, watts and EDP of work on a unit, for which the text has no numbers.
function Document:columns(experiment, row, on, seconds, joules)
  for _, q in ipairs { { "seconds", seconds }, { "joules", joules }, { "watts", joules / seconds }, { "EDP", joules * seconds } } do
    self:row { experiment = experiment, row = row, quantity = q[1], ours = q[2], kind = M.silent, on = on }
  end
end

-- Returns our number in the row of this name.
function Document:value(name)
  for _, r in ipairs(self.rows) do
    if r.name == name then return r.ours end
  end
  error("no row " .. name, 2)
end

-- Adds a claim of the document about an order: which device, policy, step or net is better. why: printed if it does not
-- hold.
function Document:claim(experiment, text, holds, why)
  self.claims[#self.claims + 1] = { experiment = experiment, text = text, holds = holds and true or false, why = not holds and why or nil }
end

-- Adds the claim that the numbers of list, { { "GPU", 1.9 }, ... } in the document's order, rise.
function Document:rises(experiment, text, list, why)
  local names, holds = {}, true
  for i, entry in ipairs(list) do
    names[i] = entry[1]
    holds = holds and (i == 1 or list[i - 1][2] < entry[2])
  end
  self:claim(experiment, text .. ": " .. table.concat(names, " < "), holds, why)
end

-- ---- measured ----

-- Profiles a loaded net behind a first run: ten runs, or as many as take about three seconds, but one at least; two if
-- `quick`. The second result is a remark if there are fewer than ten, else nil.
function M.profile(net, quick, batch)
  local runs = 2
  if not quick then
    local once = net:profile { runs = 1, warm = 0, batch = batch }.ms_median
    runs = math.max(1, math.min(10, math.floor(3e3 / once)))
  end
  local t = net:profile { runs = runs, warm = quick and 1 or 0, batch = batch, energy = true }
  return t, not quick and runs < 10 and (runs == 1 and "one run" or ("median of %d runs"):format(runs)) or nil
end

-- Returns what measure() returns, a table of numbers and texts. It is called once for each name, and not again in a run
-- that goes on after an interruption.
function Document:keep(name, measure) return self.kept:get(self.spec.name .. ": " .. name, measure) end

-- Milliseconds of the slowest step of each operator.
local function slowest_of(steps)
  local slowest = {}
  for _, step in ipairs(steps) do slowest[step.operator] = math.max(slowest[step.operator] or 0, step.ms) end
  return slowest
end

-- Measures a net on a device of this machine: { ms, joules (nil without a meter), slowest (ms by operator), remark }; nil
-- and why not. The name tells all that it depends on.
function Document:measure(name, net, options, batch)
  local good, result = pcall(self.keep, self, name, function()
    local loaded <close> = c.load(net, options)
    local t, remark = M.profile(loaded, self.options.quick, batch)
    return { ms = t.ms_median, joules = t.energy and t.energy.joules or nil, slowest = slowest_of(t), remark = remark }
  end)
  if good then return result end
  return nil, args.plain(result)
end

-- Measures a net on each device and adds rows for ms and, with a meter, J.
function Document:measured(experiment, row, number, net, options, batch)
  for _, device in ipairs(self.devices) do
    local o = { device = device, weights = "random:1" }
    for key, value in pairs(options or {}) do o[key] = value end
    local m, why = self:measure(("%s, %s, on %s"):format(experiment, row, device), net, o, batch)
    self:row { experiment = experiment, row = row, quantity = "ms", document = number, ours = m and m.ms, on = device,
               kind = M.measured, why = m and m.remark or why }
    if m and m.joules then
      self:row { experiment = experiment, row = row, quantity = "J", ours = m.joules, on = device, kind = M.measured }
    end
  end
end

-- ---- figures ----

-- Adds a figure: its name, title, and the plot.
function Document:figure(name, title, chart) self.figures[#self.figures + 1] = { name = name, title = title, plot = chart } end

-- Adds a bar chart of rows { name, value... }.
function Document:bars(name, title, rows, labels, options)
  local o = { title = title, labels = labels, simulated = true }
  for key, value in pairs(options or {}) do o[key] = value end
  if #rows > 0 then self:figure(name, title, plot.bars(rows, o)) end
end

-- ---- output ----

-- A number as text of four digits, other values as they are; nil: "-".
function M.shown(v)
  if type(v) ~= "number" then return v and tostring(v) or "-" end
  return (("%.4g"):format(v):gsub(",", "."))
end

-- The median of the list, which is sorted then.
local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

-- Relative errors of the documents' predicted rows: { n, median, worst, worst_row }; nil if there are none.
function M.predicted_errors(documents)
  local errors, p = {}, { worst = -1 }
  for _, d in ipairs(documents) do
    for _, r in ipairs(d.rows) do
      local size = r.kind == M.predicted and not r.apart and r.error and math.abs(r.error)
      if size then errors[#errors + 1] = size end
      if size and size > p.worst then p.worst, p.worst_row = size, r.row .. ", " .. r.quantity end
    end
  end
  p.n = #errors
  if p.n == 0 then return nil end
  p.median = median(errors)
  return p
end

-- Text of a kind's errors, such as ": median error 4.5%, worst 445% (ROW)".
local function errors_text(p)
  return (": median error %.1f%%, worst %.0f%% (%s)"):format(p.median * 100, p.worst * 100, p.worst_row)
end

-- Counts rows with a number of the document by kind, and claims that hold; adds the errors of predicted rows.
function Document:summary()
  local s = { name = self.spec.name, counts = {}, numbers = 0, apart = 0, silent = 0, claims = #self.claims, hold = 0 }
  for _, kind in ipairs(kinds) do s.counts[kind] = 0 end
  for _, r in ipairs(self.rows) do
    if r.apart then s.apart = s.apart + 1
    elseif r.document == nil then s.silent = s.silent + 1
    else s.counts[r.kind], s.numbers = s.counts[r.kind] + 1, s.numbers + 1 end
  end
  for _, claim in ipairs(self.claims) do s.hold = s.hold + (claim.holds and 1 or 0) end
  local p = M.predicted_errors { self }
  if p then s.median, s.worst, s.worst_row = p.median, p.worst, p.worst_row end
  return s
end

-- One line about all documents: rows by kind with percentages, errors of predicted rows, and how many claimed orders hold.
function M.total_text(documents)
  local counts, numbers, claims, hold = {}, 0, 0, 0
  for _, d in ipairs(documents) do
    local s = d:summary()
    numbers, claims, hold = numbers + s.numbers, claims + s.claims, hold + s.hold
    for kind, n in pairs(s.counts) do counts[kind] = (counts[kind] or 0) + n end
  end
  local parts = {}
  for _, kind in ipairs { M.measured, M.fitted, M.predicted, M.cannot } do
    local n = counts[kind] or 0
    parts[#parts + 1] = ("%s %d (%.0f%%)"):format(kind, n, 100 * n / math.max(numbers, 1))
  end
  local text = ("all: %d rows with a number: %s"):format(numbers, table.concat(parts, ", "))
  local p = M.predicted_errors(documents)
  if p then text = text .. ("; of %d predicted numbers"):format(p.n) .. errors_text(p) end
  return text .. ("; orders that hold: %d of %d (%.0f%%)"):format(hold, claims, 100 * hold / math.max(claims, 1))
end

-- The summary s as a line of text: how many rows are measured, fitted and so on.
function M.summary_text(s)
  local parts = {}
  for _, kind in ipairs { M.measured, M.fitted, M.predicted, M.cannot } do
    parts[#parts + 1] = ("%s %d"):format(kind, s.counts[kind])
  end
  local text = ("%s: %d rows with a number (%s), %d more want ImageNet, %d without a number"):format(
    s.name, s.numbers, table.concat(parts, ", "), s.apart, s.silent)
  if s.median then text = text .. "; predicted" .. errors_text(s) end
  return text .. ("; orders that hold: %d of %d"):format(s.hold, s.claims)
end

-- Prints all rows, claims and the summary, as text or with --json as lines of JSON.
function Document:tell()
  for _, r in ipairs(self.rows) do
    if self.options.json then
      print(json.encode { experiment = r.experiment, row = r.row, quantity = r.quantity, document = r.document,
                          ours = r.ours, error = r.error, kind = r.kind, on = r.on, why = r.why, imagenet = r.apart })
    else
      local name = ("%s, %s, %s"):format(r.experiment, r.row, r.quantity)
      print(("%-21s %-66s %10s %10s %8s %s"):format(r.kind, name, M.shown(r.document), M.shown(r.ours),
        r.error and ("%+.1f%%"):format(r.error * 100) or "", r.kind == M.cannot and r.why or r.on or ""))
    end
  end
  for _, claim in ipairs(self.claims) do
    if self.options.json then print(json.encode { experiment = claim.experiment, claim = claim.text, holds = claim.holds, why = claim.why })
    else
      print(("%-21s %s, %s%s"):format(claim.holds and "order holds" or "ORDER DIFFERS", claim.experiment, claim.text,
                                      claim.why and " (" .. claim.why .. ")" or ""))
    end
  end
  local s = self:summary()
  if self.options.json then print(json.encode(s)) else print(M.summary_text(s)) end
end

-- Writes the rows as CSV and the figures as SVG to the folder.
function Document:write(folder)
  c.folder(folder)
  csv.write(("%s/%s.csv"):format(folder, self.spec.name), columns, self.rows)
  for _, figure in ipairs(self.figures) do
    figure.plot:save(("%s/%s-%s.svg"):format(folder, self.spec.name, figure.name))
  end
end

-- ---- the command ----

M.flags = {
  { "--device NAMES", "of this machine, with commas between (all but simulated ones); none: measure nothing" },
  { "--board NAME", "simulate on this board too, its first device and its processor; none: on no board" },
  { "--quick", "leave out what takes long" },
}

-- Names of the devices that --device gives; nil: all of this machine; "none": an empty list.
function M.devices(text)
  local names = {}
  if text == "none" then return names end
  for name in (text or ""):gmatch "[^,]+" do names[#names + 1] = name end
  if text then return names end
  for _, device in ipairs(c.devices()) do names[#names + 1] = device.name end
  return names
end

-- Runs the experiments and returns the Document with its rows, claims and figures.
function M.run(spec, options, work)
  if c.simulated() then error("--board stands behind the script's name: what is measured here is of this machine", 0) end
  local d = setmetatable({ spec = spec, options = options, rows = {}, claims = {}, figures = {}, seen = {},
                           devices = M.devices(options.device), boards = options.board ~= "none",
                           other = options.board ~= "none" and options.board or nil,
                           kept = options.kept or kept.open(options.output, options) }, Document)
  work(d)
  return d
end

-- Returns the function that a document's file returns. Called with words, it runs as a command; called with nil and
-- options, it returns the Document.
function M.main(spec, work)
  return function(words, options)
    if options then return M.run(spec, options, work) end
    local flags = table.move(M.flags, 1, #M.flags, 1, {})
    for _, flag in ipairs(spec.flags or {}) do flags[#flags + 1] = flag end
    flags[#flags + 1] = { "-o, --output FOLDER", ("where %s.csv and the figures go, as SVG"):format(spec.name) }
    flags[#flags + 1] = { "--json", "an object a row" }
    return args.main(words, { usage = ("documents/%s.lua [options]"):format(spec.name), about = spec.about, flags = flags },
      function(o)
        if o.output then c.folder(o.output) end
        local d = M.run(spec, o, work)
        d:tell()
        if o.output then d:write(o.output) end
        d.kept:done()
      end)
  end
end

return M
