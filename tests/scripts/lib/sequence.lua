-- lib.sequence, told as TAP by sequence.t: measures worked out by hand; args[1] is a folder with gt.txt.
local sequence = require "lib.sequence"

local n = 0
local function is(got, want, what)
  n = n + 1
  local same = type(want) == "number" and type(got) == "number" and math.abs(got - want) < 1e-9 or got == want
  print((same and "ok " or "not ok ") .. n .. " - " .. what)
  if not same then print(("# got  %s\n# want %s"):format(got, want)) end
end

return function(args)
  local truth = sequence.truth(args[1])
  is(#truth, 4, "a line a frame")
  is(table.concat(truth[1], " "), "10 20 30 40", "corners become x, y, width, height")
  is(truth[3], false, "NaN: out of view")
  is(sequence.truth(args[1] .. "/none"), nil, "no file, no truth")
  is(sequence.overlap({ 0, 0, 10, 10 }, { 5, 0, 10, 10 }), 1 / 3, "intersection over union")
  is(sequence.overlap({ 0, 0, 10, 10 }, { 10, 0, 5, 5 }), 0, "boxes that touch share nothing")
  is(sequence.overlap(false, { 1, 1, 1, 1 }), 0, "nor does one with none")
  -- right, missed, said to be absent where it is, elsewhere
  local j = sequence.judge({ truth[1], false, false, { 500, 500, 30, 40 } }, truth)
  is(j.precision, 1 / 2, "one of two boxes is right")
  is(j.recall, 1 / 3, "one of three frames that show it")
  is(j.f, .4, "both as one number")
  is(j.absent, 1, "it is said to be absent where it is")
  is(j.false_alarms, 1 / 3, "and in one frame where it isn't")
  is(j.success[21], 1 / 3, "overlap 1 in one of three")
  is(j.distances[1], 1 / 3, "so are the middles")
  is(sequence.judge({ { 10, 20, 30, 40 }, { 10, 20, 30, 40 } }, { truth[1], truth[1] }).absent, nil,
     "never out of view: nothing to say of it")
  print("1.." .. n)
end
