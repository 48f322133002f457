-- Algorithm 4.1 of Hu Wang's thesis: chooses a set of devices. It drops the device with the largest EDP
-- until the EDP of the others together, relative to the fastest device alone, is below a threshold. Each
-- layer is then divided by the devices' relative speeds (algorithm 4.2).
-- Options: threshold (default 1) of the relative EDP.

-- The policy: all layers on the set of devices of the least energy-delay product.
local function place(_, seen)
  local threshold = seen.options.threshold or 1
  local set, steps, measured = {}, {}, true
  for _, d in ipairs(seen.devices) do
    measured = measured and d.joules ~= nil
    set[#set + 1] = { name = d.name, t = d.seconds, e = d.joules }
  end
  local fastest = set[1]
  for _, d in ipairs(set) do
    d.e = measured and d.e or d.t -- Without a meter, each device is taken to draw 1 W.
    d.p, d.edp = d.e / d.t, d.e * d.t
    if d.t < fastest.t then fastest = d end
  end
  steps[1] = measured and "t, e, p, EDP of each device alone" or "no joules: one watt each is taken"
  for _, d in ipairs(set) do
    steps[#steps + 1] = { device = d.name, seconds = d.t, joules = d.e, watts = d.p, edp = d.edp }
  end
  local share
  while true do
    local perf, power = 0, 0
    for _, d in ipairs(set) do
      d.perf = fastest.t / d.t
      perf, power = perf + d.perf, power + d.p / fastest.p
    end
    local relative = power / (perf * perf)
    local step = { devices = #set, relative_edp = relative }
    steps[#steps + 1] = step
    if relative < threshold or #set == 1 then
      share = function(d) return d.perf / perf end
      break
    end
    local worst = 1
    for i, d in ipairs(set) do
      if d.edp > set[worst].edp then worst = i end
    end
    step.dropped = set[worst].name
    table.remove(set, worst)
  end
  local parts, answer = {}, {}
  for _, d in ipairs(set) do
    parts[d.name] = share(d)
    steps[#steps + 1] = { device = d.name, share = share(d) }
  end
  for i, node in ipairs(seen.nodes) do
    if not node.with then answer[node.name] = #set > 1 and node.splits and parts or set[1].name end
  end
  return answer, steps
end

return { place = place }
