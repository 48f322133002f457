-- Optimisers that scripts build of operators, against the arithmetic of PyTorch's in doubles. Words: labelled
-- pictures (each once in a batch), a folder.
local c = require "cnnrun"

local n = 0
-- Prints one numbered TAP line: ok if `good`, else not ok.
local function ok(good, what)
  n = n + 1
  print((good and "ok " or "not ok ") .. n .. " - " .. what)
end

local BATCH = 10
-- A new small net with fixed weights.
local function fresh()
  return c.load(c.net { name = "small", input = { "data", shape = { "batch", 1, 28, 28 }, scale = 1 / 255 },
    c.maxpool { "pool", kernel = 4, stride = 4 }, c.dense { "ip1", out = 12 }, c.tanh {},
    c.dense { "ip2", out = 10 }, c.softmax {} }, { weights = "random:3" })
end

-- A tensor's numbers as a list.
local function numbers(t)
  local list, count = {}, 1
  for _, size in ipairs(t:shape()) do count = count * size end
  local flat = t:reshaped { count }
  for i = 1, count do list[i] = flat[i] end
  return list
end

-- All weights of a net, as lists.
local function weights_of(net)
  local all = {}
  for _, name in ipairs(net:weights()) do all[name] = numbers(net:weight(name)) end
  return all
end

