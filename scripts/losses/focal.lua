-- Focal loss (Lin et al. 2017): cross-entropy times (1 - p)^GAMMA, so that samples that are already
-- recognised have a low weight.
local c = require "cnnrun"
local one_hot = require "losses.one_hot"

local GAMMA = 2.0

return function(_, labels, net)
  local log_p = c.log_softmax { net.logits, axis = 1 }
  local missing = c.pow { c.sub { c.data { 1.0 }, c.exp { log_p } }, c.data { GAMMA } }
  local each = c.mul { c.mul { missing, log_p }, one_hot(labels, net.classes) }
  return c.mul { c.reduce_sum { each, keepdims = false }, c.data { -1.0 / net.batch } }
end
