-- Sequences of pictures with the box of one object in each, for judging trackers, and the measures
-- of that. A sequence is a folder with pictures and gt.txt (a line for each picture: x1,y1,x2,y2,
-- NaN where it is out of view) or groundtruth_rect.txt (x,y,w,h).
local c = require "cnnrun"

---Sequences with ground truth, and how well a tracker follows them.
---@class lib.sequence
local M = {}

local files = { { "gt.txt", true }, { "groundtruth_rect.txt", false }, { "groundtruth.txt", false } }

-- True: four numbers that are finite, with positive sides.
local function is_box(b)
  for i = 1, 4 do
    if not b[i] or not (math.abs(b[i]) < 1e9) then return false end
  end
  return b[3] > 0 and b[4] > 0
end

---The boxes { x, y, w, h } of a folder, false where the object is out of view; nil: it has none.
---@param folder string
---@return table[]?
function M.truth(folder)
  for _, file in ipairs(files) do
    local path = folder .. "/" .. file[1]
    if c.exists(path) == "file" then
      local boxes = {}
      for line in c.text(path):gmatch("[^\r\n]+") do
        local v = {}
        for word in line:gmatch("[^,;%s]+") do v[#v + 1] = tonumber(word) or 0 / 0 end
        local box = { v[1], v[2], v[3], v[4] }
        if file[2] and #v >= 4 then box[3], box[4] = v[3] - v[1], v[4] - v[2] end
        boxes[#boxes + 1] = is_box(box) and box or false
      end
      return boxes
    end
  end
end

---Intersection over union; 0 if one is missing.
---@param a table|false|nil
---@param b table|false|nil
function M.overlap(a, b)
  if not a or not b then return 0 end
  local w = math.min(a[1] + a[3], b[1] + b[3]) - math.max(a[1], b[1])
  local h = math.min(a[2] + a[4], b[2] + b[4]) - math.max(a[2], b[2])
  if w <= 0 or h <= 0 then return 0 end
  return w * h / (a[3] * a[4] + b[3] * b[4] - w * h)
end

-- The distance of the centres, in pixels.
local function apart(a, b)
  local dx, dy = a[1] + a[3] / 2 - b[1] - b[3] / 2, a[2] + a[4] / 2 - b[2] - b[4] / 2
  return math.sqrt(dx * dx + dy * dy)
end

---Measures of boxes (false: absent). precision, recall, f: at that overlap; absent: the share of
---frames without the object that were reported so; false_alarms: the share of frames with the
---object that were reported as without; success, distances: by threshold, 0 to 1 in steps of .05
---and 0 to 50 pixels. The first frame, whose box was given, counts as the others.
---@param boxes table
---@param truth table
---@param enough number?
function M.judge(boxes, truth, enough)
  local right, said, seen, hidden, hidden_said, missed = 0, 0, 0, 0, 0, 0
  local success, distances = {}, {}
  for k = 0, 20 do success[k + 1] = 0 end
  for k = 0, 50 do distances[k + 1] = 0 end
  for i, t in ipairs(truth) do
    local b = boxes[i] or false
    local o = M.overlap(b, t)
    if b then said = said + 1 end
    if t then
      seen = seen + 1
      if not b then missed = missed + 1 end
      if o > (enough or .25) then right = right + 1 end
      for k = 0, 20 do if b and o > k / 20 - 1e-9 and o > 0 then success[k + 1] = success[k + 1] + 1 end end
      local far = b and apart(b, t) or math.huge
      for k = 0, 50 do if far <= k then distances[k + 1] = distances[k + 1] + 1 end end
    else
      hidden = hidden + 1
      if not b then hidden_said = hidden_said + 1 end
    end
  end
  for k = 1, 21 do success[k] = success[k] / math.max(1, seen) end
  for k = 1, 51 do distances[k] = distances[k] / math.max(1, seen) end
  local p, r = right / math.max(1, said), right / math.max(1, seen)
  return { precision = p, recall = r, f = p + r > 0 and 2 * p * r / (p + r) or 0, frames = #truth,
           hidden = hidden, absent = hidden > 0 and hidden_said / hidden or nil,
           false_alarms = missed / math.max(1, seen), success = success, distances = distances }
end

return M