-- Steps of the same batch, `update(w, g, state, step, decays)` done by hand for each element.
local function by_hand(data, steps, update, around)
  local net, pictures, labels = fresh(), {}, {}
  for i = 1, BATCH do pictures[i], labels[i] = data:at(i) end
  local batch = net:prepare(table.unpack(pictures))
  local all, states = weights_of(net), {}
  for step = 1, steps do
    local gradients = {}
    for name, g in pairs((net:gradients(batch, labels))) do gradients[name] = numbers(g) end
    if around then around(gradients) end
    for name, g in pairs(gradients) do
      states[name] = states[name] or {}
      local shape, data_of = net:weight(name):shape(), {}
      for i, x in ipairs(all[name]) do
        states[name][i] = states[name][i] or {}
        all[name][i] = update(x, g[i], states[name][i], step, #shape > 1, name)
        data_of[i] = all[name][i]
      end
      net:set_weight(name, c.tensor { shape = shape, data = data_of })
    end
  end
  return all
end

-- The weights, as lists by name, after so many steps of training.
local function trained(spec, steps, options)
  local net = fresh()
  local how = { data = spec, batch = BATCH, epochs = steps, validation = 0, policy = "fixed", rate = 0.01 }
  for key, value in pairs(options) do how[key] = value end
  net:train(how)
  return net
end

-- The largest difference between the net's weights and lists by name, as a part of the rate 0.01.
local function off(net, want)
  local worst = 0
  for name, list in pairs(want) do
    for i, x in ipairs(numbers(net:weight(name))) do worst = math.max(worst, math.abs(x - list[i])) end
  end
  return worst / 0.01
end

-- A test: trained weights agree with those by hand.
local function near(spec, data, what, options, update, around)
  local far = off(trained(spec, 4, options), by_hand(data, 4, update, around))
  ok(far < 1e-4, ("%s: four steps as by hand (%.1e of the rate off)"):format(what, far))
end

-- AdamW by hand: a function of weight, gradient, state (changed), step, and whether it decays, that
-- returns the new weight.
local function adamw(rate, decay, epsilon)
  return function(w, g, s, step, decays, name)
    local lr = type(rate) == "function" and rate(name) or rate
    w = w - lr * (decays and decay or 0) * w
    s.m, s.v = 0.9 * (s.m or 0) + 0.1 * g, 0.999 * (s.v or 0) + 0.001 * g * g
    return w - lr / (1 - 0.9 ^ step) * s.m / (math.sqrt(s.v) / math.sqrt(1 - 0.999 ^ step) + epsilon)
  end
end

-- RMSprop by hand: a function of weight, gradient, state (changed) and whether it decays, that
-- returns the new weight.
local function rmsprop(rate, decay, alpha, momentum)
  return function(w, g, s, _, decays)
    g = g + (decays and decay or 0) * w
    s.v = alpha * (s.v or 0) + (1 - alpha) * g * g
    local along = g / (math.sqrt(s.v) + 1e-4)
    if momentum then
      s.buf = momentum * (s.buf or 0) + along
      along = s.buf
    end
    return w - rate * along
  end
end

-- Gradient descent with momentum by hand: returns the new weight, and changes the state s.
local function sgd(w, g, s, _, decays)
  s.v = 0.9 * (s.v or 0) + g + (decays and 0.0005 or 0) * w
  return w - 0.01 * s.v
end

-- A function that scales, in place, gradients (lists by weight) whose joint length is above `most`
-- to that length.
local function clipped(most)
  return function(gradients)
    local sum = 0
    for _, g in pairs(gradients) do for _, x in ipairs(g) do sum = sum + x * x end end
    local factor = math.min(1, most / (math.sqrt(sum) + 1e-6))
    for _, g in pairs(gradients) do for i, x in ipairs(g) do g[i] = factor * x end end
  end
end

-- Tests: each optimiser by hand.
local function arithmetic(spec, data)
  near(spec, data, "adamw", { optimizer = "adamw", weight_decay = 0.1, epsilon = 1e-4 }, adamw(0.01, 0.1, 1e-4))
  near(spec, data, "rmsprop", { optimizer = "rmsprop", weight_decay = 0.01, epsilon = 1e-4 }, rmsprop(0.01, 0.01, 0.99))
  near(spec, data, "rmsprop with momentum and an alpha", { optimizer = "rmsprop", weight_decay = 0, epsilon = 1e-4,
       momentum = 0.5, beta2 = 0.9 }, rmsprop(0.01, 0, 0.9, 0.5))
  near(spec, data, "sgd, clipped", { clip = 0.05 }, sgd, clipped(0.05))
  near(spec, data, "adamw at half the rate for one layer", { optimizer = "adamw", weight_decay = 0.1, epsilon = 1e-4,
       layer_rates = "ip1*=0.5" },
       adamw(function(name) return name:find "^ip1" and 0.005 or 0.01 end, 0.1, 1e-4))
  for _, name in ipairs { "sgd", "adam" } do
    local options = { optimizer = name, momentum = name == "sgd" and 0.8 or nil, nesterov = name == "sgd" }
    local operator = weights_of(trained(spec, 4, options))
    options.clip = 1e9
    ok(off(trained(spec, 4, options), operator) < 1e-3, name .. ".lua does what the operator does")
  end
end

-- Tests: optimisers of a script's own.
local function own(spec, data)
  -- Descent, as an own optimiser.
  local function descent(weight, gradient, _, how) return c.sub { weight, c.mul { gradient, how.rate } } end
  near(spec, data, "a function of the script", { optimizer = descent }, function(w, g) return w - 0.01 * g end)
  -- Descent that counts its steps.
  local function counted(weight, gradient, state, how)
    local count = c.add { state.count, 1.0 }
    return c.sub { weight, c.mul { gradient, c.mul { how.rate, count } } }, { count = count }
  end
  near(spec, data, "its state", { optimizer = counted }, function(w, g, _, step) return w - 0.01 * step * g end)
  -- the mean of weights is what comes out, and is judged
  near(spec, data, "the average of weights", { optimizer = descent, average = 0.75 },
       function(w, g, s, step) -- by hand the weights go on, and the mean is had at the end
    s.mean = 0.75 * (s.mean or w) + 0.25 * (w - 0.01 * g)
    return step == 4 and s.mean or w - 0.01 * g
  end)
  local net = fresh()
  local r = net:train { data = spec .. ",shift=1", batch = 2, epochs = 4, rate = 0.1, policy = "fixed", validation = 4,
                        average = 0.99 }
  local judged = net:evaluate { data = spec, split = "train", validation = 4 }
  ok(r.best == judged.top1, "and what epochs are judged by")
end

-- Tests: accumulated gradients.
local function accumulation(spec)
  -- Weights after a training with these options.
  local function run(options)
    local net = fresh()
    local how = { data = spec, epochs = 3, validation = 0, policy = "fixed", rate = 0.01, optimizer = "adamw", epsilon = 1e-4 }
    for key, value in pairs(options) do how[key] = value end
    net:train(how)
    return net
  end
  local far = off(run { batch = 2, accumulate = 5 }, weights_of(run { batch = 10 }))
  ok(far < 1e-3, ("five steps of 2 make an update like one of 10 (%.1e of the rate off)"):format(far))
  ok(off(run { batch = 2 }, weights_of(run { batch = 10 })) > 0.1, "which single steps of 2 do not")
end

-- Tests: frozen layers stay.
local function freezing(spec)
  local before, net = weights_of(fresh()), trained(spec, 2, { freeze = "ip1*" })
  ok(off(net, { ["ip1.weight"] = before["ip1.weight"], ["ip1.bias"] = before["ip1.bias"] }) == 0, "frozen weights stay")
  ok(off(net, { ["ip2.weight"] = before["ip2.weight"] }) > 0, "others don't")
  local norm = c.load(c.net { name = "norm", input = { "data", shape = { "batch", 1, 28, 28 } },
    c.batch_normalization { "bn" }, c.dense { "ip", out = 10 }, c.softmax {} }, { weights = "random:3" })
  norm:train { data = spec, batch = BATCH, epochs = 1, validation = 0, freeze = "bn*" }
  ok(norm:weight "bn.mean"[1] == 0, "statistics of frozen layers too")
  norm:train { data = spec, batch = BATCH, epochs = 1, validation = 0 }
  ok(norm:weight "bn.mean"[1] ~= 0, "which are taken otherwise")
end

-- A test: it fails with such a message.
local function fails(spec, what, want, options)
  local good, text = pcall(trained, spec, 1, options)
  ok(not good and tostring(text):find(want), what .. ": " .. tostring(text):gsub("\n", " "))
end

-- Tests: wrong optimisers are refused.
local function refused(spec)
  fails(spec, "no such optimiser", "nosuch: no such optimiser; optimisers known: ", { optimizer = "nosuch" })
  fails(spec, "nothing returned", "returned nothing", { optimizer = function() end })
  fails(spec, "a state without a new value", "state.mean is read", { optimizer = function(w, _, s)
    return c.add { w, s.mean }
  end })
  fails(spec, "another shape", "assign.*shape", { optimizer = function(w) return c.reduce_sum { w } end })
  fails(spec, "a mistake in a layer", "optimiser.lua:%d+.*axis", { optimizer = function(w)
    return c.softmax { w, axis = 9 }
  end })
  fails(spec, "an error of the function", "optimiser.lua:%d+: not today", { optimizer = function() error "not today" end })
  fails(spec, "too many states", "at most 8", { optimizer = function(w, _, s)
    local new = {}
    for i = 1, 9 do new["s" .. i] = c.add { s["s" .. i], 1.0 } end
    return w, new
  end })
  fails(spec, "rates of no layer", "no trained weight matches", { layer_rates = "conv9*=2" })
  fails(spec, "rates that are none", "want PATTERN=FACTOR", { layer_rates = "ip1" })
  fails(spec, "nothing to freeze", "no weights called \"conv9%*\"", { freeze = "conv9*" })
  fails(spec, "all of it frozen", "but those that are frozen", { freeze = "ip*" })
  fails(spec, "neither a name nor a function", "want a name or a function", { optimizer = 7 })
end

-- Training that stopped after an epoch and continued gives the same bits: the optimiser's memory is
-- in the checkpoint.
local function checkpoints(spec, folder)
  -- Trains, and stops after some epochs.
  local function run(options, stop_at)
    local net, seen = fresh(), 0
    options.data, options.batch, options.epochs, options.validation = spec, BATCH, 6, 0
    options.on_epoch = function(e)
      seen = seen + 1
      return e.epoch ~= stop_at
    end
    net:train(options)
    return net, seen
  end
  -- The options of the test.
  local function how() return { optimizer = "adamw", clip = 1, average = 0.9, accumulate = 2, rate = 0.01 } end
  local whole, options = run(how()), how()
  options.checkpoint = folder .. "/kept"
  run(options, 3)
  local other = how()
  other.checkpoint, other.clip = folder .. "/kept", 2
  local good, text = pcall(run, other)
  ok(not good and tostring(text):find "another training", "a checkpoint of another clip is refused")
  local net, seen = run(options)
  ok(seen == 3 and off(net, weights_of(whole)) == 0, "a checkpoint has the states: the same bits come out")
end

-- ---- what scripts may do with what they are given ----

-- Tests: the state is kept and named.
local function kept_and_named(spec)
  local kept
  trained(spec, 1, { optimizer = function(w, g, state, how)
    kept = state
    return c.sub { w, c.mul { how.rate, g } }
  end })
  local good, text = pcall(function() return kept.later end)
  ok(not good and tostring(text):find "built already", "a state that is read later is told: " .. tostring(text))
  good, text = pcall(trained, spec, 1, { optimizer = "/etc/hostname" })
  ok(not good and tostring(text):find "/etc/hostname" and not tostring(text):find "syntax",
     "a file that was not named on the command line is none of the script's")
  -- b is to get what a was, which is 0 in the first step and the gradient in the second
  local first, second = fresh(), nil
  local late = function(w, g, state) return c.sub { w, c.mul { state.b, 1.0 } }, { a = g, b = state.a } end
  second = trained(spec, 2, { optimizer = late })
  ok(off(second, weights_of(first)) == 0, "an old state that is handed on is read before it is written")
  local net = fresh()
  net:set_weight("ip1.weight", net:weight("ip1.weight"):pruned(0.2))
  net:train { data = spec, batch = BATCH, epochs = 1, validation = 0, policy = "fixed", rate = 0.01, keep_zeros = "ip1*",
              optimizer = function(w, g, state, how) return c.sub { w, c.mul { how.rate, c.add { g, 0.5 } } } end }
  ok(net:weight("ip1.weight"):density() < 0.25, "weights that were pruned stay so: " .. net:weight("ip1.weight"):density())
end

return function(args)
  local data = c.samples(args[1], "train")
  arithmetic(args[1], data)
  own(args[1], data)
  accumulation(args[1])
  freezing(args[1])
  refused(args[1])
  kept_and_named(args[1])
  checkpoints(args[1], args[2])
  print("1.." .. n)
end
