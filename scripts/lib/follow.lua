-- A tracker led through frames: what applications and measurements of it have in common.
local c = require "cnnrun"

---A tracker led through frames.
---@class lib.follow
local M = {}

---Calls fn(frame, picture, seconds, why) for each frame of what words name one behind the other, pictures, folders,
---patterns, videos or a camera, from 1 on; a picture that cannot be read comes without it and with the reason. Gives the
---exit code: that of the first that did.
---@param words string|string[]
---@param choice table? which of them, as c.samples takes it
---@param fn fun(frame: integer, picture: cnnrun.Tensor?, seconds: number?, why: string?)
---@return integer
function M.each(words, choice, fn)
  local code, n = 0, 0
  for _, word in ipairs(type(words) == "table" and words or { words }) do
    local samples = c.samples(word, nil, choice)
    if #samples < 0 then
      for _, picture, _, _, seconds in samples:each() do
        n = n + 1
        fn(n, picture, seconds)
      end
    end
    for i = 1, #samples do
      local good, picture, _, _, seconds = pcall(samples.at, samples, i)
      n = n + 1
      if good then fn(n, picture, seconds)
      else
        code = code > 0 and code or c.exit_code(picture)
        fn(n, nil, nil, (tostring(picture):gsub("^[^\n:]+%.lua:%d+: ", "")))
      end
    end
  end
  return code
end

local remembered = 1000 -- frames' times; a camera may run for weeks

local Run = {}
Run.__index = Run

---A run of a tracker from the box in the first frame on; nil with a model: it is looked for.
---@param tracker cnnrun.Object
---@param box number[]?
---@param learnt boolean? it has a model, which is kept
---@param by table? that tracks for it (lib.cascade)
function M.start(tracker, box, learnt, by)
  return setmetatable({ tracker = tracker, first = box, learnt = learnt, absent = 0, times = {}, timed = 0, by = by or tracker }, Run)
end

---One frame; picture nil: it is broken. Gives { box = { x, y, w, h } or nil, confidence =, ms =, error = }.
function Run:frame(picture, why)
  local box, confidence, ms
  if not picture then return { confidence = 0, error = why } end
  if self.first then
    if self.learnt then self.tracker:place(picture, self.first) else self.tracker:init(picture, self.first) end
    box, confidence, self.first = self.first, 1, nil
  else
    box, confidence = self.by:track(picture)
    ms = self.tracker:times()[7]
    self.times[self.timed % remembered + 1] = ms
    self.timed = self.timed + 1
  end
  if confidence < 0 then
    self.absent = self.absent + 1
    return { confidence = 0, ms = ms }
  end
  return { box = { box[1], box[2], box[3], box[4] }, confidence = confidence, ms = ms }
end

---The median of a frame's milliseconds, of the newest thousand.
function Run:milliseconds()
  local list = table.move(self.times, 1, #self.times, 1, {})
  table.sort(list)
  return list[(#list + 1) // 2] or 0
end

-- ---- drawing ----

local side, gap = 30, 6 -- of a patch as it is drawn, between them
local panel = 2 * side + 3 * gap
local green, red, white, ground = { .18, .8, .25 }, { 1, .25, .21 }, { 1, 1, 1 }, { .12, .12, .13 }

-- The patches that were added last, one above the other.
local function column(canvas, patches, x, height, colour, title)
  local n, room = patches:shape()[1] // 15, (height - 24) // side
  canvas:text(("%s %d"):format(title, n), { x, 4 }, 11, colour)
  if n == 0 or room < 1 then return end
  local shown = math.min(n, room)
  local last = patches:region({ (n - shown) * 15 + 1, 1, 1 }, { shown * 15, 15, 1 })
  canvas:picture(last, { x, 22, side, shown * side })
  canvas:outline({ x, 22, side, shown * side }, colour, 1)
end

---The frame with the box, what the detector saw (thin) and, beside it, patches of what it is and what it is not.
function Run:drawn(picture, r)
  local shape = picture:shape()
  local width, height = (shape[2] + panel + 1) // 2 * 2, (shape[1] + 1) // 2 * 2
  local canvas = c.object("canvas", { width = width, height = height, bold = true })
  canvas:fill({ 0, 0, width, height }, ground)
  canvas:picture(picture, { 0, 0, shape[2], shape[1] })
  local seen = self.tracker:detections()
  for i = 0, seen:shape()[1] - 1 do
    canvas:outline({ seen[5 * i + 1], seen[5 * i + 2], seen[5 * i + 3], seen[5 * i + 4] }, { 1, .88, .1, .6 }, 1)
  end
  local text = "absent"
  if r.box then
    canvas:outline(r.box, green, math.max(2, shape[2] / 200))
    text = ("%.2f"):format(r.confidence):gsub(",", ".")
  end
  canvas:fill({ 4, 4, 58, 18 }, { 0, 0, 0, .6 }, 3)
  canvas:text(text, { 8, 5 }, 13, r.box and white or red)
  local positive, negative = self.tracker:patches()
  column(canvas, positive, shape[2] + gap, height, green, "+")
  column(canvas, negative, shape[2] + side + 2 * gap, height, red, "-")
  return canvas:pixels()
end

return M
