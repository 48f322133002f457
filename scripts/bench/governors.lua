-- Compares the results of W18, chapter 5, on frequencies with those of the simulated board, and shows
-- the results of the policies in governors/. The board's parameters were fitted to the rows marked
-- "fitted", and the "predicted" rows follow from it. The "simulated" rows, of our own policies on
-- simulated machines, have no counterpart in the document.
--
--   cnnrun scripts/bench/governors.lua [--quick] [--json] [--output FILE.svg]
local c = require "cnnrun"
local args = require "lib.args"
local json = require "lib.json"

local rows, options = {}, nil
-- Adds a row: a number of the document's and ours.
local function add(row, quantity, document, ours, kind)
  rows[#rows + 1] = { row = row, quantity = quantity, document = document, ours = ours, kind = kind,
                      error = document and ours / document - 1 or nil }
end

-- Plays a scene under a policy; returns what was measured.
local function play(policy, scene, seconds, more)
  local o = { policy = policy, scene = scene, seconds = seconds }
  for key, value in pairs(more or {}) do o[key] = value end
  return c.govern(o)
end

-- ---- the document's rows ----

-- Adds the rows of the document's table 5.1, beside what our governors reach.
local function table_51()
  local document = {
    { "lowest fixed (177)", "fixed,at=177", "fitted", 3.27789, .31, 1.37, .42, 4.49 },
    { "highest fixed (543)", "fixed,at=543", "fitted", 1.20785, .83, 2.06, 1.71, 2.49 },
    { "fixed 480", "fixed,at=480", "predicted", 1.29283, .77, 1.85, 1.43, 2.39 },
    { "default governor", "default", "predicted", 1.32383, .76, 1.87, 1.41, 2.48 } }
  for _, d in ipairs(document) do
    local g = play(d[2], "monitor", 300)
    local row = "table 5.1, " .. d[1]
    add(row, "seconds", d[4], g.run_seconds, d[3])
    add(row, "FPS", d[5], 1 / g.run_seconds, d[3])
    add(row, "joules", d[6], g.run_joules, d[3])
    add(row, "watts", d[7], g.run_joules / g.run_seconds, d[3])
    add(row, "EDP", d[8], g.edp, d[3])
  end
end

-- Adds the figures of the document's chapter 5, beside ours.
local function figures()
  local g = play("default", "monitor", 300, { ticks = true })
  local least, most = math.huge, 0
  for i = 10, #g.ticks do least, most = math.min(least, g.ticks[i].hz), math.max(most, g.ticks[i].hz) end
  add("fig 5.3, default governor", "load", .8659, g.load, "predicted")
  add("fig 5.3, default governor", "mean MHz", 480, g.hz * 1e-6, "predicted")
  add("fig 5.3, default governor", "lowest MHz", 350, least * 1e-6, "predicted")
  add("fig 5.3, default governor", "highest MHz", 543, most * 1e-6, "predicted")
  add("fig 5.3, default governor", "switches a minute", nil, g.switches_a_minute, "predicted")
  for _, mhz in ipairs { 177, 266, 350, 420, 480, 543 } do
    local f = play("fixed,at=" .. mhz, "monitor", 300)
    local kind = (mhz == 177 or mhz == 543) and "fitted" or "predicted"
    add("fig 5.4, " .. mhz .. " MHz", "seconds", nil, f.run_seconds, kind)
    add("fig 5.4, " .. mhz .. " MHz", "watts", nil, f.run_joules / f.run_seconds, kind)
    add("fig 5.4, " .. mhz .. " MHz", "joules", nil, f.run_joules, kind)
  end
  return g
end

