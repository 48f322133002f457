-- Compares place/best.lua on drawn boards with the least possible EDP and with the thesis' algorithms.
--
--   cnnrun scripts/bench/optimum.lua [--boards 100] [--from 1] [--layers 6] [--states 300000] [--json]
--   cnnrun scripts/bench/optimum.lua --net scripts/nets/vgg16.lua ... [--boards 1]
--
-- Without --net, each board gets a drawn net of 2 to --layers layers. The layers of a net given with
-- --net must form a chain. lib/placement.lua simulates all plans; lib/optimum.lua finds the least EDP.
-- The table has best.lua's EDP relative to the least one, the number of plans for which the search was
-- stopped before it had looked at all states, and the EDP relative to algorithms 4.1 and 4.2 (geometric
-- mean, and the number of plans with a higher EDP).
local c = require "cnnrun"
local args = require "lib.args"
local json = require "lib.json"
local optimum = require "lib.optimum"
local P = require "lib.placement"

local policy = { best = require("place.best").place, thesis = require("place.edp_set").place }
local POINTWISE = { relu = true, sigmoid = true, tanh = true, clip = true, leaky_relu = true, dropout = true,
                    batch_normalization = true, hard_swish = true, flatten = true, reshape = true, identity = true }

-- Loads a net as a chain of layers; element-wise operators belong to the preceding layer.
local function chain_of(path)
  local list, of, count = {}, {}, 0
  for _, l in ipairs(c.load(path, { weights = "random:1" }):layers()) do
    local n, before = 1, of[l.inputs[1]]
    for _, size in ipairs(l.sizes) do n = n * size end
    if POINTWISE[l.operator] and before then of[l.name] = before
    else
      assert(#l.inputs == 1 and (before or 0) == #list, path .. ": its layers are not a chain")
      local input = before and list[before].out_bytes or 4 * n
      list[#list + 1] = { name = l.name, op = l.operator, flops = math.max(l.flops, n), size = l.sizes[2], inputs = { #list },
                          out_bytes = 4 * n, keeps = l.operator:find "pool" ~= nil or nil, bytes = input + 4 * n }
      of[l.name] = #list
    end
  end
  return list
end

-- The least known EDP: that of the search, of its plan after polishing, or of best.lua's plan after
-- polishing (moving pieces between parts). nil: the search was stopped before it saw all states.
local function least_of(b, net, units, answer, row, most)
  -- Energy-delay product of the plan after small changes; infinite without a plan.
  local function polished(plan) return plan and optimum.polish(b, net, plan) or math.huge end
  local known = math.min(row.best, polished(P.plan(net, answer, units[1])))
  local least, plan, states = optimum.find(b, net, units, known * (1 + 1e-9), most)
  row.states = states
  return least and math.min(known, polished(plan))
end

-- One board and net: each policy's placement against the best one.
local function judge(b, net, most)
  local units, row, answer = {}, { board = b.seed, layers = #net, units = #b.units }, nil
  for i, u in ipairs(b.units) do units[i] = u.name end
  -- Judges the placement by the policy of that name, and keeps it in `answer`; returns its
  -- energy-delay product.
  local function take(name)
    answer = policy[name](P.view(b, net, units)) or {}
    return (P.judge(b, net, answer, units[1]))
  end
  row.alone = math.huge
  for _, u in ipairs(units) do row.alone = math.min(row.alone, (P.judge(b, net, {}, u))) end
  row.thesis, row.planned = take "thesis", take "best"
  row.best = math.min(row.planned, row.alone) -- A plan that is worse than one device alone is not used.
  row.over_thesis = row.best / row.thesis
  row.optimum = least_of(b, net, units, answer, row, most)
  row.above = row.optimum and row.best / row.optimum - 1
  return row
end

-- Sums of rows, and one line of text with them.
local function sums()
  local s = { n = 0, late = 0, most = 0, sum = 0, ratio = 0, worse = 0 }
  -- Adds a row to the sums.
  function s.add(row)
    s.n, s.ratio = s.n + 1, s.ratio + math.log(row.over_thesis)
    if row.over_thesis > 1 + 1e-9 then s.worse = s.worse + 1 end
    if row.above then s.most, s.sum = math.max(s.most, row.above), s.sum + row.above else s.late = s.late + 1 end
  end
  -- The sums as a line of the table, under that name.
  function s.text(name)
    return ("%-24s %5d %10d %12.3f%% %11.3f%% %16.3f %6d"):format(name, s.n, s.late, s.most * 100,
           s.sum / math.max(s.n - s.late, 1) * 100, math.exp(s.ratio / s.n), s.worse)
  end
  return s
end

-- The benchmark, over the boards of the options o; prints its table.
local function work(o)
  o.from, o.boards, o.layers, o.states = o.from or 1, o.boards or 100, o.layers or 6, o.states or 300000
  local nets, all = {}, { sums() }
  for i, path in ipairs(o.net or {}) do nets[i], all[i] = { path = path, list = chain_of(path) }, sums() end
  for seed = o.from, o.from + o.boards - 1 do
    local b = require "boards.drawn" { seed = seed }
    local here = #nets > 0 and nets or { { list = optimum.drawn_net(seed, 2 + seed % (o.layers - 1)) } }
    for i, net in ipairs(here) do
      local row = judge(b, net.list, o.states)
      row.net = net.path
      if o.json then print(json.encode(row)) end
      all[i].add(row)
    end
  end
  if o.json then return end
  print(("%-24s %5s %10s %13s %12s %16s %6s"):format("plans of", "", "unfinished", "above, most", "on average", "over 4.1 and 4.2", "worse"))
  for i, s in ipairs(all) do
    print(s.text(nets[i] and nets[i].path:match "([^/]*)%.lua$" or ("nets of 2 to %d layers"):format(o.layers)))
  end
end

return function(words)
  return args.main(words, { usage = "optimum.lua [options]",
    about = "Compares best.lua with the least possible EDP, and with the thesis' algorithms, on drawn boards.",
    flags = { { "--boards COUNT", "number of drawn boards (100)" }, { "--from COUNT", "the first one's seed (1)" },
              { "--layers COUNT", "most layers of a drawn net (6)" }, { "--json", "an object a plan" }, { "--states COUNT", "maximum number of states for a plan (300000)" },
              { "--net FILE", "instead, a net whose layers are a chain (repeatable)", many = true } } }, work)
end
