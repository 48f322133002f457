-- CNNdroid's placement: convolution and dense layers run on the GPU, others on the processor's
-- threads. The processor is the first device that shares the program's memory, the GPU the first
-- that does not.

-- The policy: CNNdroid's rule of which layers go to the GPU.
local function place(_, seen)
  local host, away
  for _, d in ipairs(seen.devices) do
    if d.host then host = host or d.name else away = away or d.name end
  end
  if not (host and away) then return nil, "needs a device with the program's memory and one without" end
  local answer = {}
  for i, node in ipairs(seen.nodes) do
    local heavy = node.operator:find "^conv" or node.operator:find "^dense"
    if not node.with then answer[node.name] = heavy and away or host end
  end
  return answer, { processor = host, gpu = away }
end

return { place = place }
