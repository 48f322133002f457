-- The baseline of Hu Wang's thesis: each layer that can be divided runs on all devices. Shares follow
-- the devices' speeds on the whole net; the costs of division are ignored.

-- The policy: every layer divided by the devices' speeds.
local function place(_, seen)
  local sum, parts, answer, steps = 0, {}, {}, {}
  for _, d in ipairs(seen.devices) do sum = sum + 1 / d.seconds end
  for _, d in ipairs(seen.devices) do
    parts[d.name] = 1 / d.seconds / sum
    steps[#steps + 1] = { device = d.name, seconds = d.seconds, share = parts[d.name] }
  end
  for i, node in ipairs(seen.nodes) do
    if not node.with and node.splits and #seen.devices > 1 then answer[node.name] = parts end
  end
  return answer, steps
end

return { place = place }
