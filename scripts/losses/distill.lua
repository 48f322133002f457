-- Distillation (Hinton et al. 2015): the divergence from a teacher's answers at a temperature, with cross-entropy.
-- distill(teacher, layers, options) makes the loss. `layers` builds the teacher's logits of the pictures.
local c = require "cnnrun"
local one_hot = require "losses.one_hot"

-- Defaults: the softmax's temperature, and the teacher's share of the loss.
local usual = { temperature = 4, share = 0.9 }

-- Options with the usual ones; an error for an unknown one.
local function read(options)
  local how = { temperature = usual.temperature, share = usual.share }
  for key, value in pairs(options or {}) do
    if not usual[key] then error(("distill: %s: no such option; want temperature, share"):format(key), 0) end
    if type(value) ~= "number" then error(("distill: %s: want a number"):format(key), 0) end
    how[key] = value
  end
  if not (how.temperature > 0) then error("distill: temperature: want a number above 0", 0) end
  if not (how.share >= 0 and how.share <= 1) then error("distill: share: want a number from 0 to 1", 0) end
  return how
end

-- The table of a layer on x, with the teacher's weights as constants: NAME.weight and NAME.bias, or the weights
-- that a layer of an imported net reads, under whatever names.
local function giver(teacher)
  local has, reads = {}, {}
  for _, name in ipairs(teacher:weights()) do has[name] = true end
  for _, layer in ipairs(teacher:layers()) do reads[layer.name] = layer.weights end
  return function(x, name, attributes)
    local names = reads[name] or {}
    if has[name .. ".weight"] then names = { name .. ".weight", has[name .. ".bias"] and name .. ".bias" or nil } end
    if #names == 0 then error(("distill: %s: the teacher has no such layer with weights"):format(name), 0) end
    local layer = { x }
    for i, weight in ipairs(names) do layer[i + 1] = c.data { teacher:weight(weight) } end
    for key, value in pairs(attributes or {}) do layer[key] = value end
    return layer
  end
end

return function(teacher, layers, options)
  if type(layers) ~= "function" then
    error("distill: want a teacher and a function of its layers: loss = distill(teacher, layers)", 0)
  end
  local how, given = read(options), giver(teacher)
  -- The operator of logarithms of the softmax of logits at how.temperature.
  local function softened(logits) return c.log_softmax { c.mul { logits, c.data { 1 / how.temperature } }, axis = 1 } end
  return function(_, labels, net)
    local q, p = softened(layers(net.pictures, given)), softened(net.logits)
    local divergence = c.mul { c.exp { q }, c.sub { q, p } }
    local log_p = c.log_softmax { net.logits, axis = 1 }
    local right = c.mul { log_p, one_hot(labels, net.classes) }
    local each = c.sub { c.mul { divergence, c.data { how.share * how.temperature ^ 2 } },
                         c.mul { right, c.data { 1 - how.share } } }
    return c.mul { c.reduce_sum { each, keepdims = false }, c.data { 1 / net.batch } }
  end
end
