-- Chooses for each layer the row with the fewest joules (the least time, if there is no meter), including
-- the copies of its inputs. Layers are not divided, and effects on later layers are not considered
-- (best.lua does both).

-- The time in ns to copy or convert the result of row `a` for row `b`: the measured one if the options
-- have it, else an estimate from the rows.
local function moving_ns(seen, a, b)
  local way = "@" .. a.device .. "@" .. b.device
  local fixed, byte = seen.options["copy_ns" .. way], seen.options["byte_ns" .. way]
  if a.device == b.device or not fixed or not byte then return seen.between(a, b) end
  return fixed + byte * seen.nodes[a.index].out_bytes
end

-- The policy: the placement of least energy, with a device a layer.
local function place(rows, seen)
  local from, answer = {}, {}
  local idle = 0
  for _, d in ipairs(seen.devices) do idle = math.max(idle, d.idle_watts or 0) end
  local best = {}
  for _, r in ipairs(rows) do
    local at = "@" .. r.device .. "@" .. r.node
    local joules = seen.options["joules" .. at] or r.joules
    local cost = joules or (seen.options["ns" .. at] or r.ns) * 1e-9
    for _, input in ipairs(seen.nodes[r.index].inputs) do
      if from[input] then cost = cost + moving_ns(seen, from[input], r) * 1e-9 * (joules and idle or 1) end
    end
    if not seen.nodes[r.index].with and (not best[r.index] or cost < best[r.index].cost) then
      best[r.index] = { cost = cost, row = r }
      from[r.index] = r -- Rows are in the order of the nodes.
      answer[seen.nodes[r.index].name] = r
    end
  end
  return answer
end

return { place = place, objective = "energy" }
