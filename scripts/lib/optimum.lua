-- The least EDP of any plan of a net on a simulated board, for nets whose layers form a chain: each
-- layer on one unit, or divided among any of them in many ways. A state is dropped only if another
-- is at least as good in every time and in joules, so no optimum is lost; bounds drop what cannot
-- beat the best known plan. `polish` moves pieces of a plan, since more divisions exist than are
-- tried. It shares no code with place/best.lua, which it checks; lib/placement.lua runs the same
-- plans one by one.
local board = require "lib.board"
local nets = require "boards.nets"
local P = require "lib.placement"
local M = {}

-- For sets of two, three ... units: the share, relative to an even one, of each unit but the last.
local WEIGHTS = { nil, { .4, .55, .7, .8, .88, .94, 1, 1.06, 1.13, 1.25, 1.4, 1.8, 2.5 }, { .6, .8, 1, 1.25, 1.7 }, { .7, 1, 1.4 }, { .75, 1, 1.3 } }
local SLOPES = {} -- Slopes of energy against time, in bounds.
for i = -8, 8 do SLOPES[#SLOPES + 1] = 2 ^ (i / 2) end

-- ---- ways to run each layer ----

-- Seconds and joules of the part [from, to) of a layer on unit u; split: it is one of several.
local function part_of(b, layer, units, u, from, to, split)
  local seconds, joules = board.work(b, units[u], { op = layer.op, flops = layer.flops, products = layer.products,
                                                   bytes = layer.bytes, share = (to - from) / (layer.size or 1) }, split)
  return { u = u, from = from, to = to, seconds = seconds, joules = joules }
end

-- All ways to run a layer: on one unit, or divided in the shares that are tried.
local function ways_of(b, layer, units)
  local list, known, whole, split = {}, {}, layer.size or 1, {}
  for u in ipairs(units) do
    list[u] = { part_of(b, layer, units, u, 0, whole, false) }
    local one = part_of(b, layer, units, u, 0, whole, true)
    split[u] = one.seconds
  end
  -- Adds the way that divides the layer over that set of units by weights, unless it is known.
  local function add(set, weights)
    local shares, sum, at, parts, key = {}, 0, 0, {}, {}
    for i, u in ipairs(set) do
      shares[i] = (weights[i] or 1) / split[u]
      sum = sum + shares[i]
    end
    for i in ipairs(set) do shares[i] = shares[i] / sum end
    for i, size in ipairs(board.ranges(shares, whole)) do
      if size == 0 then return end
      parts[i] = part_of(b, layer, units, set[i], at, at + size, true)
      at = at + size
      key[i] = set[i] .. ":" .. at
    end
    key = table.concat(key, " ")
    if not known[key] then list[#list + 1] = parts end
    known[key] = true
  end
  -- Adds the ways with all weights of the units of the set, one unit after the other.
  local function weigh(set, weights)
    if #weights == #set - 1 then return add(set, weights) end
    for _, w in ipairs(WEIGHTS[#set] or { 1 }) do
      weights[#weights + 1] = w
      weigh(set, weights)
      weights[#weights] = nil
    end
  end
  for mask = 1, whole > 1 and (1 << #units) - 1 or 0 do
    local set = {}
    for u in ipairs(units) do
      if mask >> (u - 1) & 1 == 1 then set[#set + 1] = u end
    end
    if #set > 1 then weigh(set, {}) end
  end
  return list
end

-- ---- one step ----

-- Seconds that so many bytes take to or from a unit; nil: it shares the host's memory.
local function transfer(unit, bytes)
  if unit.host or not unit.transfer then return nil end
  local t = unit.transfer
  return (t.seconds or 0) + ((t.gbytes or 0) > 0 and bytes / (t.gbytes * 1e9) or 0)
end

-- pieces: where the value before lies, { u, from, to, at }; copies are added to them.
local function bring(p, layer, pieces, ready, u, from, to)
  local at, time, joules = from, 0, 0
  -- Copies a piece from unit `source` to `target`, adding it to `pieces` and its joules to
  -- `joules`; returns when it is there, in seconds.
  local function copy(source, target, piece)
    local one, other = transfer(p.units[source], 0), transfer(p.units[target], 0)
    local stop = piece.at
    if one or other then
      local mover = one and source or target
      local bytes = layer.out_bytes * (piece.to - piece.from) / (layer.size or 1)
      stop = math.max(stop, ready[mover]) + transfer(p.units[mover], bytes)
      ready[mover] = stop
      joules = joules + p.per_byte * bytes
    end
    pieces[#pieces + 1] = { u = target, from = piece.from, to = piece.to, at = stop }
    return stop
  end
  while at < to do
    local here, source
    for _, piece in ipairs(pieces) do
      if piece.from <= at and at < piece.to then
        if piece.u == u then here = here or piece end
        local better = source and piece.u ~= source.u and
                       (p.units[piece.u].host and not p.units[source.u].host or
                        (p.units[piece.u].host or false) == (p.units[source.u].host or false) and piece.u < source.u)
        if not source or better then source = piece end
      end
    end
    if here then
      time, at = math.max(time, here.at), here.to
    else
      local part = { from = at, to = math.min(source.to, to), at = source.at }
      local from_unit = source.u
      if not p.units[u].host and not p.units[from_unit].host then
        part.at = copy(from_unit, p.host, part)
        from_unit = p.host
      end
      time, at = math.max(time, copy(from_unit, u, part)), part.to
    end
  end
  return time, joules
end

-- Runs layer i of state so; returns the state after it.
local function step(p, state, i, way)
  local layer, before = p.net[i], p.net[i - 1]
  local ready, parts, joules, final = { table.unpack(state.ready) }, {}, state.joules, state.final
  if before then
    local pieces = { table.unpack(state.parts) }
    local ranges = layer.keeps and #way > 1 and before.size == layer.size
    for k, part in ipairs(way) do
      local time, e = bring(p, before, pieces, ready, part.u, ranges and part.from or 0, ranges and part.to or before.size or 1)
      parts[k], joules = { u = part.u, from = part.from, to = part.to, at = time }, joules + e
    end
  else
    for k, part in ipairs(way) do parts[k] = { u = part.u, from = part.from, to = part.to, at = 0 } end
  end
  for k, part in ipairs(way) do
    local stop = math.max(parts[k].at, ready[part.u]) + part.seconds
    ready[part.u], parts[k].at, joules = stop, stop, joules + part.joules
    if stop > final then final = stop end
  end
  if i == #p.net and #way > 1 then
    local time, e = bring(p, layer, { table.unpack(parts) }, ready, p.host, 0, layer.size)
    final, joules = math.max(final, time), joules + e
  end
  return { ready = ready, parts = parts, joules = joules, final = final, way = way, before = state }
end

-- ---- bounds: the rest takes at least so much in some mixture of time and energy ----
--
-- They depend on where the value before lies: on unit m, or in parts (MANY). Parts that end at
-- different times delay all of the next layer, except one that keeps to ranges and is divided as
-- well. Such a pair is bounded together, by the units' own times.

local MANY = 0

-- The cost of bringing the value of the previous layer from unit m to this way's parts: times by
-- part, and joules.
local function entry_of(p, k, m, way)
  local list, joules, before = {}, 0, p.net[k - 1]
  local ranges = before and p.ranges[k] and #way > 1
  for i, part in ipairs(way) do
    list[i] = 0
    if before and m ~= MANY and m ~= part.u then
      local bytes = before.out_bytes * (ranges and (part.to - part.from) / before.size or 1)
      for _, u in ipairs { m, part.u } do
        local seconds = transfer(p.units[u], bytes)
        if seconds then list[i], joules = list[i] + seconds, joules + p.per_byte * bytes end
      end
    end
  end
  return list, joules
end

-- Seconds from the arrival of the previous value to the end of all parts, and joules.
local function cost_of(p, k, m, way)
  local entry, joules = entry_of(p, k, m, way)
  local most = 0
  for i, part in ipairs(way) do most = math.max(most, entry[i] + part.seconds + (way.out and way.out[i] or 0)) end
  return most, joules + way.joules, math.min(table.unpack(entry)), joules
end

local N = #SLOPES
-- A line of N + 2 equal values.
local function line_of(value)
  local line = {}
  for i = 0, N + 1 do line[i] = value end
  return line
end

-- The smaller of the line's value and that of t, e with the rest.
local function lower(p, line, t, e, after)
  local x = t + after[0]
  if x < line[0] then line[0] = x end
  x = e + after[N + 1]
  if x < line[N + 1] then line[N + 1] = x end
  for i = 1, N do
    x = t + p.slopes[i] * e + after[i]
    if x < line[i] then line[i] = x end
  end
end

-- A divided layer and the next one, which keeps to ranges and is divided too: the minimum for each
-- way of the first.
local function pairs_of(p, k, after)
  local lines, next = {}, p.ways[k + 1]
  for w, way in ipairs(p.ways[k]) do
    if #way > 1 then
      local line, busy = line_of(math.huge), {}
      lines[w] = line
      for _, part in ipairs(way) do busy[part.u] = part.seconds end
      for _, other in ipairs(next) do
        if #other > 1 then
          local t = way.most
          for i, part in ipairs(other) do
            t = math.max(t, (busy[part.u] or 0) + part.seconds + (other.out and other.out[i] or 0))
          end
          lower(p, line, t, way.joules + other.joules, after)
        end
      end
    end
  end
  return lines
end

-- Corners { seconds, joules } of the region above a line, in order.
local function corners_of_line(p, line)
  local list = {}
  -- Adds a corner.
  local function add(t, e) list[#list + 1] = { math.max(t, line[0]), math.max(e, line[N + 1]) } end
  add(line[0], (line[1] - line[0]) / p.slopes[1])
  for i = 1, N - 1 do
    local e = (line[i + 1] - line[i]) / (p.slopes[i + 1] - p.slopes[i])
    add(line[i] - p.slopes[i] * e, e)
  end
  add(line[N] - p.slopes[N] * line[N + 1], line[N + 1])
  return list
end

-- Lower bounds on time and energy of the rest of the net, by layer and unit, as lines of corners:
-- `since` counts from when the whole input is there; `early`, for divided ways, from when
-- its first part is.
local function corners_of(p)
  local n, since, early = #p.net, {}, {}
  since[n + 1] = {}
  for m = MANY, #p.units do since[n + 1][m] = line_of(0) end
  -- The least line over several: each value is the least of them.
  local function least(lines)
    local line = line_of(math.huge)
    for m = MANY, #p.units do
      for i = 0, N + 1 do line[i] = math.min(line[i], lines[m][i]) end
    end
    return line
  end
  for k = n, 1, -1 do
    since[k] = {}
    local early_next = p.ranges[k + 1]
    local beyond = early_next and (p.ranges[k + 2] and least(since[k + 3]) or since[k + 2][MANY])
    local joint = early_next and pairs_of(p, k, beyond)
    for m = MANY, #p.units do
      local line = line_of(math.huge)
      since[k][m] = line
      for w, way in ipairs(p.ways[k]) do
        if #way == 1 or m ~= MANY or not p.ranges[k] then
          local t, e, entry, moved = cost_of(p, k, m, way)
          lower(p, line, t, e, since[k + 1][#way == 1 and way[1].u or MANY])
          if joint and joint[w] then lower(p, line, entry, moved, joint[w]) end
        end
      end
    end
    if p.ranges[k] then
      early[k] = line_of(math.huge)
      local after = early_next and least(since[k + 2]) or since[k + 1][MANY]
      for _, way in ipairs(p.ways[k]) do
        if #way > 1 then lower(p, early[k], way.most, way.joules, after) end
      end
    end
  end
  for k = 1, n + 1 do
    for m = MANY, #p.units do since[k][m] = corners_of_line(p, since[k][m]) end
    early[k] = early[k] and corners_of_line(p, early[k])
  end
  return since, early
end

-- ---- the search ----

-- True: a is as good as b in everything, with the same places of values.
local function beats(a, b)
  local x, y = a.vector, b.vector
  for i = 1, #x do
    if x[i] > y[i] * (1 + 1e-12) then return false end
  end
  return true
end

-- A net of so many layers, drawn by a seed, as a list of works.
function M.drawn_net(seed, layers)
  local list, side, maps = {}, 64, 3
  for i = 1, layers do
    local kind = (seed * 7 + i * 3) % 5
    local l
    if kind == 4 and side > 4 then
      l = nets.pool(maps, side)
      side = side // 2
      l.out_bytes, l.keeps = 4 * maps * side * side, true
    elseif i == layers then
      l = nets.dense(maps * side * side, 100)
      l.out_bytes = 400
    else
      local out = 16 << (kind % 4)
      l = nets.conv(maps, side, out, side, kind % 2 == 0 and 3 or 1, 1)
      maps = out
      l.out_bytes = 4 * maps * side * side
    end
    l.name, l.inputs = "l" .. i, { i - 1 }
    list[i] = l
  end
  return list
end

-- A lower bound on the EDP from times and joules so far and what is left.
local function least_of(p, corners, final, since, joules)
  local least = math.huge
  for _, corner in ipairs(corners) do
    local seconds = math.max(final, since + corner[1])
    local edp = seconds * (joules + corner[2] + p.idle * seconds)
    if edp < least then least = edp end
  end
  return least
end

-- What state can reach at best if layer i is run so, before it is.
local function promise_before(p, state, i, way)
  local m, late = state.m, #way > 1 and p.ranges[i] and state.m == MANY
  local t, e = p.cost[i][m][way][1], p.cost[i][m][way][2]
  local stop, joules = (late and state.first + way.most or state.last + t), state.joules + e
  local final = math.max(state.final, stop)
  if #way > 1 and p.early[i + 1] then
    local first = (late and state.first or state.last) + way.least
    return math.min(least_of(p, p.since[i + 1][MANY], final, stop, joules), least_of(p, p.early[i + 1], final, first, joules))
  end
  return least_of(p, p.since[i + 1][#way == 1 and way[1].u or MANY], final, stop, joules)
end

-- What state can reach at best after layer i.
local function promise_after(p, state, i)
  local least = least_of(p, p.since[i + 1][state.m], state.final, state.last, state.joules)
  if state.m == MANY and p.early[i + 1] then
    least = math.min(least, least_of(p, p.early[i + 1], state.final, state.first, state.joules))
  end
  return least
end

-- The board, net and units as the search wants them: ways, costs and bounds.
local function problem(b, net, units)
  local p = { net = net, units = {}, ways = {}, ranges = {}, cost = {}, slopes = {}, per_byte = 0, idle = board.idle_watts(b) }
  for i, name in ipairs(units) do
    p.units[i] = board.named(b.units, name)
    if p.units[i].host and not p.host then p.host = i end
  end
  for _, rail in ipairs(b.rails) do p.per_byte = p.per_byte + (rail.per_byte or 0) end
  local t, e = 0, 0
  for i, layer in ipairs(net) do
    p.ways[i] = ways_of(b, layer, p.units)
    p.ranges[i] = i > 1 and layer.keeps and net[i - 1].size == layer.size or false
    t, e = t + p.ways[i][1][1].seconds, e + p.ways[i][1][1].joules
    for _, way in ipairs(p.ways[i]) do
      way.most, way.least, way.joules = 0, math.huge, 0
      for _, part in ipairs(way) do
        way.most, way.least = math.max(way.most, part.seconds), math.min(way.least, part.seconds)
        way.joules = way.joules + part.joules
      end
      if i == #net and #way > 1 then -- The result goes to the program's memory.
        way.out = {}
        for k, part in ipairs(way) do
          local bytes = layer.out_bytes * (part.to - part.from) / layer.size
          local seconds = transfer(p.units[part.u], bytes)
          way.out[k] = seconds or 0
          if seconds then way.joules = way.joules + p.per_byte * bytes end
        end
      end
    end
  end
  for i, slope in ipairs(SLOPES) do p.slopes[i] = slope * t / (e + p.idle * t) end
  p.since, p.early = corners_of(p)
  for i in ipairs(net) do
    p.cost[i] = {}
    for m = MANY, #p.units do
      p.cost[i][m] = {}
      for _, way in ipairs(p.ways[i]) do p.cost[i][m][way] = { cost_of(p, i, m, way) } end
    end
  end
  return p
end

-- A key for the places of values; of all numbers that later layers depend on, less is better.
local function sort_of(p, state, i)
  local key, vector = {}, { state.joules, state.final }
  local start = p.ranges[i + 1] and state.first or state.last
  for k, part in ipairs(state.parts) do
    key[k] = part.u << 40 | part.to
    vector[#vector + 1] = part.at
  end
  for u, free in ipairs(state.ready) do vector[#vector + 1] = math.max(free, p.units[u].host and start or state.first) end
  return table.concat(key, " "), vector
end

-- Adds a state to the group unless another one is better; removes those that it beats. The group
-- changes in place.
local function join(group, state)
  for _, other in ipairs(group) do
    if beats(other, state) then return end
  end
  local n = 0
  for _, other in ipairs(group) do
    if not beats(state, other) then
      n = n + 1
      group[n] = other
    end
  end
  for k = #group, n + 1, -1 do group[k] = nil end
  group[n + 1] = state
end

-- units: names; bound: an EDP of a known plan; most: the number of states to look at (nil: all).
-- Returns the least EDP (the bound, if nothing is better; nil: there are more states), the plan for
-- lib/placement.lua or nil, and the number of states that were looked at.
function M.find(b, net, units, bound, most)
  local p, looked, best = problem(b, net, units), 0, nil
  local states = { { ready = {}, parts = {}, joules = 0, final = 0, first = 0, last = 0, m = MANY } }
  for u in ipairs(p.units) do states[1].ready[u] = 0 end
  for i in ipairs(net) do
    local groups, order = {}, {}
    for _, before in ipairs(states) do
      for _, way in ipairs(p.ways[i]) do
        if promise_before(p, before, i, way) < bound then
          looked = looked + 1
          if most and looked > most then return nil, nil, looked end
          local state = step(p, before, i, way)
          state.m, state.first, state.last = #way == 1 and way[1].u or MANY, math.huge, 0
          for _, part in ipairs(state.parts) do
            state.first, state.last = math.min(state.first, part.at), math.max(state.last, part.at)
          end
          if promise_after(p, state, i) < bound then
            if i == #net then
              local edp = state.final * (state.joules + p.idle * state.final)
              if edp < bound then bound, best = edp, state end
            else
              local key
              key, state.vector = sort_of(p, state, i)
              if not groups[key] then
                groups[key] = {}
                order[#order + 1] = groups[key]
              end
              join(groups[key], state)
            end
          end
        end
      end
    end
    states = {}
    for _, group in ipairs(order) do table.move(group, 1, #group, #states + 1, states) end
  end
  local plan = best and {}
  for i = best and #net or 0, 1, -1 do
    plan[i] = {}
    for k, part in ipairs(best.way) do plan[i][k] = { unit = units[part.u], from = part.from, to = part.to } end
    best = best.before
  end
  return bound, plan, looked
end

-- The plan's EDP after moving single or several pieces from one part to another as long as that
-- lowers it.
function M.polish(b, net, plan)
  -- Seconds times joules of the plan as it stands.
  local function edp()
    local seconds, joules = P.run(b, net, plan)
    return seconds * joules
  end
  -- Gives the parts, in place, these sizes one after the other.
  local function cut(parts, sizes)
    local at = 0
    for k, part in ipairs(parts) do
      part.from, part.to = at, at + sizes[k]
      at = part.to
    end
  end
  local least, better = edp(), true
  -- Moves `size` from part i to part j of the layer; stays so if that makes the plan's EDP less,
  -- which `least` then is.
  local function try(parts, i, j, size)
    local sizes, before = {}, {}
    for k, part in ipairs(parts) do before[k], sizes[k] = part.to - part.from, part.to - part.from end
    sizes[i], sizes[j] = sizes[i] - size, sizes[j] + size
    if i == j or size < 1 or sizes[i] < 1 then return end
    cut(parts, sizes)
    local now = edp()
    if now < least * (1 - 1e-9) then least, better = now, true
    else cut(parts, before) end
  end
  while better do
    better = false
    for k, parts in ipairs(plan) do
      for i = 1, #parts > 1 and #parts or 0 do
        for j in ipairs(parts) do
          for _, size in ipairs { 1, net[k].size // 64, net[k].size // 16 } do try(parts, i, j, size) end
        end
      end
    end
  end
  return least
end

return M
