-- The pixels of objects: masks that a net combines from prototypes, and class maps of whole
-- pictures.
--
-- A mask is a list of rectangles { x0, y0, x1, y1 } in pixels, in rows of one height.
local M = {}

-- ---- masks of prototypes (YOLOv8's and others of Ultralytics) ----

-- The mask's logits over the cells of the box and one more cell at each side: at(x, y).
local function logits(protos, weights, x0, y0, x1, y1)
  local shape = protos:shape()
  local height, width = shape[3], shape[4]
  local rows = {}
  for y = y0, y1 do
    local row, cy = {}, math.max(0, math.min(height - 1, y))
    for x = x0, x1 do
      local sum, at = 0, cy * width + math.max(0, math.min(width - 1, x)) + 1
      for k = 1, #weights do sum = sum + weights[k] * protos[(k - 1) * height * width + at] end
      row[x] = sum
    end
    rows[y] = row
  end
  return rows
end

-- The value between cells, at (x, y) in cells.
local function between(rows, x, y) -- Bilinear; x and y in cells, whose middles are at .5.
  local cx, cy = math.floor(x - .5), math.floor(y - .5)
  local fx, fy = x - .5 - cx, y - .5 - cy
  local a, b = rows[cy], rows[cy + 1]
  return (a[cx] * (1 - fx) + a[cx + 1] * fx) * (1 - fy) + (b[cx] * (1 - fx) + b[cx + 1] * fx) * fy
end

---The part of the box (in pixels of the input) in which the weighted sum of the prototypes is above
---0, that is, its sigmoid above one half. protos: [1, n, height, width]; weights: n numbers; size:
---of the input.
function M.of_prototypes(protos, weights, box, size)
  local shape = protos:shape()
  local sx, sy = shape[4] / size.width, shape[3] / size.height
  local x0, y0, x1, y1 = box.x0 * sx, box.y0 * sy, box.x1 * sx, box.y1 * sy
  local rows = logits(protos, weights, math.floor(x0) - 1, math.floor(y0) - 1, math.ceil(x1) + 1, math.ceil(y1) + 1)
  local longer = math.max(x1 - x0, y1 - y0)
  local step, list = longer > 96 and 1 or longer > 48 and .5 or .25, {} -- in cells
  local columns, lines = math.max(1, math.ceil((x1 - x0) / step)), math.max(1, math.ceil((y1 - y0) / step))
  local dx, dy = (x1 - x0) / columns, (y1 - y0) / lines
  for j = 0, lines - 1 do
    local begun
    for i = 0, columns do
      local inside = i < columns and between(rows, x0 + (i + .5) * dx, y0 + (j + .5) * dy) > 0
      if inside and not begun then begun = i end
      if begun and not inside then
        list[#list + 1] = { x0 = (x0 + begun * dx) / sx, x1 = (x0 + i * dx) / sx, y0 = (y0 + j * dy) / sy,
                            y1 = (y0 + (j + 1) * dy) / sy }
        begun = nil
      end
    end
  end
  return list
end

---The part of the box in which a plane of probabilities is above one half. The plane begins behind
---element `first` of t, has size.height x size.width values and covers `frame`. Box, frame and result are in pixels
---of the input.
function M.of_plane(t, first, size, frame, box)
  local dx, dy = (frame.x1 - frame.x0) / size.width, (frame.y1 - frame.y0) / size.height
  local list = {}
  -- A whole position in the plane, within its sides.
  local function cell(v, most) return math.max(0, math.min(most, v)) // 1 end
  local x0, x1 = cell((box.x0 - frame.x0) / dx + .5, size.width), cell((box.x1 - frame.x0) / dx + .5, size.width)
  local y0, y1 = cell((box.y0 - frame.y0) / dy + .5, size.height), cell((box.y1 - frame.y0) / dy + .5, size.height)
  for y = y0, y1 - 1 do
    local begun
    for x = x0, x1 do
      local inside = x < x1 and t[math.tointeger(first + y * size.width + x + 1)] > .5
      if inside and not begun then begun = x end
      if begun and not inside then
        list[#list + 1] = { x0 = frame.x0 + begun * dx, x1 = frame.x0 + x * dx, y0 = frame.y0 + y * dy,
                            y1 = frame.y0 + (y + 1) * dy }
        begun = nil
      end
    end
  end
  return list
end

-- ---- a class for each place (FCN, DeepLab, LR-ASPP and others) ----

local most = 160 -- The number of positions on the longer side that are evaluated.

-- Returns a function of a position (from 0, rows first) to its best class. Tensors: scores
-- [1, classes, height, width], or [1, height, width, classes] with `last`; integers [1, height, width]
-- are the class itself; one plane of other numbers is 1 where it is above one half, or above 0 where
-- it has numbers outside of 0 to 1 (logits).
local function best_classes(t, classes, plane, last)
  if classes == 1 and t:dtype():find "^[iu]" then
    return function(at) return math.tointeger(t[at + 1] // 1) or 0 end
  elseif classes == 1 then
    local limit = (t:above(1)[1] or #t:above(-1e-6) < #t) and 0 or .5
    return function(at) return t[at + 1] > limit and 1 or 0 end
  end
  local step, each = last and 1 or plane, last and classes or 1
  return function(at)
    local first = at * each + 1
    local best, top = 0, t[first]
    for k = 1, classes - 1 do
      local v = t[first + k * step]
      if v > top then best, top = k, v end
    end
    return best
  end
end

---A region for each class that is present, except `background`: a box around it in pixels of the
---input, its mask, and as score its share of the picture, if that is more than `least`. `last`: the
---classes are the last axis.
function M.of_classes(t, size, background, least, last)
  local shape = t:shape()
  if last then table.insert(shape, 2, table.remove(shape)) end
  local height, width = shape[#shape - 1], shape[#shape]
  local classes, plane = #shape == 4 and shape[2] or 1, height * width
  local class_at = best_classes(t, classes, plane, last)
  local step = math.max(1, math.ceil(math.max(height, width) / most))
  local sx, sy = size.width / width, size.height / height
  local by, n = {}, 0
  -- Adds a run of pixels to the class's mask.
  local function put(class, x0, x1, y0, y1)
    if class == background then return end
    local b = by[class] or { class = class, score = 0, x0 = x0, y0 = y0, x1 = x1, y1 = y1, mask = {}, is_region = true }
    by[class] = b
    b.x0, b.y0, b.x1, b.y1 = math.min(b.x0, x0), math.min(b.y0, y0), math.max(b.x1, x1), math.max(b.y1, y1)
    b.score = b.score + (x1 - x0) * (y1 - y0)
    b.mask[#b.mask + 1] = { x0 = x0, y0 = y0, x1 = x1, y1 = y1 }
  end
  for y = 0, height - 1, step do
    local line, y1 = math.min(height - 1, y + step // 2) * width, math.min(height, y + step) * sy
    local begun, class = 0, nil
    for x = 0, width - 1, step do
      local here = class_at(line + math.min(width - 1, x + step // 2))
      if class and here ~= class then
        put(class, begun * sx, x * sx, y * sy, y1)
        begun = x
      end
      class = here
    end
    put(class, begun * sx, width * sx, y * sy, y1)
  end
  local list = {}
  for _, b in pairs(by) do
    b.score = b.score / (size.width * size.height)
    if b.score > least then n, list[n + 1] = n + 1, b end
  end
  table.sort(list, function(a, b) return a.score > b.score or a.score == b.score and a.class < b.class end)
  return list
end

return M
