-- Shared by experiments: words and flags, and results as a table on the screen, as CSV and as a
-- picture.
--
--   return experiment.main({ name = "bits", words = "NET DATA", about = "...", flags = { ... } },
--     function(options, say)          -- options[1] is NET; say tells of progress
--       return { "bits", "top1" }, rows, plot.lines(...)
--     end)
local c = require "cnnrun"
local args = require "lib.args"
local csv = require "lib.csv"

---Shared by experiments.
---@class lib.experiment
local M = {}

local common = {
  { "-o, --output FOLDER", "folder for NAME.csv and NAME.png; --output before the script also works" },
  { "--svg", "NAME.svg as well" },
  { "--weights FILE", "of the net, or random:SEED" },
  { "-q, --quiet", "nothing on stderr" },
}

-- A value as text, floats with four digits; nil: "".
local function shown(v)
  if math.type(v) == "float" then return (("%.4g"):format(v):gsub(",", ".")) end
  return tostring(v == nil and "" or v)
end

---Prints a table with aligned columns, numbers to the right.
---@param columns string[]
---@param rows any[][]
function M.print(columns, rows)
  local wide, lines = {}, {}
  -- The row's cells as text; widens the columns.
  local function measure(row)
    local cells = {}
    for k = 1, #columns do
      cells[k] = shown(row[k])
      wide[k] = math.max(wide[k] or 0, utf8.len(cells[k]) or #cells[k])
    end
    return cells
  end
  lines[1] = measure(columns)
  for _, row in ipairs(rows) do lines[#lines + 1] = measure(row) end
  for i, cells in ipairs(lines) do
    for k, text in ipairs(cells) do
      local room = (" "):rep(wide[k] - (utf8.len(text) or #text))
      local left = type((rows[i - 1] or rows[1] or {})[k]) ~= "number"
      cells[k] = left and text .. room or room .. text
    end
    print((table.concat(cells, "  "):gsub("%s+$", "")))
  end
end

---The numbers of a flag such as "0.5,0.2,0.1", or the given default.
---@param text string?
---@param standard number[]
---@return number[]
function M.numbers(text, standard)
  if not text then return standard end
  local list = {}
  for word in (text .. ","):gmatch("([^,]*),") do
    list[#list + 1] = tonumber(word) or
                      error(("'%s': want numbers separated by commas"):format(text), 0)
  end
  return list
end

---The main function of an experiment. work(options, say) returns columns, rows and a plot.
---@param spec { name: string, words: string, about: string, flags: table[], least: integer? }
---@param work fun(options: table, say: fun(...)): string[], any[][], lib.plot.Plot
---@return fun(words: string[]): integer?
function M.main(spec, work)
  local flags = table.move(spec.flags, 1, #spec.flags, 1, {})
  table.move(common, 1, #common, #flags + 1, flags)
  local _, n = spec.words:gsub("%S+", "")
  local how = { usage = ("scripts/experiments/%s.lua %s -o FOLDER"):format(spec.name, spec.words),
                about = spec.about, flags = flags, least = spec.least or n }
  return function(words)
    return args.main(words, how, function(options)
      local folder = options.output or words.output
      if not folder then error("-o FOLDER is missing: the folder for results", 0) end
      c.folder(folder)
      local path = folder .. "/" .. spec.name
      c.output(path .. ".csv") -- Reports a path that can't be written before work begins.
      -- Tells a line on standard error, formatted as by string.format, unless --quiet.
      local function say(format, ...)
        if not options.quiet then c.note((format:format(...):gsub("(%d),(%d)", "%1.%2"))) end
      end
      local columns, rows, plot = work(options, say)
      columns, rows = csv.marked(columns, rows)
      M.print(columns, rows)
      csv.write(path .. ".csv", columns, rows)
      plot:save(path .. ".png")
      if options.svg then plot:save(path .. ".svg") end
      say("%s.csv, %s.png", path, path)
    end)
  end
end

return M
