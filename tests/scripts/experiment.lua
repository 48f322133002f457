-- What an experiment can do, told as TAP by experiment.t: args are a net, samples, a .npy and a .png file.
local c = require "cnnrun"

local n = 0
-- Prints one numbered TAP line: ok if `good`, else not ok.
local function ok(good, what)
  n = n + 1
  print((good and "ok " or "not ok ") .. n .. " - " .. what)
end

return function(args)
  local net = c.load(args[1], { weights = "random:3" })
  local data = net:inputs()[1]
  ok(data.name == "data" and data.dtype == "f32" and data.sizes[1] == "batch" and data.sizes[3] == 28,
     "a net's inputs")
  ok(net:outputs()[1].name == "prob" and net:label(3) == "3" and net:label(99) == nil,
     "its outputs and labels")
  ok(#net:weights() == 8 and tostring(net:weight("conv1.weight")) == "f32[20,1,5,5]", "its weights")

  local samples = c.samples(args[2], "eval")
  ok(#samples == 10000 and samples:classes() == 10, "samples")
  local seen, sum = 0, 0
  for i, picture, label, name in samples:each(20) do
    local scores = net:run { net:prepare(picture) }
    for k = 1, #scores do sum = sum + scores[k] end
    ok(i ~= 1 or (label == 7 and tostring(picture) == "u8[28,28,1]" and #name > 0), "sample " .. i)
    seen = i
  end
  ok(seen == 20 and math.abs(sum - 20) < 1e-4, "probabilities sum to 1")

  local first, second = samples:at(1), samples:at(2)
  local one, two = net:run { net:prepare(first) }, net:run { data = net:prepare(first, second) }
  local same = true
  for k = 1, 10 do same = same and math.abs(one[k] - two[k]) < 1e-6 end
  ok(same and tostring(two) == "f32[2,10]", "a batch of two gives what one gives")
  ok(one:topk(2)[1].score >= one:topk(2)[2].score and one:topk(1)[1].index >= 0, "top k")

  two:save(args[3])
  local again = c.tensor(args[3])
  ok(tostring(again) == "f32[2,10]" and again[1] == two[1] and again[20] == two[20], ".npy and back")
  local whole = c.tensor { shape = { 2, 3 }, data = { -1, 0, 1, 2, 300, 4 }, dtype = "i64" }
  local bytes = whole:as("u8"):reshaped { 3, 2 }
  ok(bytes[1] == 0 and bytes[5] == 255 and bytes:shape()[1] == 3, "types and shapes")
  local picture = c.tensor { shape = { 4, 5, 3 }, dtype = "u8" }
  for i = 1, #picture do picture[i] = i * 4 end
  picture:save(args[4])
  local seen_again, differ = c.picture(args[4]), 0
  for i = 1, #picture do differ = differ + math.abs(picture[i] - seen_again[i]) end
  ok(tostring(seen_again) == "u8[4,5,3]" and differ == 0, "a picture written and read")
  ok(not pcall(two.save, two, args[4]), "what is no picture is not written as one")
  local times = net:time(3)
  ok(times.ms_min > 0 and times.ms_min <= times.ms_median and times.ms_median <= times.ms_max, "time")

  local x = c.input { "x", shape = { "batch", 4 } }
  local w = c.data { 1, 1, 1, 1, 0, 0, 0, 2, shape = { 2, 4 } }
  local tiny = c.load(c.net { output = c.dense { x, weight = w, bias = false } })
  local y = tiny:run(c.tensor { shape = { 1, 4 }, data = { 1, 2, 3, 4 } })
  ok(y[1] == 10 and y[2] == 8, "a net made by the experiment itself")
  ok(not pcall(tiny.run, tiny, {}), "a missing input is an error")

  ok(not pcall(c.tensor, "/etc/passwd"), "no file but those of the command line is read")
  ok(not pcall(two.save, two, args[3] .. ".other.npy"), "or written")
  ok(not pcall(c.now), "no clock without --trust")
  ok(not pcall(c.samples, "mnist:/"), "no samples from elsewhere")
  print("1.." .. n)
  return 3
end
