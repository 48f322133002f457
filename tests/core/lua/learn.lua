-- What experiments do with nets: trained, judged, changed, copied, written; and what goes wrong there.
-- Words: labelled pictures, a folder to write to.
local c = require "cnnrun"

local n = 0
-- Prints one numbered TAP line: ok if `good`, else not ok.
local function ok(good, what)
  n = n + 1
  print((good and "ok " or "not ok ") .. n .. " - " .. what)
end
-- The call fails, saying this, with the line of this file where it was made.
local function fails(what, says, f)
  local good, text = pcall(f)
  text = tostring(text)
  ok(not good and text:find(says, 1, true) and text:find "learn.lua:%d+:", what .. ": " .. text)
end
-- A sum by which a weight is known again.
local function sum(net, name)
  local total, w = 0, net:weight(name)
  for i = 1, #w, 97 do total = total + w[i] * (i % 7 + 1) end
  return total
end

-- Tests: what a net tells of itself.
local function looking(net)
  local layers = net:layers()
  ok(#layers == 8 and layers[1].name == "conv1" and layers[1].operator == "conv", "eight layers")
  ok(layers[1].inputs[1] == "data" and layers[1].weights[1] == "conv1.weight", "with their values")
  ok(table.concat(layers[1].sizes, "x") == "1x20x24x24" and layers[1].flops == 576000, "and sizes")
  ok(#net:weights() == 8, "eight weights")
  local rows = net:profile { runs = 3 }
  ok(#rows == 7 and rows[1].node == "conv1" and rows[1].kernel and rows[1].device and rows[1].ms > 0 and
     rows[1].flops == 576000, "a row a step")
  ok(rows.ms_min <= rows.ms_median and rows.ms_median <= rows.ms_max and rows.flops > 4e6, "and of all")
  local devices = c.devices()
  ok(#devices >= 1 and devices[1].name and devices[1].family, "devices")
end

-- Tests: changed weights.
local function changing(net, data)
  local copy = net:copy()
  local before = sum(net, "ip1.weight")
  local pruned = net:weight "ip1.weight":pruned(0.25)
  ok(pruned:density() == 0.25, "a quarter of a weight")
  copy:set_weight("ip1.weight", pruned)
  copy:mask("ip1.weight", true)
  local r = copy:train { data = data, epochs = 2, batch = 10, rate = 0.001, validation = 0,
                         optimizer = "adam", beta1 = 0.8, beta2 = 0.9, epsilon = 1e-6, weight_decay = 0 }
  ok(r.epochs == 2 and r.best_epoch == 2 and r.trained == 40 and not r.best and not r.ended, "trained")
  local after = copy:weight "ip1.weight"
  local moved, woken = 0, 0
  for i = 1, #after do
    if pruned[i] == 0 and after[i] ~= 0 then woken = woken + 1 end
    if pruned[i] ~= after[i] then moved = moved + 1 end
  end
  ok(woken == 0 and moved > 1000, "zeros stay under a mask, others move")
  ok(sum(net, "ip1.weight") == before, "a copy changes alone")
  copy:mask("ip1.weight", false)
  copy:train { data = data, epochs = 1, batch = 10, rate = 0.01, validation = 0 }
  ok(copy:weight "ip1.weight":density() > 0.3, "let go they move, too")
  return copy
end

-- Tests: epochs of a training.
local function epochs(net, data)
  local seen, steps = {}, {}
  local r = net:train {
    data = data, epochs = 3, batch = 10, validation = 10, policy = "fixed",
    rate = function(step, all) steps[#steps + 1] = step .. "/" .. all; return 1e-4 end,
    on_epoch = function(e) seen[#seen + 1] = e; if #seen == 2 then return false end end }
  ok(#seen == 2 and seen[2].epoch == 2 and seen[2].epochs == 3 and seen[1].top1 and seen[1].loss > 0 and
     seen[2].seconds > 0, "epochs are told, false ends it")
  ok(r.ended == "stopped" and r.epochs == 2 and r.validated == 10, "which the result says")
  ok(table.concat(steps, " ") == "0/9 1/9 2/9 3/9 4/9 5/9", "a schedule is asked at each step")
  local before = sum(net, "ip1.weight")
  net:train { data = data, epochs = 1, batch = 10, rate = 0, weight_decay = 0, on_epoch = function() end }
  ok(sum(net, "ip1.weight") == before, "nil goes on; a rate of 0 changes nothing")
end

-- Callbacks may change the table of options, and other texts may then reuse the memory of its
-- texts.
local function forgetful(net, data, spec)
  local options = { data = data, epochs = 1, batch = 10, test = spec .. "", optimizer = ("x%s"):format("sgd"):sub(2) }
  options.on_epoch = function()
    for key in pairs(options) do options[key] = nil end
    local rubbish = {}
    for i = 1, 20000 do rubbish[i] = "rubbish number " .. i end
  end
  ok(net:train(options).tested == 40, "options may go while they are in use")
end

-- Tests: evaluation.
local function judging(net, data)
  local e = net:evaluate { data = data, batch = 3 }
  ok(e.top1_low < e.top1 and e.top1 <= e.top1_high and e.top1_low > e.top1 - .5, "an interval beside what is right")
  local all, right = 0, 0
  for i, row in ipairs(e.confusion) do
    for k, times in ipairs(row) do
      all = all + times
      if i == k then right = right + times end
    end
  end
  ok(e.n == 40 and all == 40 and right / 40 == e.top1 and e.top1 <= e.top5 and e.loss > 0 and e.seconds > 0,
     "judged, with whom it takes for whom")
  ok(net:evaluate { data = data, limit = 7 }.n == 7, "the first few")
  local whole, about = net:quantize { data = data, limit = 10, check = 5, all = true }
  ok(about.quantized == 4 and about.checked == 5 and #about.layers == 4 and about.layers[1].name == "conv1" and
     about.top1.after >= 0 and about.ms.before > 0, "made a net of whole numbers")
  ok(whole:evaluate { data = data }.n == 40, "that runs")
end

-- Tests: a loop of the script's own.
local function own_loop(net, data)
  local pictures, labels = {}, {}
  for i, picture, label in data:each(8) do pictures[i], labels[i] = picture, label end
  local batch = net:prepare(table.unpack(pictures))
  local first, last
  for step = 1, 6 do
    local gradients, loss, scores = net:gradients(batch, labels)
    first, last = first or loss, loss
    if step == 1 then
      local shape = gradients["ip2.weight"]:shape()
      ok(shape[1] == 10 and shape[2] == 500 and scores:shape()[1] == 8, "gradients by name, and scores")
    end
    for name, d in pairs(gradients) do net:set_weight(name, net:weight(name):plus(d, -0.005)) end
  end
  ok(last < first, ("a loop of one's own learns: %g to %g"):format(first, last))
  local again = select(2, net:gradients(batch, c.tensor { data = labels, dtype = "i32" }))
  ok(again <= last, "labels as a tensor")
  fails("labels for all", "8", function() net:gradients(batch, { 1, 2 }) end)
  fails("that are such", "labels[2]", function() net:gradients(batch, { 1, -2, 3, 4, 5, 6, 7, 8 }) end)
  fails("and batches", "wanted", function() net:gradients(c.tensor { shape = { 2, 3 } }, { 1, 2 }) end)
  fails("a loss that is none", "no such loss", function() net:gradients(batch, labels, { loss = "anger" }) end)
end

-- Tests: a net that is being trained can be used.
local function busy(net, data)
  local said = {}
  net:train { data = data, epochs = 1, batch = 10, on_epoch = function()
    for _, f in ipairs {
      function() net:train { data = data } end, function() net:evaluate { data = data } end,
      function() net:close() end, function() local _ <close> = net end, function() net:copy() end,
      function() local _ <close> = data end, function() net:set_weight("ip2.bias", net:weight "ip2.bias") end,
      function() net:mask("ip2.bias", true) end, function() net:gradients(c.tensor { data = { 1 } }, { 1 }) end } do
      said[#said + 1] = select(2, pcall(f))
    end
    ok(#net:layers() == 8 and #net:weight "ip2.bias" == 10, "a net that is trained may be looked at")
  end }
  local refused = 0
  for _, text in ipairs(said) do
    if text:find "being trained" then refused = refused + 1 end
  end
  ok(#said == 9 and refused == 9, "but not run, changed, closed, nor its samples: " .. said[1])
end

-- Tests: wrong calls are refused.
local function misuse(net, data)
  -- A training with one option changed.
  local function train(more)
    return function()
      local t = { data = data, epochs = 1, batch = 10 }
      for k, v in pairs(more) do t[k] = v end
      net:train(t)
    end
  end
  fails("an error in on_epoch has its line", "learn.lua:" , train { on_epoch = function() error "oh" end })
  fails("and is what it was", "oh", train { on_epoch = function() error "oh" end })
  fails("one in rate as well", "ah", train { rate = function() error "ah" end })
  fails("a rate that is none", "the function gave", train { rate = function() return "much" end })
  fails("nor this", "the function gave -1", train { rate = function() return -1 end })
  fails("nor this", "nan", train { rate = function() return 0 / 0 end })
  fails("rate", "rate: want a number", train { rate = 0 / 0 })
  fails("rate", "rate: want a number", train { rate = -1 })
  fails("on_epoch", "want a function", train { on_epoch = 3 })
  fails("a slip", "did you mean 'epochs'", train { epcohs = 3 })
  fails("epochs", "a whole number from 1 to 1000000), got 0", train { epochs = 0 })
  fails("epochs", "got 2.5", train { epochs = 2.5 })
  fails("epochs", "got a string value", train { epochs = "2" })
  fails("batch", "65536", train { batch = 1e300 })
  fails("limit", "nan", train { limit = 0 / 0 })
  fails("momentum", "0.9999", train { momentum = 1 })
  fails("validation", "none is left to train on", train { validation = 1000 })
  fails("policy", "did you mean 'cosine'", train { policy = "cosin" })
  fails("optimizer", "no such optimiser", train { optimizer = "adma" })
  fails("sgd has no betas", "has no beta1", train { optimizer = "sgd", beta1 = 0.5 })
  fails("loss", "losses known", train { loss = "anger" })
  fails("no data", "got nothing", function() net:train {} end)
  fails("data of no kind", "a number value", train { data = 7 })
  fails("data that nobody named", "may not be read", train { data = "/etc" })
  fails("a split of samples", "open already", train { split = "train" })
  fails("no options", "table expected", function() net:train() end)
  fails("a method that there is not", "did you mean 'train'", function() net:trian {} end)
  fails("a weight of another shape", "wanted", function() net:set_weight("ip1.weight", c.tensor { data = { 1, 2 } }) end)
  fails("a name with a zero byte", "zero byte", function() net:weight "ip2.bias\0x" end)
  fails("an option with one", "zero byte", train { loss = "softmax\0x" })
  fails("no such weight", "did you mean 'ip1.weight'", function() net:set_weight("ip1.wieght", net:weight "ip1.weight") end)
  fails("a mask of nothing", "no such weight", function() net:mask("nothing", true) end)
  fails("a mask that is no yes or no", "boolean", function() net:mask("ip1.weight", 1) end)
  fails("keep", "0 to 1", function() net:weight "ip2.bias":pruned(0 / 0) end)
  fails("keep", "0 to 1", function() net:weight "ip2.bias":pruned(-1) end)
  fails("shapes", "same shape", function() net:weight "ip2.bias":plus(net:weight "ip1.bias") end)
  fails("runs", "100000", function() net:profile { runs = 1 << 40 } end)
  fails("places", "did you mean conv1", function() c.load("nets.lenet5", { place = { konv1 = "cpu" } }) end)
  fails("a device that is not there", "nodevice", function() c.load("nets.lenet5", { place = { conv1 = "nodevice" } }):time(1) end)
  fails("a net that is not there", "no.such", function() c.load "no.such" end)
end

return function(args)
  local data = c.samples(args[1])
  local net = c.load "nets.lenet5" -- as require finds it
  looking(net)
  judging(changing(net, data), data)
  epochs(net:copy(), data)
  forgetful(net:copy(), data, args[1])
  own_loop(net:copy(), data)
  busy(net:copy(), data)
  misuse(net, data)

  -- a spec, which the command line names
  ok(net:evaluate { data = args[1], limit = 5 }.n == 5, "a spec as data")
  -- imported, placed, random: nets of any origin
  local path = args[2] .. "/net.onnx"
  net:export(path)
  local other = c.load(path, { place = { ["*"] = "cpu" } })
  other:train { data = data, epochs = 1, batch = 10, rate = 1e-7 } -- a format that keeps no preprocessing
  ok(#other:weights() == 8 and other:profile { runs = 1 }[1].device == "cpu", "an imported net is trained as well")
  local random = c.load("nets.lenet5", { weights = "random:7" })
  ok(random:evaluate { data = data }.loss > net:evaluate { data = data }.loss, "random weights know less")
  net:save(args[2] .. "/net.cnr")
  ok(sum(c.load(args[2] .. "/net.cnr"), "ip1.weight") == sum(net, "ip1.weight"), "saved and loaded")
  fails("save is for .cnr", "export", function() net:save(path) end)
  fails("nobody writes that", "no exporter", function() net:export(args[2] .. "/net.nothing") end)
  fails("nor there", "may not be written", function() net:save "/tmp/elsewhere.cnr" end)

  for _ = 1, 200 do net:copy() end -- nobody keeps them
  net:close()
  fails("a net that was closed", "closed", function() net:evaluate { data = data } end)
  fails("is not looked at", "closed", function() net:layers() end)
  do local _ <close> = data end
  fails("samples that were", "closed", function() other:train { data = data } end)
  print("1.." .. n)
end
