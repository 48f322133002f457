-- lib.sequence, told as TAP by sequence.t: measures worked out by hand; args[1] is a folder with gt.txt.
local c = require "cnnrun"
local sequence = require "lib.sequence"

local n = 0
-- A test: both are equal.
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
  -- files of no kind: pieces of lines, numbers out of all bounds, bytes
  local pieces = { "10,20,40,60", "NaN", "nan", "inf", "1e999", "-", "0x10", ",", ",,", "\n", "\r\n", " ", "\t", ";", "\0", "\255",
                   "5", "1e308", "-1e308", "x", "10 20 30 40" }
  local state, wrong = 1, nil
  -- A number below `most`, at random.
  local function draw(most)
    state = (state * 1103515245 + 12345) % 2147483648
    return state // 65536 % most + 1
  end
  for _ = 1, 300 do
    local text = {}
    for i = 1, draw(40) do text[i] = pieces[draw(#pieces)] end
    text = table.concat(text)
    c.write(args[1] .. "/hostile/groundtruth.txt", text)
    local good, boxes = pcall(sequence.truth, args[1] .. "/hostile")
    for _, b in ipairs(good and boxes or {}) do
      good = good and (b == false or b[3] > 0 and b[4] > 0 and math.abs(b[1]) < 1e9 and math.abs(b[2]) < 1e9)
    end
    if good then good = pcall(sequence.judge, boxes, boxes) end
    if not good then wrong = wrong or ("%q"):format(text) end
  end
  is(wrong, nil, "a file of no kind gives boxes that can be drawn, or none")
  print("1.." .. n)
end
