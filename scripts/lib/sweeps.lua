-- Tables over the seeds for `cnnrun sweep`, and a picture for each result.
local csv = require "lib.csv"
local draw = require "lib.draw"
local experiment = require "lib.experiment"
local json = require "lib.json"
local plot = require "lib.plot"

---Results of a sweep: tables over the seeds, and pictures.
---@class lib.sweeps
local M = {}

-- The 97.5% quantiles of Student's t for 1 to 30 degrees of freedom.
local quantiles = {
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
  2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042 }

-- For more degrees of freedom: the normal quantile with two terms of the series in 1 / freedom.
local function quantile(freedom)
  return quantiles[freedom] or 1.959964 + 2.372270 / freedom + 2.822502 / freedom ^ 2
end

---Number, mean, standard deviation, and the ends of the mean's 95% interval by Student's t. A
---single number has no deviation, so that and the ends are nil.
---@param list number[]
---@return { n: integer, mean: number, sd: number?, low: number?, high: number? }
function M.spread(list)
  local n, sum, squares = #list, 0, 0
  for _, v in ipairs(list) do sum = sum + v end
  local mean = sum / n
  for _, v in ipairs(list) do squares = squares + (v - mean) ^ 2 end
  if n < 2 then return { n = n, mean = mean } end
  local sd = math.sqrt(squares / (n - 1))
  local half = quantile(n - 1) * sd / math.sqrt(n)
  return { n = n, mean = mean, sd = sd, low = mean - half, high = mean + half }
end

