-- Losses that a script builds of operators: the shipped ones and some of this file. Words: labelled pictures, a folder.
local c = require "cnnrun"

local n = 0
-- Prints one numbered TAP line: ok if `good`, else not ok.
local function ok(good, what)
  n = n + 1
  print((good and "ok " or "not ok ") .. n .. " - " .. what)
end

-- The usual loss, as a script's own.
local function logarithmic(_, labels, net)
  local hot = c.one_hot { labels, c.data { net.classes }, c.data { 0.0, 1.0, shape = { 2 } } }
  local each = c.mul { c.log_softmax { net.logits, axis = 1 }, hot }
  return c.mul { c.reduce_sum { each, keepdims = false }, c.data { -1.0 / net.batch } }
end

-- Sum of products.
local function product(a, b)
  local sum = 0
  for i = 1, #a do sum = sum + a[i] * b[i] end
  return sum
end

-- Along the gradient of one weight the loss rises as steeply as the gradient is long.
local function slope(net, name, batch, labels, options)
  -- The loss after a step along a direction.
  local function along(step, direction, from)
    net:set_weight(name, from:plus(direction, step))
    local _, loss = net:gradients(batch, labels, options)
    return loss
  end
  local from = net:weight(name):times(1)
  local gradient = net:gradients(batch, labels, options)[name]
  local long = math.sqrt(product(gradient, gradient))
  local direction, step = gradient:times(1 / long), 0.01
  local rise = (along(step, direction, from) - along(-step, direction, from)) / (2 * step)
  net:set_weight(name, from)
  return rise, long
end

-- A test: it fails with such a message.
local function fails(net, batch, labels, what, want, loss)
  local good, text = pcall(net.gradients, net, batch, labels, { loss = loss })
  ok(not good and tostring(text):find(want), what .. ": " .. tostring(text):gsub("\n", " "))
end

-- Tests: gradients against differences.
local function numbers(net, batch, labels)
  local own, l = net:gradients(batch, labels, { loss = logarithmic })
  local shipped, m = net:gradients(batch, labels)
  ok(math.abs(l - m) < 1e-5 * m, "cross-entropy by operators is the loss that a plugin brings")
  local worst = 0
  for name, g in pairs(shipped) do
    local off = g:plus(own[name], -1)
    worst = math.max(worst, math.sqrt(product(off, off) / product(g, g)))
  end
  ok(worst < 1e-4, ("and so are its gradients (%.1e)"):format(worst))
  local losses = { mse = require "losses.mse", binary = require "losses.binary",
                   focal = require "losses.focal", smooth = require "losses.smooth",
                   contrastive = require "losses.contrastive" }
  for name, loss in pairs(losses) do
    local rise, long = slope(net, "ip2.weight", batch, labels, { loss = loss })
    ok(math.abs(rise - long) < 0.02 * long, ("%s: rises by %.5g, its gradient is %.5g long"):format(name, rise, long))
  end
end

local distill = require "losses.distill"

-- LeNet-5 as a function of weights.
local function lenet(x, given)
  x = c.maxpool { c.conv2d(given(x, "conv1")), kernel = 2, stride = 2 }
  x = c.maxpool { c.conv2d(given(x, "conv2")), kernel = 2, stride = 2 }
  return c.dense(given(c.relu { c.dense(given(x, "ip1")) }, "ip2"))
end

-- A row of probabilities at a temperature: softmax(z / T) is p^(1 / T), made to sum to 1.
local function softened(scores, row, temperature)
  local soft, sum = {}, 0
  for k = 1, 10 do
    soft[k] = scores[10 * (row - 1) + k] ^ (1 / temperature)
    sum = sum + soft[k]
  end
  for k = 1, 10 do soft[k] = soft[k] / sum end
  return soft
end

-- Computes the expected loss from the probabilities of both nets.
local function by_hand(teacher, student, batch, labels, temperature, share)
  local t, s, loss = teacher:run { batch }, student:run { batch }, 0
  for row, label in ipairs(labels) do
    local q, p = softened(t, row, temperature), softened(s, row, temperature)
    local divergence = 0
    for k = 1, 10 do divergence = divergence + q[k] * math.log(q[k] / p[k]) end
    loss = loss + share * temperature ^ 2 * divergence
         - (1 - share) * math.log(s[10 * (row - 1) + label + 1])
  end
  return loss / #labels
end

