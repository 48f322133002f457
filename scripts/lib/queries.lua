-- Decodes the outputs of nets that answer a list of boxes in several outputs, as heads.lua does: the
-- queries of DETR, and corners, classes and scores that are ready (torchvision, TensorFlow's
-- detection API, YOLOv7).
local add = require("lib.boxes").add
local masks = require "lib.masks"

local M = {}

local exp = math.exp

-- ---- which output is which ----

-- Numbers of the outputs of logits [batch, queries, classes] and boxes [batch, queries, 4]; nothing:
-- the net is another. Other outputs must not have that form, unless names tell.
function M.pair(outputs)
  local boxes, logits
  for i, port in ipairs(outputs) do
    local last = port.sizes[3]
    if #port.sizes == 3 and port.sizes[2] ~= 4 and math.type(last) == "integer" then
      if last == 4 and not boxes and not port.name:find("logits", 1, true) then boxes = i
      elseif not logits or port.name:find("logits", 1, true) then logits = i end
    end
  end
  if not boxes or not logits or outputs[boxes].sizes[2] ~= outputs[logits].sizes[2] then return end
  if #outputs > 2 and not outputs[logits].name:find("logits", 1, true) then return end
  local n = outputs[boxes].sizes[2]
  if math.type(n) == "integer" and n > 1000 then return end -- Such lists are of anchors, not of queries.
  return logits, boxes
end

-- Numbers of the outputs of boxes, scores and classes, by their names and types; nil: another net.
-- Rows of scores have no further axis: [batch, rows] and [batch, rows, 4], or without the batch.
function M.ready(outputs)
  local found = {}
  for i, port in ipairs(outputs) do
    local name, rank = port.name:lower(), #port.sizes
    if port.sizes[rank] == 4 and not found.boxes and rank >= 2 and rank <= 3 then found.boxes = i
    elseif name:find "class" or name:find "label" then found.classes = i
    elseif name:find "score" or name:find "conf" then found.scores = i end
  end
  local rank = found.boxes and #outputs[found.boxes].sizes - 1
  for i, port in ipairs(outputs) do -- Torch's exporter gives numbers for names.
    if #port.sizes == rank and i ~= found.classes and i ~= found.scores then
      local whole = port.dtype == "i64" or port.dtype == "i32"
      if whole and not found.classes and not port.name:find "num" then found.classes = i
      elseif not whole and not found.scores and not port.name:find "num" then found.scores = i end
    end
  end
  for _, role in ipairs { "classes", "scores" } do
    local port = found[role] and outputs[found[role]]
    if not port or #port.sizes ~= rank then return nil end
  end
  return found
end

-- ---- DETR ----

-- The best class of a query and its score. `softmax`: the last column is "nothing"; else each class
-- has a probability of its own.
local function best_class(t, first, columns, softmax)
  local best, top = 0, -math.huge
  for k = 0, columns - (softmax and 2 or 1) do
    local v = t[first + k]
    if v > top then best, top = k, v end
  end
  if not softmax then return best, 1 / (1 + exp(-top)) end
  local sum = 0
  for k = 0, columns - 1 do sum = sum + exp(t[first + k] - top) end
  return best, 1 / sum
end

-- Boxes of queries: centre and size as parts of the input. about: logits and boxes (tensors), softmax.
function M.detr(about, size, least)
  local logits, boxes, list = about.logits, about.boxes, {}
  local columns = logits:shape()[3]
  for q = 0, #boxes // 4 - 1 do
    local class, score = best_class(logits, q * columns + 1, columns, about.softmax)
    if score > least then
      local b = q * 4
      local x, y, w, h = boxes[b + 1] * size.width, boxes[b + 2] * size.height, boxes[b + 3] * size.width,
                         boxes[b + 4] * size.height
      add(list, class, score, x - w / 2, y - h / 2, x + w / 2, y + h / 2)
    end
  end
  return list
end

-- ---- boxes that are ready ----

-- Points of row `row`, from 0: [rows, points, 3], the last number above 0 if the point is seen.
local function points_of(t, row)
  local shape, points = t:shape(), {}
  local n = shape[#shape - 1]
  for k = 0, n - 1 do
    local at = (row * n + k) * 3
    local seen = t[at + 3] > 0
    points[2 * k + 1], points[2 * k + 2] = seen and t[at + 1] or 0 / 0, seen and t[at + 2] or 0 / 0
  end
  return points
end

-- Rows of corners. about: boxes, scores, classes (tensors), points (or nil), base (the first class's
-- number), swapped (y before x). Numbers from 0 to 1 are parts of the input. `row` of a box: its row.
function M.rows(about, size, least)
  local t, list, x, y = about.boxes, {}, 1, 2
  if about.swapped then x, y = 2, 1 end
  local pixels = t:above(2)[1] ~= nil
  local w, h = pixels and 1 or size.width, pixels and 1 or size.height
  for _, at in ipairs(about.scores:above(least)) do
    local b, class = (at - 1) * 4, (math.tointeger(about.classes[at] // 1) or -1) - about.base
    if class >= 0 then
      add(list, class, about.scores[at], t[b + x] * w, t[b + y] * h, t[b + x + 2] * w, t[b + y + 2] * h,
          about.points and points_of(about.points, at - 1))
      list[#list].row = at - 1
    end
  end
  return list
end

-- The mask of a box of M.rows from [.., rows, (1,) height, width], probabilities: of the whole input, or
-- of the box alone (`inside`).
function M.mask(t, box, size, inside)
  local shape = t:shape()
  local height, width = shape[#shape - 1], shape[#shape]
  local frame = inside and box.inside or { x0 = 0, y0 = 0, x1 = size.width, y1 = size.height }
  return masks.of_plane(t, box.row * height * width, { height = height, width = width }, frame, box.inside)
end

return M
