-- Draws one plot: positions and looks of its box, ticks, labels and legend. A kind of plot
-- (lib.plot) draws the content of the box:
--
--   x, y      axes: { low, high, log }, or { names }
--   draw(f)   draws it, by f:x(value), f:y(value) and f.canvas
--   points(f) adds to f.points what the legend must not hide: x, y, x, y ...
--   entries   of the legend: { label, draw = function(f, x, y) end }
--   bar       (a scale of colours) { wide = function(f), draw = function(f) }
local c = require "cnnrun"
local axis = require "lib.axis"
local M = {}

---The result of lib.plot's functions.
---@class lib.plot.Plot
---@field options any
---@field x any its axes
---@field y any
---@field entries any[] of the legend
---@field [string] any
local Plot = {}
Plot.__index = Plot

-- ---- looks ----

-- The palette of Okabe and Ito, distinguishable for the colour-blind; each series also has its own
-- marker.
local palette = { 0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0xe69f00, 0x56b4e9, 0x000000, 0x8c6d31 }
local dashes = { {}, { 6, 3 }, { 2, 2 }, { 8, 3, 2, 3 } } -- The next pattern follows once all colours are used.
local markers = { "circle", "square", "triangle", "diamond", "wedge", "cross" }
local ink, soft, grid, white = { .13, .13, .13 }, { .4, .4, .4 }, { .89, .89, .89 }, { 1, 1, 1 }
local small, normal, large = 10, 11, 13 -- Font sizes of ticks, labels and the title.
local gap = 6
local swatch = 26 -- The width of the symbol before a name in the legend.
M.ink, M.soft, M.white, M.small, M.normal = ink, soft, white, small, normal
M.gap, M.swatch = gap, swatch

-- A colour { r, g, b }, each 0 to 1, from its number 0xRRGGBB.
local function colour_of(code)
  return { (code >> 16) / 255, (code >> 8 & 255) / 255, (code & 255) / 255 }
end

