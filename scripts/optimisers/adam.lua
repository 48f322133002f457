-- Adam (Kingma and Ba 2015), as in the operator adam: the decay is added to the gradient.
local adamw = require "optimisers.adamw"
local c = require "cnnrun"

return function(weight, gradient, state, how)
  local g = c.add { gradient, c.mul { weight, how.weight_decay } }
  return adamw(weight, g, state, setmetatable({ weight_decay = 0 }, { __index = how }))
end
