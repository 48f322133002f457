-- Applies a schedule to a net: its layers, the share of each at each step, and the pruning itself.
local c = require "cnnrun"
local channels = require "lib.channels"
local M = {}

-- True: the name matches the pattern, in which * stands for any letters.
local function matches(pattern, name)
  local lua = pattern:gsub("[%^%$%(%)%%%.%[%]%+%-%?]", "%%%0"):gsub("%*", ".*")
  return name:match("^" .. lua .. "$") ~= nil
end

local words = { about = "string", layers = "table", keep = "number", least = "number",
                criterion = "string or function", saliency = "table", unit = "string", rates = "string or table",
                steps = "number", train = "table", finish = "table", stop = "number", scan = "table or boolean",
                encode = "string or table", rewind = "number", recalibrate = "number or boolean" }
local inner = { saliency = { batches = "number", batch = "number", stride = "number" },
                scan = { points = "number", shares = "table" } }
local choices = { criterion = { "magnitude", "saliency" }, unit = { "element", "block", "channel" },
                  rates = { "falling", "cubic", "once" } }

-- Raises an error: something else is wanted at this place.
local function wrong(where, want, got) error(("%s: want %s, got %s"):format(where, want, tostring(got)), 0) end

-- Checks a share: above 0, at most 1.
local function share(where, v)
  if type(v) ~= "number" or not (v > 0 and v <= 1) then wrong(where, "a share above 0, at most 1", v) end
end

-- Checks a whole number of at least `least`; nil is right.
local function whole(where, v, least)
  if v ~= nil and (math.tointeger(v) or least - 1) < least then
    wrong(where, "a whole number from " .. least .. " on", v)
  end
end

-- Checks that all keys are known and their values of the right type.
local function check_words(t, known, what)
  for key, value in pairs(t) do
    local want = known[key]
    if not want then error(("%s has the key '%s', which is unknown"):format(what, tostring(key)), 0) end
    if not (" " .. want .. " "):find(" " .. type(value) .. " ", 1, true) then wrong(key, "a " .. want, value) end
  end
end

-- Throws if a number of the schedule is out of its range.
local function check_numbers(schedule)
  local scan, saliency = type(schedule.scan) == "table" and schedule.scan or {}, schedule.saliency or {}
  for _, word in ipairs { "keep", "least" } do
    if schedule[word] then share(word, schedule[word]) end
  end
  for pattern, keep in pairs(schedule.layers or {}) do
    if type(pattern) == "string" and keep and keep ~= "found" then share("layers: " .. pattern, keep) end
  end
  for _, keep in ipairs(type(schedule.rates) == "table" and schedule.rates or {}) do share("rates", keep) end
  for _, keep in ipairs(scan.shares or {}) do share("scan.shares", keep) end
  for _, word in ipairs { "batches", "batch", "stride" } do whole("saliency." .. word, saliency[word], 1) end
  for _, word in ipairs { "train", "finish" } do
    whole(word .. ".epochs", schedule[word] and schedule[word].epochs, 1)
  end
  whole("steps", schedule.steps, 1)
  whole("rewind", schedule.rewind, 0)
  whole("recalibrate", type(schedule.recalibrate) == "number" and schedule.recalibrate or nil, 1)
  for where, v in pairs { stop = schedule.stop or 0, ["scan.points"] = scan.points or 0 } do
    if not (v >= 0) then wrong(where, "points, 0 or more", v) end
  end
end

-- An unknown key or a value without meaning is an error before work begins.
---@param schedule table
function M.check(schedule)
  check_words(schedule, words, "the schedule")
  for word, known in pairs(inner) do
    if type(schedule[word]) == "table" then check_words(schedule[word], known, word) end
  end
  for word, list in pairs(choices) do
    local value, good = schedule[word], false
    for _, name in ipairs(list) do good = good or value == name end
    local more = words[word]:match "or (%a+)$"
    if type(value) == "string" and not good then
      wrong(word, table.concat(list, ", ") .. (more and " or a " .. more or ""), value)
    end
  end
  check_numbers(schedule)
  if schedule.rewind and schedule.unit == "channel" then
    error("rewind: removed channels can't be restored; want unit element or block", 0)
  end
end

