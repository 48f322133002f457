-- Algorithm 4.1 of Hu Wang's thesis: devices whose joules are not worth their speed are dropped, the one
-- with the largest EDP first, until what is left is better than the fastest alone. Every layer is then
-- divided by the relative speeds (algorithm 4.2).
-- Options: threshold (1), above which the set's relative EDP is not good enough.

-- What the net takes on each device alone: { name, t (seconds), e (joules; nil: no meter) }. Options
-- seconds@DEVICE and joules@DEVICE tell what was measured of the whole; else the rows are added up.
local function alone(rows, seen)
  local best, idle = {}, 0
  for _, d in ipairs(seen.devices) do idle = math.max(idle, d.idle_watts or 0) end
  for _, r in ipairs(rows) do
    local of = best[r.index] or {}
    best[r.index] = of
    if not of[r.device] or r.ns < of[r.device].ns then of[r.device] = r end
  end
  local users = {}
  for i, node in ipairs(seen.nodes) do
    for _, from in ipairs(node.inputs) do users[from] = users[from] or i end
  end
  local list = {}
  for _, d in ipairs(seen.devices) do
    local t, e, from, taken = 0, 0, {}, {}
    for i, node in ipairs(seen.nodes) do
      local of = best[i] or {}
      local row = of[d.name]
      for _, other in ipairs(seen.devices) do row = row or of[other.name] end
      if row and not taken[i] then
        local at = i
        for _ = 2, row.takes do
          at = users[at]
          if not at then break end
          taken[at] = true
        end
        local moved = 0
        for _, input in ipairs(node.inputs) do
          if from[input] then moved = moved + seen.between(from[input], row) end
        end
        t = t + (row.ns + moved) * 1e-9
        e = e and row.joules and e + row.joules + moved * 1e-9 * idle
        from[i], from[at or i] = row, row
      end
    end
    local seconds, joules = seen.options["seconds@" .. d.name], seen.options["joules@" .. d.name]
    if seconds then t, e = seconds, joules end
    list[#list + 1] = { name = d.name, t = t, e = e or d.busy_watts and d.busy_watts * t }
  end
  return list
end

-- Nodes that the default plan computes by themselves: others go along with them.
local function heads_of(rows)
  local heads
  for _, r in ipairs(rows) do
    if r.chosen then
      heads = heads or {}
      heads[r.index] = true
    end
  end
  return function(i) return not heads or heads[i] end
end

local function place(rows, seen)
  local threshold = seen.options.threshold or 1
  local set, steps, measured = {}, {}, true
  for _, d in ipairs(alone(rows, seen)) do
    measured = measured and d.e ~= nil
    set[#set + 1] = d
  end
  local fastest = set[1]
  for _, d in ipairs(set) do
    d.e = measured and d.e or d.t -- without a meter all draw alike
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
  local is_head = heads_of(rows)
  for i, node in ipairs(seen.nodes) do
    if is_head(i) then answer[node.name] = #set > 1 and node.splits and parts or set[1].name end
  end
  return answer, steps
end

return { place = place }