local kinds = { "mail", "game2d", "game3d", "video", "idle" }
-- The i-th scene: of a loop, or of another kind.
local function scene_of(i, loop)
  return loop and "loop,seed=" .. i or ("other,kind=%s,seed=%d"):format(kinds[(i - 1) % #kinds + 1], i)
end

-- Fig 5.7: distances of windows of 40 loads from the template. Fig 5.8: the decision after each window.
local function recognition(n)
  local template = {}
  local g = play("default", "loop,seed=1004", 10, { ticks = true })
  for i = 1, 40 do template[i] = (g.ticks[i + 5].load or 0) * 100 end
  local far, near = 0, math.huge
  for i = 1, n do
    for _, loop in ipairs { true, false } do
      local t = play("default", scene_of(i, loop), 10, { ticks = true }).ticks
      local loads = {}
      for k = 1, 40 do loads[k] = (t[k + 5].load or 0) * 100 end
      local d = c.dtw(template, loads, { band = .25 })
      if loop then far = math.max(far, d) else near = math.min(near, d) end
    end
  end
  add("fig 5.7, loops of inference", "largest distance", nil, far, "simulated")
  add("fig 5.7, other scenes", "least distance", nil, near, "simulated")
  for _, policy in ipairs { "dtw", "dtw_learned" } do
    local right = 0
    for i = 1, n do
      for _, loop in ipairs { true, false } do
        local why = play(policy, scene_of(i, loop), 61).why
        if (why:find("inference") ~= nil) == loop then right = right + 1 end
      end
    end
    add(("fig 5.8, %s, %d loops and %d others"):format(policy, n, n), "right decisions", 1, right / (2 * n), "simulated")
  end
end

-- Table 5.2: the power that a policy costs: its thread's share of a core, times the document's 0.71 W
-- for a busy core. As 0.71 W is an input, its row is no prediction.
local function table_52()
  for _, policy in ipairs { "default", "dtw", "dtw_learned", "edp" } do
    local g = play(policy, "monitor", 1000)
    local share = g.cpu_seconds / g.seconds
    add("table 5.2, " .. policy, "CPU watts", policy == "default" and .71 or .72, .71 * (1 + share), policy == "default" and "fitted" or "predicted")
    add("cost, " .. policy, "share of a processor", nil, share, "measured")
    add("cost, " .. policy, "longest tick, ms", nil, g.longest_tick * 1e3, "measured")
  end
end

-- ---- our policies, on drawn boards ----

-- The mean of a list that is not empty.
local function mean(list)
  local sum = 0
  for _, v in ipairs(list) do sum = sum + v end
  return sum / #list
end

-- The least result of all fixed steps, each of which is simulated. measure(result) returns the number to
-- minimise, or nil.
local function oracle(scene, measure)
  local best = math.huge
  for mhz in pairs(scene.steps) do
    local value = measure(play("fixed,at=" .. mhz, scene.spec, 20, scene.more))
    if value and value < best then best = value end
  end
  return best
end

-- The set of a board's clock steps in MHz, by trying each frequency.
local function steps_of(spec)
  local seen, steps = play("fixed,at=lowest", spec, .2).hz, {}
  for mhz = math.floor(seen * 1e-6), 1000 do steps[mhz] = nil end
  local last
  for mhz = 100, 1000, 4 do -- `fixed` rounds down to a step, so the distinct results are the steps.
    local hz = play("fixed,at=" .. mhz, spec, .3, { ticks = true }).ticks[3].hz
    if hz ~= last then steps[math.ceil(hz * 1e-6)], last = true, hz end
  end
  return steps
end

-- Over so many drawn boards: how much worse the policy's energy-delay product is than the best
-- fixed clock's, on average and at worst.
local function edp_policy(boards)
  local over, worst, fixed_worst = {}, 0, 0
  for board = 1, boards do
    local steps = steps_of("drawn,seed=" .. board)
    for s = 1, 8 do
      local spec = ("drawn,seed=%d,scene=%d"):format(board, s)
      local best = oracle({ spec = spec, steps = steps }, function(g) return g.edp end)
      local g = play("edp", spec, 300)
      over[#over + 1] = g.edp / best - 1
      worst = math.max(worst, g.edp / best - 1)
      fixed_worst = math.max(fixed_worst, g.edp / play("fixed", spec, 20).edp - 1)
    end
  end
  local row = ("edp, %d boards, 8 scenes, 300 s"):format(boards)
  add(row, "EDP over the oracle's, mean", nil, mean(over), "simulated")
  add(row, "EDP over the oracle's (best fixed step), worst", nil, worst, "simulated")
  add(row, "EDP over the highest step's, worst", nil, fixed_worst, "simulated")
end

-- Over so many drawn boards: how often the policy is late, and how much more energy it takes than
-- the best clocks that are not.
local function deadline_policy(boards)
  local late, runs, over = 0, 0, {}
  for board = 1, boards do
    local spec = ("drawn,seed=%d,scene=%d"):format(board, board % 8 + 1)
    local most = play("fixed", spec, 20).run_seconds
    local fps = 1 / (most * 1.35)
    spec = spec .. ",fps=" .. fps
    local more = { late = 1 / fps }
    local best = oracle({ spec = spec, steps = steps_of(spec), more = more }, function(g)
      return g.late == 0 and g.run_joules or nil
    end)
    local g = play("deadline,fps=" .. fps, spec, 300, more)
    late, runs, over[#over + 1] = late + g.late, runs + g.runs, g.run_joules / best - 1
  end
  local row = ("deadline, %d boards, 300 s"):format(boards)
  add(row, "frames late", nil, late / runs, "simulated")
  add(row, "joules a frame over the oracle's, mean", nil, mean(over), "simulated")
end

-- Over so many hot drawn boards: how long they are throttled under the policy, and how many more
-- passes they make than by default.
local function cool_policy(boards)
  local hot, gain = {}, {}
  for board = 1, boards do
    local spec = ("drawn,seed=%d,scene=%d,hot"):format(board, board % 8 + 1)
    local was, is = play("default", spec, 600), play("cool,limit=80", spec, 600)
    hot[#hot + 1], gain[#gain + 1] = is.hot_share, is.runs / was.runs
  end
  local row = ("cool, %d boards that throttle, 600 s"):format(boards)
  add(row, "share of time throttled, mean", nil, mean(hot), "simulated")
  add(row, "frames over the default governor's, mean", nil, mean(gain), "simulated")
end

-- Compares policy edp on core and bus with edp on the core alone, while the bus stays at the highest
-- step.
local function bus_policy(boards)
  local ratio = {}
  for board = 1, boards do
    local spec = ("drawn,seed=%d,scene=%d,bus"):format(board, board % 8 + 1)
    ratio[#ratio + 1] = play("edp", spec, 600).edp / play("edp,only=gpu", spec, 600).edp
  end
  add(("edp, core and bus, %d boards, 600 s"):format(boards), "EDP over the core's alone, mean", nil, mean(ratio), "simulated")
end

-- ---- output ----

-- Tells all rows: to take, as JSON or as a table.
local function tell(g, take)
  if take then
    for _, row in ipairs(rows) do take(row) end
  elseif options.json then
    for _, row in ipairs(rows) do print(json.encode(row)) end
  else
    print(("%-46s %-44s %10s %10s %8s  %s"):format("row", "quantity", "document", "ours", "error", "kind"))
    for _, r in ipairs(rows) do
      print(("%-46s %-44s %10s %10.4g %8s  %s"):format(r.row, r.quantity, r.document and ("%.4g"):format(r.document) or "-",
        r.ours, r.error and ("%+.1f%%"):format(r.error * 100) or "", r.kind))
    end
  end
  if not options.output then return end
  local load, hz = {}, {}
  for i = 1, math.min(#g.ticks, 200) do
    load[#load + 1] = { g.ticks[i].seconds, (g.ticks[i].load or 0) * 100 }
    hz[#hz + 1] = { g.ticks[i].seconds, g.ticks[i].hz * 1e-6 }
  end
  require("lib.plot").lines({ { load, label = "load, %" }, { hz, label = "MHz" } },
    { title = "fig 5.3: load and frequency, default governor", x = "seconds", markers = false }):save(options.output)
end

local spec = {
  usage = "governors.lua [--quick]", about = "Chapter 5's tables and figures, and how the policies do.",
  flags = { { "--json", "an object a row" }, { "--quick", "fewer boards and scenes" },
            { "--tables", "only what the document has, none of our boards" },
            { "-o, --output FILE", "fig 5.3 as .svg or .png" } } }

-- take (or nil): a function that is called with each row instead of printing it.
return function(words, take)
  return args.main(words, spec, function(o)
    options = o
    table_51()
    local g = figures()
    recognition((o.quick or o.tables) and 5 or 20)
    table_52()
    if o.tables then tell(g, take) return 0 end
    edp_policy(o.quick and 3 or 20)
    deadline_policy(o.quick and 3 or 20)
    cool_policy(o.quick and 3 or 10)
    bus_policy(o.quick and 3 or 10)
    tell(g, take)
    return 0
  end)
end
