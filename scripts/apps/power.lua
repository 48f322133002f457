-- Draws a log of power: cnnrun scripts/apps/power.lua LOG.csv CURVES.svg (or .png)
-- The log is what `cnnrun energy log --csv LOG.csv` writes: time_s, then NAME_W and NAME_J of each domain.
local args = require "lib.args"
local csv = require "lib.csv"
local plot = require "lib.plot"

-- The watts of each domain, where they could be read, and their maximum.
local function curves(rows, columns)
  local series, most = {}, 0
  for _, column in ipairs(columns) do
    local name, points = column:match("^(.*)_W$"), {}
    for _, row in ipairs(name and rows or {}) do
      local watts = row[column]
      if type(watts) == "number" then
        points[#points + 1] = { row.time_s, watts }
        most = math.max(most, watts)
      end
    end
    if #points > 0 then series[#series + 1] = { points, label = name } end
  end
  return series, most
end

-- Draws the curves of a CSV file of watts.
local function draw(options)
  local rows, columns = csv.read(options[1])
  local series, most = curves(rows, columns)
  if #series == 0 then error(options[1] .. ": holds no watts", 0) end
  plot.lines(series, { x = "s", y = "W", title = options.title, markers = false, width = 720,
                       simulated = rows[1].simulated == "true",
                       y_range = { 0, most > 0 and most * 1.05 or 1 } }):save(options[2])
  return 0
end

return args.application({ operands = "LOG.csv CURVES.svg", least = 2, most = 2, without = "it draws a table, no net runs",
                          example = "cnnrun power log.csv curves.svg",
                          about = "Draws the curves of a log of power.",
                          flags = { { "--title TEXT", "above the picture" } } }, draw)
