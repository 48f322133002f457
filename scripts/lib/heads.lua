-- Decodes a detector's outputs to boxes in pixels of its input, before suppression. Each function
-- takes the outputs as tensors, the facts about the net, and the minimum score.
--
-- Large outputs are searched by tensor:above, so that only elements above the minimum are read one
-- by one.
local add = require("lib.boxes").add

local M = {}

local exp = math.exp

-- Adds a box that is given by centre and size.
local function add_centred(list, class, score, x, y, w, h, points)
  add(list, class, score, x - w / 2, y - h / 2, x + w / 2, y + h / 2, points)
end

-- The largest of n elements at a distance of `step`: its index, from 0, and its value.
local function largest(t, first, step, n)
  local best, at = -math.huge, 0
  for k = 0, n - 1 do
    local v = t[first + k * step]
    if v > best then best, at = v, k end
  end
  return at, best
end

-- ---- Darknet. Planes, for each anchor: x, y, w, h ..., objectness, a score a class; activations
-- have been applied. ----

-- One line of the metadata "heads": kind key=value key=value ...
function M.parse_heads(text)
  local heads = {}
  for line in text:gmatch("[^\n]+") do
    local head = { kind = line:match("^%S+") }
    for key, value in line:gmatch("(%w+)=(%S*)") do head[key] = tonumber(value) or value end
    head.output = line:match("output=(%S+)")
    local anchors = {}
    for number in tostring(head.anchors or ""):gmatch("[^,]+") do
      anchors[#anchors + 1] = tonumber(number)
    end
    head.anchors = anchors
    heads[#heads + 1] = head
  end
  return heads
end

-- A side in anchors: the exponential, or a square for heads that say so.
local function side(head, v)
  return head.square == 1 and 4 * v * v or exp(v)
end

-- head: classes, coords, anchors; unit: the size of an anchor of 1 in pixels, width and height.
local function anchored(list, t, head, size, unit, least)
  local shape = t:shape()
  local rows, columns = shape[3], shape[4]
  local area, each = rows * columns, head.coords + 1 + head.classes
  for a = 0, #head.anchors // 2 - 1 do
    local base = a * each * area
    local object = base + head.coords * area
    for _, at in ipairs(t:above(least, object + 1, object + area)) do
      local cell = at - object - 1
      local first = base + cell + 1
      local class, score = largest(t, at + area, area, head.classes)
      if head.classes == 0 then class, score = 0, 1 end
      score = score * t[at]
      if score > least then
        add_centred(list, class, score, (cell % columns + t[first]) * size.width / columns,
                    (cell // columns + t[first + area]) * size.height / rows,
                    side(head, t[first + 2 * area]) * head.anchors[2 * a + 1] * unit[1],
                    side(head, t[first + 3 * area]) * head.anchors[2 * a + 2] * unit[2])
      end
    end
  end
end

-- Version 3 and later: anchors in pixels of the input, whatever its size.
local function yolo(list, t, head, size, least)
  anchored(list, t, head, size, { 1, 1 }, least)
end

-- Adds the boxes of a head of YOLO's version 2, whose anchors are in cells, to the list.
local function region(list, t, head, size, least)
  local shape = t:shape()
  anchored(list, t, head, size, { size.width / shape[4], size.height / shape[3] }, least)
end

-- Version 1: first the classes of side * side cells, then the boxes' confidences, then the boxes.
-- The head's "anchors" are side, boxes in a cell, and whether sizes are square roots.
local function detection(list, t, head, size, least)
  local side, num, root = head.anchors[1] // 1, head.anchors[2] // 1, head.anchors[3] == 1
  side, num = math.tointeger(side), math.tointeger(num)
  local cells = side * side
  local confidences = cells * head.classes
  for _, at in ipairs(t:above(least, confidences + 1, confidences + cells * num)) do
    local index = at - confidences - 1
    local cell = index // num
    local class, score = largest(t, cell * head.classes + 1, 1, head.classes)
    score = score * t[at]
    if score > least then
      local b = confidences + cells * num + index * 4
      local w, h = t[b + 3], t[b + 4]
      if root then w, h = w * w, h * h end
      add_centred(list, class, score, (cell % side + t[b + 1]) / side * size.width,
                  (cell // side + t[b + 2]) / side * size.height, w * size.width, h * size.height)
    end
  end
end

local kinds = { yolo = yolo, region = region, detection = detection }

-- Boxes from Darknet's heads whose score is at least `least`.
function M.darknet(outputs, about, least)
  local list = {}
  for i, head in ipairs(about.heads) do
    local decode = kinds[head.kind] or error("no decoder of heads of kind " .. head.kind)
    decode(list, outputs[head.output] or outputs[i], head, about.size, least)
  end
  return list
end

-- ---- grids of points, one stride after the other ----

-- Calls visit(index from 0, column, row, stride) for the cells with the numbers in `indices` (from
-- 0, ascending). Cells are numbered through all strides.
local function each_cell(indices, strides, size, visit)
  local s, first = 1, 0
  local columns, cells
  -- Enters the next level: its columns and cells.
  local function enter()
    columns = math.ceil(size.width / strides[s])
    cells = columns * math.ceil(size.height / strides[s])
  end
  enter()
  for _, index in ipairs(indices) do
    while index >= first + cells do
      first = first + cells
      s = s + 1
      if not strides[s] then return end
      enter()
    end
    visit(index, (index - first) % columns, (index - first) // columns, strides[s])
  end
end

-- YOLOX, [1, cells, 5 + classes]: centre minus cell, log of size, both in strides; objectness, then
-- classes. If the net decodes them (an option of its exporter; YOLOv6), they are pixels, and the
-- last cell's centre is far from 0.
function M.yolox(outputs, about, least)
  local t, list = outputs[1], {}
  local shape = t:shape()
  local each, indices = shape[3], {}
  if t[#t - each + 1] >= about.size.width / 2 and t[#t - each + 2] >= about.size.height / 2 then
    return M.yolov5(outputs, nil, nil, least)
  end
  for i, at in ipairs(t:above(least, 5, #t, each)) do indices[i] = at // each end
  each_cell(indices, about.strides, about.size, function(index, column, row, stride)
    local b = index * each
    local class, score = largest(t, b + 6, 1, each - 5)
    score = score * t[b + 5]
    if score > least then
      add_centred(list, class, score, (t[b + 1] + column) * stride, (t[b + 2] + row) * stride,
                  exp(t[b + 3]) * stride, exp(t[b + 4]) * stride)
    end
  end)
  return list
end

-- YOLOv5, [1, boxes, 5 + classes]: centre and size in pixels, objectness, classes, coefficients of
-- masks. `about.classes` (nil: all other columns). `first` and `step` of a box: where its
-- coefficients stand in the output, here and below.
function M.yolov5(outputs, about, _, least)
  local t, list = outputs[1], {}
  local each = t:shape()[3]
  local classes = about and about.classes or each - 5
  for _, at in ipairs(t:above(least, 5, #t, each)) do
    local class, score = largest(t, at + 1, 1, classes)
    score = score * t[at]
    if score > least then
      add_centred(list, class, score, t[at - 4], t[at - 3], t[at - 2], t[at - 1])
      list[#list].first, list[#list].step = at + classes + 1, 1
    end
  end
  return list
end

-- Points x, y and, with three `numbers`, visibility, from element `first` on with that step; hidden
-- ones become not-a-number. `n`: the number of elements.
local function points_at(t, first, step, n, numbers)
  local points = {}
  for p = 0, n - numbers, numbers do
    local at = first + p * step
    local seen = numbers < 3 or t[at + 2 * step] >= .5
    points[#points + 1] = seen and t[at] or 0 / 0
    points[#points + 1] = seen and t[at + step] or 0 / 0
  end
  return points
end

-- The corners of a rectangle with this centre and these sides that is turned by an angle (radians,
-- clockwise in a picture), and the box around it.
local function turned(x, y, w, h, angle)
  local cos, sin = math.cos(angle) / 2, math.sin(angle) / 2
  local ax, ay, bx, by = w * cos, w * sin, -h * sin, h * cos
  local wide, high = math.abs(ax) + math.abs(bx), math.abs(ay) + math.abs(by)
  return { x - ax - bx, y - ay - by, x + ax - bx, y + ay - by, x + ax + bx, y + ay + by, x - ax + bx, y - ay + by },
         x - wide, y - high, x + wide, y + high
end

-- Adds a turned box.
local function add_turned(list, class, score, x, y, w, h, angle)
  local corners, x0, y0, x1, y1 = turned(x, y, w, h, angle)
  add(list, class, score, x0, y0, x1, y1)
  list[#list].corners = corners
end

-- YOLOv8, planes of cells: centre and size in pixels, classes, coefficients of masks, points or an
-- angle. about: classes; points (nil: none), of which each has `numbers` (3); is_turned.
function M.yolov8(outputs, about, least)
  local t, list, done = outputs[1], {}, {}
  local shape = t:shape()
  local n, planes = shape[3], 4 + about.classes -- Boxes and classes; others follow.
  for _, at in ipairs(t:above(least, 4 * n + 1, planes * n)) do
    local cell = (at - 1) % n + 1
    if not done[cell] then
      done[cell] = true
      local class, score = largest(t, 4 * n + cell, n, about.classes)
      local x, y, w, h = t[cell], t[n + cell], t[2 * n + cell], t[3 * n + cell]
      local first = planes * n + cell
      if about.is_turned then add_turned(list, class, score, x, y, w, h, t[first])
      else
        add_centred(list, class, score, x, y, w, h,
                    about.points and points_at(t, first, n, shape[2] - planes, about.numbers or 3))
      end
      list[#list].first, list[#list].step = first, n
    end
  end
  return list
end

-- Adds a box of a row: its numbers are corners, or centre and size (`centred`) as parts of the
-- input's sides.
local function add_row(list, class, score, a, b, c, d, centred, size)
  if centred then add_centred(list, class, score, a * size.width, b * size.height, c * size.width, d * size.height)
  else add(list, class, score, a, b, c, d) end
end

-- Rows of corners in pixels, score and class, then what `about` says as for yolov8; the net has done
-- the suppression. Numbers that are all near 0 to 1 are centres and sizes in parts of the input
-- (RT-DETR), and so are those of turned boxes, in pixels. With `about.batch` (YOLOv7) a row begins
-- with the picture's number, and the class is before the score.
function M.rows(outputs, about, size, least)
  local t, list = outputs[1], {}
  local shape = t:shape()
  local each = shape[#shape]
  local shift = about.batch and 1 or 0
  local score, class = about.batch and 7 or 5, 6
  local centred = not about.is_turned and not M.has_pixels(t, 1 + shift, each)
  for _, at in ipairs(t:above(least, score, #t, each)) do
    local row = at - score
    local kind, b = math.tointeger(t[row + class] // 1), row + shift
    if not kind then goto next end -- Not a number.
    if about.is_turned then add_turned(list, kind, t[at], t[b + 1], t[b + 2], t[b + 3], t[b + 4], t[row + 7])
    else
      add_row(list, kind, t[at], t[b + 1], t[b + 2], t[b + 3], t[b + 4], centred, size)
      list[#list].points = about.points and points_at(t, row + 7, 1, each - 6, about.numbers or 3)
    end
    list[#list].first, list[#list].step = row + 7, 1
    ::next::
  end
  return list
end

-- True: some of the four numbers of the rows (from column `first` on, `each` columns) are larger than
-- parts of a picture can be.
function M.has_pixels(t, first, each)
  for column = first, first + 3 do
    if t:above(2, column, #t, each)[1] then return true end
  end
  return false
end

-- The mean of 0, 1 ... n - 1 under the softmax distribution of n elements.
local function expected(t, first, n)
  local _, top = largest(t, first, 1, n)
  local sum, mean = 0, 0
  for k = 0, n - 1 do
    local p = exp(t[first + k] - top)
    sum, mean = sum + p, mean + p * k
  end
  return mean / sum
end

-- NanoDet: for each stride [1, cells, classes] and [1, cells, 4 bins]: distances from the middle of
-- the cell to the four sides, as distributions. `about.levels`: { scores, distances, stride }.
function M.nanodet(outputs, about, least)
  local list = {}
  for _, level in ipairs(about.levels) do
    local scores, distances, stride = outputs[level[1]], outputs[level[2]], level[3]
    local columns = math.ceil(about.size.width / stride)
    local n = columns * math.ceil(about.size.height / stride)
    local classes, bins = #scores // n, #distances // n // 4
    local last = -1
    for _, at in ipairs(scores:above(least)) do
      local cell = (at - 1) // classes
      if cell ~= last then
        last = cell
        local class, score = largest(scores, cell * classes + 1, 1, classes)
        local x, y = (cell % columns + .5) * stride, (cell // columns + .5) * stride
        local d, first = {}, cell * 4 * bins + 1
        for k = 0, 3 do d[k] = expected(distances, first + k * bins, bins) * stride end
        add(list, class, score, x - d[0], y - d[1], x + d[2], y + d[3])
      end
    end
  end
  return list
end

-- Boxes of NanoDet-Plus: one output [1, cells, classes + 4 bins] for all strides, with distances
-- from the corner of the cell.
function M.nanodet_plus(outputs, about, least)
  local t, list, indices = outputs[1], {}, {}
  local each, bins = t:shape()[3], about.bins
  local classes = each - 4 * bins
  for _, at in ipairs(t:above(least)) do
    local cell = (at - 1) // each
    if (at - 1) % each < classes and indices[#indices] ~= cell then indices[#indices + 1] = cell end
  end
  each_cell(indices, about.strides, about.size, function(index, column, row, stride)
    local class, score = largest(t, index * each + 1, 1, classes)
    local d, first = {}, index * each + classes + 1
    for k = 0, 3 do d[k] = expected(t, first + k * bins, bins) * stride end
    local x, y = column * stride, row * stride
    add(list, class, score, x - d[0], y - d[1], x + d[2], y + d[3])
  end)
  return list
end

-- FastestDet, planes of one grid: objectness, centre minus cell, size relative to the input,
-- classes.
function M.fastestdet(outputs, _, size, least)
  local t, list = outputs[1], {}
  local shape = t:shape()
  local n, columns = shape[3] * shape[4], shape[4]
  -- The hyperbolic tangent of v.
  local function tanh(v) return 1 - 2 / (exp(2 * v) + 1) end
  -- 1 / (1 + e^-v).
  local function part(v) return 1 / (1 + exp(-v)) end
  for _, at in ipairs(t:above(0, 1, n)) do
    local class, score = largest(t, at + 5 * n, n, shape[2] - 5)
    score = math.max(0, score) ^ .4 * t[at] ^ .6
    if score > least then
      local cell = at - 1
      add_centred(list, class, score, (cell % columns + tanh(t[at + n])) / columns * size.width,
                  (cell // columns + tanh(t[at + 2 * n])) / shape[3] * size.height,
                  part(t[at + 3 * n]) * size.width, part(t[at + 4 * n]) * size.height)
    end
  end
  return list
end

-- SCRFD: for each stride scores, distances to the four sides and points, in strides, from the
-- cell's corner; `anchors` boxes a cell. `about.levels`: { scores, distances, points or nil,
-- stride }.
function M.scrfd(outputs, about, least)
  local list = {}
  for _, level in ipairs(about.levels) do
    local scores, sides, kps, stride = table.unpack(level, 1, 4)
    local columns = math.ceil(about.size.width / stride)
    for _, at in ipairs(scores:above(least)) do
      local cell, b, points = (at - 1) // about.anchors, (at - 1) * 4, nil
      local x, y = cell % columns * stride, cell // columns * stride
      if kps then
        local each = #kps // #scores
        points = {}
        for k = 1, each do
          points[k] = kps[(at - 1) * each + k] * stride + (k % 2 == 1 and x or y)
        end
      end
      add(list, 0, scores[at], x - sides[b + 1] * stride, y - sides[b + 2] * stride,
          x + sides[b + 3] * stride, y + sides[b + 4] * stride, points)
    end
  end
  return list
end

-- YuNet: for each stride class, objectness, box and key points. Scores are square roots of
-- products.
function M.yunet(outputs, about, least)
  local list = {}
  for _, stride in ipairs(about.strides) do
    -- The output `name` of this stride.
    local function part(name) return outputs[name .. "_" .. stride] end
    local cls, obj, box, kps = part "cls", part "obj", part "bbox", part "kps"
    local columns = math.ceil(about.size.width / stride)
    for _, at in ipairs(cls:above(least * least)) do
      local score = math.sqrt(math.max(0, math.min(1, cls[at])) * math.max(0, math.min(1, obj[at])))
      if score > least then
        local column, row = (at - 1) % columns, (at - 1) // columns
        local b, p, points = (at - 1) * 4, (at - 1) * 10, {}
        for k = 1, kps and 10 or 0, 2 do
          points[k] = (kps[p + k] + column) * stride
          points[k + 1] = (kps[p + k + 1] + row) * stride
        end
        add_centred(list, 0, score, (box[b + 1] + column) * stride, (box[b + 2] + row) * stride,
                    exp(box[b + 3]) * stride, exp(box[b + 4]) * stride, kps and points)
      end
    end
  end
  return list
end

return M
