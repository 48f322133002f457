-- For metrics of answers: by class, how many pictures are of it, how many are taken for it, and how
-- many are both.
---@param scores cnnrun.Tensor [pictures, classes]
---@param labels integer[]
---@return table<integer, { meant: integer, answered: integer, right: integer }>
return function(scores, labels)
  local classes, by = scores:shape()[2], {}
  -- The counts of a class; made at its first use.
  local function of(class)
    by[class] = by[class] or { meant = 0, answered = 0, right = 0 }
    return by[class]
  end
  for i, label in ipairs(labels) do
    local best, answer = -math.huge, 0
    for class = 0, classes - 1 do
      local score = scores[(i - 1) * classes + class + 1]
      if score > best then best, answer = score, class end
    end
    of(label).meant, of(answer).answered = of(label).meant + 1, of(answer).answered + 1
    if label == answer then of(label).right = of(label).right + 1 end
  end
  return by
end
