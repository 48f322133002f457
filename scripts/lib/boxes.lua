-- Boxes: { class = from 0, score =, x0 =, y0 =, x1 =, y1 =, points = { x, y, ... } or nil, mask = rectangles (lib.masks)
-- or nil, corners = those of a turned box { x, y, ... } or nil }.
local M = {}

local most = 3000 -- The number of best boxes that suppression considers.

-- Adds a box with class, score and corners.
function M.add(list, class, score, x0, y0, x1, y1, points)
  list[#list + 1] = { class = class, score = score, x0 = x0, y0 = y0, x1 = x1, y1 = y1,
                      points = points }
end

-- Area of a box; 0 if it is empty.
function M.area(b)
  local w, h = b.x1 - b.x0, b.y1 - b.y0
  return w > 0 and h > 0 and w * h or 0
end

-- Common area of two boxes; 0 if they don't touch.
function M.shared(a, b)
  local w = math.min(a.x1, b.x1) - math.max(a.x0, b.x0)
  local h = math.min(a.y1, b.y1) - math.max(a.y0, b.y0)
  return w > 0 and h > 0 and w * h or 0
end

-- The part of a polygon { x, y, ... } to the right of the line from (x0, y0) to (x1, y1), where y grows
-- downwards (Sutherland and Hodgman's).
local function clipped(list, x0, y0, x1, y1)
  local result, n = {}, #list
  -- How far a point is to the right of the line, times its length.
  local function side(x, y) return (x1 - x0) * (y - y0) - (y1 - y0) * (x - x0) end
  for i = 1, n, 2 do
    local ax, ay, bx, by = list[i], list[i + 1], list[(i + 1) % n + 1], list[(i + 2) % n + 1]
    local a, b = side(ax, ay), side(bx, by)
    if a >= 0 then result[#result + 1], result[#result + 2] = ax, ay end
    if a * b < 0 then
      local part = a / (a - b)
      result[#result + 1], result[#result + 2] = ax + part * (bx - ax), ay + part * (by - ay)
    end
  end
  return result
end

-- Area of a polygon whose corners go clockwise, where y grows downwards.
local function polygon_area(list)
  local sum, n = 0, #list
  for i = 1, n, 2 do sum = sum + list[i] * list[(i + 2) % n + 1] - list[(i + 1) % n + 1] * list[i + 1] end
  return sum / 2
end

-- Corners of a box, turned or not.
local function corners_of(b) return b.corners or { b.x0, b.y0, b.x1, b.y0, b.x1, b.y1, b.x0, b.y1 } end

-- Common area of two boxes, and the area of each, where one is turned.
local function shared_turned(a, b)
  local p, q = corners_of(a), corners_of(b)
  local both = p
  for i = 1, #q, 2 do both = clipped(both, q[i], q[i + 1], q[(i + 1) % #q + 1], q[(i + 2) % #q + 1]) end
  return polygon_area(both), polygon_area(p), polygon_area(q)
end

-- The overlap of two boxes: as a part of their union, or of the smaller one.
function M.overlap(a, b, of_smaller)
  local both = M.shared(a, b)
  if both == 0 then return 0 end
  local x, y = M.area(a), M.area(b)
  if a.corners or b.corners then both, x, y = shared_turned(a, b) end
  if both <= 0 then return 0 end -- Turned, they don't touch, or one has no area.
  return both / (of_smaller and math.min(x, y) or x + y - both)
end

-- True: a comes before b, by score, then by place.
local function better(a, b)
  if a.score ~= b.score then return a.score > b.score end
  if a.x0 ~= b.x0 then return a.x0 < b.x0 end
  return a.y0 < b.y0
end

-- Non-maximum suppression, best first. It drops boxes that overlap a better one of their class by
-- more than `limit`, or a better one of another class by more than `across`.
function M.suppress(list, limit, across, of_smaller)
  local sorted, kept = {}, {}
  across = across or 1
  for _, b in ipairs(list) do
    if b.score == b.score and b.x1 > b.x0 and b.y1 > b.y0 then sorted[#sorted + 1] = b end
  end
  table.sort(sorted, better)
  for i = 1, math.min(#sorted, most) do
    local b, free = sorted[i], true
    for _, rival in ipairs(kept) do
      if M.overlap(b, rival, of_smaller) > (b.class == rival.class and limit or across) then
        free = false
        break
      end
    end
    if free then kept[#kept + 1] = b end
  end
  return kept
end

-- Maps boxes from the net's input to the picture of that width and height, and clips them at its
-- edges. `place` is from net:prepare: input = picture * factor + shift, for y and x.
function M.to_picture(list, place, width, height)
  local sy, sx, dy, dx = place.factor[1], place.factor[2], place.shift[1], place.shift[2]
  -- Moves a box from the prepared picture's places to the picture's.
  local function move(b)
    b.x0 = math.max(0, math.min(width, (b.x0 - dx) / sx))
    b.x1 = math.max(0, math.min(width, (b.x1 - dx) / sx))
    b.y0 = math.max(0, math.min(height, (b.y0 - dy) / sy))
    b.y1 = math.max(0, math.min(height, (b.y1 - dy) / sy))
  end
  for _, b in ipairs(list) do
    move(b)
    for _, row in ipairs(b.mask or {}) do move(row) end
    for _, points in ipairs { b.points or {}, b.corners or {} } do
      for i = 1, #points, 2 do points[i], points[i + 1] = (points[i] - dx) / sx, (points[i + 1] - dy) / sy end
    end
  end
  return list
end

return M
