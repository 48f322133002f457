-- Plots in the quality of a paper, by the plugin draw-cairo:
--
--   plot.lines({ { rows, label = "ip1" } }, { x = "kept", y = "top-1" }):save("curve.png") -- or .svg
--
-- Rows are { x, y }, or { x, y, low, high } with a band around the line. Values that are not
-- finite, or not above 0 on a logarithmic axis, are left out and counted on stderr.
local c = require "cnnrun"
local axis = require "lib.axis"
local figure = require "lib.figure"

local ink, soft, white = figure.ink, figure.soft, figure.white
local small, swatch = figure.small, figure.swatch
local marker, faded, map_colour = figure.marker, figure.faded, figure.map_colour

---Plots in the quality of a paper.
---@class lib.plot
local M = {}

---@class lib.plot.Options
---@field title? string above the picture
---@field simulated? boolean the title says "simulated" (while a simulated board's clock is in force)
---@field x? string what the x axis shows
---@field y? string what the y axis shows
---@field log? "x"|"y"|"xy" logarithmic axes
---@field whole? "x"|"y"|"xy" ticks at whole numbers alone
---@field x_range? number[] { low, high }; else what the data need
---@field y_range? number[] the same for y
---@field width? integer how wide, in units of 1/96 inch (480)
---@field height? integer how high (320)
---@field scale? number pixels of a .png for a unit (2)
---@field legend? boolean false leaves it out
---@field markers? boolean of lines: true where there are at most 30 points

---@class lib.plot.Series
---@field [1] number[][] rows { x, y } or { x, y, low, high }
---@field label? string its name in the legend
---@field colour? number[] { red, green, blue } from 0 to 1
---@field dash? number[] lengths drawn and left out, in turns

---@class lib.plot.BarOptions: lib.plot.Options
---@field labels? string[] the names of the columns behind the first
---@field horizontal? boolean names at the left: for many, or long ones
---@field values? boolean false leaves out the numbers at the bars

---@class lib.plot.HistogramOptions: lib.plot.Options
---@field bins? integer how many; as the spread asks for when left out
---@field labels? string[] when several lists are given

---@class lib.plot.HeatOptions: lib.plot.Options
---@field rows? string[] names, from the top
---@field columns? string[] names, from the left
---@field value? string what the colours show
---@field values? boolean false leaves out the numbers in the cells

-- ---- shared by all kinds ----

-- The points that can be shown, as runs without a gap: { { x, y, low, high }, ... }.
local function read_rows(plot, kind, number, rows)
  local runs, run, left_out = {}, {}, 0
  if type(rows) ~= "table" then
    error(("plot.%s: series %d: want { rows, label = ... }"):format(kind, number), 4)
  end
  for i, row in ipairs(rows) do
    if type(row) ~= "table" or type(row[1]) ~= "number" or type(row[2]) ~= "number" then
      error(("plot.%s: series %d: row %d: want { x, y }"):format(kind, number, i), 4)
    end
    if axis.shows(plot.x, row[1]) and axis.shows(plot.y, row[2]) then
      run[#run + 1] = row
      axis.cover(plot.x, row[1])
      axis.cover(plot.y, row[2])
      axis.cover(plot.y, row[3])
      axis.cover(plot.y, row[4])
    else
      left_out = left_out + 1
      if #run > 0 then runs[#runs + 1] = run end
      run = {}
    end
  end
  if #run > 0 then runs[#runs + 1] = run end
  return runs, left_out
end

-- A new plot of that kind, and the series to draw in it; sets the ranges of its axes. Throws for a
-- bad list.
local function read_series(kind, list, options)
  local plot, series, left_out = figure.new(kind, options, { "markers" }), {}, 0
  if type(list) ~= "table" then error(("plot.%s: want a list of series"):format(kind), 3) end
  for i, s in ipairs(list) do
    local runs, out = read_rows(plot, kind, i, type(s) == "table" and s[1] or nil)
    left_out = left_out + out
    local colour, dash, mark = figure.style(i)
    series[i] = { runs = runs, label = s.label, colour = s.colour or colour, dash = s.dash or dash,
                  marker = mark }
  end
  if left_out > 0 then
    c.note(("plot.%s: %d points are left out: not finite, or not above 0 on a logarithmic axis")
           :format(kind, left_out))
  end
  axis.settle(plot.x)
  axis.settle(plot.y)
  return plot, series
end

-- Points of lines, a few pixels apart, which a legend must not hide.
local function along_run(f, run, each)
  for i, row in ipairs(run) do
    local x, y = f:x(row[1]), f:y(row[2])
    local from = each and run[i - 1]
    local steps = 1
    if from then
      local fx, fy = f:x(from[1]), f:y(from[2])
      steps = math.min(200, math.max(1, math.max(math.abs(x - fx), math.abs(y - fy)) // 6))
      for s = 1, steps - 1 do
        f.points[#f.points + 1] = fx + (x - fx) * s / steps
        f.points[#f.points + 1] = fy + (y - fy) * s / steps
      end
    end
    f.points[#f.points + 1] = x
    f.points[#f.points + 1] = y
  end
end

-- ---- lines and points ----

-- Draws the band between two curves, for rows that have { x, y, low, high }.
local function draw_band(f, run, colour)
  if not run[1][3] or not run[1][4] or #run < 2 then return end
  local outline = {}
  -- Adds a point of the band's edge to the outline: column k of the row, or its value.
  local function add(row, k)
    outline[#outline + 1] = f:x(row[1])
    outline[#outline + 1] = f:y(axis.shows(f.plot.y, row[k]) and row[k] or row[2])
  end
  for _, row in ipairs(run) do add(row, 3) end
  for i = #run, 1, -1 do add(run[i], 4) end
  f.canvas:area(outline, faded(colour, .18))
end

-- Draws a series as lines, one for each unbroken run.
local function draw_line(f, s)
  for _, run in ipairs(s.runs) do
    local points = {}
    for _, row in ipairs(run) do
      points[#points + 1] = f:x(row[1])
      points[#points + 1] = f:y(row[2])
    end
    draw_band(f, run, s.colour)
    if #run > 1 then f.canvas:line(points, s.colour, 1.6, s.dash) end
    if s.marked or #run == 1 then
      for i = 1, #points, 2 do marker(f.canvas, s.marker, points[i], points[i + 1], 3, s.colour) end
    end
  end
end

---Curves. Each series has its colour and marker and, if it has a label, an entry in the legend.
---@param series lib.plot.Series[]
---@param options? lib.plot.Options
---@return lib.plot.Plot
function M.lines(series, options)
  local plot, list = read_series("lines", series, options)
  for i, s in ipairs(list) do
    local n = 0
    for _, run in ipairs(s.runs) do n = n + #run end
    s.marked = plot.options.markers == true or (plot.options.markers == nil and n <= 30)
    plot.entries[i] = { label = s.label, draw = function(f, x, y)
      f.canvas:line({ x, y, x + swatch, y }, s.colour, 1.6, s.dash)
      if s.marked then marker(f.canvas, s.marker, x + swatch / 2, y, 3, s.colour) end
    end }
  end
  plot.draw = function(f)
    for _, s in ipairs(list) do draw_line(f, s) end
  end
  plot.points = function(f)
    for _, s in ipairs(list) do
      for _, run in ipairs(s.runs) do along_run(f, run, true) end
    end
  end
  return plot
end

---Points without lines.
---@param series lib.plot.Series[]
---@param options? lib.plot.Options
---@return lib.plot.Plot
function M.scatter(series, options)
  local plot, list = read_series("scatter", series, options)
  for i, s in ipairs(list) do
    plot.entries[i] = { label = s.label, draw = function(f, x, y)
      marker(f.canvas, s.marker, x + swatch / 2, y, 3.2, s.colour)
    end }
  end
  -- Calls use for each run of each series.
  local function each(f, use)
    for _, s in ipairs(list) do
      for _, run in ipairs(s.runs) do use(f, s, run) end
    end
  end
  plot.draw = function(f)
    each(f, function(_, s, run)
      local colour = #run > 200 and faded(s.colour, .5) or s.colour
      for _, row in ipairs(run) do
        marker(f.canvas, s.marker, f:x(row[1]), f:y(row[2]), #run > 200 and 2 or 3.2, colour)
      end
    end)
  end
  plot.points = function(f) each(f, function(_, _, run) along_run(f, run, false) end) end
  return plot
end

-- ---- bars ----

-- Fills from a to b along one axis and p to q along the other, in pixels; horizontal swaps them.
local function fill_rectangle(f, a, b, p, q, horizontal, colour)
  local x0, x1 = math.min(p, q), math.max(p, q)
  if horizontal then f.canvas:fill({ x0, a, x1 - x0, b - a }, colour)
  else f.canvas:fill({ a, x0, b - a, x1 - x0 }, colour) end
end

-- The legend must not hide filled rectangles, either.
local function along_rectangle(f, a, b, p, q, horizontal)
  local steps = math.max(1, math.abs(q - p) // 8)
  for s = 0, steps do
    local at = p + (q - p) * s / steps
    for _, side in ipairs { a, (a + b) / 2, b } do
      f.points[#f.points + 1] = horizontal and at or side
      f.points[#f.points + 1] = horizontal and side or at
    end
  end
end

-- Names and columns of bars; an error where rows are malformed.
local function read_bars(rows, values)
  local names, columns = {}, 0
  if type(rows) ~= "table" then error("plot.bars: want a list of { name, value }", 3) end
  for i, row in ipairs(rows) do
    if type(row) ~= "table" or row[1] == nil or type(row[2]) ~= "number" then
      error(("plot.bars: row %d: want { name, value }"):format(i), 3)
    end
    names[i] = tostring(row[1])
    columns = math.max(columns, #row - 1)
    for k = 2, #row do axis.cover(values, row[k]) end
  end
  if not values.log then
    axis.cover(values, 0)
    axis.settle(values, 0)
    if values.low < 0 and not values.fixed and values.high == 0 then values.high = 0 end
  else axis.settle(values) end
  return names, columns
end

---Bars: rows { name, value }, or { name, value, value ... } with `labels` for the values.
---@param rows any[][]
---@param options? lib.plot.BarOptions
---@return lib.plot.Plot
function M.bars(rows, options)
  local plot = figure.new("bars", options, { "labels", "horizontal", "values" })
  local o = plot.options
  local across = o.horizontal or false
  local values, names = across and plot.x or plot.y, across and plot.y or plot.x
  local columns
  names.names, columns = read_bars(rows, values)
  names.log = false
  axis.settle(names)
  if across then plot.height = math.max(120, 62 + #rows * math.max(15, 9 * columns + 5)) end
  local colours = {}
  for k = 1, columns do
    colours[k] = figure.style(k)
    plot.entries[k] = { label = o.labels and o.labels[k], draw = function(f, x, y)
      f.canvas:fill({ x + 6, y - 4.5, swatch - 12, 9 }, colours[k])
    end }
  end
  -- Calls use for each bar.
  local function each(f, use)
    local zero = values.log and values.low or math.max(values.low, math.min(values.high, 0))
    for i, row in ipairs(rows) do
      for k = 1, columns do
        if axis.shows(values, row[k + 1]) then
          local a, b = i - .4 + .8 * (k - 1) / columns, i - .4 + .8 * k / columns
          -- Pixel of a place along the bars' names.
          local function place(v) return across and f:y(v) or f:x(v) end
          -- Pixel of a value along the bars' values.
          local function reach(v) return across and f:x(v) or f:y(v) end
          use(place(a), place(b), reach(zero), reach(row[k + 1]), k, row[k + 1])
        end
      end
    end
  end
  plot.draw = function(f)
    each(f, function(a, b, p, q, k) fill_rectangle(f, a, b, p, q, across, colours[k]) end)
    if o.values == false then return end
    local fits, texts = true, {}
    each(f, function(a, b, p, q, _, v)
      local text = axis.rounded(v, 3)
      local w, tall = f:extent(text, 9)
      texts[#texts + 1] = { text, (a + b) / 2, q, p }
      fits = fits and (across and tall or w + 2) <= (b - a) * (columns > 1 and 1 or 1.25) + 1
    end)
    for _, t in ipairs(fits and texts or {}) do
      local text, middle, q, p = table.unpack(t)
      if across then
        local inside = q >= p and q + f:extent(text, 9) + 4 > f.width - 4
        local beyond = q >= p and not inside
        f:text(text, q + (beyond and 3 or -3), middle, 9, inside and white or soft,
               beyond and 0 or 1, .5)
      else f:text(text, middle, q + (q <= p and -1 or 1), 9, soft, .5, q <= p and 1 or 0) end
    end
  end
  plot.points = function(f)
    each(f, function(a, b, p, q) along_rectangle(f, a, b, p, q, across) end)
  end
  return plot
end

-- ---- histograms ----

-- True: v is a list of lists, not of numbers.
local function is_list(v) return type(v) == "table" and type(v[1]) ~= "number" and v[1] ~= nil end

-- The number of bins, from the interquartile range (Freedman and Diaconis), 5 to 100.
local function bin_count(lists, low, high)
  local all = {}
  for _, list in ipairs(lists) do
    for i = 1, #list, math.max(1, #list // 10000) do
      if axis.finite(list[i]) then all[#all + 1] = list[i] end
    end
  end
  table.sort(all)
  local n = #all
  local spread = n > 3 and all[(3 * n + 3) // 4] - all[(n + 3) // 4] or 0
  local total = 0
  for _, list in ipairs(lists) do total = math.max(total, #list) end
  if spread <= 0 then return math.max(5, math.min(30, math.ceil(math.sqrt(total)))) end
  return math.max(5, math.min(100, math.ceil((high - low) / (2 * spread / total ^ (1 / 3)))))
end

---A histogram of a list of numbers, of a tensor, or of a list of such.
---@param values any
---@param options? lib.plot.HistogramOptions
---@return lib.plot.Plot
function M.histogram(values, options)
  local plot = figure.new("histogram", options, { "bins", "labels" })
  local o = plot.options
  local lists, low, high = is_list(values) and values or { values }, math.huge, -math.huge
  for _, list in ipairs(lists) do
    for i = 1, #list do
      local v = list[i]
      if axis.finite(v) then low, high = math.min(low, v), math.max(high, v) end
    end
  end
  if low > high then error("plot.histogram: want numbers", 2) end
  if low == high then low, high = low - .5, high + .5 end
  local n = o.bins or bin_count(lists, low, high)
  local counts = {}
  for k, list in ipairs(lists) do
    counts[k] = {}
    for b = 1, n do counts[k][b] = 0 end
    for i = 1, #list do
      if axis.finite(list[i]) then
        local b = math.min(n, math.floor((list[i] - low) / (high - low) * n) + 1)
        counts[k][b] = counts[k][b] + 1
      end
    end
    for b = 1, n do axis.cover(plot.y, counts[k][b]) end
  end
  plot.x.log = false
  axis.cover(plot.x, low)
  axis.cover(plot.x, high)
  axis.settle(plot.x)
  if not plot.y.log then axis.cover(plot.y, 0) end
  axis.settle(plot.y, not plot.y.log and 0 or nil)
  if plot.y.log then plot.y.low = math.min(plot.y.low, .8) end
  -- v rounded to half pixels.
  local function half(v) return math.floor(2 * v + .5) / 2 end -- Adjacent rectangles meet without a seam.
  -- Calls use for each rectangle of histogram k.
  local function each(f, k, use)
    local floor = f:y(plot.y.log and plot.y.low or 0)
    for b = 1, n do
      local count = counts[k][b]
      if count > 0 then
        local from, to = low + (b - 1) / n * (high - low), low + b / n * (high - low)
        use(half(f:x(from)), half(f:x(to)), floor, f:y(count))
      end
    end
  end
  local several = #lists > 1
  for k in ipairs(lists) do
    local colour = figure.style(k)
    plot.entries[k] = { colour = colour, label = o.labels and o.labels[k], draw = function(f, x, y)
      f.canvas:fill({ x + 6, y - 4.5, swatch - 12, 9 }, faded(colour, several and .55 or 1))
    end }
  end
  plot.draw = function(f)
    for k in ipairs(lists) do
      local colour = plot.entries[k].colour
      each(f, k, function(a, b, p, q)
        fill_rectangle(f, a, several and b or b - math.min(.6, (b - a) * .1), p, q, false,
                       several and faded(colour, .55) or colour)
      end)
    end
  end
  plot.points = function(f)
    for k in ipairs(lists) do
      each(f, k, function(a, b, p, q) along_rectangle(f, a, b, p, q, false) end)
    end
  end
  return plot
end

-- ---- heat maps ----

-- The cells of a heat map, of a tensor or rows.
local function read_cells(cells)
  if type(cells) == "userdata" then
    local shape, rows = cells:shape(), {}
    if #shape ~= 2 then error("plot.heat: want a tensor of two dimensions", 3) end
    for y = 1, shape[1] do
      rows[y] = {}
      for x = 1, shape[2] do rows[y][x] = cells[(y - 1) * shape[2] + x] end
    end
    return rows, shape[2]
  end
  local wide = type(cells) == "table" and type(cells[1]) == "table" and #cells[1] or 0
  if wide == 0 then error("plot.heat: want rows of numbers, or a tensor of two dimensions", 3) end
  return cells, wide
end

-- n names as a list of texts; missing ones are their numbers.
local function numbered(names, n)
  local list = {}
  for i = 1, n do list[i] = tostring(names and names[i] or i) end
  return list
end

---A colour for each number of a matrix: rows of numbers, or a tensor of two dimensions.
---@param cells any
---@param options? lib.plot.HeatOptions
---@return lib.plot.Plot
function M.heat(cells, options)
  local plot = figure.new("heat", options, { "rows", "columns", "value", "values" })
  local o = plot.options
  local rows, wide = read_cells(cells)
  local value = axis.new((o.log or "") ~= "", nil)
  local largest = 0
  for _, row in ipairs(rows) do
    for i = 1, wide do
      axis.cover(value, row[i])
      if axis.finite(row[i]) then largest = math.max(largest, math.abs(row[i])) end
    end
  end
  if value.low > value.high then value.low, value.high = 1, 1 end -- There is nothing to show.
  if value.low == value.high then value.high = value.log and value.low * 10 or value.low + 1 end
  plot.x.names, plot.y.names = numbered(o.columns, wide), numbered(o.rows, #rows)
  plot.x.log, plot.y.log = false, false
  axis.settle(plot.x)
  axis.settle(plot.y)
  plot.heat = true
  plot.height = math.max(160, math.min(900, math.floor(70 + #rows * math.min(40, 380 / wide))))
  -- Colour of a cell by its value; grey: no number.
  local function colour(v)
    return axis.shows(value, v) and map_colour(axis.along(value, v)) or { .8, .8, .8 }
  end
  -- Text of a cell's value; a dash: no number.
  local function text_of(v)
    if not axis.finite(v) then return "–" end
    return axis.text(v, (math.type(v) == "integer" or v == math.floor(v)) and 0 or
                         largest < 10 and 2 or 1)
  end
  plot.draw = function(f)
    local size, fits = 9, o.values ~= false
    for y, row in ipairs(rows) do
      for x = 1, wide do
        local x0, x1, y0, y1 = f:x(x - .5), f:x(x + .5), f:y(y - .5), f:y(y + .5)
        fill_rectangle(f, x0, x1 + .3, y0, y1 + .3, false, colour(row[x]))
        local w, h = f:extent(text_of(row[x]), size)
        fits = fits and w < x1 - x0 - 4 and h < y1 - y0
      end
    end
    for y, row in ipairs(fits and rows or {}) do
      for x = 1, wide do
        local shade = colour(row[x])
        local dark = .3 * shade[1] + .59 * shade[2] + .11 * shade[3] < .55
        f:text(text_of(row[x]), f:x(x), f:y(y), size, dark and white or ink, .5, .5)
      end
    end
  end
  plot.points = function() end
  local list = axis.ticks(value, 6)
  plot.bar = {
    wide = function(f) return f:widest(list, small) + 34 + (o.value and 16 or 0) end,
    draw = function(f)
      local x, steps = f.right + 10, 64
      for s = 1, steps do
        local y = f.bottom - (f.bottom - f.top) * s / steps
        f.canvas:fill({ x, y, 12, (f.bottom - f.top) / steps + .5 }, map_colour((s - .5) / steps))
      end
      for _, t in ipairs(list) do
        local y = f.bottom - axis.along(value, t.at) * (f.bottom - f.top)
        f.canvas:line({ x + 12, y, x + 15, y }, ink, 1)
        if t.text then f:text(t.text, x + 18, y, small, ink, 0, .5) end
      end
      if o.value then
        local w, h = f:extent(o.value, figure.normal)
        local middle = (f.top + f.bottom) / 2
        f.canvas:text(o.value, { f.width - figure.gap - h, middle + w / 2 }, figure.normal, ink, 90)
      end
    end }
  return plot
end

return M
