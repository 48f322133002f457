-- Binary cross-entropy: a sigmoid for each class, independent of the others. For logits z and
-- targets t it is softplus(z) - t z, which does not overflow.
local c = require "cnnrun"
local one_hot = require "losses.one_hot"

return function(_, labels, net)
  local z = net.logits
  local each = c.sub { c.softplus { z }, c.mul { z, one_hot(labels, net.classes) } }
  return c.reduce_mean { each, keepdims = false }
end
