-- Plans on a simulated board without a simulator: what a policy sees, and the cost of its answer,
-- in the time and by the rules of plugins/device-sim.
--
-- A net is a list of layers in order: { name, op, flops, bytes, size (pieces along its channels;
-- nil: it is not divided), out_bytes, inputs = { indexes }, keeps (it needs only its own range of
-- the inputs) }.
local board = require "lib.board"
local M = {}

-- ---- a net ----

local fused = { batch_normalization = true, relu = true, dropout = true, flatten = true }
local own_range = { max_pool = true, average_pool = true, add = true, scale_bias = true }

-- The layers of a net that c.load finds, without the nodes that are fused into a layer's kernel.
function M.layers(name)
  local net <close> = require "cnnrun".load(name, { weights = "random:1" })
  local list, at = {}, {}
  for _, layer in ipairs(net:layers()) do
    local op, inputs, bytes, elements = layer.operator, {}, 0, 1
    for _, size in ipairs(layer.sizes) do elements = elements * size end
    for _, input in ipairs(layer.inputs) do
      local v = at[input] or 0
      inputs[#inputs + 1] = v
      bytes = bytes + (v > 0 and list[v].out_bytes or 0)
    end
    if fused[op] and inputs[1] and inputs[1] > 0 then at[layer.name] = inputs[1]
    else
      local multiplies = op:find "^conv" or op == "dense"
      list[#list + 1] = { name = layer.name, op = op, flops = layer.flops, products = multiplies and layer.flops or 0,
                          bytes = bytes + 4 * elements, out_bytes = 4 * elements, inputs = inputs,
                          size = (multiplies or own_range[op]) and layer.sizes[2] or nil, keeps = own_range[op] }
      at[layer.name] = #list
    end
  end
  return list
end

-- ---- the view of a policy ----

-- True: data need not be moved to the unit.
local function free(unit) return unit.host or not unit.transfer end

-- Seconds that so many bytes take to or from the unit; 0 for one that shares memory.
local function transfer(unit, bytes)
  if free(unit) then return 0 end
  local t = unit.transfer
  return (t.seconds or 0) + ((t.gbytes or 0) > 0 and bytes / (t.gbytes * 1e9) or 0)
end

-- rows and seen for the net on the named units, as they would be measured.
function M.view(b, net, units, options)
  local idle, rows, devices, links = board.idle_watts(b), {}, {}, {}
  local nodes = {}
  options = options or {}
  for i, layer in ipairs(net) do
    nodes[i] = { name = layer.name, operator = layer.op, inputs = layer.inputs, out_bytes = layer.out_bytes,
                 flops = layer.flops, splits = layer.size ~= nil and layer.size > 1, pieces = layer.size }
  end
  for _, name in ipairs(units) do
    local unit = board.named(b.units, name)
    local device = { name = name, host = unit.host and true or false, idle_watts = idle, seconds = 0, joules = 0 }
    devices[#devices + 1] = device
    for _, layer in ipairs(net) do
      local seconds, joules = board.work(b, unit, layer)
      device.seconds, device.joules = device.seconds + seconds, device.joules + joules + idle * seconds
    end
    options["split_ns@" .. name] = (unit.split and unit.split.seconds or 0) * 1e9
    options["launch_ns@" .. name] = (unit.launch or 0) * 1e9
    options["split_joules@" .. name] = unit.split and unit.split.joules or 0
    for _, to in ipairs(units) do
      local other = board.named(b.units, to)
      if to ~= name then
        local fixed = transfer(unit, 0) + transfer(other, 0)
        links[#links + 1] = { from = name, to = to, ns_fixed = fixed * 1e9,
                              ns_per_byte = (transfer(unit, 1e9) + transfer(other, 1e9) - fixed) }
      end
    end
  end
  for i, layer in ipairs(net) do
    for _, name in ipairs(units) do
      local seconds, joules = board.work(b, board.named(b.units, name), layer)
      rows[#rows + 1] = { node = layer.name, index = i, operator = layer.op, device = name, takes = 1, splits = true,
                          ns = seconds * 1e9, joules = joules + idle * seconds, bytes = layer.bytes, flops = layer.flops }
    end
  end
  -- Nanoseconds of a transfer of layer a's output from its device to layer c's, by the links; 0 on the
  -- same device, nil: there is no link.
  local function between(a, c)
    if a.device == c.device then return 0 end
    for _, l in ipairs(links) do
      if l.from == a.device and l.to == c.device then return l.ns_fixed + l.ns_per_byte * net[a.index].out_bytes end
    end
  end
  return rows, { net = "net", nodes = nodes, devices = devices, links = links, options = options, between = between }
end

-- ---- the cost of a plan ----

-- The answer of a policy as a plan: for each layer { { unit, begin, stop } ... } in pieces.
function M.plan(net, answer, default)
  local plan = {}
  for i, layer in ipairs(net) do
    local a = answer[layer.name] or default
    if type(a) == "string" then a = { device = a } end
    if a.device then plan[i] = { { unit = a.device, from = 0, to = layer.size or 1 } }
    else
      local names, shares, parts = {}, {}, {}
      for name in pairs(a) do
        if name ~= "axis" then names[#names + 1] = name end
      end
      table.sort(names)
      for k, name in ipairs(names) do shares[k] = a[name] end
      local at = 0
      for k, size in ipairs(board.ranges(shares, layer.size)) do
        if size > 0 then parts[#parts + 1] = { unit = names[k], from = at, to = at + size } end
        at = at + size
      end
      plan[i] = parts
    end
  end
  return plan
end

-- Seconds and joules of the plan. Each unit has a queue; values stay where they were computed or
-- copied to.
function M.run(b, net, plan, host)
  local ready, joules, per_byte = {}, 0, 0
  local homes = {} -- The places of each layer's value, by unit: { from, to, at } pieces.
  for _, rail in ipairs(b.rails) do per_byte = per_byte + (rail.per_byte or 0) end
  for _, unit in ipairs(b.units) do
    ready[unit.name] = 0
    if unit.host and not host then host = unit.name end
  end

  local bring
  -- Copies a value's piece from one unit to another.
  local function copy(v, from, to, piece)
    local a, c = board.named(b.units, from), board.named(b.units, to)
    local start = piece.at
    local list = homes[v][to] or {}
    homes[v][to] = list
    if free(a) and free(c) then
      list[#list + 1] = { from = piece.from, to = piece.to, at = start }
      return start
    end
    local mover = free(a) and c or a
    local bytes = net[v].out_bytes * (piece.to - piece.from) / (net[v].size or 1)
    start = math.max(start, ready[mover.name])
    local stop = start + transfer(mover, bytes)
    ready[mover.name] = stop
    joules = joules + per_byte * bytes
    list[#list + 1] = { from = piece.from, to = piece.to, at = stop }
    return stop
  end

  -- The time at which the unit has pieces [from, to) of value v.
  function bring(v, unit, from, to)
    local at, time = from, 0
    while at < to do
      local here
      for _, p in ipairs(homes[v][unit] or {}) do
        if p.from <= at and at < p.to then here = p end
      end
      if here then
        time, at = math.max(time, here.at), here.to
      else
        local source, piece
        for _, u in ipairs(b.units) do -- The program's memory comes first.
          for _, p in ipairs(homes[v][u.name] or {}) do
            if p.from <= at and at < p.to and (not source or (u.host and not board.named(b.units, source).host)) then
              source, piece = u.name, p
            end
          end
        end
        local part = { from = at, to = math.min(piece.to, to), at = piece.at }
        local to_unit, from_unit = board.named(b.units, unit), board.named(b.units, source)
        if not to_unit.host and not from_unit.host then
          part.at = copy(v, source, host, part)
          source = host
        end
        time = math.max(time, copy(v, source, unit, part))
        at = part.to
      end
    end
    return time
  end

  local final = 0
  for i, layer in ipairs(net) do
    homes[i] = {}
    local starts = {}
    for k, part in ipairs(plan[i]) do
      local start = 0
      for _, v in ipairs(layer.inputs) do
        if v > 0 then
          local size = net[v].size or 1
          local range = layer.keeps and #plan[i] > 1 and size == layer.size
          start = math.max(start, bring(v, part.unit, range and part.from or 0, range and part.to or size))
        end
      end
      starts[k] = start
    end
    for k, part in ipairs(plan[i]) do
      local unit = board.named(b.units, part.unit)
      local share = (part.to - part.from) / (layer.size or 1)
      local seconds, e = board.work(b, unit, { op = layer.op, flops = layer.flops, products = layer.products, bytes = layer.bytes, share = share }, #plan[i] > 1)
      local stop = math.max(starts[k], ready[part.unit]) + seconds
      ready[part.unit] = stop
      joules = joules + e
      homes[i][part.unit] = { { from = part.from, to = part.to, at = stop } }
      final = math.max(final, stop)
    end
  end
  if #plan[#net] > 1 then final = math.max(final, bring(#net, host, 0, net[#net].size)) end
  return final, joules + board.idle_watts(b) * final
end

-- Energy-delay product, seconds and joules of a placement.
function M.judge(b, net, answer, default)
  local seconds, joules = M.run(b, net, M.plan(net, answer, default))
  return seconds * joules, seconds, joules
end

return M
