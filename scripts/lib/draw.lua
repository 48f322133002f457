-- What is found, drawn on its picture: outlines and labels that can be read on anything.
local c = require "cnnrun"
local boxes = require "lib.boxes"
local M = {}

-- Nil, and why, when nothing can be drawn here.
function M.available()
  local good, why = pcall(c.object, "canvas", { width = 1, height = 1 })
  if good then return true end
  return nil, "drawing wants the plugin draw-cairo, which is built where libcairo2-dev is there: " ..
              tostring(why):gsub("^%S+:%d+: ", "")
end

-- ---- colours ----

local function rgb(hue, saturation, lightness)
  local chroma = (1 - math.abs(2 * lightness - 1)) * saturation
  local function channel(offset)
    local k = (hue * 6 + offset) % 6
    local v = math.max(0, math.min(1, math.abs(k - 3) - 1))
    return lightness + chroma * (v - .5)
  end
  return { channel(0), channel(4), channel(2) }
end

-- Neighbours in the list of classes lie far apart on the wheel.
function M.colour(class)
  local hue = (.36 + class * 0.618033988749895) % 1
  local lift = (class // 8) % 3 * .05
  return rgb(hue, .85, .52 + lift)
end

-- As the eye sees it, from 0 to 1.
local function brightness(colour)
  local function linear(v) return v <= .04045 and v / 12.92 or ((v + .055) / 1.055) ^ 2.4 end
  return .2126 * linear(colour[1]) + .7152 * linear(colour[2]) + .0722 * linear(colour[3])
end

-- Black or white, whichever has more contrast.
function M.ink(colour)
  local b = brightness(colour)
  return (b + .05) / .05 > 1.05 / (b + .05) and { 0, 0, 0 } or { 1, 1, 1 }
end

local function with(colour, opacity) return { colour[1], colour[2], colour[3], opacity } end

-- ---- sizes ----

local function clamp(v, low, high) return math.max(low, math.min(high, v)) end

-- Lines and letters for a picture of that size.
local function measures(width, height)
  local side = math.sqrt(width * height)
  return { line = clamp(side / 300, 1.5, 6), text = clamp(side / 38, 11, 44) }
end

-- ---- labels ----

-- Places for a plate of w x h at a box, the best first.
local function candidates(b, w, h, width, height, line)
  local left, right = b.x0 - line / 2, b.x1 + line / 2 - w
  local over, under = b.y0 - line / 2 - h, b.y1 + line / 2
  local list = {}
  local function try(x, y)
    if y < 0 or y + h > height then return end
    list[#list + 1] = { x = clamp(x, 0, math.max(0, width - w)), y = y }
  end
  try(left, over)
  try(right, over)
  try(left, b.y0 + line / 2)
  try(left, under)
  try(right, b.y0 + line / 2)
  try(right, under)
  try(left, b.y1 - line / 2 - h)
  if #list == 0 then
    list[1] = { x = clamp(left, 0, math.max(0, width - w)),
                y = clamp(b.y0, 0, math.max(0, height - h)) }
  end
  return list
end

-- The first place that hides nothing said before; else the one that hides least.
local function place(plates, b, w, h, width, height, line)
  local best, least
  for _, spot in ipairs(candidates(b, w, h, width, height, line)) do
    local plate = { x0 = spot.x, y0 = spot.y, x1 = spot.x + w, y1 = spot.y + h }
    local hidden = 0
    for _, other in ipairs(plates) do hidden = hidden + boxes.shared(plate, other) end
    if hidden == 0 then return plate, 0 end
    if not least or hidden < least then best, least = plate, hidden end
  end
  return best, least / (w * h)
end

-- Letters are smaller at small boxes, so that a label never hides its thing.
local function label_size(b, m)
  return clamp(math.sqrt(boxes.area(b)) / 5, math.min(10, m.text), m.text)
end

local function draw_label(canvas, plates, b, text, m, width, height)
  local size = label_size(b, m)
  local extent = canvas:extent(text, size)
  local gap = size * .32
  local w, h = extent[1] + 2 * gap, extent[2] + gap * .5
  local plate, hidden = place(plates, b, w, h, width, height, m.line)
  if hidden > .5 then return end -- a crowd: the outline must do
  plates[#plates + 1] = plate
  local colour = M.colour(b.class)
  canvas:fill({ plate.x0, plate.y0, w, h }, with(colour, .92), size * .18)
  canvas:text(text, { plate.x0 + gap, plate.y0 + gap * .25 }, size, M.ink(colour))
end

-- ---- pictures ----

local function canvas_for(width, height)
  return c.object("canvas", { width = width, height = height, bold = true })
end

local function draw_points(canvas, b, m)
  local radius = clamp(math.sqrt(boxes.area(b)) / 50, 1.2, 3 * m.line)
  for i = 1, b.points and #b.points or 0, 2 do
    local at = { b.points[i], b.points[i + 1] }
    canvas:dot(at, radius + .8, { 0, 0, 0, .55 })
    canvas:dot(at, radius, { 1, 1, 1, .95 })
  end
end

-- Boxes with their texts in a picture that is drawn `zoom` times as large.
local function enlarged(list, zoom, text)
  local result = {}
  for i, b in ipairs(list) do
    local copy = { class = b.class, x0 = b.x0 * zoom, y0 = b.y0 * zoom, x1 = b.x1 * zoom,
                   y1 = b.y1 * zoom, score = b.score, points = {}, text = text(b) }
    for k = 1, b.points and #b.points or 0 do copy.points[k] = b.points[k] * zoom end
    result[i] = copy
  end
  return result
end

-- A canvas with the picture; small pictures are drawn larger, so that letters have pixels.
local function start(picture, most)
  local shape = picture:shape()
  local zoom = clamp(math.ceil(480 / math.max(shape[1], shape[2])), 1, most)
  local height, width = shape[1] * zoom, shape[2] * zoom
  local canvas = canvas_for(width, height)
  canvas:picture(picture, { 0, 0, width, height })
  return canvas, width, height, zoom
end

-- The picture with its boxes; text(box) gives a label. Small things are drawn over large ones.
function M.boxes(picture, list, text)
  local canvas, width, height, zoom = start(picture, 4)
  local m, sorted = measures(width, height), enlarged(list, zoom, text)
  table.sort(sorted, function(a, b)
    local x, y = boxes.area(a), boxes.area(b)
    if x ~= y then return x > y end
    return a.score > b.score
  end)
  for _, b in ipairs(sorted) do
    local line = math.min(m.line, math.max(1, math.sqrt(boxes.area(b)) / 25))
    local r = { b.x0 + line / 2, b.y0 + line / 2, math.max(1, b.x1 - b.x0 - line),
                math.max(1, b.y1 - b.y0 - line) }
    canvas:outline(r, { 0, 0, 0, .4 }, line + 1.5, line)
    canvas:outline(r, with(M.colour(b.class), 1), line, line)
    draw_points(canvas, b, m)
  end
  local plates = {}
  table.sort(sorted, function(a, b) return a.score > b.score end)
  for _, b in ipairs(sorted) do draw_label(canvas, plates, b, b.text, m, width, height) end
  return canvas:pixels()
end

-- The text, cut where it gets wider than `room`; and its extent.
local function shortened(canvas, text, size, room)
  local extent, whole = canvas:extent(text, size), text
  while extent[1] > room and #text > 3 do
    text = text:sub(1, -2):gsub("[\128-\191]*$", "")
    extent = canvas:extent(text .. "…", size)
  end
  return text == whole and text or text .. "…", extent
end

-- The picture with what it is in its lower left corner: lines of { text, score }, best first.
function M.caption(picture, lines)
  local canvas, width, height = start(picture, 8)
  local size = clamp(measures(width, height).text, 11, width / 16)
  local gap, row, most = size * .5, size * 1.55, 0
  local shown = {}
  for i, line in ipairs(lines) do
    local own = i == 1 and size * 1.15 or size
    local text, extent = shortened(canvas, line[1], own, width - 4 * gap - size * 3.4)
    shown[i] = { text = text, size = own, extent = extent,
                 score = ("%d%%"):format((line[2] * 100 + .5) // 1) }
    most = math.max(most, extent[1])
  end
  local w, h = most + size * 3.4 + 2 * gap, row * #lines + gap
  local x0, y0 = gap, height - h - gap
  canvas:fill({ x0, y0, w, h }, { .06, .07, .09, .78 }, size * .35)
  for i, line in ipairs(shown) do
    local top = y0 + gap / 2 + (i - 1) * row
    local y, bright = top + (row - line.extent[2]) / 2, i == 1 and 1 or .8
    local wide = canvas:extent(line.score, line.size)[1]
    canvas:text(line.text, { x0 + gap, y }, line.size, { bright, bright, bright })
    canvas:text(line.score, { x0 + w - gap - wide, y }, line.size,
                i == 1 and { .55, .93, .62 } or { .62, .75, .66 })
    if i < #shown then
      canvas:fill({ x0 + gap, top + row - 1, w - 2 * gap, 1 }, { 1, 1, 1, .12 })
    end
  end
  return canvas:pixels()
end

-- ---- contact sheets: drawn pictures, made small at once, side by side ----

local Sheet = {}
Sheet.__index = Sheet

local tile_width, tile_height, margin, title = 440, 330, 14, 26
local ground, ink = { .11, .12, .14 }, { .85, .87, .9 }

function M.sheet() return setmetatable({ tiles = {} }, Sheet) end

function Sheet:add(picture, text)
  local shape = picture:shape()
  local ratio = math.min(tile_width / shape[2], tile_height / shape[1])
  local w, h = math.max(1, (shape[2] * ratio + .5) // 1), math.max(1, (shape[1] * ratio + .5) // 1)
  local canvas = canvas_for(tile_width, tile_height + title)
  canvas:fill({ 0, 0, tile_width, tile_height + title }, ground)
  canvas:picture(picture, { (tile_width - w) // 2, (tile_height - h) // 2, w, h })
  canvas:text((shortened(canvas, text, 14, tile_width - 8)), { 4, tile_height + 5 }, 14, ink)
  self.tiles[#self.tiles + 1] = canvas:pixels()
end

function Sheet:picture()
  local n = math.max(1, #self.tiles)
  local columns = math.min(n, math.ceil(math.sqrt(n * 1.2)))
  local rows = math.ceil(n / columns)
  local width = columns * (tile_width + margin) + margin
  local height = rows * (tile_height + title + margin) + margin
  local canvas = canvas_for(width, height)
  canvas:fill({ 0, 0, width, height }, ground)
  for i, tile in ipairs(self.tiles) do
    local x = margin + (i - 1) % columns * (tile_width + margin)
    local y = margin + (i - 1) // columns * (tile_height + title + margin)
    canvas:picture(tile, { x, y, tile_width, tile_height + title })
  end
  return canvas:pixels()
end

return M
