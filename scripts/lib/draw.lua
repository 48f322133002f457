-- Draws what was found on its picture: outlines, and labels that are legible on any background.
local c = require "cnnrun"
local boxes = require "lib.boxes"
local M = {}

-- Nil and a reason, if nothing can be drawn here.
function M.available()
  local good, why = pcall(c.object, "canvas", { width = 1, height = 1 })
  if good then return true end
  return nil, "drawing needs the plugin draw-cairo, which is built if libcairo2-dev is installed: " ..
              tostring(why):gsub("^%S+:%d+: ", "")
end

-- ---- colours ----

local palette = { -- The first 20 colours are far apart for classes of COCO that appear together.
  0x2ecc40, 0xff4136, 0x2f7bff, 0xffa01a, 0xb455ff, 0xffe119, 0x12a28f, 0xff5fb4, 0x86b9ff, 0xb3ad1e,
  0xe6c49a, 0xff7f66, 0xa5d82a, 0xd01f4e, 0xc98a55, 0x17cfe0, 0xe02fd8, 0x6a5cf0, 0x86f0b8, 0xff8a3c,
}
local slots, taken = {}, {} -- By class; by colour.

-- A class keeps its colour. Classes share colours only when all are used.
function M.colour(class)
  local n = #palette
  for step = 0, slots[class] and -1 or n - 1 do
    local slot = (class + step) % n + 1
    if not taken[slot] then
      taken[slot], slots[class] = true, slot
      break
    end
  end
  slots[class] = slots[class] or class % n + 1
  local code = palette[slots[class]]
  return { (code >> 16) / 255, (code >> 8 & 255) / 255, (code & 255) / 255 }
end

-- The perceived brightness of a colour, from 0 to 1.
local function brightness(colour)
  -- A colour value of sRGB, 0 to 1, as light.
  local function linear(v) return v <= .04045 and v / 12.92 or ((v + .055) / 1.055) ^ 2.4 end
  return .2126 * linear(colour[1]) + .7152 * linear(colour[2]) + .0722 * linear(colour[3])
end

-- Black or white, whichever has the higher contrast.
function M.ink(colour)
  local b = brightness(colour)
  return (b + .05) / .05 > 1.05 / (b + .05) and { 0, 0, 0 } or { 1, 1, 1 }
end

-- A copy of the colour with this opacity, 0 to 1.
local function with(colour, opacity) return { colour[1], colour[2], colour[3], opacity } end

-- ---- sizes ----

-- v, at least low and at most high.
local function clamp(v, low, high) return math.max(low, math.min(high, v)) end

-- Line width and font size in pixels for a picture of that size.
local function measures(width, height)
  local side = math.sqrt(width * height)
  return { line = clamp(side / 300, 1.5, 20), text = clamp(side / 38, 11, 160) }
end

-- ---- labels ----

-- Positions for a plate of w x h at a box, best first.
local function candidates(b, w, h, width, height, line)
  local left, right = b.x0 - line / 2, b.x1 + line / 2 - w
  local over, under = b.y0 - line / 2 - h, b.y1 + line / 2
  local list = {}
  -- Adds a place for a label, unless it lies outside the picture.
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

-- The first position that hides no other label and no small object; else the one that hides least.
local function place(plates, list, b, w, h, width, height, line)
  local best, least
  for _, spot in ipairs(candidates(b, w, h, width, height, line)) do
    local plate = { x0 = spot.x, y0 = spot.y, x1 = spot.x + w, y1 = spot.y + h }
    local hidden = 0
    for _, other in ipairs(plates) do hidden = hidden + 3 * boxes.shared(plate, other) end
    for _, other in ipairs(list) do
      if other ~= b and boxes.area(other) < 12 * w * h then
        hidden = hidden + .7 * boxes.shared(plate, other)
      end
    end
    if hidden < .05 * w * h then return plate, 0 end
    if not least or hidden < least then best, least = plate, hidden end
  end
  return best, least / (w * h)
end

-- A plate with that text beside box b, and the share of it that hides other things. The font
-- shrinks from m.text until the plate is no wider than its box, so that neighbours in a crowd keep
-- their labels.
local function plate_for(canvas, text, most, plates, list, b, m, width, height)
  local least = math.max(9, m.text * .55)
  local size = clamp(math.sqrt(boxes.area(b)) / 5, least, most)
  local extent, room = canvas:extent(text, size), math.max(b.x1 - b.x0, 30)
  local wide = extent[1] + .64 * size
  if wide > room then
    size = math.max(least, size * room / wide)
    extent = canvas:extent(text, size)
  end
  local w, h = extent[1] + .64 * size, extent[2] + .16 * size
  local plate, hidden = place(plates, list, b, w, h, width, height, m.line)
  plate.text, plate.size = text, size
  return plate, hidden
