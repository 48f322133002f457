-- Mean cross-entropy of scores that are shares, as those of a softmax; the least is best:
-- `best_by = "-cross_entropy"`.
return function(scores, labels)
  local classes, sum = scores:shape()[2], 0
  for i, label in ipairs(labels) do
    sum = sum - math.log(math.max(1e-12, scores[(i - 1) * classes + label + 1]))
  end
  return sum / #labels
end
