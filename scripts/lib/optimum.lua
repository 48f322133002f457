-- The least EDP that any plan of a net has on a simulated board, for nets whose layers follow each other: each
-- layer on one unit, or cut among two or three in many ways. States are kept unless another is at least as good
-- in every time and in joules, so that nothing is lost; bounds drop what cannot beat the best known.
-- Shares no code with place/best.lua, whose judge it is; lib/placement.lua runs the same plans one by one.
local board = require "lib.board"
local nets = require "boards.nets"
local M = {}

local PAIR = { .4, .55, .7, .8, .88, .94, 1, 1.06, 1.13, 1.25, 1.4, 1.8, 2.5 } -- the first one's share over the even one
local TRIPLE = { .6, .8, 1, 1.25, 1.7 }
local SLOPES = {}
for i = -8, 8 do SLOPES[#SLOPES + 1] = 2 ^ (i / 2) end

-- ---- the ways of each layer ----

local function part_of(b, layer, units, u, from, to, split)
  local seconds, joules = board.work(b, units[u], { op = layer.op, flops = layer.flops, bytes = layer.bytes,
                                                   share = (to - from) / (layer.size or 1) }, split)
  return { u = u, from = from, to = to, seconds = seconds, joules = joules }
end

local function ways_of(b, layer, units)
  local list, known, whole, split = {}, {}, layer.size or 1, {}
  for u in ipairs(units) do
    list[u] = { part_of(b, layer, units, u, 0, whole, false) }
    local one = part_of(b, layer, units, u, 0, whole, true)
    split[u] = one.seconds
  end
  local function add(set, weights)
    local shares, sum, at, parts, key = {}, 0, 0, {}, {}
    for i, u in ipairs(set) do
      shares[i] = weights[i] / split[u]
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
  if whole > 1 then
    for i = 1, #units do
      for k = i + 1, #units do
        for _, w in ipairs(PAIR) do add({ i, k }, { w, 1 }) end
        for m = k + 1, #units do
          for _, w in ipairs(TRIPLE) do
            for _, x in ipairs(TRIPLE) do add({ i, k, m }, { w, x, 1 }) end
          end
        end
      end
    end
  end
  return list
end

-- ---- one step ----

local function transfer(unit, bytes)
  if unit.host or not unit.transfer then return nil end
  local t = unit.transfer
  return (t.seconds or 0) + ((t.gbytes or 0) > 0 and bytes / (t.gbytes * 1e9) or 0)
end

-- pieces: where the value before lies, { u, from, to, at }; copies are added to them.
local function bring(p, layer, pieces, ready, u, from, to)
  local at, time, joules = from, 0, 0
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

-- ---- bounds: what is left takes at least so much in some mixture of time and energy ----

local function corners_of(p)
  local lines, n = { [#p.net + 1] = {} }, #SLOPES
  for i = 0, n + 1 do lines[#p.net + 1][i] = 0 end
  for k = #p.net, 1, -1 do
    local line, layer = {}, p.net[k]
    for i = 0, n + 1 do line[i] = math.huge end
    local function add(t, e)
      line[0], line[n + 1] = math.min(line[0], t), math.min(line[n + 1], e)
      for i = 1, n do line[i] = math.min(line[i], t + SLOPES[i] * p.scale * e) end
    end
    local one = {}
    for u in ipairs(p.units) do
      local way = p.ways[k][u][1]
      one[u] = { t = way.seconds - (p.units[u].launch or 0), e = way.joules }
      add(way.seconds, way.joules)
    end
    local function together(...)
      local speed, e = 0, 0
      for _, u in ipairs { ... } do speed, e = speed + 1 / math.max(one[u].t, 1e-12), e + one[u].e / math.max(one[u].t, 1e-12) end
      local launched = 0 -- watts are those of the time beyond the launch
      for _, u in ipairs { ... } do launched = launched + p.ways[k][u][1].joules * (p.units[u].launch or 0) / p.ways[k][u][1].seconds / math.max(one[u].t, 1e-12) end
      add(1 / speed, math.max(0, e - launched) / speed)
    end
    if layer.size and layer.size > 1 then
      for a = 1, #p.units do
        for c = a + 1, #p.units do
          together(a, c)
          for d = c + 1, #p.units do together(a, c, d) end
        end
      end
    end
    for i = 0, n + 1 do line[i] = line[i] + lines[k + 1][i] end
    lines[k] = line
  end
  local corners = {}
  for k = 1, #p.net + 1 do
    local line, list = lines[k], {}
    local function add(t, e) list[#list + 1] = { math.max(t, line[0]), math.max(e, line[n + 1]) } end
    add(line[0], (line[1] - line[0]) / (SLOPES[1] * p.scale))
    for i = 1, n - 1 do
      local e = (line[i + 1] - line[i]) / ((SLOPES[i + 1] - SLOPES[i]) * p.scale)
      add(line[i] - SLOPES[i] * p.scale * e, e)
    end
    add(line[n] - SLOPES[n] * p.scale * line[n + 1], line[n + 1])
    corners[k] = list
  end
  return corners
end

-- ---- the programme ----

-- Whether a is as good as b in everything; both lie alike.
local function beats(a, b)
  local x, y = a.vector, b.vector
  for i = 1, #x do
    if x[i] > y[i] * (1 + 1e-12) then return false end
  end
  return true
end

-- A net of so many layers, drawn by a seed.
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

-- units: names; bound: an EDP that a plan is known to have. Returns the least (the bound, if nothing is
-- better), the plan as lib/placement.lua runs it or nil, and how many states were looked at.
function M.find(b, net, units, bound)
  local p = { net = net, units = {}, ways = {}, per_byte = 0, idle = board.idle_watts(b) }
  for i, name in ipairs(units) do
    p.units[i] = board.named(b.units, name)
    if p.units[i].host and not p.host then p.host = i end
  end
  for _, rail in ipairs(b.rails) do p.per_byte = p.per_byte + (rail.per_byte or 0) end
  for i, layer in ipairs(net) do p.ways[i] = ways_of(b, layer, p.units) end
  local t, e = 0, 0
  for i in ipairs(net) do t, e = t + p.ways[i][1][1].seconds, e + p.ways[i][1][1].joules end
  p.scale = t / (e + p.idle * t)
  local corners, looked = corners_of(p), 0
  local begin = { ready = {}, parts = {}, joules = 0, final = 0, since = 0 }
  for i in ipairs(p.units) do begin.ready[i] = 0 end
  local function promise(k, final, since, joules) -- the least EDP that can come of it
    local least = math.huge
    for _, corner in ipairs(corners[k]) do
      local seconds = math.max(final, since + corner[1])
      least = math.min(least, seconds * (joules + corner[2] + p.idle * seconds))
    end
    return least
  end
  for _, list in ipairs(p.ways) do
    for _, way in ipairs(list) do
      way.seconds, way.joules = math.huge, 0
      for _, part in ipairs(way) do way.seconds, way.joules = math.min(way.seconds, part.seconds), way.joules + part.joules end
    end
  end
  local states, best = { begin }, nil
  for i in ipairs(net) do
    local groups, order = {}, {}
    for _, before in ipairs(states) do
      for _, way in ipairs(p.ways[i]) do
        local state
        if promise(i + 1, before.final, before.since + way.seconds, before.joules + way.joules) < bound then
          looked = looked + 1
          state = step(p, before, i, way)
          state.since = math.huge
          for _, part in ipairs(state.parts) do state.since = math.min(state.since, part.at) end
        end
        if state and promise(i + 1, state.final, state.since, state.joules) < bound then
          if i == #net then
            local edp = state.final * (state.joules + p.idle * state.final)
            if edp < bound then bound, best = edp, state end
          else
            local key, vector = {}, { state.joules, state.final }
            for k, part in ipairs(state.parts) do
              key[k] = part.u << 40 | part.to
              vector[#vector + 1] = part.at
            end
            for u, free in ipairs(state.ready) do vector[#vector + 1] = math.max(free, state.since) end
            key, state.vector = table.concat(key, " "), vector
            local group, beaten, n = groups[key], false, 0
            if not group then
              group = {}
              groups[key], order[#order + 1] = group, group
            end
            for _, other in ipairs(group) do
              beaten = beaten or beats(other, state)
              if beaten then break end
            end
            if not beaten then
              for _, other in ipairs(group) do
                if not beats(state, other) then
                  n = n + 1
                  group[n] = other
                end
              end
              for k = #group, n + 1, -1 do group[k] = nil end
              group[n + 1] = state
            end
          end
        end
      end
    end
    states = {}
    for _, group in ipairs(order) do
      for _, state in ipairs(group) do states[#states + 1] = state end
    end
  end
  local plan = best and {}
  for i = best and #net or 0, 1, -1 do
    plan[i] = {}
    for k, part in ipairs(best.way) do plan[i][k] = { unit = units[part.u], from = part.from, to = part.to } end
    best = best.before
  end
  return bound, plan, looked
end

return M
