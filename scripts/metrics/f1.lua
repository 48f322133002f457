-- F1, the mean over the classes: the harmonic mean of precision and recall of each. Classes that
-- are neither meant nor answered do not count.
local count = require "metrics.count"
return function(scores, labels)
  local sum, n = 0, 0
  for _, class in pairs(count(scores, labels)) do
    sum, n = sum + 2 * class.right / (class.meant + class.answered), n + 1
  end
  return sum / n
end
