-- How far place/best.lua is from the least EDP there is, and from the thesis' algorithms, on boards that are drawn.
--
--   cnnrun scripts/bench/optimum.lua [--boards 100] [--from 1] [--layers 6] [--json]
--   cnnrun scripts/bench/optimum.lua --net scripts/nets/vgg16.lua ... [--boards 1]
--
-- Without nets: a drawn net of two to so many layers on each board. With nets, whose layers must follow each
-- other: those. Every plan is run by lib/placement.lua, the least is lib/optimum.lua's.
local c = require "cnnrun"
local args = require "lib.args"
local json = require "lib.json"
local optimum = require "lib.optimum"
local P = require "lib.placement"

local policy = { best = require("place.best").place, thesis = require("place.edp_set").place }
local POINTWISE = { relu = true, sigmoid = true, tanh = true, clip = true, leaky_relu = true, dropout = true,
                    batch_normalization = true, hard_swish = true, flatten = true, reshape = true, identity = true }

-- A net of the zoo as layers that follow each other; what works on single values goes along with what is before.
local function chain_of(path)
  local list, of, count = {}, {}, 0
  for _, l in ipairs(c.load(path, { weights = "random:1" }):layers()) do
    local n, before = 1, of[l.inputs[1]]
    for _, size in ipairs(l.sizes) do n = n * size end
    if POINTWISE[l.operator] and before then of[l.name] = before
    else
      assert(#l.inputs == 1 and (before or 0) == #list, path .. ": its layers don't follow each other")
      local input = before and list[before].out_bytes or 4 * n
      list[#list + 1] = { name = l.name, op = l.operator, flops = math.max(l.flops, n), size = l.sizes[2], inputs = { #list },
                          out_bytes = 4 * n, keeps = l.operator:find "pool" ~= nil or nil, bytes = input + 4 * n }
      of[l.name] = #list
    end
  end
  return list
end

local function judge(b, net)
  local units, row = {}, { board = b.seed, layers = #net, units = #b.units }
  for i, u in ipairs(b.units) do units[i] = u.name end
  local function take(name)
    local rows, seen = P.view(b, net, units)
    return (P.judge(b, net, policy[name](rows, seen) or {}, units[1]))
  end
  row.alone = math.huge
  for _, u in ipairs(units) do row.alone = math.min(row.alone, (P.judge(b, net, {}, u))) end
  row.planned, row.thesis = take "best", take "thesis"
  row.best = math.min(row.planned, row.alone) -- what is measured to be worse is not kept
  local least, _, states = optimum.find(b, net, units, row.best * (1 + 1e-9))
  row.optimum, row.states = math.min(least, row.best), states
  row.above, row.over_thesis = row.best / row.optimum - 1, row.best / row.thesis
  return row
end

local function work(o)
  o.from, o.boards, o.layers = o.from or 1, o.boards or 100, o.layers or 6
  local nets, most, sum, n, ratio, worse = {}, 0, 0, 0, 0, 0
  for _, path in ipairs(o.net or {}) do nets[#nets + 1] = { path = path, list = chain_of(path) } end
  for seed = o.from, o.from + o.boards - 1 do
    local b = require "boards.drawn" { seed = seed }
    local here = #nets > 0 and nets or { { list = optimum.drawn_net(seed, 2 + seed % (o.layers - 1)) } }
    for _, net in ipairs(here) do
      local row = judge(b, net.list)
      row.net = net.path
      if o.json then print(json.encode(row)) end
      most, sum, n, ratio = math.max(most, row.above), sum + row.above, n + 1, ratio + math.log(row.over_thesis)
      if row.over_thesis > 1 + 1e-9 then worse = worse + 1 end
    end
  end
  print(("# %d plans: above the least EDP by %.3f%% at most, %.3f%% on average; over algorithms 4.1 and 4.2 " ..
         "%.3f (geometric mean), worse %d times"):format(n, most * 100, sum / n * 100, math.exp(ratio / n), worse))
end

return function(words)
  return args.main(words, { usage = "optimum.lua [options]",
    about = "How far best.lua is from the least EDP there is, and from the thesis' algorithms, on drawn boards.",
    flags = { { "--boards COUNT", "how many are drawn (100)" }, { "--from COUNT", "the first one's seed (1)" },
              { "--layers COUNT", "most layers of a drawn net (6)" }, { "--json", "an object a plan" },
              { "--net FILE", "instead, a net whose layers follow each other (repeatable)", many = true } } }, work)
end