end

-- Uses the short text if the whole one would hide something.
local function draw_label(canvas, plates, list, b, m, width, height)
  local plate, hidden = plate_for(canvas, b.text, m.text, plates, list, b, m, width, height)
  if hidden > 0 and b.short then
    local other, other_hidden = plate_for(canvas, b.short, plate.size, plates, list, b, m, width,
                                          height)
    if other_hidden < hidden then plate, hidden = other, other_hidden end
  end
  if #list > 20 and boxes.area(plate) > .8 * boxes.area(b) then return end -- The plate is larger than its object.
  if hidden > .45 then return end -- In a crowd only the outline is drawn.
  plates[#plates + 1] = plate
  local colour, size = M.colour(b.class), plate.size
  canvas:fill({ plate.x0, plate.y0, plate.x1 - plate.x0, plate.y1 - plate.y0 }, with(colour, .92),
              size * .18)
  canvas:text(plate.text, { plate.x0 + size * .32, plate.y0 + size * .08 }, size, M.ink(colour))
end

-- ---- pictures ----

-- An empty canvas of that size in pixels, with bold text.
local function new_canvas(width, height)
  return c.object("canvas", { width = width, height = height, bold = true })
end
local canvas_for = new_canvas

-- From now on a worker draws: the results of M.boxes and M.caption are promises of calls in the
-- worker's batch. Canvases are kept, one for each size. Texts are measured here, once each.
function M.by(worker)
  local kept, ruler, extents, n = {}, new_canvas(1, 1), {}, 0
  local recorder = { __index = function(self, method)
    return function(_, ...) return worker:call(self.canvas, method, ...) end
  end }
  -- Width and height of a text; kept, as measuring is slow.
  local function extent(_, text, size)
    local key = text .. "\0" .. size // .25
    if not extents[key] then
      if n > 2000 then extents, n = {}, 0 end
      extents[key], n = ruler:extent(text, size), n + 1
    end
    return extents[key]
  end
  canvas_for = function(width, height)
    local key = width .. "x" .. height
    kept[key] = kept[key] or setmetatable({ canvas = new_canvas(width, height), extent = extent }, recorder)
    return kept[key]
  end
end

-- Draws the points of a face, unless its box is too small.
local function draw_points(canvas, b, m)
  local side = math.sqrt(boxes.area(b))
  if side < 36 then return end -- They would hide the face.
  local radius = clamp(side / 50, 1.2, 3 * m.line)
  for i = 1, b.points and #b.points or 0, 2 do
    local at = { b.points[i], b.points[i + 1] }
    if at[1] == at[1] then -- Not-a-number marks a hidden point.
      canvas:dot(at, radius + .8, { 0, 0, 0, .55 })
      canvas:dot(at, radius, { 1, 1, 1, .95 })
    end
  end
end

-- The bones between the 17 points of COCO's people.
local bones = { 1, 2, 1, 3, 2, 4, 3, 5, 6, 7, 6, 8, 8, 10, 7, 9, 9, 11, 6, 12, 7, 13, 12, 13, 12, 14, 14, 16, 13, 15, 15, 17 }

-- Draws the bones of a person with 17 points; nothing for other boxes.
local function draw_bones(canvas, b, m)
  if #b.points ~= 34 then return end
  local p = b.points
  for i = 1, #bones, 2 do
    local a, z = 2 * bones[i], 2 * bones[i + 1]
    if p[a] == p[a] and p[z] == p[z] then
      canvas:line({ p[a - 1], p[a], p[z - 1], p[z] }, with(M.colour(b.class), .9), math.max(1, m.line * .8))
    end
  end
end

-- Colours the pixels of an object in the colour of its class. Whole pixels, so that rows meet
-- without a seam.
local function draw_mask(canvas, b, zoom)
  -- A length in the zoomed picture, as whole pixels.
  local function whole(v) return math.floor(v * zoom + .5) end
  local colour = with(M.colour(b.class), b.is_region and .55 or .4)
  for _, row in ipairs(b.mask or {}) do
    local x, y = whole(row.x0), whole(row.y0)
    local w, h = whole(row.x1) - x, whole(row.y1) - y
    if w > 0 and h > 0 then canvas:fill({ x, y, w, h }, colour) end
  end
end

-- Draws the sides of a turned box.
local function draw_corners(canvas, corners, colour, line)
  local n = #corners
  for i = 1, n, 2 do
    canvas:line({ corners[i], corners[i + 1], corners[(i + 1) % n + 1], corners[(i + 2) % n + 1] }, colour, line)
  end
end

-- Draws boxes with their texts in a picture that is drawn `zoom` times as large.
local function enlarged(list, zoom, text)
  local result = {}
  for i, b in ipairs(list) do
    local copy = { class = b.class, x0 = b.x0 * zoom, y0 = b.y0 * zoom, x1 = b.x1 * zoom,
                   y1 = b.y1 * zoom, score = b.score, points = {} }
    copy.text, copy.short = text(b)
    for k = 1, b.points and #b.points or 0 do copy.points[k] = b.points[k] * zoom end
    copy.mask, copy.is_region = b.mask, b.is_region
    for k = 1, b.corners and #b.corners or 0 do
      copy.corners = copy.corners or {}
      copy.corners[k] = b.corners[k] * zoom
    end
    result[i] = copy
  end
  return result
end

-- A canvas with the picture. Small pictures are enlarged, so that letters have enough pixels.
-- `tile`: the picture is scaled to fit in it.
local function start(picture, most, tile)
  local shape = picture:shape()
  local zoom = clamp(math.ceil(480 / math.max(shape[1], shape[2])), 1, most)
  if tile then zoom = math.min(tile.width / shape[2], tile.height / shape[1]) end
  -- A side in the zoomed picture, at least 1.
  local function side(n) return math.max(1, math.floor(n * zoom + .5)) end
  local height, width = side(shape[1]), side(shape[2])
  local canvas = canvas_for(width, height)
  canvas:picture(picture, { 0, 0, width, height })
  return canvas, width, height, zoom
end

-- The picture with its boxes; text(box) returns a label and a shorter one. Small objects are drawn
-- over large ones. M.tile makes it fit a contact sheet. more(canvas, width, height, measures) draws
-- on top.
function M.boxes(picture, list, text, tile, more)
  local canvas, width, height, zoom = start(picture, 4, tile)
  local m, sorted = measures(width, height), enlarged(list, zoom, text)
  table.sort(sorted, function(a, b)
    local x, y = boxes.area(a), boxes.area(b)
    if x ~= y then return x > y end
    return a.score > b.score
  end)
  for _, b in ipairs(sorted) do draw_mask(canvas, b, zoom) end
  for _, b in ipairs(sorted) do
    if b.is_region then goto next end -- Not an object, but all places of a class.
    local line = math.min(m.line, math.max(1, math.sqrt(boxes.area(b)) / 25))
    local r = { b.x0 + line / 2, b.y0 + line / 2, math.max(1, b.x1 - b.x0 - line),
                math.max(1, b.y1 - b.y0 - line) }
    if b.corners then
      draw_corners(canvas, b.corners, { 0, 0, 0, .4 }, line + 1.5)
      draw_corners(canvas, b.corners, with(M.colour(b.class), 1), line)
    else
      canvas:outline(r, { 0, 0, 0, .4 }, line + 1.5, line)
      canvas:outline(r, with(M.colour(b.class), 1), line, line)
    end
    draw_bones(canvas, b, m)
    draw_points(canvas, b, m)
    ::next::
  end
  local plates = {}
  table.sort(sorted, function(a, b) return a.score > b.score end)
  for _, b in ipairs(sorted) do draw_label(canvas, plates, sorted, b, m, width, height) end
  if more then more(canvas, width, height, m) end
  return canvas:pixels()
end

-- The size of a picture for M.boxes and M.caption, which is drawn as large as it is.
function M.size(picture)
  local shape = picture:shape()
  return { height = shape[1], width = shape[2] }
end

-- The frame of a video with its boxes.
function M.frame(picture, list, text, more)
  return M.boxes(picture, list, text, M.size(picture), more)
end

-- A line of numbers on a dark plate, at the lower left.
function M.status(text)
  return function(canvas, width, height, m)
    local size = clamp(m.text * .8, 10, 40)
    local extent = canvas:extent(text, size)
    if extent[1] > width - 2 * size then
      size = math.max(8, size * (width - 2 * size) / extent[1])
      extent = canvas:extent(text, size)
    end
    local w, h = extent[1] + size, extent[2] + .4 * size
    canvas:fill({ 0, height - h, w, h }, { .05, .06, .08, .75 })
    canvas:text(text, { size / 2, height - h + .2 * size }, size, { .92, .94, .96 })
  end
end

-- The text, shortened if it is wider than `room`; and its extent.
local function shortened(canvas, text, size, room)
  local extent, whole = canvas:extent(text, size), text
  while extent[1] > room and #text > 3 do
    text = text:sub(1, -2):gsub("[\128-\191]*$", "")
    extent = canvas:extent(text .. "…", size)
  end
  return text == whole and text or text .. "…", extent
end

-- How much a rectangle of the picture (in parts of it, 0 to 1) shows: the variance of a few of its
-- pixels.
local function detail(picture, x0, y0, w, h)
  local shape, most, sum, squares = picture:shape(), 12, 0, 0
  for y = 0, most - 1 do
    for x = 0, most - 1 do
      local row = math.min(shape[1] - 1, math.floor((y0 + (y + .5) / most * h) * shape[1]))
      local column = math.min(shape[2] - 1, math.floor((x0 + (x + .5) / most * w) * shape[2]))
      local v = picture[(row * shape[2] + column) * shape[3] + (shape[3] + 1) // 2]
      sum, squares = sum + v, squares + v * v
    end
  end
  return squares / most ^ 2 - (sum / most ^ 2) ^ 2
end

-- The corner (x and y, each 0 or 1) where a plate of that size hides least.
local function quiet_corner(picture, w, h)
  local best, least
  for _, corner in ipairs { { 0, 1 }, { 1, 1 }, { 0, 0 }, { 1, 0 } } do
    local seen = detail(picture, corner[1] * (1 - w), corner[2] * (1 - h), w, h)
    if not least or seen < .8 * least then best, least = corner, seen end -- Changes the corner only for a clear gain.
  end
  return best[1], best[2]
end

-- Pixels of the picture with its classes in a corner: lines of { text, score }, best first, without
-- those that are almost excluded. The bar of each line is as long as its score is high;
-- more(canvas) draws on top.
function M.caption(picture, lines, tile, more)
  local canvas, width, height = start(picture, 16, tile)
  local large = clamp(math.min(width, height) / 16, 15, 320)
  local pad, most, scores, shown, tall = large * .5, 0, 0, {}, 0
  for i, line in ipairs(lines) do
    if i == 1 or line[2] >= .01 then
      local size = i == 1 and large or large * .72
      local score = ("%d%%"):format((line[2] * 100 + .5) // 1)
      local text, extent = shortened(canvas, line[1], size, width - 6 * pad - 3 * large)
      shown[i] = { text = text, size = size, extent = extent, score = score, part = line[2],
                   row = extent[2] + large * .22, wide = canvas:extent(score, size)[1] }
      most, scores = math.max(most, extent[1]), math.max(scores, shown[i].wide)
      tall = tall + shown[i].row
    end
  end
  local w, h = most + scores + 3.4 * pad, tall + pad
  local x, y = quiet_corner(picture, math.min(1, (w + 2 * pad) / width),
                            math.min(1, (h + 2 * pad) / height))
  local x0 = pad + x * (width - w - 2 * pad)
  y = pad + y * (height - h - 2 * pad)
  canvas:fill({ x0, y, w, h }, { .05, .06, .08, .8 }, large * .3)
  y = y + pad / 2
  for i, line in ipairs(shown) do
    local part = clamp(line.part, 0, 1) * (w - pad)
    local top, inner = y + line.row * .06, line.row * .88
    if part >= 1 then
      canvas:fill({ x0 + pad / 2, top, part, inner }, { .2, .62, .38, i == 1 and .85 or .5 },
                  large * .16)
    end
    local text_y, bright = y + (line.row - line.extent[2]) / 2, i == 1 and 1 or .86
    canvas:text(line.text, { x0 + pad, text_y }, line.size, { bright, bright, bright })
    canvas:text(line.score, { x0 + w - pad - line.wide, text_y }, line.size,
                { bright, bright, bright })
    y = y + line.row
  end
  if more then more(canvas, width, height, measures(width, height)) end
  return canvas:pixels()
end

-- ---- contact sheets: pictures drawn for M.tile, side by side ----

local Sheet = {}
Sheet.__index = Sheet

M.tile = { width = 440, height = 330 }

local tile_width, tile_height, margin, title = M.tile.width, M.tile.height, 14, 26
local ground, ink = { .11, .12, .14 }, { .85, .87, .9 }

-- An empty contact sheet, for Sheet:add.
function M.sheet() return setmetatable({ tiles = {} }, Sheet) end

-- Adds a picture, scaled to a tile, with a text below.
function Sheet:add(picture, text)
  local h, w = table.unpack(picture:shape())
  local canvas = canvas_for(tile_width, tile_height + title)
  canvas:fill({ 0, 0, tile_width, tile_height + title }, ground)
  canvas:picture(picture, { (tile_width - w) // 2, (tile_height - h) // 2, w, h })
  canvas:text((shortened(canvas, text, 14, tile_width - 8)), { 4, tile_height + 5 }, 14, ink)
  self.tiles[#self.tiles + 1] = canvas:pixels()
end

-- The sheet as one picture: a grid of its tiles.
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
