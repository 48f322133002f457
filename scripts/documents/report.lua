-- Writes one self-contained HTML page with all documents' experiments: rows, claims, figures and this machine.
--
--   cnnrun --trust scripts/documents/report.lua -o FOLDER [--quick]
local c = require "cnnrun"
local args = require "lib.args"
local document = require "documents.document"
local kept = require "documents.kept"
local page = require "lib.page"

local titles = { w18 = "W18: energy-efficient inference on Android", cd = "CD: CNNdroid",
                 s16 = "S16 and WX18: Adreno 330, a TLD tracker", x19 = "X19: stored plans, quantisation" }
local escaped, shown = page.escaped, document.shown
local style = [[body{max-width:80em}td:first-child,th:first-child,
.text td,.text th,.rows td:nth-child(-n+3),.rows th:nth-child(-n+3),.rows td:nth-child(n+7),.rows th:nth-child(n+7){text-align:left}
figure{width:30em;vertical-align:top}td{font-size:.85em}.no{color:#b00}]]

-- The kind of a row, with the reason if it has no result.
local function kind_of(r) return r.kind == document.cannot and "can't: " .. r.why or r.kind end

-- Appends the folded table of a document's rows, as HTML, to `out`.
local function rows_of(d, out)
  out[#out + 1] = "<details><summary>" .. #d.rows .. " rows</summary><table class=\"rows\"><tr><th>" ..
    table.concat({ "experiment", "row", "quantity", "document", "ours", "error", "kind", "on", "remark" }, "</th><th>") .. "</th></tr>"
  for _, r in ipairs(d.rows) do
    out[#out + 1] = page.row(escaped(r.experiment), escaped(r.row), escaped(r.quantity), escaped(shown(r.document)),
      escaped(shown(r.ours)), page.shown("%+.1f%%", r.error and r.error * 100), escaped(kind_of(r)), escaped(r.on or ""), escaped(r.kind ~= document.cannot and r.why or ""))
  end
  out[#out + 1] = "</table></details>"
end

-- Adds a document: summary, claims, figures and rows.
local function section(d, out)
  out[#out + 1] = ("<h2>%s</h2><p>%s.</p><ul>"):format(escaped(titles[d.spec.name]), escaped(document.summary_text(d:summary())))
  for _, claim in ipairs(d.claims) do
    out[#out + 1] = ("<li%s>%s, %s: %s</li>"):format(claim.holds and "" or ' class="no"', escaped(claim.experiment), escaped(claim.text),
      claim.holds and "holds" or "differs" .. (claim.why and ": " .. escaped(claim.why) or ""))
  end
  out[#out + 1] = "</ul>"
  for _, figure in ipairs(d.figures) do
    local good, svg = pcall(figure.plot.svg, figure.plot)
    if good then
      out[#out + 1] = ("<figure>%s<figcaption>%s</figcaption></figure>"):format(page.embedded(svg), escaped(figure.title))
    else
      out[#out + 1] = ("<p>%s: %s</p>"):format(escaped(figure.title), escaped(args.plain(svg)))
    end
  end
  rows_of(d, out)
end

-- Adds a table with the number of rows of each kind for each document.
local function totals(all, out)
  local kinds = { document.measured, document.fitted, document.predicted, document.cannot }
  out[#out + 1] = "<table><tr><th>document</th><th>" .. table.concat(kinds, "</th><th>") ..
    "</th><th>wants ImageNet</th><th>predicted: median error</th><th>worst</th><th>orders that hold</th></tr>"
  for _, d in ipairs(all) do
    local s, cells = d:summary(), { escaped(d.spec.name) }
    for _, kind in ipairs(kinds) do cells[#cells + 1] = s.counts[kind] end
    cells[#cells + 1] = s.apart
    cells[#cells + 1] = page.shown("%.1f%%", s.median and s.median * 100)
    cells[#cells + 1] = page.shown("%.0f%%", s.worst and s.worst * 100)
    cells[#cells + 1] = s.hold .. " of " .. s.claims
    out[#out + 1] = page.row(table.unpack(cells))
  end
  out[#out + 1] = ("</table><p>%s.</p>"):format(escaped(document.total_text(all)))
end

-- Adds the devices of this machine, the date and the commit.
local function machine(options, out)
  out[#out + 1] = "<h2>This machine</h2><table class=\"text\"><tr><th>device</th><th>hardware</th><th>driver</th><th>plugin</th></tr>"
  for _, device in ipairs(c.devices()) do
    out[#out + 1] = page.row(escaped(device.name), escaped(device.hardware or ""), escaped(device.driver or ""), escaped(device.plugin or ""))
  end
  out[#out + 1] = ("</table><p>Date: %s. Commit: %s. %s</p>"):format(escaped((c.date())), escaped(options.commit or "not told (--commit)"),
    options.quick and "A quick report: what takes long is left out, and two runs stand for ten." or "")
end

-- The application: runs all documents and writes the page.
local function work(options)
  local folder, all, out = options.output or error("where does the page go? -o FOLDER", 0), {}, {}
  c.folder(folder)
  c.output(folder .. "/report.html")
  if not pcall(c.now) then c.note("times of starts and of loading are left out: they want --trust before the script") end
  options.kept = kept.open(folder, options)
  for _, name in ipairs { "w18", "cd", "s16", "x19" } do
    all[#all + 1] = require("documents." .. name)(nil, options)
    all[#all]:write(folder)
  end
  out[1] = page.head("The documents' experiments", style) .. "<h1>The documents' experiments</h1>" ..
    "<p>Each row has a number of the document and ours. <b>Measured</b>: on this machine, another than the document's, so a ratio or an " ..
    "order says more than seconds do. <b>Simulated</b>: on a model of the document's board. A <b>fitted</b> row gave the model a " ..
    "parameter, or follows from such rows; no parameter comes from a <b>predicted</b> one. <b>Can't</b>: the row says why. Orders are " ..
    "what the document claims: which device, policy or net wins. EDP is energy times time, in J s; less is better. What differs, and " ..
    "why: core/docs/documents.md in the source.</p>"
  totals(all, out)
  machine(options, out)
  for _, d in ipairs(all) do section(d, out) end
  out[#out + 1] = "</body></html>\n"
  c.write(folder .. "/report.html", table.concat(out, "\n"))
  options.kept:done()
  for _, d in ipairs(all) do print(document.summary_text(d:summary())) end
  print(document.total_text(all))
end

return function(words)
  local flags = table.move(document.flags, 1, #document.flags, 1, {})
  for _, flag in ipairs {
    { "-o, --output FOLDER", "where report.html, the tables as CSV and the figures go" },
    { "--commit NAME", "what the page says of the program: $(git rev-parse HEAD)" },
    { "--mnist DIR", "the files of MNIST, for LeNet-5's accuracy" },
    { "--data SPEC", "pictures to calibrate on, for X19's table 6.4" } } do flags[#flags + 1] = flag end
  return args.main(words, { usage = "--trust documents/report.lua -o FOLDER",
    about = "One page of all documents' experiments. Times of X19's starts want --trust before the script.", flags = flags }, work)
end