-- Layers with weights of two or more axes, in order: { name, weight, n, shape, operator }.
---@param net cnnrun.Net
---@return table[]
function M.able(net)
  local list = {}
  for _, l in ipairs(net:layers()) do
    local shape = l.weights[1] and net:weight(l.weights[1]):shape()
    if shape and #shape > 1 then
      local n = 1
      for _, size in ipairs(shape) do n = n * size end
      list[#list + 1] = { name = l.name, weight = l.weights[1], n = n, shape = shape, operator = l.operator }
    end
  end
  return list
end

-- The layers that the schedule names, with the share that is kept in the end: a number, or "found"
-- by the scan. Also the reason for each layer that a pattern matches but whose channels can't be
-- removed.
---@param net cnnrun.Net
---@param schedule table
---@return table[]
---@return string[]
function M.layers(net, schedule)
  local all, list, used, left, learned = M.able(net), {}, {}, {}, {}
  for _, name in ipairs(net:trainable()) do learned[name] = true end
  local wanted = schedule.layers or { ["*"] = schedule.keep or "found" }
  for _, layer in ipairs(all) do
    local share, best = nil, -1
    for pattern, keep in pairs(wanted) do
      if type(pattern) == "number" then pattern, keep = keep, schedule.keep or "found" end
      if learned[layer.weight] and matches(pattern, layer.name) then
        used[pattern] = true
        if #pattern > best and keep then share, best = keep, #pattern end
      end
    end
    layer.keep = share
    local why = share and schedule.unit == "channel" and channels.refused(net, layer.name) or nil
    if why and wanted[layer.name] then error(why, 0) end
    if why then left[#left + 1] = why
    elseif share then list[#list + 1] = layer end
  end
  for pattern, keep in pairs(wanted) do
    local name = type(pattern) == "number" and keep or pattern
    if not used[name] then error(("layers: the net has no '%s' that could be pruned"):format(name), 0) end
  end
  if #list == 0 then error(left[1] or "the net has no layer that could be pruned", 0) end
  return list, left
end

-- ---- rates ----

-- W18's rates: 0.95, 0.90 ... and the target.
local function falling(target)
  local list, keep = {}, 95
  while keep > target * 100 + 1e-9 do
    list[#list + 1] = keep / 100
    keep = keep - 5
  end
  list[#list + 1] = target
  return list
end

-- Zhu and Gupta's rates: fast at first, slow towards the end.
local function cubic(target, steps)
  local list = {}
  for i = 1, steps do list[i] = target + (1 - target) * (1 - i / steps) ^ 3 end
  return list
end

-- The share that is kept at each step.
---@param schedule table
---@param target number
---@return number[]
function M.rates(schedule, target)
  local how, steps = schedule.rates or "falling", schedule.steps or 10
  if type(how) == "table" then
    local list = {}
    for _, keep in ipairs(how) do
      if keep > target then list[#list + 1] = keep end
    end
    list[#list + 1] = target
    return list
  end
  if how == "falling" then return falling(target) end
  if how == "cubic" then return cubic(target, steps) end
  return { target }
end

-- ---- scores ----

-- Sums a function of each weight and its gradient over some batches of the training data; by
-- weight.
local function over_batches(net, list, samples, options, f)
  local last, batch = {}, options.batch or 32
  for b = 1, options.batches or 8 do
    local pictures, labels = {}, {}
    for i = 1, batch do
      local at = ((b - 1) * batch + i - 1) * (options.stride or 1) % #samples + 1
      pictures[i], labels[i] = samples:at(at)
    end
    local gradients = net:gradients(net:prepare(table.unpack(pictures)), labels)
    for _, layer in ipairs(list) do
      local g = gradients[layer.weight]
      if not g then error(layer.name .. ": the loss does not depend on its weights", 0) end
      last[layer.weight] = f(layer, g, last[layer.weight])
    end
  end
  return last
end

-- The sum of squared gradients over the samples, as tensors by weight.
local function squares(net, list, samples, options)
  return over_batches(net, list, samples, options, function(_, g, sum)
    local square = g:times(g)
    return sum and sum:plus(square) or square
  end)
end

-- Elements of the layer's weight, fewer than at first if channels were removed.
local function count_of(net, layer) -- Fewer than at first if channels were removed.
  local n = 1
  for _, size in ipairs(net:weight(layer.weight):shape()) do n = n * size end
  return n
end

-- The least element of a tensor.
local function least_of(t) return -t:times(-1):topk(1)[1].score end

-- Scores of any sign as positive ones in the same order, in `scores`, which is returned; 0 where
-- the weight is 0, which stays so. Throws if one is not a number.
local function settled(list, scores, net)
  local least = math.huge
  for _, layer in ipairs(list) do
    least = math.min(least, least_of(scores[layer.weight]:reshaped { count_of(net, layer) }))
  end
  if least ~= least or least == -math.huge then error("criterion: a score is not a number", 0) end
  for _, layer in ipairs(list) do
    local w, ones = net:weight(layer.weight), {}
    for i = 1, count_of(net, layer) do ones[i] = 1 end
    local held = c.tensor { shape = w:shape(), data = ones }:pruned(w:density(), { by = w })
    scores[layer.weight] = scores[layer.weight]:times(held):plus(held, least < 0 and -least or 0)
  end
  return scores
end

-- Scores by a function(weight, gradient, state) of the schedule, called for each batch; `states` by
-- layer.
local function by_function(net, list, schedule, samples, states, options)
  return settled(list, over_batches(net, list, samples, options, function(layer, g)
    states[layer.name] = states[layer.name] or {}
    local weight = net:weight(layer.weight)
    local score = schedule.criterion(weight, g, states[layer.name])
    local good, shape = pcall(function() return table.concat(score:shape(), ",") end)
    if not good or shape ~= table.concat(weight:shape(), ",") then
      error(("criterion: want a tensor of the weight's shape for %s, got %s"):format(layer.name,
            good and "one of " .. shape or tostring(score)), 0)
    end
    return score
  end), net)
end

---True: the schedule's criterion needs gradients. @param schedule table @return boolean
---@param schedule table
---@return boolean
function M.by_gradient(schedule) return (schedule.criterion or "magnitude") ~= "magnitude" end

-- A tensor of importance for each weight: its magnitude, divided by the layer's own scale if layers
-- are compared; or the estimated growth of the loss without it (Fisher information: squares of
-- weight and gradient).
---@param net cnnrun.Net
---@param list table[]
---@param schedule table
---@param samples cnnrun.Samples?
---@param states table<string, table>?
---@param batches table?
---@return table<string, cnnrun.Tensor>
function M.scores(net, list, schedule, samples, states, batches)
  local scores, by, options = {}, schedule.criterion or "magnitude", batches or schedule.saliency or {}
  if type(by) == "function" then return by_function(net, list, schedule, samples, states or {}, options) end
  local sums = by == "saliency" and squares(net, list, samples, options) or nil
  for _, layer in ipairs(list) do
    local w = net:weight(layer.weight)
    if sums then scores[layer.weight] = w:times(w):times(sums[layer.weight])
    else
      local total = 0
      for _, norm in ipairs(w:norms()) do total = total + norm * norm end
      local some = math.max(1, w:density() * layer.n)
      scores[layer.weight] = w:times(1 / math.max(1e-30, math.sqrt(total / some)))
    end
  end
  return scores
end

-- The share of each layer if the best `keep` of all of them together stay.
---@param list table[]
---@param scores table<string, cnnrun.Tensor>
---@param keep number
---@param least number
---@return table<string, number>
function M.global(list, scores, keep, least)
  local all, low, high = 0, -80.0, -80.0
  for _, layer in ipairs(list) do
    all = all + layer.n
    for _, norm in ipairs(scores[layer.weight]:norms()) do -- No element is larger.
      high = math.max(high, math.log(math.max(norm, 1e-30)))
    end
  end
  -- Share that each layer keeps under a common bound.
  local function shares(bound)
    local n, by = 0, {}
    for _, layer in ipairs(list) do
      by[layer.name] = math.max(least, scores[layer.weight]:density(math.exp(bound)))
      n = n + by[layer.name] * layer.n
    end
    return n / all, by
  end
  for _ = 1, 40 do
    local middle = (low + high) / 2
    if shares(middle) > keep then low = middle else high = middle end
  end
  local _, by = shares(high)
  return by
end

-- ---- pruning ----

-- A net with that share of the layer's original elements, blocks of rows or channels.
---@param net cnnrun.Net
---@param layer table
---@param keep number
---@param schedule table
---@param score cnnrun.Tensor?
---@return cnnrun.Net
function M.cut(net, layer, keep, schedule, score)
  local unit = schedule.unit or "element"
  if unit == "channel" then
    local now = net:weight(layer.weight):shape()[1]
    local count = math.max(1, math.floor(keep * layer.shape[1] + 0.5))
    if count >= now then return net:copy() end
    return channels.kept(net, layer.name, channels.largest((score or net:weight(layer.weight)):norms(), count))
  end
  local block = unit == "block" and 4 or 1
  local copy = net:copy()
  copy:set_weight(layer.weight, net:weight(layer.weight):pruned(keep, { by = score, block = block }))
  copy:mask(layer.weight, true)
  return copy
end

-- Wilson's 95% interval of a share of n pictures, as text.
function M.interval(share, n)
  local z = 1.959963984540054
  local middle, spread = share + z * z / (2 * n), z * math.sqrt((share * (1 - share) + z * z / (4 * n)) / n)
  return ("95%% interval %.1f%% to %.1f%%"):format(100 * math.max(0, middle - spread) / (1 + z * z / n),
                                                   100 * math.min(1 + z * z / n, middle + spread) / (1 + z * z / n))
end

return M