-- Tests: distilling.
local function distilling(teacher, data, batch, labels)
  -- A net with random weights.
  local function student() return c.load("nets.lenet5", { weights = "random:2" }) end
  local net = student()
  for _, how in ipairs { { 2, 0.7 }, { 4, 1 }, { 1, 0.5 } } do
    local loss = distill(teacher, lenet, { temperature = how[1], share = how[2] })
    local _, got = net:gradients(batch, labels, { loss = loss })
    local want = by_hand(teacher, net, batch, labels, how[1], how[2])
    ok(math.abs(got - want) < 1e-4 * want, ("distill at %g, %g: %.6f, by hand %.6f"):format(how[1], how[2], got, want))
  end
  local loss = distill(teacher, lenet)
  local gradients = net:gradients(batch, labels, { loss = loss })
  local n, all = 0, #net:weights()
  for _ in pairs(gradients) do n = n + 1 end
  ok(n == all, ("the teacher's weights have no gradients: %d of %d"):format(n, all))
  local rise, long = slope(net, "ip2.weight", batch, labels, { loss = loss })
  ok(math.abs(rise - long) < 0.02 * long, ("distill: rises by %.5g, its gradient is %.5g long"):format(rise, long))
  local _, same = teacher:gradients(batch, labels, { loss = distill(teacher, lenet, { share = 1 }) })
  ok(math.abs(same) < 1e-5, ("of the teacher itself it is 0: %.2g"):format(same))
  local losses = {}
  student():train { data = data, epochs = 24, batch = 10, rate = 0.002, validation = 0, loss = loss,
                    on_epoch = function(e) losses[#losses + 1] = e.loss end }
  ok(#losses == 24 and losses[24] < 0.5 * losses[1], ("training by it: %.3f, then %.3f"):format(losses[1], losses[24]))
  fails(net, batch, labels, "distill without a teacher", "distill: want a teacher", distill)
  for _, wrong in ipairs { { temperature = 0 }, { share = 1.5 }, { shares = 1 } } do
    local good, text = pcall(distill, teacher, lenet, wrong)
    ok(not good and tostring(text):find "distill: ", "refused: " .. tostring(text))
  end
  fails(net, batch, labels, "a layer that the teacher has not", "conv9", distill(teacher, function(x, given)
    return c.conv2d(given(x, "conv9"))
  end))
end

-- A graph that was built for one loss function must not be used for another.
local function several(net, batch, labels)
  -- The usual loss times a number.
  local function scaled(by)
    return function(...) return c.mul { logarithmic(...), c.data { by } } end
  end
  local one, two = scaled(1.0), scaled(2.0)
  local _, a = net:gradients(batch, labels, { loss = one })
  local _, b = net:gradients(batch, labels, { loss = two })
  local _, again = net:gradients(batch, labels, { loss = one })
  ok(math.abs(b - 2 * a) < 1e-5 * a and again == a, "functions with the same code and other numbers differ")
end

-- Tests: wrong losses are refused.
local function refused(net, batch, labels)
  local stranger
  fails(net, batch, labels, "a number", "loss.lua:%d+: the function returned a number", function() return 1 end)
  fails(net, batch, labels, "an error of the function", "loss.lua:%d+: not today",
        function() error "not today" end)
  fails(net, batch, labels, "one number is wanted", "loss is %[6,10%] f32, not one number", function(scores) return scores end)
  fails(net, batch, labels, "a weight", "no weights and no inputs",
        function(scores) return c.reduce_mean { c.dense { scores, out = 3 }, keepdims = false } end)
  fails(net, batch, labels, "a mistake in a layer", "loss.lua:%d+.*axis",
        function(scores) return c.reduce_mean { c.softmax { scores, axis = 9 }, keepdims = false } end)
  pcall(net.gradients, net, batch, labels, { loss = function(scores)
    stranger = scores
    return 1
  end })
  fails(net, batch, labels, "a value of another call", "not given", function(scores)
    return c.reduce_mean { c.add { scores, stranger }, keepdims = false }
  end)
  fails(net, batch, labels, "neither a name nor a function", "operator's name or a function", 7)
  local _, loss = net:gradients(batch, labels)
  ok(loss > 0, "and the net is as good as before")
end

-- Tests: training with an own loss.
local function training(data, folder)
  -- A net with random weights.
  local function fresh() return c.load("nets.lenet5", { weights = "random:3" }) end
  local net, losses = fresh(), {}
  net:train { data = data, epochs = 8, batch = 10, rate = 0.02, validation = 0,
              loss = require "losses.smooth", on_epoch = function(e) losses[#losses + 1] = e.loss end }
  ok(#losses == 8 and losses[8] < 0.8 * losses[1], ("training by it: %.3f, then %.3f"):format(losses[1], losses[8]))
  -- what was kept of another loss is not gone on with
  local function part(name, epochs)
    local seen = 0
    fresh():train { data = data, epochs = 4, batch = 10, rate = 0.001, validation = 0, checkpoint = folder .. "/kept",
                    loss = require(name), on_epoch = function()
      seen = seen + 1
      return seen < epochs
    end }
    return seen
  end
  part("losses.focal", 2)
  local good, text = pcall(part, "losses.smooth", 4)
  ok(not good and tostring(text):find "kept", "a checkpoint of another loss is refused: " .. tostring(text))
  ok(part("losses.focal", 4) == 2, "and one of the same is gone on with")
end

return function(args)
  local net = c.load "nets.lenet5"
  local batch, labels = c.tensor { shape = { 6, 1, 28, 28 } }, { 0, 1, 2, 3, 1, 2 }
  for i = 1, #batch do batch[i] = (i * 7919 % 997) / 997 end
  numbers(net, batch, labels)
  several(net, batch, labels)
  refused(net, batch, labels)
  training(args[1], args[2])
  distilling(net, args[1], batch, labels)
  print("1.." .. n)
end
