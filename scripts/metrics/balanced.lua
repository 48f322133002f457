-- Balanced accuracy: the mean over the classes of the part of their pictures that is found.
local count = require "metrics.count"
return function(scores, labels)
  local sum, n = 0, 0
  for _, class in pairs(count(scores, labels)) do
    if class.meant > 0 then sum, n = sum + class.right / class.meant, n + 1 end
  end
  return sum / n
end
