-- RMSprop (Hinton 2012), as in PyTorch: beta2 is its alpha; with momentum, steps are accumulated.
local c = require "cnnrun"

return function(weight, gradient, state, how)
  local alpha = how.beta2 or 0.99
  local g = c.add { gradient, c.mul { weight, how.weight_decay } }
  local square = c.add { c.mul { state.square, alpha }, c.mul { c.mul { g, g }, 1 - alpha } }
  local along, new = c.div { g, c.add { c.sqrt { square }, how.epsilon or 1e-8 } }, { square = square }
  if how.momentum then
    along = c.add { c.mul { state.velocity, how.momentum }, along }
    new.velocity = along
  end
  return c.sub { weight, c.mul { along, how.rate } }, new
end
