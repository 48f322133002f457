-- Mean squared error between the scores and one-hot labels (the Brier score of probabilities).
local c = require "cnnrun"
local one_hot = require "losses.one_hot"

return function(scores, labels, net)
  local off = c.sub { scores, one_hot(labels, net.classes) }
  return c.reduce_mean { c.mul { off, off }, keepdims = false }
end
