-- One device or one division for each layer, for the least EDP, energy or time of the whole net: moving
-- values counts, and the power of what waits. A dynamic programme over the net: a state is where the
-- values lie that are still wanted, and keeps those ways there that no other beats in both time and
-- energy. Of the net on one device alone the same is known, so that what comes out is never expected to
-- be worse.
-- Options: objective ("edp", "energy", "time"; default edp), limit_ms (most time, if any plan keeps to
-- it), split_ns and split_joules (what a part of a divided layer costs beside its share; with "@DEVICE"
-- behind for one device), watts@DEVICE (of the machine while it works, for rows without joules),
-- ns@DEVICE@NODE and joules@DEVICE@NODE (instead of the row's), copy_ns@A@B and byte_ns@A@B (instead of the link's), idle_watts, least_share (0.05).

local MOST_WAYS = 1.5e6 -- steps of the programme in all: wider nets keep fewer ways in mind

-- Layers that need of a value only what they make of it, when both are divided along channels.
local pointwise = { "relu", "sigmoid", "tanh", "clip", "elu", "swish", "add", "mul", "pool", "depthwise",
                    "batch_norm", "scale", "dropout", "softplus", "identity" }
local function keeps_to_range(operator)
  if operator:find "global" then return true end
  for _, word in ipairs(pointwise) do
    if operator:find(word, 1, true) then return true end
  end
  return false
end

-- ---- layers: a node with what is computed behind it, and what that takes on each device ----

-- The best row of each node on each device: { row, takes, split, ns, joules }, as the options tell what
-- was measured of the net on that device alone, else as the row says.
local function least_rows(rows, options)
  local best = {}
  for _, r in ipairs(rows) do
    local of = best[r.index] or {}
    best[r.index] = of
    if not of[r.device] or r.ns < of[r.device].row.ns then
      local at = "@" .. r.device .. "@" .. r.node
      local ns = options["ns" .. at]
      of[r.device] = { row = r, takes = r.takes, split = r.splits, ns = ns or r.ns, joules = options["joules" .. at] or not ns and r.joules or nil }
    end
  end
  return best
end

