-- Cross-entropy with smoothed labels (Szegedy et al. 2016): SHARE of each label is spread evenly
-- over all classes.
local c = require "cnnrun"
local one_hot = require "losses.one_hot"

local SHARE = 0.1

return function(_, labels, net)
  local want = c.add { c.mul { one_hot(labels, net.classes), c.data { 1 - SHARE } },
                       c.data { SHARE / net.classes } }
  local each = c.mul { c.log_softmax { net.logits, axis = 1 }, want }
  return c.mul { c.reduce_sum { each, keepdims = false }, c.data { -1.0 / net.batch } }
end
