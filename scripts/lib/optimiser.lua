-- Adds the parts around a user's optimiser while the training graph is built: sums of gradients
-- over several steps, clipping, rates by layer, the average of weights.
-- scripts/optimisers/README.md describes such an optimiser. The program calls this and gets the
-- list of all values that each step keeps.
local c = require "cnnrun"

-- True: the name fits the pattern, in which * is any text.
local function matches(pattern, name)
  local lua = pattern:gsub("[%^%$%(%)%%%.%[%]%+%-%?]", "%%%0"):gsub("%*", ".*")
  return name:match("^" .. lua .. "$") ~= nil
end

-- "conv*=0.1,ip1=2": the factor of the first pattern that matches. Each pattern must match some
-- weight.
local function layer_rates(text, weights)
  local list = {}
  if text == "" then error("layer-rates: want PATTERN=FACTOR, as in conv*=0.1, got none", 0) end
  for word in text:gmatch "[^,]+" do
    local pattern, factor = word:match "^(.-)=(.*)$"
    factor = tonumber(factor)
    if not factor or factor < 0 or factor ~= factor then
      error(("layer-rates: want PATTERN=FACTOR, as in conv*=0.1, got %q"):format(word), 0)
    end
    local found = false
    for _, w in ipairs(weights) do found = found or matches(pattern, w.name) end
    if not found then error(("layer-rates: no trained weight matches %q"):format(pattern), 0) end
    list[#list + 1] = { pattern, factor }
  end
  return function(name)
    for _, row in ipairs(list) do
      if matches(row[1], name) then return row[2] end
    end
    return 1
  end
end

-- The number of the update, from 1 on, and a function that lets a value change only in the last of
-- each `n` steps. Gradients become the mean over the n steps.
local function accumulated(weights, how, n, keep)
  local before = c.floor { c.div { c.sub { how.step, 1.0 }, n * 1.0 } }
  local within = c.sub { how.step, c.mul { before, n * 1.0 } }
  local first = c.greater_or_equal { c.data { 1.5 }, within }
  local last = c.greater_or_equal { within, c.data { n - 0.5 } }
  for i, w in ipairs(weights) do
    local sum = how.memory(i, "sum")
    local part = c.mul { w.gradient, 1 / n }
    w.gradient = c.where { first, part, c.add { sum, part } }
    keep(sum, w.gradient)
  end
  return c.add { before, 1.0 }, function(value, old) return c.where { last, value, old } end
end

-- Clips by the norm of all gradients together, as one vector.
local function clip(weights, most)
  local squares = {}
  for i, w in ipairs(weights) do
    squares[i] = c.reduce_sum { c.mul { w.gradient, w.gradient }, keepdims = false }
  end
  local norm = c.sqrt { #squares > 1 and c.sum(squares) or squares[1] }
  local factor = c.min { c.data { 1.0 }, c.div { most, c.add { norm, 1e-6 } } }
  for _, w in ipairs(weights) do w.gradient = c.mul { w.gradient, factor } end
end

-- State by name, created when the optimiser first reads it.
local function memories(i, how)
  return setmetatable({}, { __index = function(t, name)
    local value = how.memory(i, tostring(name))
    rawset(t, name, value)
    return value
  end })
end

-- The arguments of the optimiser; `read` records which ones it uses.
local function told(settings, read)
  return setmetatable({}, { __index = function(_, key)
    read[key] = true
    return settings[key]
  end })
end

-- The keys of t, sorted.
local function sorted(t)
  local names = {}
  for name in pairs(t) do names[#names + 1] = name end
  table.sort(names)
  return names
end

return function(weights, how)
  local list, read, step, gated, givens = {}, {}, how.step, function(value) return value end, {}
  -- All old values are copied before any new one is written, since one state may take the old value
  -- of another.
  local always = c.greater_or_equal { how.step, c.data { 0.5 } }
  -- The value where it was given for this weight, else the usual one.
  local function own(value) return givens[value] and c.where { always, value, value } or value end
  -- Adds an assignment of the value to the target.
  local function keep(target, value) list[#list + 1] = c.assign { target, value } end
  local factor = how.layer_rates and layer_rates(how.layer_rates, weights)
  if how.accumulate then step, gated = accumulated(weights, how, how.accumulate, keep) end
  if how.clip_norm then clip(weights, how.clip_norm) end
  for i, w in ipairs(weights) do
    local settings = { name = w.name, step = step, rate = how.rate, momentum = how.momentum, nesterov = how.nesterov,
                       beta1 = how.beta1, beta2 = how.beta2, epsilon = how.epsilon,
                       weight_decay = w.decays and how.weight_decay or 0 }
    if factor and factor(w.name) ~= 1 then settings.rate = c.mul { how.rate, factor(w.name) } end
    local state = memories(i, how)
    local value, new = how.optimizer(w.weight, w.gradient, state, told(settings, read))
    if type(value) ~= "userdata" then
      error(("%s: the function returned %s, want the new weight"):format(how.written_at,
            value == nil and "nothing" or "a " .. type(value)), 0)
    end
    if w.masked then value = c.where { c.equal { w.weight, c.data { 0.0 } }, w.weight, value } end
    givens[w.weight] = true
    new = new or {}
    for _, name in ipairs(sorted(state)) do
      if new[name] == nil then
        error(("%s: state.%s is read, but the function returns no new value of it"):format(how.written_at, name), 0)
      end
      givens[state[name]] = true
    end
    for _, name in ipairs(sorted(new)) do keep(state[name], gated(own(new[name]), state[name])) end
    if how.average then
      local mean = how.memory(i, "average")
      keep(mean, gated(c.add { c.mul { mean, how.average }, c.mul { value, 1 - how.average } }, mean))
    end
    keep(w.weight, gated(own(value), w.weight))
  end
  for _, name in ipairs { "momentum", "nesterov", "beta1", "beta2", "epsilon" } do
    if how[name] and how[name] ~= 0 and not read[name] then error("has no " .. name, 0) end
  end
  return list
end
