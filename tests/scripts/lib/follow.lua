-- lib.follow, told as TAP by follow.t: a tracker of our own is led through more frames than are remembered.
local follow = require "lib.follow"

local n = 0
-- A test: both are equal.
local function is(got, want, what)
  n = n + 1
  print((got == want and "ok " or "not ok ") .. n .. " - " .. what)
  if got ~= want then print(("# got  %s\n# want %s"):format(got, want)) end
end

-- Absent in every tenth frame; a frame takes as many milliseconds as frames were before it.
local Fake = { frames = 0 }
-- A tracker that is made up: begins.
function Fake:init() self.frames = 0 end
-- Its answer; each tenth frame without the object.
function Fake:track()
  self.frames = self.frames + 1
  return { 1, 2, 3, 4 }, self.frames % 10 == 0 and -1 or .5
end
-- Its times.
function Fake:times() return { 0, 0, 0, 0, 0, 0, self.frames } end

-- A picture that is made up, of so many rows and as many columns.
local function picture(side)
  return { shape = function() return { side, side, 3 } end }
end

return function()
  local run = follow.start(Fake, { 5, 6, 7, 8 })
  local first = run:frame(picture(64))
  is(table.concat(first.box, " "), "5 6 7 8", "the first box is the one that was given")
  is(run:milliseconds(), 0, "nothing is measured yet")
  is(run:frame(nil, "broken").error, "broken", "a frame that is none is told")
  is(run:frame(picture(8)).error, "8 x 8 pixels: want 16 or more of each side", "and one that is too small")
  for _ = 1, 99 do run:frame(picture(64)) end
  is(run.absent, 9, "frames in which it is absent are counted")
  is(run:milliseconds(), 50, "the median of a frame's time")
  for _ = 100, 20000 do run:frame(picture(64)) end
  is(#run.times <= 1000, true, "memory doesn't grow with the frames")
  is(run:milliseconds(), 19500, "the median is of the newest")
  print("1.." .. n)
end
