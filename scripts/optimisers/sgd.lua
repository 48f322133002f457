-- Gradient descent with momentum (Nesterov's, if asked), as in the operator sgd.
local c = require "cnnrun"

return function(weight, gradient, state, how)
  local momentum = how.momentum or 0.9
  local g = c.add { gradient, c.mul { weight, how.weight_decay } }
  local velocity = c.add { c.mul { state.velocity, momentum }, g }
  local along = how.nesterov and c.add { g, c.mul { velocity, momentum } } or velocity
  return c.sub { weight, c.mul { along, how.rate } }, { velocity = velocity }
end
