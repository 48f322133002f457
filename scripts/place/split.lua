-- Algorithm 4.2 of Hu Wang's thesis: every layer is divided among the devices (--devices) by their
-- relative speeds on the whole net.
-- Options: per_layer (1: by the speeds on each layer instead, which the thesis names as future work).

-- Shares by name in inverse proportion to the times, with sum 1.
local function shares_of(times)
  local sum, parts = 0, {}
  for _, t in pairs(times) do sum = sum + 1 / t end
  for name, t in pairs(times) do parts[name] = 1 / t / sum end
  return parts
end

-- The policy: each layer whole or divided, whichever is faster.
local function place(rows, seen)
  local whole, layers, measured, answer, steps = {}, {}, {}, {}, {}
  for _, d in ipairs(seen.devices) do whole[d.name] = d.seconds end
  for _, r in ipairs(rows) do
    local of = layers[r.index] or {}
    layers[r.index] = of
    -- A time that was measured just now beats guesses of other kernels.
    local key, known = r.index .. "@" .. r.device, r.ns_from == "measured"
    if known or not measured[key] then
      of[r.device] = known and r.ns or math.min(of[r.device] or math.huge, r.ns)
    end
    measured[key] = measured[key] or known
  end
  local parts = shares_of(whole)
  for _, d in ipairs(seen.devices) do
    steps[#steps + 1] = { device = d.name, seconds = whole[d.name], share = parts[d.name] }
  end
  for i, node in ipairs(seen.nodes) do
    if not node.with and node.splits and #seen.devices > 1 then
      answer[node.name] = seen.options.per_layer == 1 and layers[i] and shares_of(layers[i]) or parts
    end
  end
  return answer, steps
end

return { place = place }