---The points of results.jsonl: `point` and `results` by name, and `seconds`.
---@param text string
---@return table[]
function M.read(text)
  local rows, seen = {}, {}
  for line in text:gmatch "[^\n]+" do
    local point = line:match '^{"point":%b{}'
    if not seen[point or line] then rows[#rows + 1] = json.decode(line) end -- Points from lists may be drawn twice.
    seen[point or line] = true
  end
  return rows
end

-- The names of results in order, and whether they are lists of numbers.
local function results_of(rows)
  local names, kinds = {}, {}
  for _, row in ipairs(rows) do
    for name, v in pairs(row.results) do
      local kind = type(v)
      if v == json.null then kind = "number" end -- Not finite.
      if not kinds[name] then names[#names + 1] = name end
      kinds[name] = kinds[name] == "table" and "table" or kind
    end
  end
  table.sort(names)
  return names, kinds
end

-- The value, or the last of a list.
local function scalar(v)
  if type(v) == "table" and v ~= json.null then return v[#v] end
  if v == json.null then return 0 / 0 end
  return v
end

-- Groups of points that differ in their seed alone, in the order of the points.
local function groups_of(rows, axes)
  local groups, by = {}, {}
  for _, row in ipairs(rows) do
    local words = {}
    for k, a in ipairs(axes) do words[k] = a.name ~= "seed" and tostring(row.point[a.name]) or "" end
    local key = table.concat(words, "\0")
    if not by[key] then
      by[key] = { point = row.point, rows = {} }
      groups[#groups + 1] = by[key]
    end
    table.insert(by[key].rows, row)
  end
  return groups
end

-- The finite numbers of a result of a group's rows; for lists, those of an epoch (nil: the last
-- one).
local function numbers(group, name, epoch)
  local list = {}
  for _, row in ipairs(group.rows) do
    local v = row.results[name]
    if epoch and type(v) == "table" then v = v[epoch] else v = scalar(v) end
    if type(v) == "number" and v - v == 0 then list[#list + 1] = v end
  end
  return list
end

-- ---- tables ----

-- Columns and lines of the table of every point.
local function every_point(rows, axes, names)
  local columns, lines = {}, {}
  for _, a in ipairs(axes) do columns[#columns + 1] = a.name end
  for _, name in ipairs(names) do columns[#columns + 1] = name end
  columns[#columns + 1] = "seconds"
  for i, row in ipairs(rows) do
    local line = {}
    for k, a in ipairs(axes) do line[k] = row.point[a.name] end
    for k, name in ipairs(names) do line[#axes + k] = scalar(row.results[name]) end
    line[#columns] = row.seconds
    lines[i] = line
  end
  return columns, lines
end

-- The table over seeds: mean, deviation and range.
local function over_seeds(groups, axes, names, kinds)
  local columns, lines, ways = {}, {}, { "mean", "sd", "low", "high" }
  for _, a in ipairs(axes) do
    if a.name ~= "seed" then columns[#columns + 1] = a.name end
  end
  local first = #columns + 1
  columns[first] = "n"
  for _, name in ipairs(names) do
    for _, way in ipairs(ways) do
      if kinds[name] ~= "string" and kinds[name] ~= "boolean" then columns[#columns + 1] = name .. "_" .. way end
    end
  end
  for i, group in ipairs(groups) do
    local line, at = {}, first
    for k = 1, first - 1 do line[k] = group.point[columns[k]] end
    line[first] = #group.rows
    for _, name in ipairs(names) do
      if kinds[name] ~= "string" and kinds[name] ~= "boolean" then
        local list = numbers(group, name)
        local s = #list > 0 and M.spread(list) or {}
        for k, way in ipairs(ways) do line[at + k] = s[way] end
        at = at + #ways
      end
    end
    lines[i] = line
  end
  return columns, lines
end

-- ---- pictures ----

-- How many different values an axis has in the groups, and whether all are numbers.
local function values_of(groups, name)
  local seen, n, all = {}, 0, true
  for _, group in ipairs(groups) do
    local v = group.point[name]
    if not seen[v] then seen[v], n = true, n + 1 end
    all = all and type(v) == "number"
  end
  return n, all
end

-- The label of a group: the parameters other than `x` and the seed in which the groups differ; nil:
-- there are none.
local function label_of(group, axes, groups, x)
  local words = {}
  for _, a in ipairs(axes) do
    if a.name ~= x and a.name ~= "seed" and values_of(groups, a.name) > 1 then
      local v = group.point[a.name]
      words[#words + 1] = a.name .. " " .. (type(v) == "number" and ("%.4g"):format(v):gsub(",", ".") or tostring(v))
    end
  end
  return #words > 0 and table.concat(words, ", ") or nil
end

-- The first parameter with several numbers; nil: there is none.
local function across(groups, axes)
  for _, a in ipairs(axes) do
    local n, all = values_of(groups, a.name)
    if a.name ~= "seed" and n > 1 and all then return a end
  end
end

-- A row { x, mean, low, high } of a list of numbers.
local function row_of(x, list)
  local s = M.spread(list)
  return { x, s.mean, s.low, s.high }
end

-- A result as a function of a parameter, a line for each combination of the others.
local function over_parameter(groups, axes, name)
  local x = across(groups, axes)
  if not x then return end
  local series, by = {}, {}
  for _, group in ipairs(groups) do
    local list, label = numbers(group, name), label_of(group, axes, groups, x.name)
    if #list > 0 then
      local key = label or ""
      if not by[key] then
        by[key] = { {}, label = label }
        series[#series + 1] = by[key]
      end
      table.insert(by[key][1], row_of(group.point[x.name], list))
    end
  end
  for _, s in ipairs(series) do table.sort(s[1], function(a, b) return a[1] < b[1] end) end
  return series, { x = x.name, y = name, log = x.is_log and "x" or nil }
end

-- A list of numbers by its index, one line for each group.
local function over_epochs(groups, axes, name)
  local series = {}
  for _, group in ipairs(groups) do
    local rows, epoch = {}, 1
    local list = numbers(group, name, epoch)
    while #list > 0 do
      rows[epoch] = row_of(epoch, list)
      epoch = epoch + 1
      list = {}
      for _, row in ipairs(group.rows) do
        local v = row.results[name]
        local number = type(v) == "table" and v[epoch]
        if type(number) == "number" then list[#list + 1] = number end
      end
    end
    if #rows > 0 then series[#series + 1] = { rows, label = label_of(group, axes, groups, nil) } end
  end
  return series, { x = "epoch", y = name, whole = "x" }
end

---The plot of a result, or nil if no parameter has several numbers.
---@param groups table[]
---@param axes table[]
---@param name string
---@param is_list boolean
---@return lib.plot.Plot?
function M.picture(groups, axes, name, is_list)
  local series, options
  if is_list then series, options = over_epochs(groups, axes, name)
  else series, options = over_parameter(groups, axes, name) end
  if not series or #series == 0 then return end
  local seeds = 0
  for _, group in ipairs(groups) do seeds = math.max(seeds, #group.rows) end
  if seeds > 1 then options.title = ("mean and 95%% interval of %d seeds"):format(seeds) end
  return plot.lines(series, options)
end

---Writes results.csv, summary.csv and the pictures to `folder`; prints the summary.
---@param text string results.jsonl
---@param about { folder: string, axes: { name: string, is_log: boolean }[], metric?: string, pictures: string, table: boolean }
function M.report(text, about)
  local rows = M.read(text)
  local names, kinds = results_of(rows)
  local groups = groups_of(rows, about.axes)
  local columns, lines = over_seeds(groups, about.axes, names, kinds)
  csv.write(about.folder .. "/results.csv", every_point(rows, about.axes, names))
  csv.write(about.folder .. "/summary.csv", columns, lines)
  if about.table then experiment.print(csv.marked(columns, lines)) end
  if about.metric and not kinds[about.metric] then
    error(("--metric %s: no such result; there are %s"):format(about.metric, table.concat(names, ", ")), 0)
  end
  if not draw.available() then return end
  for _, name in ipairs(about.metric and { about.metric } or names) do
    local numeric = kinds[name] == "number" or kinds[name] == "table"
    local picture = numeric and M.picture(groups, about.axes, name, kinds[name] == "table")
    if picture then picture:save(about.folder .. "/" .. name:gsub("[^%w_.-]", "_") .. "." .. about.pictures) end
  end
end

return M
