-- AdamW (Loshchilov and Hutter 2019): the decay is applied to the weight, not to the means.
local c = require "cnnrun"
local filled = require "optimisers.filled"

return function(weight, gradient, state, how)
  local b1, b2 = how.beta1 or 0.9, how.beta2 or 0.999
  local mean = c.add { c.mul { state.mean, b1 }, c.mul { gradient, 1 - b1 } }
  local square = c.add { c.mul { state.square, b2 }, c.mul { c.mul { gradient, gradient }, 1 - b2 } }
  local root = c.add { c.sqrt { c.div { square, filled(b2, how.step) } }, how.epsilon or 1e-8 }
  local less = c.sub { 1.0, c.mul { how.rate, how.weight_decay } }
  local along = c.mul { c.div { mean, root }, c.div { how.rate, filled(b1, how.step) } }
  return c.sub { c.mul { weight, less }, along }, { mean = mean, square = square }
end