-- Nodes from `i` on that follow each other, `n` at most: each the only one to use the one before, and
-- not another layer's yet.
local function chain_from(i, n, users, taken)
  local chain = { i }
  while #chain < n do
    local next = users[chain[#chain]]
    if not next or #next ~= 1 or taken[next[1]] then break end
    chain[#chain + 1] = next[1]
  end
  return chain
end

-- What the layer takes on the device: its row, and rows of what that leaves out. joules are above idle.
local function cost_on(best, chain, device, watts, idle)
  local least = best[chain[1]] and best[chain[1]][device]
  if not least then return nil end
  local function joules_of(r) return r.joules or watts and watts * r.ns * 1e-9 end
  local ns, joules, left = least.ns, joules_of(least), {}
  for k = least.takes + 1, #chain do
    local more = best[chain[k]] and best[chain[k]][device]
    if not more then return nil end
    ns, joules = ns + more.ns, joules and joules + joules_of(more)
    left[#left + 1] = chain[k]
  end
  return { row = least.row, left = left, ns = ns, joules = joules and math.max(0, joules - idle * ns * 1e-9),
           split = least.split and #left == 0 }
end

-- Watts of the machine while the device works: of rows without joules.
local function watts_of(seen, device) return seen.options["watts@" .. device.name] or device.busy_watts end

-- Each behind those that it reads: what a layer takes along may add what stands later in the net, as
-- the shortcut of a residual block.
local function in_order(layers)
  local order, at, seen = {}, {}, {}
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

local function layers_of(rows, seen, idle)
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
      local layer = { node = node, chain = chain_from(i, most, users, taken), on = {}, inputs = {}, keeps = keeps_to_range(node.operator) }
      layers[#layers + 1] = layer
      for _, at in ipairs(layer.chain) do taken[at] = #layers end
      for d, device in ipairs(seen.devices) do layer.on[d] = cost_on(best, layer.chain, device.name, watts_of(seen, device), idle) end
    elseif not taken[i] then
      taken[i] = 0 -- nothing runs it: it costs nothing
    end
  end
  -- what a layer reads
  for k, layer in ipairs(layers) do
    local known = { [k] = true }
    for _, at in ipairs(layer.chain) do
      for _, from in ipairs(seen.nodes[at].inputs) do
        local l = taken[from]
        while l == 0 do -- through what costs nothing
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

-- ---- ways to run a layer: on one device, or divided so that all parts end together ----

local function subsets(n)
  local list = {}
  for mask = 1, (1 << n) - 1 do
    local set = {}
    for d = 1, n do
      if mask >> (d - 1) & 1 == 1 then set[#set + 1] = d end
    end
    if #set > 1 and #set <= 3 then list[#list + 1] = set end
  end
  return list
end

-- A part takes fixed + share * rest: shares that make all alike, nil when one would get too little.
local function balance(costs, fixed, extra, least)
  local rate, sum = 0, 1
  for i, cost in ipairs(costs) do
    local rest = math.max(cost.ns - fixed[i], 1)
    rate, sum = rate + 1 / rest, sum + (fixed[i] + extra[i]) / rest
  end
  local t, shares = sum / rate, {}
  for i, cost in ipairs(costs) do
    shares[i] = (t - fixed[i] - extra[i]) / math.max(cost.ns - fixed[i], 1)
    if shares[i] < least then return nil end
  end
  return shares, t
end

local function ways_of(layer, seen, launch, sets, idle)
  local ways, options = {}, seen.options
  local function option(name, device) return options[name .. "@" .. device] or options[name] or 0 end
  for d in ipairs(seen.devices) do
    local cost = layer.on[d]
    if cost then ways[#ways + 1] = { set = { d }, shares = { 1 }, t = cost.ns, e = cost.joules or 0, key = "" .. d } end
  end
  if not layer.node.splits then return ways end
  for s, set in ipairs(sets) do
    local costs, fixed, extra, whole = {}, {}, {}, true
    for i, d in ipairs(set) do
      costs[i] = layer.on[d]
      whole = whole and costs[i] ~= nil and costs[i].split
      fixed[i] = whole and math.min(launch[d], costs[i].ns * 0.02) -- a net of few layers shows no launch
      extra[i] = option("split_ns", seen.devices[d].name)
    end
    local shares, t = nil, nil
    if whole then shares, t = balance(costs, fixed, extra, options.least_share or 0.05) end
    if shares then
      local e = 0
      for i, d in ipairs(set) do
        local watts = (costs[i].joules or 0) / costs[i].ns
        e = e + watts * (fixed[i] + shares[i] * (costs[i].ns - fixed[i])) + option("split_joules", seen.devices[d].name)
      end
      ways[#ways + 1] = { set = set, shares = shares, t = t, e = e, key = "s" .. s }
    end
  end
  return ways
end

-- ---- moving ----

local function links_of(seen)
  local at = {}
  for d, device in ipairs(seen.devices) do at[device.name] = d end
  local links = {}
  for _, link in ipairs(seen.links or {}) do
    if at[link.from] and at[link.to] then links[at[link.from] * 64 + at[link.to]] = link end
  end
  for a, from in ipairs(seen.devices) do
    for b, to in ipairs(seen.devices) do
      local way = "@" .. from.name .. "@" .. to.name
      local fixed, byte = seen.options["copy_ns" .. way], seen.options["byte_ns" .. way]
      if fixed and byte then links[a * 64 + b] = { ns_fixed = fixed, ns_per_byte = byte } end
    end
  end
  return function(from, to, bytes)
    local link = links[from * 64 + to]
    return link and bytes > 0 and link.ns_fixed + link.ns_per_byte * bytes or 0
  end
end

local function alike(a, b)
  if #a.set ~= #b.set then return false end
  for i, d in ipairs(a.set) do
    if d ~= b.set[i] or math.abs(a.shares[i] - b.shares[i]) > 0.02 then return false end
  end
  return true
end

-- Time to bring a value to where the way wants it; and where it is then. home: { way = that made it,
-- whole = bits of devices that have all of it }.
local function bring(home, way, layer, bytes, move)
  local ns, whole = 0, home.whole
  for i, d in ipairs(way.set) do
    local bit = 1 << d
    local part = layer.keeps and way.shares[i] or 1
    if whole & bit == 0 then
      if #home.way.set > 1 and layer.keeps and alike(home.way, way) then part = 0
      elseif #home.way.set > 1 and home.whole == 0 then
        for k, from in ipairs(home.way.set) do
          if from ~= d then ns = ns + move(from, d, bytes * home.way.shares[k] * part) end
        end
      else
        local least = math.huge
        for from = 1, 62 do
          if home.whole >> from & 1 == 1 then least = math.min(least, move(from, d, bytes * part)) end
        end
        ns = ns + least
      end
      if part == 1 then whole = whole | bit end
    end
  end
  return ns, whole == home.whole and home or { way = home.way, whole = whole }
end

-- ---- the programme ----

local function key_of(homes, live)
  local words = {}
  for i, v in ipairs(live) do words[i] = homes[v].way.key .. ":" .. homes[v].whole end
  return table.concat(words, " ")
end

-- Those of a state that no other beats in both; thinned to `most`.
local function front(list, most)
  table.sort(list, function(a, b) if a.t ~= b.t then return a.t < b.t end return a.e < b.e end)
  local kept, least = {}, math.huge
  for _, label in ipairs(list) do
    if label.e < least * (1 - 1e-6) then
      kept[#kept + 1] = label
      least = label.e
    end
  end
  if #kept <= most then return kept end
  local thin = {}
  for i = 1, most do thin[i] = kept[math.floor((i - 1) * (#kept - 1) / (most - 1) + 1.5)] end
  return thin
end

local function search(layers, ways, seen, value, bound, most_labels)
  local move, n = links_of(seen), #layers
  local rest_t, rest_e = { [n + 1] = 0 }, { [n + 1] = 0 }
  for k = n, 1, -1 do
    local t, e = math.huge, math.huge
    for _, way in ipairs(ways[k]) do t, e = math.min(t, way.t), math.min(e, way.e) end
    rest_t[k], rest_e[k] = rest_t[k + 1] + t, rest_e[k + 1] + e
  end
  local labels = { { t = 0, e = 0, homes = {} } }
  for k, layer in ipairs(layers) do
    local live = {}
    for v = 1, k do
      if layers[v].last > k or v == k then live[#live + 1] = v end
    end
    local states, order = {}, {}
    for _, label in ipairs(labels) do
      for _, way in ipairs(ways[k]) do
        local moved, homes = 0, {}
        for v, home in pairs(label.homes) do homes[v] = home end
        for _, v in ipairs(layer.inputs) do
          local ns
          ns, homes[v] = bring(label.homes[v], way, layer, layers[v].bytes, move)
          moved = moved + ns
        end
        local t, e = label.t + moved + way.t, label.e + way.e
        if value(t + rest_t[k + 1], e + rest_e[k + 1]) <= bound then
          homes[k] = { way = way, whole = #way.set == 1 and 1 << way.set[1] or 0 }
          for _, v in ipairs(layer.inputs) do
            if layers[v].last <= k then homes[v] = nil end
          end
          local key = key_of(homes, live)
          if not states[key] then
            states[key] = {}
            order[#order + 1] = key
          end
          table.insert(states[key], { t = t, e = e, homes = homes, way = way, before = label })
        end
      end
    end
    labels = {}
    local each = math.max(3, most_labels // math.max(#order, 1))
    for _, key in ipairs(order) do
      for _, label in ipairs(front(states[key], each)) do labels[#labels + 1] = label end
    end
    if #labels > most_labels then -- a wide net: the most promising
      table.sort(labels, function(a, b)
        return value(a.t + rest_t[k + 1], a.e + rest_e[k + 1]) < value(b.t + rest_t[k + 1], b.e + rest_e[k + 1])
      end)
      for i = #labels, most_labels + 1, -1 do labels[i] = nil end
    end
  end
  local best
  for _, label in ipairs(labels) do
    if not best or value(label.t, label.e) < value(best.t, best.e) then best = label end
  end
  return best
end

-- The net on one device: what its layers take there. nil: it can't run all of them.
local function alone(ways, d)
  local t, e = 0, 0
  for _, list in ipairs(ways) do
    local found
    for _, way in ipairs(list) do
      if #way.set == 1 and way.set[1] == d then found = way end
    end
    if not found then return nil end
    t, e = t + found.t, e + found.e
  end
  return t, e
end

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
  local function value(t, e)
    if t > limit then return math.huge end
    if wanted == "time" then return t end
    local joules = e + idle * t * 1e-9
    return wanted == "energy" and joules or joules * t * 1e-9
  end
  local layers = layers_of(rows, seen, measured and idle or 0)
  local launch, ways, sets, n_ways = {}, {}, subsets(math.min(#seen.devices, 6)), 0
  for d in ipairs(seen.devices) do
    launch[d] = math.huge
    for _, layer in ipairs(layers) do
      if layer.on[d] then launch[d] = math.min(launch[d], layer.on[d].ns) end
    end
  end
  for k, layer in ipairs(layers) do
    ways[k] = ways_of(layer, seen, launch, sets, idle)
    n_ways = n_ways + #ways[k]
  end
  local steps, bound, kept = {}, math.huge, nil
  for d, device in ipairs(seen.devices) do
    local t, e = alone(ways, d)
    if t then
      steps[#steps + 1] = { device = device.name, seconds = t * 1e-9, joules = measured and e + idle * t * 1e-9 or nil }
      if value(t, e) < bound then bound, kept = value(t, e), device.name end
    end
  end
  local most = math.max(24, math.min(800, MOST_WAYS // math.max(n_ways, 1)))
  local best = search(layers, ways, seen, value, bound, most)
  if not best then
    if not kept then return nil, "no plan keeps to the limit of time" end
    local answer = {}
    for _, node in ipairs(seen.nodes) do answer[node.name] = kept end
    steps[#steps + 1] = { kept = kept, why = "nothing is expected to be better" }
    return answer, steps
  end
  local answer, label = {}, best
  for k = #layers, 1, -1 do
    local layer, way = layers[k], label.way
    if #way.set == 1 then
      local cost = layer.on[way.set[1]]
      answer[layer.node.name] = cost.row
      for _, at in ipairs(cost.left) do answer[seen.nodes[at].name] = seen.devices[way.set[1]].name end
    else
      local parts = {}
      for i, d in ipairs(way.set) do parts[seen.devices[d].name] = way.shares[i] end
      answer[layer.node.name] = parts
    end
    label = label.before
  end
  steps[#steps + 1] = { objective = wanted, seconds = best.t * 1e-9, joules = measured and best.e + idle * best.t * 1e-9 or nil, alone = kept }
  return answer, steps
end

return { place = place }
