-- Runs a tracker through frames; shared by applications and measurements.
local c = require "cnnrun"

---Runs a tracker through frames.
---@class lib.follow
local M = {}

---Calls fn(frame, picture, seconds, why) for each frame, from 1 on, of the sources that the words
---name: pictures, folders, patterns, videos or a camera, one after the other. A picture that can't
---be read is nil, with a reason. Returns the exit code of the first one that failed.
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

local remembered = 1000 -- Times of so many frames are kept, since a camera may run for weeks.

local Run = {}
Run.__index = Run

---Starts a tracker with the box in the first frame; nil with a model: the tracker searches for it.
---@param tracker cnnrun.Object
---@param box number[]?
---@param learnt boolean? it has a model, which is kept
---@param by table? that tracks for it (lib.cascade)
function M.start(tracker, box, learnt, by)
  return setmetatable({ tracker = tracker, first = box, learnt = learnt, absent = 0, times = {}, timed = 0, by = by or tracker }, Run)
end

local least = 16 -- Pixels of a picture's side that the tracker wants.

---Tracks one frame; picture nil: it is broken. Returns { box = { x, y, w, h } or nil, confidence =,
---ms =, error = }. A later picture that is too small counts as broken.
function Run:frame(picture, why)
  local box, confidence, ms
  local shape = picture and not self.first and picture:shape()
  if shape and math.min(shape[1], shape[2]) < least then
    picture, why = nil, ("%d x %d pixels: want %d or more of each side"):format(shape[2], shape[1], least)
  end
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

---The median of the milliseconds for a frame, over the latest thousand.
function Run:milliseconds()
  local list = table.move(self.times, 1, #self.times, 1, {})
  table.sort(list)
  return list[(#list + 1) // 2] or 0
end

-- ---- drawing ----

local side, gap = 30, 6 -- The side of a drawn patch, and the gap between patches.
local panel = 2 * side + 3 * gap
local green, red, white, ground = { .18, .8, .25 }, { 1, .25, .21 }, { 1, 1, 1 }, { .12, .12, .13 }

-- Draws the patches that were added last, one above the other, on the canvas at x.
local function column(canvas, patches, x, height, colour, title)
  local n, room = patches:shape()[1] // 15, (height - 24) // side
  canvas:text(("%s %d"):format(title, n), { x, 4 }, 11, colour)
  if n == 0 or room < 1 then return end
  local shown = math.min(n, room)
  local last = patches:region({ (n - shown) * 15 + 1, 1, 1 }, { shown * 15, 15, 1 })
  canvas:picture(last, { x, 22, side, shown * side })
  canvas:outline({ x, 22, side, shown * side }, colour, 1)
end

---Draws the frame with the box, the detector's boxes (thin), and at the side patches of the object
---and of other things.
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
