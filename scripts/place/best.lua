-- Finds one device or one division for each layer, for the least EDP, energy or time of the whole net.
-- It counts the copies of values and the power of waiting devices. The search goes through the net
-- layer by layer and simulates each choice on queues, one for each device: a part begins when its
-- device is free and its inputs have arrived. A state is the set of places of the values that are still
-- needed. For each state it keeps the choices that no other beats in both time and energy, and drops
-- those that can't become better than the best known plan. The times on one device alone are known, so
-- the expected result is never worse than the best of these.
--
-- Options: objective ("edp", "energy", "time"; default edp), limit_ms (maximum time, if any plan keeps
-- it), launch_ns (the part of a layer's time that no share makes smaller), split_ns and split_joules
-- (what a part of a divided layer costs beside its share; each also as "NAME@DEVICE"), watts@DEVICE
-- (power of the machine while DEVICE works, for rows without joules), ns@DEVICE@NODE and
-- joules@DEVICE@NODE (override the row), copy_ns@A@B and byte_ns@A@B (override the link),
-- byte_joules@A@B, wait_ns (added to each copy), seconds@DEVICE (time of the whole net there),
-- idle_watts, least_share (least part of a divided layer; default 0.02).

local WORK = 6e4 -- Layers simulated in a search: nets with more ways keep fewer states.
local TRIES = 1.5e4 -- Layers simulated while changing a plan.
local SLOPES = { 1 / 16, 1 / 8, 1 / 4, 1 / 2, .7, 1, 1.4, 2, 4, 8, 16 } -- Slopes of time against energy, in bounds.

-- Operators whose parts need only their own range of the input, if both are divided along channels.
local pointwise = { "relu", "sigmoid", "tanh", "clip", "elu", "swish", "add", "mul", "pool", "depthwise",
                    "batch_norm", "scale", "dropout", "softplus", "identity" }
-- True: an output range of the operator needs only that range of its inputs.
local function keeps_to_range(operator)
  if operator:find "global" then return true end
  for _, word in ipairs(pointwise) do
    if operator:find(word, 1, true) then return true end
  end
  return false
end

-- ---- layers: a node with its fused operators, and their cost on each device ----

-- How well sources of times are trusted: measured just now, recorded earlier; others are estimates.
local trust = { measured = 2, recorded = 1 }

-- Whether row a is better than row b of the same node and device: a measured time beats any guess.
local function before(a, b)
  local of_a, of_b = trust[a.ns_from] or 0, trust[b.ns_from] or 0
  if of_a ~= of_b then return of_a > of_b end
  return a.ns < b.ns
end

-- The best row of each node on each device: { row, takes, split, ns, joules }. The options'
-- measurements of the net on that device alone have precedence: a node without a step there took no
-- time. Without them the row's own numbers count.
local function least_rows(rows, options)
  local best = {}
  for _, r in ipairs(rows) do
    local of = best[r.index] or {}
    best[r.index] = of
    if not of[r.device] or before(r, of[r.device].row) then
      local at = "@" .. r.device .. "@" .. r.node
      local ns, joules = options["ns" .. at], options["joules" .. at]
      if not ns and options["seconds@" .. r.device] then ns, joules = 0, 0 end -- A view, or done by another step.
      of[r.device] = { row = r, takes = r.takes, split = r.splits, told = ns ~= nil, ns = ns or r.ns, joules = joules or not ns and r.joules or nil }
    end
  end
  return best
end

-- At most `n` consecutive nodes from `i` on. Each is the only reader of the previous one and does not
-- belong to another layer yet.
local function chain_from(i, n, users, taken)
  local chain = { i }
  while #chain < n do
    local next = users[chain[#chain]]
    if not next or #next ~= 1 or taken[next[1]] then break end
    chain[#chain + 1] = next[1]
  end
  return chain
end

-- The cost of the layer on the device: its row, and rows of the operators that its kernel does not fuse.
local function cost_on(best, chain, device, watts)
  local least = best[chain[1]] and best[chain[1]][device]
  if not least then return nil end
  -- Joules of a row: measured, or by the device's watts.
  local function joules_of(r) return r.joules or watts and watts * r.ns * 1e-9 end
  local ns, joules, left = least.ns, joules_of(least), {}
  for k = least.takes + 1, #chain do
    local more = best[chain[k]] and best[chain[k]][device]
    if not more then return nil end
    ns, joules = ns + more.ns, joules and joules + joules_of(more)
    left[#left + 1] = chain[k]
  end
  return { row = not least.told and least.row or nil, left = left, ns = ns, joules = joules, split = least.split and #left == 0 }
end

-- The machine's power in W while the device works, for rows without joules; nil: unknown.
local function watts_of(seen, device) return seen.options["watts@" .. device.name] or device.busy_watts end

-- The layers, each after those that it reads: a layer may include a later operator of the net, such
-- as the addition of a residual block.
local function in_order(layers)
  local order, at, seen = {}, {}, {}
  -- Adds a layer after all that it reads, unless it was added.
  local function visit(l)
    if seen[l] then return end
    seen[l] = true
    for _, from in ipairs(layers[l].inputs) do visit(from) end
    order[#order + 1] = layers[l]
    at[l] = #order
  end
  for l in ipairs(layers) do visit(l) end
  for k, layer in ipairs(order) do
    layer.last = layer.last or k
    for i, from in ipairs(layer.inputs) do
      layer.inputs[i] = at[from]
      order[at[from]].last = k
    end
  end
  return order
end

-- Layers with their least rows, in order.
local function layers_of(rows, seen)
  local best, users, layers, layer_of = least_rows(rows, seen.options), {}, {}, {}
  for i, node in ipairs(seen.nodes) do
    for _, from in ipairs(node.inputs) do
      users[from] = users[from] or {}
      table.insert(users[from], i)
    end
  end
  local taken = {}
  for i, node in ipairs(seen.nodes) do
    if not taken[i] and best[i] then
      local most = 1
      for _, least in pairs(best[i]) do most = math.max(most, least.takes) end
      local layer = { node = node, chain = chain_from(i, most, users, taken), on = {}, inputs = {}, keeps = keeps_to_range(node.operator),
                      pieces = node.splits and node.pieces or node.splits and 1000 or 1 }
      layers[#layers + 1] = layer
      for _, at in ipairs(layer.chain) do taken[at] = #layers end
      for d, device in ipairs(seen.devices) do layer.on[d] = cost_on(best, layer.chain, device.name, watts_of(seen, device)) end
    elseif not taken[i] then
      taken[i] = 0 -- No step runs it: it costs nothing.
    end
  end
  -- Finds the inputs of each layer.
  for k, layer in ipairs(layers) do
    local known = { [k] = true }
    for _, at in ipairs(layer.chain) do
      for _, from in ipairs(seen.nodes[at].inputs) do
        local l = taken[from]
        while l == 0 do -- Passes through nodes that cost nothing.
          from = seen.nodes[from].inputs[1]
          l = taken[from]
        end
        if l and not known[l] then
          known[l] = true
          layer.inputs[#layer.inputs + 1] = l
        end
      end
    end
    layer.bytes = seen.nodes[layer.chain[#layer.chain]].out_bytes
  end
  return in_order(layers)
end

-- Subtracts the idle energy from the joules of all layers.
local function leave_idle(layers, idle)
  for _, layer in ipairs(layers) do
    for _, cost in pairs(layer.on) do
      cost.joules = cost.joules and math.max(0, cost.joules - idle * cost.ns * 1e-9)
    end
  end
end

-- ---- ways to run a layer ----

-- Sets of the first six devices; each set is sorted by name, the order in which the planner runs
-- parts.
local function subsets(devices)
  local list, n = {}, math.min(#devices, 6)
  for mask = 1, (1 << n) - 1 do
    local set = {}
    for d = 1, n do
      if mask >> (d - 1) & 1 == 1 then set[#set + 1] = d end
    end
    table.sort(set, function(a, b) return devices[a].name < devices[b].name end)
    list[#list + 1] = set
  end
  table.sort(list, function(a, b) return #a < #b end)
  return list
end

-- The sets of devices that can run the layer, with the cost of each part: fixed, and per piece, in ns
-- and joules above idle.
local function ways_of(net, layer, seen, sets)
  local ways, options, last = {}, seen.options, layer == net.layers[#net.layers]
  -- An option of a device, or of all; else 0.
  local function option(name, device) return options[name .. "@" .. device] or options[name] or 0 end
  for _, set in ipairs(sets) do
    local way = { set = set, key = table.concat(set, "+"), fixed = {}, rate = {}, joules = {}, watts = {}, after = {}, brings = {} }
    for i, d in ipairs(set) do
      local cost = layer.on[d]
      if not cost or (#set > 1 and not (cost.split and layer.pieces > 1)) then
        way = nil
        break
      end
      local name = seen.devices[d].name
      if #set == 1 then
        way.fixed[1], way.rate[1], way.joules[1], way.watts[1] = cost.ns, 0, cost.joules or 0, 0
      else
        local start = math.min(net.launch[d], cost.ns * .9)
        local watts = (cost.joules or 0) / math.max(cost.ns, 1)
        way.fixed[i] = start + option("split_ns", name)
        way.rate[i] = math.max(cost.ns - start, 1) / layer.pieces
        way.joules[i] = watts * start + option("split_joules", name)
        way.watts[i] = watts * way.rate[i] -- For one piece.
        local link = last and net.host and not seen.devices[d].host and net.links[d * 64 + net.host]
        way.after[i] = link and link.fixed or 0 -- The cost of the copy to the program's memory.
        way.brings[i] = link and link.byte * layer.bytes / layer.pieces or 0
      end
    end
    if way then ways[#ways + 1] = way end
  end
  return ways
end

-- Divides the pieces so that all parts end together if they begin at `starts` (ns). Returns the number
-- of pieces of each; nil: a part would be too small.
local function cut(way, starts, pieces, least)
  local n, fixed, rates, all, sum = #way.set, {}, {}, 0, pieces
  for i = 1, n do
    fixed[i], rates[i] = starts[i] + way.fixed[i] + way.after[i], way.rate[i] + way.brings[i]
    all, sum = all + 1 / rates[i], sum + fixed[i] / rates[i]
  end
  local sizes, left = {}, pieces
  for i = 1, n do
    local size = (sum / all - fixed[i]) / rates[i]
    if size < least then return nil end
    sizes[i] = math.floor(size)
    left = left - sizes[i]
  end
  for _ = 1, left do -- Pieces left over by rounding go to the part that ends first.
    local best, least_stop
    for i = 1, n do
      local stop = fixed[i] + (sizes[i] + 1) * rates[i]
      if not best or stop < least_stop then best, least_stop = i, stop end
    end
    sizes[best] = sizes[best] + 1
  end
  for i = 1, n do
    if sizes[i] < 1 then return nil end
  end
  return sizes
end

-- ---- moving values ----

-- Links between the devices, by their indexes.
local function links_of(seen)
  local at, links, host = {}, {}, nil
  for d, device in ipairs(seen.devices) do
    at[device.name] = d
    if device.host then host = host or d end
  end
  for _, link in ipairs(seen.links or {}) do
    if at[link.from] and at[link.to] then
      links[at[link.from] * 64 + at[link.to]] = { fixed = link.ns_fixed, byte = link.ns_per_byte, joules = 0 }
    end
  end
  for a, from in ipairs(seen.devices) do
    for b, to in ipairs(seen.devices) do
      local way = "@" .. from.name .. "@" .. to.name
      local link = links[a * 64 + b]
      if a ~= b and not link then
        link = { fixed = 0, byte = 0, joules = 0 }
        links[a * 64 + b] = link
      end
      if link then
        link.fixed, link.byte = seen.options["copy_ns" .. way] or link.fixed, seen.options["byte_ns" .. way] or link.byte
        link.fixed = link.fixed + (link.fixed > 0 and seen.options.wait_ns or 0)
        link.joules = seen.options["byte_joules" .. way] or 0
      end
    end
  end
  return links, host
end

-- ---- simulation on queues ----

-- free: the time at which each device's queue is free; homes: by layer, the places of its value: {
-- whole = { [device] = since }, set, sizes, at: the parts in which it was made, and when they were
-- ready }.
local function copy_of(state)
  local free, homes = {}, {}
  for d, t in ipairs(state.free) do free[d] = t end
  for v, home in pairs(state.homes) do homes[v] = home end
  return { t = state.t, e = state.e, free = free, homes = homes }
end

-- Moves bytes between devices in a state; returns when they arrive.
local function move(net, state, from, to, bytes, since)
  local devices, links = net.devices, net.links
  if from == to then return since end
  local host = net.host
  if not devices[from].host and not devices[to].host and host then -- Through the program's memory.
    return move(net, state, host, to, bytes, move(net, state, from, host, bytes, since))
  end
  local link = links[from * 64 + to]
  local ns = link.fixed + link.byte * bytes
  if ns <= 0 then return since end
  local busy = devices[from].host and to or from
  local stop = math.max(since, state.free[busy]) + ns
  state.free[busy] = stop
  state.e = state.e + link.joules * bytes
  return stop
end

-- Records in the state that part k of value v is in the program's memory since that time, for later
-- readers.
local function passing(state, v, k, since)
  local home, passed = {}, {}
  for key, x in pairs(state.homes[v]) do home[key] = x end
  for i, at in pairs(home.passed or {}) do passed[i] = at end
  passed[k], home.passed = since, passed
  state.homes[v] = home
  return home
end

-- Copies pieces low to high of the value (nil: all of it) to device d; returns the time of arrival, ns.
local bring
-- Brings a range of a value to device d; returns when it is there.
function bring(net, state, v, d, low, high)
  local home, layer = state.homes[v], net.layers[v]
  local since = home.whole[d]
  if since then return since end
  since = 0
  if home.set then
    local at = 0
    for k, from in ipairs(home.set) do
      local stop = at + home.sizes[k]
      local part = math.min(stop, high or layer.pieces) - math.max(at, low or 0)
      if part > 0 then
        local there, bytes = home.at[k], layer.bytes * part / layer.pieces
        if from ~= d and not net.devices[from].host and net.host then
          local via = net.devices[d].host and d or net.host
          there = home.passed and home.passed[k]
          if there then via = net.host
          else
            there = move(net, state, from, via, bytes, home.at[k])
            if part == home.sizes[k] then home = passing(state, v, k, there) end
          end
          from = via
        end
        since = math.max(since, move(net, state, from, d, bytes, there))
      end
      at = stop
    end
  else
    local best
    for from, at in pairs(home.whole) do
      if not best or (net.devices[from].host and not net.devices[best].host) or
         (net.devices[from].host == net.devices[best].host and (at < home.whole[best] or at == home.whole[best] and from < best)) then best = from end
    end
    local since_there, bytes = home.whole[best], layer.bytes * (high and (high - low) / layer.pieces or 1)
    if not high and net.host and not net.devices[best].host and not net.devices[d].host then
      since_there = bring(net, state, v, net.host) -- Later readers use that copy, too.
      best, home = net.host, state.homes[v]
    end
    since = move(net, state, best, d, bytes, since_there)
  end
  if high and high - low < layer.pieces then return since end
  local whole = {}
  for from, at in pairs(home.whole) do whole[from] = at end
  whole[d] = since
  state.homes[v] = { whole = whole, set = home.set, sizes = home.sizes, at = home.at, key = home.key, passed = home.passed }
  return since
end

local NOTHING = { 0, 0, 0, 0, 0, 0 } -- Start times of up to 6 parts.
-- True: both lists hold the same values in the same order.
local function alike(set, other)
  for i, d in ipairs(set) do
    if d ~= other[i] then return false end
  end
  return #set == #other
end

-- The sizes of the parts of a layer whose parts need only their own range of the input: those of
-- the input if it is divided on the same devices, else sizes with which all parts end together.
local function cuts_of_range(net, state, layer, way)
  local input = layer.inputs[1] and state.homes[layer.inputs[1]]
  if input and input.set and alike(input.set, way.set) and net.layers[layer.inputs[1]].pieces == layer.pieces then
    return input.sizes
  end
  return cut(way, NOTHING, layer.pieces, net.least * layer.pieces)
end

-- Simulates layer k with this set of devices, in parts of these sizes (nil: all end together). Returns
-- the new state; nil: the layer can't be divided so.
local function run(net, before, k, way, sizes)
  local layer, state, starts = net.layers[k], copy_of(before), {}
  local n = #way.set
  local ranges = n > 1 and layer.keeps
  if ranges then
    sizes = sizes or cuts_of_range(net, state, layer, way)
    if not sizes then return nil end
  end
  local at = 0
  for i, d in ipairs(way.set) do
    local start, stop = 0, ranges and at + sizes[i]
    for _, v in ipairs(layer.inputs) do
      local own = ranges and net.layers[v].pieces == layer.pieces
      start = math.max(start, bring(net, state, v, d, own and at or nil, own and stop or nil))
    end
    starts[i], at = start, stop
  end
  for i, d in ipairs(way.set) do starts[i] = math.max(starts[i], state.free[d]) end
  if n > 1 and not sizes then
    sizes = cut(way, starts, layer.pieces, net.least * layer.pieces)
    if not sizes then return nil end
  end
  local whole, ends = {}, {}
  for i, d in ipairs(way.set) do
    local size = sizes and sizes[i] or 0
    local stop = starts[i] + way.fixed[i] + size * way.rate[i]
    state.free[d], ends[i] = stop, stop
    state.e = state.e + way.joules[i] + size * way.watts[i]
    if stop > state.t then state.t = stop end
  end
  local home = { whole = whole, key = way.key }
  if n == 1 then whole[way.set[1]] = ends[1]
  else
    home.set, home.sizes, home.at = way.set, sizes, ends
    home.key = way.key .. "/" .. table.concat(sizes, "/")
    if k == #net.layers and net.host then -- The result is read in the program's memory.
      state.homes[k] = home
      state.t = math.max(state.t, bring(net, state, k, net.host))
    end
  end
  state.homes[k] = home
  for _, v in ipairs(layer.inputs) do
    if net.layers[v].last <= k then state.homes[v] = nil end
  end
  state.way, state.sizes, state.before = way, sizes, before
  return state
end

-- Simulates all layers on one device; nil: it can't run all of them.
local function run_alone(net, d)
  local state = net.begin
  for k in ipairs(net.layers) do
    local found
    for _, way in ipairs(net.ways[k]) do
      if #way.set == 1 and way.set[1] == d then found = way end
    end
    state = found and run(net, state, k, found)
    if not state then return nil end
  end
  return state
end

-- ---- the search ----

-- A key under which states are alike but for time and energy.
local function key_of(state, live)
  local words = {}
  for i, v in ipairs(live) do
    local home, mask = state.homes[v], 0
    for d in pairs(home.whole) do mask = mask | 1 << d end
    words[i] = home.key .. ":" .. mask
  end
  return table.concat(words, " ")
end

-- A lower bound of time and energy from each layer to the end: corners (t, e) of a polygon that no plan
-- lies below. Divided layers are taken to run on their devices without any loss.
local function corners_of(net, scale)
  local n, lines = #net.layers, {}
  -- Bounds of layer k where work may be divided at will.
  local function fluid(k, add)
    for _, way in ipairs(net.ways[k]) do
      local speed, watts = 0, 0
      for _, d in ipairs(way.set) do
        local cost = net.layers[k].on[d]
        speed = speed + 1 / math.max(cost.ns - net.launch[d], 1e-3)
        watts = watts + (cost.joules or 0) / math.max(cost.ns, 1e-3)
      end
      if #way.set == 1 then add(way.fixed[1], way.joules[1]) else add(1 / speed, watts / speed) end
    end
  end
  for k = n, 1, -1 do
    local line = { t = math.huge, e = math.huge }
    for i = 1, #SLOPES do line[i] = math.huge end
    fluid(k, function(t, e)
      line.t, line.e = math.min(line.t, t), math.min(line.e, e)
      for i, slope in ipairs(SLOPES) do line[i] = math.min(line[i], t + slope * scale * e) end
    end)
    local after = lines[k + 1]
    if after then
      line.t, line.e = line.t + after.t, line.e + after.e
      for i = 1, #SLOPES do line[i] = line[i] + after[i] end
    end
    lines[k] = line
  end
  local corners = { [n + 1] = { { 0, 0 } } }
  for k = 1, n do
    local line, list = lines[k], {}
    list[1] = { line.t, math.max(line.e, (line[1] - line.t) / (SLOPES[1] * scale)) }
    for i = 1, #SLOPES - 1 do
      local e = (line[i + 1] - line[i]) / ((SLOPES[i + 1] - SLOPES[i]) * scale)
      list[#list + 1] = { line[i] - SLOPES[i] * scale * e, e }
    end
    list[#list + 1] = { line[#SLOPES] - SLOPES[#SLOPES] * scale * line.e, line.e }
    for _, corner in ipairs(list) do corner[1], corner[2] = math.max(corner[1], line.t), math.max(corner[2], line.e) end
    corners[k] = list
  end
  return corners
end

-- The states that no other beats in both time and energy; if more than `most`, an even selection.
local function front(list, most)
  table.sort(list, function(a, b) if a.t ~= b.t then return a.t < b.t end return a.e < b.e end)
  local kept, least = {}, math.huge
  for _, state in ipairs(list) do
    if state.e < least - 1e-9 * math.abs(least) or least == math.huge then
      kept[#kept + 1] = state
      least = state.e
    end
  end
  if #kept <= most then return kept end
  local thin = {}
  for i = 1, most do thin[i] = kept[math.floor((i - 1) * (#kept - 1) / (most - 1) + 1.5)] end
  return thin
end

-- A lower bound on the objective of a state after layer k.
local function promise(net, state, k)
  local least, from = math.huge, state.t
  for _, home in pairs(state.homes) do
    for _, since in ipairs(home.at or {}) do from = math.min(from, since) end
  end
  for _, corner in ipairs(net.corners[k + 1]) do
    least = math.min(least, net.value(math.max(state.t, from + corner[1]), state.e + corner[2]))
  end
  return least
end

-- Searches placements below the bound; at most `most` states a layer.
local function search(net, bound, most)
  local value = net.value
  local states = { net.begin }
  for k in ipairs(net.layers) do
    local live, groups, order = {}, {}, {}
    for v = 1, k do
      if net.layers[v].last > k or v == k then live[#live + 1] = v end
    end
    for _, before in ipairs(states) do
      for _, way in ipairs(net.ways[k]) do
        local state = run(net, before, k, way)
        if state then
          state.promise = promise(net, state, k)
          if state.promise < bound then
            local key = key_of(state, live)
            if not groups[key] then
              groups[key] = {}
              order[#order + 1] = key
            end
            table.insert(groups[key], state)
          end
        end
      end
    end
    states = {}
    local each = math.max(4, 2 * most // math.max(#order, 1))
    for _, key in ipairs(order) do
      for _, state in ipairs(front(groups[key], each)) do states[#states + 1] = state end
    end
    if #states > most then -- Keeps the most promising.
      table.sort(states, function(a, b) return a.promise < b.promise end)
      for i = #states, most + 1, -1 do states[i] = nil end
    end
  end
  local best
  for _, state in ipairs(states) do
    if value(state.t, state.e) < (best and value(best.t, best.e) or bound) then best = state end
  end
  return best
end

-- Improves the plan by changing one layer at a time: its set of devices, or the sizes of its parts.
-- Ends when no change helps, or after TRIES simulated layers.
local function refine(net, best)
  local n, trace, tries, better = #net.layers, {}, TRIES, true
  local value = net.value
  -- Keeps the way that led to a state.
  local function trace_of(state)
    for k = n, 1, -1 do
      trace[k] = { way = state.way, sizes = state.sizes, before = state.before }
      state = state.before
    end
  end
  -- Tries another way for layer k and repeats the later ones.
  local function try(k, way, sizes, anew) -- anew: later layers are divided again.
    local state = trace[k].before
    for i = k, n do
      local of = trace[i]
      tries = tries - 1
      if i == k then state = run(net, state, i, way, sizes)
      else state = run(net, state, i, of.way, not anew and not net.layers[i].keeps and of.sizes or nil) end
      if not state or promise(net, state, i) >= net.bound then return end
    end
    if value(state.t, state.e) < net.bound then
      best, better, net.bound = state, true, value(state.t, state.e) * (1 - 1e-9)
      trace_of(state)
    end
  end
  trace_of(best)
  while better and tries > 0 do
    better = false
    for k = n, 1, -1 do
      for _, way in ipairs(net.ways[k]) do
        if tries > 0 then try(k, way) end
        if tries > 0 then try(k, way, nil, true) end
      end
      local pieces = net.layers[k].pieces
      for i in ipairs(trace[k].sizes or {}) do
        for j in ipairs(trace[k].sizes) do
          for _, size in ipairs { 1, pieces // 64, pieces // 16 } do
            local sizes = { table.unpack(trace[k].sizes or {}) }
            if i ~= j and sizes[i] and sizes[j] and sizes[i] > size and size > 0 and tries > 0 then
              sizes[i], sizes[j] = sizes[i] - size, sizes[j] + size
              try(k, trace[k].way, sizes)
              try(k, trace[k].way, sizes, true)
            end
          end
        end
      end
    end
  end
  return best
end

-- The policy: the best placement by time, energy or their product.
local function place(rows, seen)
  local idle, options, measured = seen.options.idle_watts or 0, seen.options, true
  for _, d in ipairs(seen.devices) do idle = math.max(idle, d.idle_watts or 0) end
  for _, d in ipairs(seen.devices) do
    for _, r in ipairs(rows) do
      measured = measured and (r.device ~= d.name or r.joules ~= nil or watts_of(seen, d) ~= nil)
    end
  end
  local objective = options.objective or "edp"
  if objective ~= "edp" and objective ~= "energy" and objective ~= "time" then
    error("objective: want edp, energy or time, got '" .. tostring(objective) .. "'")
  end
  local wanted = measured and objective or "time"
  local limit = options.limit_ms and options.limit_ms * 1e6 or math.huge
  -- What is made small, of time t (ns) and energy e (J): time, energy or their product; infinite
  -- above the limit.
  local function value(t, e)
    if t > limit then return math.huge end
    if wanted == "time" then return t end
    local joules = e + idle * t * 1e-9
    return wanted == "energy" and joules or joules * t * 1e-9
  end
  local net = { layers = layers_of(rows, seen), devices = seen.devices, ways = {}, launch = {}, least = options.least_share or .02,
                begin = { t = 0, e = 0, free = {}, homes = {} } }
  local layers, sets, n_ways = net.layers, subsets(seen.devices), 0
  leave_idle(layers, measured and idle or 0)
  net.links, net.host = links_of(seen)
  for d in ipairs(seen.devices) do
    net.launch[d], net.begin.free[d] = options["launch_ns@" .. seen.devices[d].name] or 0, 0
  end
  for k, layer in ipairs(layers) do
    net.ways[k] = ways_of(net, layer, seen, sets)
    n_ways = n_ways + #net.ways[k]
  end
  local steps, bound, kept, scale = {}, math.huge, nil, 1
  for d, device in ipairs(seen.devices) do
    local state = run_alone(net, d)
    if state then
      local joules = state.e + idle * state.t * 1e-9
      steps[#steps + 1] = { device = device.name, seconds = state.t * 1e-9, joules = measured and joules or nil }
      if value(state.t, state.e) < bound then
        bound, kept, scale = value(state.t, state.e) * (1 + 1e-9), device.name, state.t / math.max(joules, 1e-12)
      end
    end
  end
  net.value, net.corners, net.bound = value, corners_of(net, scale), bound
  local best
  local most = math.max(4, math.min(1500, WORK // math.max(n_ways, 1)))
  -- First a narrow search: its result is a bound for the wide one.
  for _, width in ipairs { math.min(most, 24), most } do
    if width == most and most <= 24 and best then break end
    best = search(net, net.bound, width) or best
    if best then
      net.bound = value(best.t, best.e) * (1 - 1e-9)
      best = refine(net, best)
    end
  end
  if not best then
    if not kept then return nil, "no plan keeps within limit_ms" end
    local answer = {}
    for _, node in ipairs(seen.nodes) do answer[node.name] = kept end
    steps[#steps + 1] = { kept = kept, why = "nothing is expected to be better" }
    return answer, steps
  end
  local answer, state = {}, best
  for k = #layers, 1, -1 do
    local layer, set = layers[k], state.way.set
    if #set == 1 then
      local cost = layer.on[set[1]]
      answer[layer.node.name] = cost.row
      -- Measured with the device's own choice of kernels.
      for _, at in ipairs(cost.row and cost.left or layer.chain) do answer[seen.nodes[at].name] = seen.devices[set[1]].name end
    else
      local parts = {}
      for i, d in ipairs(set) do parts[seen.devices[d].name] = state.sizes[i] / layer.pieces end
      answer[layer.node.name] = parts
    end
    state = state.before
  end
  steps[#steps + 1] = { objective = wanted, seconds = best.t * 1e-9, joules = measured and best.e + idle * best.t * 1e-9 or nil, alone = kept }
  return answer, steps
end

-- Parameters of --adapt, as multiples of the default's time: stop (a trial is cancelled), worth (a rehearsed choice is not run),
-- unlikely (a kernel with this estimate is not tried). margin: fraction of the cost that a choice must save. repeats: runs of a trial.
-- contest: runs of each choice in the final comparison. window: number of later runs whose median is watched; measuring starts again
-- if it changes by the fraction `change` and by more than the window's halves differ.
local adapt = { stop = 1.5, worth = 1.2, unlikely = 4, margin = .02, repeats = 2, contest = 7, window = 50, change = .1 }

return { place = place, adapt = adapt }
