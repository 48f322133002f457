-- Policies of scripts/place on rows that are made up: what the algorithms choose is worked out by hand,
-- and best.lua is held against the true optimum of small nets. Words: how many boards, how many layers.
local optimum = require "lib.optimum"
local P = require "lib.placement"
local policy = {}
for _, name in ipairs { "best", "edp_set", "split", "greedy", "fastest", "least_energy", "cnndroid" } do
  policy[name] = require("place." .. name).place
end

local n = 0
-- Prints one numbered TAP line: ok if `good`, else not ok.
local function ok(good, what, more)
  n = n + 1
  print((good and "ok " or "not ok ") .. n .. " - " .. what)
  if not good and more then print("# " .. tostring(more)) end
end
-- A test: both numbers agree.
local function near(a, b, what) ok(math.abs(a - b) <= 1e-9 * math.abs(b), what, a .. ", want " .. b) end

-- ---- the thesis' own numbers ----

-- What a policy sees.
local function seen_of(devices, nodes, options)
  local seen = { devices = devices, nodes = nodes, options = options or {}, links = {}, between = function() return 0 end }
  for _, d in ipairs(devices) do
    d.seconds, d.joules = d.t, d.e
  end
  return seen
end
local thesis = { { name = "gpu4", t = 1.9, e = 1.48 }, { name = "gpu2", t = 3.8, e = 1.48 },
                 { name = "cpu", t = 11.94, e = 52.12, host = true } }
local conv = { { name = "conv1", operator = "conv", inputs = { 0 }, splits = true, out_bytes = 4 } }

