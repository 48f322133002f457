-- Decodes outputs to boxes, as heads.lua does, for detectors whose boxes are relative to priors:
-- SSD and face detectors of that kind.
local add = require("lib.boxes").add

local M = {}

local exp = math.exp

-- Final detections, [1, 1, found, 7]: picture, class (0 is background), score, corners from 0 to 1.
function M.detections(outputs, _, size, least)
  local t, list, w, h = outputs[1], {}, size.width, size.height
  for b = 0, #t - 7, 7 do
    if t[b + 3] > least and t[b + 2] >= 1 then
      add(list, math.tointeger(t[b + 2]) - 1, t[b + 3], t[b + 4] * w, t[b + 5] * h, t[b + 6] * w,
          t[b + 7] * h)
    end
  end
  return list
end

-- Priors around the cells of grids. rows: { stride, list of { w, h } in pixels [, columns, rows] };
-- out: centre and size, from 0 to 1, four numbers each.
function M.grids(rows, size)
  local list = {}
  for _, row in ipairs(rows) do
    local columns = row[3] or math.ceil(size.width / row[1])
    local n_rows = row[4] or math.ceil(size.height / row[1])
    for y = 0, n_rows - 1 do
      for x = 0, columns - 1 do
        for _, box in ipairs(row[2]) do
          local n = #list
          list[n + 1], list[n + 2] = (x + .5) * row[1] / size.width, (y + .5) * row[1] / size.height
          list[n + 3], list[n + 4] = box[1] / size.width, box[2] / size.height
        end
      end
    end
  end
  return list
end

-- The sizes around one cell that Caffe's prior boxes have.
function M.sizes(least, most, ratios)
  local sizes, between = { { least, least } }, math.sqrt(least * most)
  sizes[2] = { between, between }
  for _, ratio in ipairs(ratios) do
    local r = math.sqrt(ratio)
    sizes[#sizes + 1] = { least * r, least / r }
    sizes[#sizes + 1] = { least / r, least * r }
  end
  return sizes
end

-- Converts the corners and variances of prior_box, [1, 2, 4n], to centres and sizes.
function M.centred(prior)
  local list, n = {}, #prior // 2
  for i = 1, n, 4 do
    local x0, y0, x1, y1 = prior[i], prior[i + 1], prior[i + 2], prior[i + 3]
    list[i], list[i + 1], list[i + 2], list[i + 3] = (x0 + x1) / 2, (y0 + y1) / 2, x1 - x0, y1 - y0
  end
  return list
end

-- scores: n times `classes` numbers, 0 is background; boxes: n times 4; about.priors: as above;
-- about.points (nil: none): n times x, y, ... With about.corners the boxes are corners from 0 to 1.
function M.ssd(scores, boxes, about, least)
  local list, classes, p = {}, about.classes, about.priors
  local w, h = about.size.width, about.size.height
  local near, far = table.unpack(about.variances or { .1, .2 })
  -- Points of a face at prior i, in pixels.
  local function points_of(i)
    local t, points = about.points, {}
    local each, b = #t // (#boxes // 4), i * 4
    for k = 1, each, 2 do
      points[k] = (p[b + 1] + t[i * each + k] * near * p[b + 3]) * w
      points[k + 1] = (p[b + 2] + t[i * each + k + 1] * near * p[b + 4]) * h
    end
    return points
  end
  -- Adds the box at prior i to the list, with that class and score.
  local function decode(class, i, score)
    local b = i * 4
    if about.corners then
      add(list, class - 1, score, boxes[b + 1] * w, boxes[b + 2] * h, boxes[b + 3] * w,
          boxes[b + 4] * h)
      return
    end
    local x = p[b + 1] + boxes[b + 1] * near * p[b + 3]
    local y = p[b + 2] + boxes[b + 2] * near * p[b + 4]
    local wide, high = p[b + 3] * exp(boxes[b + 3] * far), p[b + 4] * exp(boxes[b + 4] * far)
    add(list, class - 1, score, (x - wide / 2) * w, (y - high / 2) * h, (x + wide / 2) * w,
        (y + high / 2) * h, about.points and points_of(i))
  end
  for class = 1, classes - 1 do
    for _, at in ipairs(scores:above(least, class + 1, #scores, classes)) do
      decode(class, (at - 1) // classes, scores[at])
    end
  end
  return list
end

-- Whether boxes are ordered corners (decoded in the net) or offsets.
function M.are_corners(boxes)
  local n, ordered = #boxes // 4, 0
  for b = 0, 4 * n - 1, 4 do
    if boxes[b + 3] >= boxes[b + 1] and boxes[b + 4] >= boxes[b + 2] then ordered = ordered + 1 end
  end
  return ordered > 0.98 * n
end

return M
