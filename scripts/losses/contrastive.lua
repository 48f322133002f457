-- Contrastive loss (Hadsell et al. 2006) over all pairs of a batch: outputs of equal labels are
-- pulled together, those of other labels are kept MARGIN apart.
local c = require "cnnrun"

local MARGIN = 1.0

return function(scores, labels)
  local squares = c.reduce_sum { c.mul { scores, scores }, axes = { 1 }, keepdims = true }
  local products = c.matmul { scores, c.transpose { scores, perm = { 1, 0 } } }
  local distance2 = c.relu { c.sub { c.add { squares, c.transpose { squares, perm = { 1, 0 } } },
                                     c.mul { products, c.data { 2.0 } } } }
  local equal = c.cast { c.equal { c.unsqueeze { labels, axes = { 1 } }, c.unsqueeze { labels, axes = { 0 } } },
                         to = "f32" }
  local near = c.relu { c.sub { c.data { MARGIN }, c.sqrt { c.add { distance2, c.data { 1e-8 } } } } }
  local other = c.sub { c.data { 1.0 }, equal }
  local each = c.add { c.mul { equal, distance2 }, c.mul { other, c.mul { near, near } } }
  return c.reduce_mean { each, keepdims = false }
end