-- Tests: placements by hand.
local function by_hand()
  local answer, steps = policy.edp_set({}, seen_of(thesis, conv))
  near(answer.conv1.gpu4, 2 / 3, "algorithm 4.1 leaves the two GPU clusters, which share by their speeds")
  near(answer.conv1.gpu2, 1 / 3, "the smaller one a third")
  ok(answer.conv1.cpu == nil, "the processor is dropped")
  local perf = 1 + .5 + 1.9 / 11.94
  local power = (1.48 / 1.9 + 1.48 / 3.8 + 52.12 / 11.94) / (1.48 / 1.9)
  near(steps[5].relative_edp, power / perf ^ 2, "relative EDP of all three")
  ok(steps[5].dropped == "cpu", "is too much: cpu goes")
  near(steps[6].relative_edp, 1.5 / 1.5 ^ 2, "of the two that are left")

  answer = policy.edp_set({}, seen_of(thesis, conv, { threshold = 3 }))
  ok(answer.conv1.cpu ~= nil, "a threshold of 3 keeps all")
  answer = policy.edp_set({}, seen_of(thesis, conv, { threshold = 0 }))
  ok(answer.conv1 == "gpu4", "a threshold that nothing reaches ends when one device is left", answer.conv1)
  answer = policy.greedy({}, seen_of(thesis, conv))
  near(answer.conv1.cpu, (1 / 11.94) / (1 / 1.9 + 1 / 3.8 + 1 / 11.94), "greedy uses everything")
  answer = policy.split({}, seen_of({ thesis[1], thesis[3] }, conv))
  near(answer.conv1.gpu4 + answer.conv1.cpu, 1, "shares are 1 in all")
  near(answer.conv1.gpu4 / answer.conv1.cpu, 11.94 / 1.9, "and go by the speeds")
  answer = policy.split({ { index = 1, device = "gpu4", ns = 1, takes = 1 }, { index = 1, device = "cpu", ns = 3, takes = 1 } },
                        seen_of({ thesis[1], thesis[3] }, conv, { per_layer = 1 }))
  near(answer.conv1.gpu4, .75, "by layers, if asked")
  local sources = { { "recorded", 5 }, { "estimate", 1 }, { "measured", 7 }, { "recorded", 2 } }
  local told = {}
  for i, source in ipairs(sources) do
    told[i] = { index = 1, node = "conv1", device = "gpu4", ns_from = source[1], ns = source[2], takes = 1 }
  end
  told[5] = { index = 1, node = "conv1", device = "cpu", ns = 7, takes = 1 }
  for n, want in ipairs { 5, 5, 7, 7 } do
    local some = { table.unpack(told, 1, n) }
    some[#some + 1] = told[5]
    answer = policy.split(some, seen_of({ thesis[1], thesis[3] }, conv, { per_layer = 1 }))
    near(answer.conv1.gpu4, (1 / want) / (1 / want + 1 / 7), "split: measured beats recorded beats an estimate, of " .. n)
    local one = seen_of({ { name = "gpu4" } }, { { name = "conv1", operator = "conv", inputs = { 0 }, out_bytes = 4 } },
                        { objective = "time" })
    answer = policy.best({ table.unpack(told, 1, n) }, one)
    ok(type(answer.conv1) == "table" and answer.conv1.ns == want, "best too")
  end
  answer = policy.cnndroid({}, seen_of(thesis, { conv[1], { name = "fc", operator = "dense", inputs = { 1 } },
                                                 { name = "pool", operator = "max_pool", inputs = { 2 } } }))
  ok(answer.conv1 == "gpu4" and answer.fc == "gpu4" and answer.pool == "cpu",
     "cnndroid: convolution and dense on the GPU, the rest on the processor")
  answer = policy.cnndroid({}, seen_of({ thesis[3] }, conv))
  ok(answer == nil, "which it does not without a GPU")

  -- a chain: the row on `a` takes the relu along, the one on `b` does not
  local rows = { { index = 1, node = "c", device = "a", takes = 2, ns = 10, joules = 1e-8 },
                 { index = 1, node = "c", device = "b", takes = 1, ns = 6, joules = 1e-8 },
                 { index = 2, node = "r", device = "a", takes = 1, ns = 3, joules = 1e-9 },
                 { index = 2, node = "r", device = "b", takes = 1, ns = 5, joules = 1e-9 } }
  local two = { devices = { { name = "a" }, { name = "b" } },
                nodes = { { name = "c", operator = "conv", inputs = { 0 }, out_bytes = 4 },
                          { name = "r", operator = "relu", inputs = { 1 }, out_bytes = 4 } },
                links = {}, options = { objective = "time" },
                between = function(x, y) return x.device == y.device and 0 or 100 end }
  answer = policy.best(rows, two)
  ok(answer.c == rows[1], "a row that takes the next node along beats two")
  two.options.objective = "least"
  ok(not pcall(policy.best, rows, two), "an objective that is none is an error")
  answer = policy.fastest(rows, two)
  ok(answer.c == rows[2] and answer.r == rows[4], "fastest looks at one layer and at moving")
end

-- ---- drawn boards: best.lua against the true optimum ----

return function(args)
  by_hand()
  local boards, layers = tonumber(args[1] or 8), tonumber(args[2] or 4)
  local most, sum, worse, against, single = 0, 0, 0, 0, 0
  for seed = 1, boards do
    local b = require "boards.drawn" { seed = seed }
    local net = optimum.drawn_net(seed, 2 + seed % (layers - 1))
    local units = {}
    for i, u in ipairs(b.units) do units[i] = u.name end
    -- Energy-delay product of a policy's placement.
    local function take(name)
      local rows, seen = P.view(b, net, units)
      return (P.judge(b, net, policy[name](rows, seen), units[1]))
    end
    local alone = math.huge
    for _, u in ipairs(units) do alone = math.min(alone, (P.judge(b, net, {}, u))) end
    local planned = take "best"
    local edp = math.min(planned, alone) -- its plan is measured once, and one device kept where it wins
    local truth = optimum.find(b, net, units, edp * (1 + 1e-9))
    local gap = edp / truth - 1
    if gap > .01 then print(string.format("# board %d, %d layers: %.3f%% above", seed, #net, gap * 100)) end
    most, sum = math.max(most, gap), sum + gap
    local thesis_edp = take "edp_set"
    against = against + math.log(edp / thesis_edp)
    if edp > thesis_edp * (1 + 1e-9) then worse = worse + 1 end
    if planned > alone * (1 + 1e-9) then single = single + 1 end
  end
  print(string.format("# %d boards, nets of 2 to %d layers: above the optimum by %.3f%% at most, %.3f%% on average; " ..
                      "against algorithms 4.1 and 4.2 %.3f (geometric mean), worse %d times; one device kept %d times",
                      boards, layers, most * 100, sum / boards * 100, math.exp(against / boards), worse, single))
  ok(sum / boards < .005, "on average within half a percent of the optimum", sum / boards)
  ok(most < .02, "and always within two", most)
  ok(worse == 0, "never worse than algorithms 4.1 and 4.2")
  ok(math.exp(against / boards) < .75, "and far better on average")
  print("1.." .. n)
end
