-- Binary cross-entropy: each class is a question of its own, answered by a sigmoid of its logit.
-- By logits z and targets t it is softplus(z) - t z, which overflows nowhere.
local c = require "cnnrun"
local one_hot = require "losses.one_hot"

return function(_, labels, net)
  local z = net.logits
  local each = c.sub { c.softplus { z }, c.mul { z, one_hot(labels, net.classes) } }
  return c.reduce_mean { each, keepdims = false }
end
