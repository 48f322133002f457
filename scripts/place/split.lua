-- Algorithm 4.2 of Hu Wang's thesis: every layer is divided among the devices (--devices) by their
-- relative speeds on the whole net.
-- Options: per_layer (1: by their speeds on each layer, which the thesis left for later).

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

local function shares_of(times)
  local sum, parts = 0, {}
  for _, t in pairs(times) do sum = sum + 1 / t end
  for name, t in pairs(times) do parts[name] = 1 / t / sum end
  return parts
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
  local whole, layers, answer, steps = {}, {}, {}, {}
  for _, d in ipairs(alone(rows, seen)) do whole[d.name] = d.t end
  for _, r in ipairs(rows) do
    local of = layers[r.index] or {}
    layers[r.index] = of
    of[r.device] = math.min(of[r.device] or math.huge, r.ns)
  end
  local parts = shares_of(whole)
  for _, d in ipairs(seen.devices) do
    steps[#steps + 1] = { device = d.name, seconds = whole[d.name], share = parts[d.name] }
  end
  local is_head = heads_of(rows)
  for i, node in ipairs(seen.nodes) do
    if is_head(i) and node.splits and #seen.devices > 1 then
      answer[node.name] = seen.options.per_layer == 1 and layers[i] and shares_of(layers[i]) or parts
    end
  end
  return answer, steps
end

return { place = place }