-- The colour, dash pattern and marker of series i.
function M.style(i)
  return colour_of(palette[(i - 1) % #palette + 1]), dashes[(i - 1) // #palette % #dashes + 1],
         markers[(i - 1) % #markers + 1]
end

-- A copy of the colour with this opacity, 0 to 1.
function M.faded(colour, opacity) return { colour[1], colour[2], colour[3], opacity } end

-- The colour map viridis: dark blue to yellow, brighter with larger values.
local map = { 0x440154, 0x482878, 0x3e4a89, 0x31688e, 0x26828e, 0x1f9e89, 0x35b779, 0x6dcd59,
              0xb4de2c, 0xfde725 }
-- The colour of a map at part, 0 to 1.
function M.map_colour(part)
  local at = 1 + math.max(0, math.min(1, part)) * (#map - 1)
  local i = math.min(#map - 1, math.floor(at))
  local a, b, t, mixed = colour_of(map[i]), colour_of(map[i + 1]), at - i, {}
  for k = 1, 3 do mixed[k] = a[k] + (b[k] - a[k]) * t end
  return mixed
end

-- ---- a picture being drawn: canvas, box, scales ----

---@class figure.Figure
---@field canvas cnnrun.Object.canvas
---@field plot any
---@field [string] any
local Figure = {}
Figure.__index = Figure

-- Width and height of a text of that size, in pixels.
function Figure:extent(text, size)
  local e = self.canvas:extent(text, size)
  return e[1], e[2]
end

-- Draws text at an anchor: 0, 0 is its left top, .5, .5 its middle.
function Figure:text(text, x, y, size, colour, h, v)
  local w, tall = self:extent(text, size)
  self.canvas:text(text, { x - w * h, y - tall * v }, size, colour or ink)
end

-- The text, shortened if it is wider than `room`.
function Figure:shortened(text, size, room)
  if self:extent(text, size) <= room then return text end
  while #text > 1 and self:extent(text .. "…", size) > room do
    text = text:sub(1, (utf8.offset(text, -1) or #text) - 1)
  end
  return text .. "…"
end

-- Place of a value along x, in pixels.
function Figure:x(v) return self.left + axis.along(self.plot.x, v) * (self.right - self.left) end
-- Place of a value along y, in pixels.
function Figure:y(v)
  local part = axis.along(self.plot.y, v)
  if self.plot.y.names then part = 1 - part end -- From the top.
  return self.bottom - part * (self.bottom - self.top)
end

-- The largest width of the texts, and the height of all.
function Figure:widest(list, size)
  local most, tall = 0, select(2, self:extent("0", size))
  for _, t in ipairs(list) do most = math.max(most, t.text and self:extent(t.text, size) or 0) end
  return most, tall
end

-- Reduces the number of ticks until their labels do not touch.
function Figure:x_ticks()
  local across, room = self.plot.x, self.right - self.left
  for most = math.max(2, math.floor(room / 45)), 2, -1 do
    local list, offset = axis.ticks(across, most)
    local last, apart = -math.huge, true
    for _, t in ipairs(list) do
      if t.text then
        local x, half = axis.along(across, t.at) * room, self:extent(t.text, small) / 2
        apart = apart and x - half > last + gap
        last = x + half
      end
    end
    if apart or most == 2 or across.names then return list, offset, apart end
  end
end

-- Computes the layout: `beside` is the space for the legend at the right.
function Figure:lay(beside)
  local p, o = self.plot, self.plot.options
  local _, line = self:extent("0", normal)
  local _, row = self:extent("0", small)
  self.top = gap + (o.title and select(2, self:extent(o.title, large)) + gap or 2)
  self.right = self.width - gap - 6 - beside - (p.bar and p.bar.wide(self) or 0)
  local most = math.max(2, math.floor((self.height - self.top - 50) / 32))
  self.y_list, self.y_offset = axis.ticks(p.y, most)
  if self.y_offset then self.top = math.max(self.top, gap + row) end
  if p.y.names then
    for _, t in ipairs(self.y_list) do t.text = self:shortened(t.text, small, self.width * .4) end
  end
  self.left = gap + (o.y and line + gap or 0) + self:widest(self.y_list, small) + 7
  local apart
  self.x_list, self.x_offset, apart = self:x_ticks()
  self.bottom = self.height - gap - ((o.x or self.x_offset) and line + 3 or 0) - row - 7
  if p.x.names and not apart then -- Names that don't fit side by side are slanted.
    for _, t in ipairs(self.x_list) do t.text = self:shortened(t.text, small, self.height * .4) end
    self.lean = 40
    local most = self:widest(self.x_list, small)
    self.bottom = self.bottom - most * math.sin(math.rad(self.lean)) + 2
    self.left = math.max(self.left, gap + self:extent(self.x_list[1].text, small) *
                         math.cos(math.rad(self.lean)) - (self.right - self.left) / #p.x.names / 2)
  end
  local last = self.x_list[#self.x_list]
  if last and last.text and not self.lean then -- Half of the last label extends over the edge.
    local over = self:x(last.at) + self:extent(last.text, small) / 2 - (self.width - gap - beside)
    if over > 0 and not p.bar then self.right = self.right - over end
  end
end

-- Moves lines of one pixel to whole pixels.
local function crisp(v) return math.floor(v) + .5 end
-- Left, right, top and bottom of the plotted area, in whole pixels.
function Figure:box()
  return crisp(self.left), crisp(self.right), crisp(self.top), crisp(self.bottom)
end

-- Draws the lines of the grid at the labelled ticks.
function Figure:axes()
  local k, p = self.canvas, self.plot
  local left, right, top, bottom = self:box()
  for _, t in ipairs(self.y_list) do
    local y = crisp(self:y(t.at))
    if not p.y.names and t.text and not p.heat then k:line({ left, y, right, y }, grid, 1) end
  end
  for _, t in ipairs(self.x_list) do
    local x = crisp(self:x(t.at))
    if not p.x.names and t.text and not p.heat then k:line({ x, top, x, bottom }, grid, 1) end
  end
end

-- Draws the axes' lines, ticks, labels and titles.
function Figure:labels()
  local k, p, o = self.canvas, self.plot, self.plot.options
  local left, right, top, bottom = self:box()
  k:line({ left, top, left, bottom, right, bottom }, ink, 1)
  for _, t in ipairs(self.y_list) do
    local y = self:y(t.at)
    local length = t.text and 4 or 2
    if not p.y.names then k:line({ left - length, crisp(y), left, crisp(y) }, ink, 1) end
    if t.text then self:text(t.text, left - 6, y, small, ink, 1, .5) end
  end
  for _, t in ipairs(self.x_list) do
    local x = self:x(t.at)
    local length = t.text and 4 or 2
    if not p.x.names then k:line({ crisp(x), bottom, crisp(x), bottom + length }, ink, 1) end
    if t.text and self.lean then
      local w, tall = self:extent(t.text, small)
      local a = math.rad(self.lean)
      k:text(t.text, { x - w * math.cos(a) - tall * .35 * math.sin(a),
                       bottom + 4 + w * math.sin(a) - tall * .2 }, small, ink, self.lean)
    elseif t.text then self:text(t.text, x, bottom + 6, small, ink, .5, 0) end
  end
  if self.y_offset then self:text(self.y_offset, left, top - 2, small, soft, 0, 1) end
  if self.x_offset then self:text(self.x_offset, right, self.height - gap, small, soft, 1, 1) end
  if o.title then self:text(o.title, self.width / 2, gap, large, ink, .5, 0) end
  if o.x then self:text(o.x, (left + right) / 2, self.height - gap, normal, ink, .5, 1) end
  if o.y then
    local w = self:extent(o.y, normal)
    k:text(o.y, { gap, (top + bottom) / 2 + w / 2 }, normal, ink, 90)
  end
end

-- Draws a marker of this kind ("circle", "square" ...) and radius r at (x, y).
function M.marker(k, kind, x, y, r, colour)
  if kind == "circle" then k:dot({ x, y }, r, colour)
  elseif kind == "square" then k:fill({ x - r * .9, y - r * .9, 1.8 * r, 1.8 * r }, colour)
  elseif kind == "triangle" then
    k:area({ x, y - 1.2 * r, x + 1.15 * r, y + .9 * r, x - 1.15 * r, y + .9 * r }, colour)
  elseif kind == "wedge" then
    k:area({ x, y + 1.2 * r, x + 1.15 * r, y - .9 * r, x - 1.15 * r, y - .9 * r }, colour)
  elseif kind == "diamond" then
    k:area({ x, y - 1.3 * r, x + 1.3 * r, y, x, y + 1.3 * r, x - 1.3 * r, y }, colour)
  else
    k:line({ x - r, y - r, x + r, y + r }, colour, 1.6)
    k:line({ x - r, y + r, x + r, y - r }, colour, 1.6)
  end
end

-- ---- the legend ----

local row_gap, inset = 4, 7

-- Width and height of the legend in pixels.
function Figure:legend_size()
  local w, h = 0, 2 * inset - row_gap
  for _, e in ipairs(self.entries) do
    local wide, tall = self:extent(e.text, small)
    w, h = math.max(w, wide), h + tall + row_gap
  end
  return w + swatch + 3 * inset, h
end

-- The position that hides least of the drawing; nil if each would hide something.
function Figure:legend_place(w, h)
  local l, r, t, b = self.left + 8, self.right - 8 - w, self.top + 6, self.bottom - 8 - h
  if w > (self.right - self.left) * .5 or h > (self.bottom - self.top) * .6 then return nil end
  local places = { { r, t }, { l, t }, { r, b }, { l, b }, { (l + r) / 2, t }, { (l + r) / 2, b } }
  for _, place in ipairs(places) do
    local free = true
    for i = 1, #self.points, 2 do
      local x, y = self.points[i] - place[1], self.points[i + 1] - place[2]
      if x > -5 and x < w + 5 and y > -5 and y < h + 5 then
        free = false
        break
      end
    end
    if free then return place end
  end
end

-- Draws the legend of that size at `place`.
function Figure:legend(place, w, h)
  local k = self.canvas
  if place.inside then
    k:fill({ place[1], place[2], w, h }, { 1, 1, 1, .85 }, 3)
    k:outline({ place[1], place[2], w, h }, { .8, .8, .8 }, 1, 3)
  end
  local x, y = place[1] + inset, place[2] + inset
  for _, e in ipairs(self.entries) do
    local _, tall = self:extent(e.text, small)
    e.draw(self, x, y + tall / 2)
    k:text(e.text, { x + swatch + inset, y }, small, ink)
    y = y + tall + row_gap
  end
end

-- ---- drawing ----

-- A canvas; an error tells what is missing.
local function new_canvas(options)
  local good, canvas = pcall(c.object, "canvas", options)
  if good then return canvas end
  error("drawing needs the plugin draw-cairo, which is built if libcairo2-dev is installed: " ..
        tostring(canvas):gsub("^%S+:%d+: ", ""), 0)
end

-- Draws a plot on a canvas, which it returns. file: "svg" or "pdf"; nil: pixels.
local function draw(plot, file)
  local o = plot.options
  local width, height = o.width or 480, o.height or plot.height or 320
  local f = setmetatable({ plot = plot, width = width, height = height, points = {}, entries = {} },
                         Figure)
  local scale = file and 1 or o.scale or 2
  f.canvas = new_canvas { width = width, height = height, scale = scale, [file or "svg"] = file ~= nil }
  for _, e in ipairs(o.legend ~= false and plot.entries or {}) do
    if e.label then
      f.entries[#f.entries + 1] = { text = f:shortened(tostring(e.label), small, width * .4),
                                    draw = e.draw }
    end
  end
  f.canvas:fill({ 0, 0, width, height }, white)
  f:lay(0)
  local place, w, h
  if #f.entries > 0 then
    w, h = f:legend_size()
    plot.points(f)
    place = f:legend_place(w, h)
    if place then place.inside = true
    else
      f.lean = nil
      f:lay(w)
      place = { f.right + 6, f.top - inset }
    end
  end
  f:axes()
  f.canvas:clip({ f.left - 6, f.top - 6, f.right - f.left + 12, f.bottom - f.top + 6.5 })
  plot.draw(f)
  f.canvas:clip()
  f:labels()
  if plot.bar then plot.bar.draw(f) end
  if place then f:legend(place, w, h) end
  return f.canvas
end

---Writes the plot: as pixels to a .png, as vectors to a .svg or a .pdf.
---@param path string
---@return lib.plot.Plot
function Plot:save(path)
  local ending = path:match "%.(%w+)$"
  if ending ~= "png" and ending ~= "svg" and ending ~= "pdf" then
    error(("'%s': a plot is written to a .png, a .svg or a .pdf"):format(path), 2)
  end
  c.output(path) -- Reports a path that can't be written before work begins.
  if ending == "png" then draw(self):pixels():save(path)
  else
    local canvas = draw(self, ending)
    c.write(path, canvas[ending](canvas))
  end
  return self
end

---The text of an SVG.
---@return string
function Plot:svg() return draw(self, "svg"):svg() end

---Its pixels, u8 [height,width,3].
---@return cnnrun.Tensor
function Plot:picture() return draw(self):pixels() end

-- ---- making a plot ----

local common = { "title", "x", "y", "log", "x_range", "y_range", "width", "height", "scale",
                 "legend", "simulated", "whole" }

-- Raises an error for an unknown option of a plot.
local function check_options(kind, options, own)
  if type(options) ~= "table" then error(("plot.%s: options: want a table"):format(kind), 4) end
  local known = {}
  for _, list in ipairs { common, own } do
    for _, name in ipairs(list) do known[name] = true end
  end
  for name in pairs(options) do
    if not known[name] then
      error(("plot.%s: no option '%s': there are %s, %s"):format(kind, tostring(name),
            table.concat(common, ", "), table.concat(own, ", ")), 4)
    end
  end
end

-- A plot of that kind with its own options, still without content.
---@return lib.plot.Plot
function M.new(kind, options, own)
  options = options or {}
  check_options(kind, options, own)
  local log = options.log or ""
  if options.simulated or c.simulated() then
    local marked = {}
    for name, value in pairs(options) do marked[name] = value end
    marked.title = options.title and options.title .. " (simulated)" or "simulated"
    options = marked
  end
  local x = axis.new(log:find("x") ~= nil, options.x_range)
  local y = axis.new(log:find("y") ~= nil, options.y_range)
  local whole = options.whole or ""
  x.whole, y.whole = whole:find "x" ~= nil, whole:find "y" ~= nil
  return setmetatable({ options = options, entries = {}, x = x, y = y }, Plot)
end

return M
