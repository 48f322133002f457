-- How each board's parameters are fitted to rows of documents, one row a step, and which rows that
-- predicts: lib/fit.lua does it, fit.lua tells of it.
local board = require "lib.board"
local fit = require "lib.fit"
local nets = require "boards.nets"

-- ---- the ODROID-XU3 ----

local tiny = nets.table_4_2()
local gpu, ours = { { unit = "gpu4", share = 1 } }, { { unit = "gpu4", share = 2 / 3 }, { unit = "gpu2", share = 1 / 3 } }
local cpu = { { unit = "cpu", share = 1 } }

local function on(shares, what)
  return function(b)
    local seconds, joules = board.run(b, tiny, shares)
    return what == "seconds" and seconds or what == "joules" and joules or joules / seconds
  end
end

-- Relative speeds make the shares (algorithm 4.2).
local function everything(b)
  local list, sum = {}, 0
  for i, name in ipairs { "gpu4", "gpu2", "cpu" } do
    local seconds = board.run(b, tiny, { { unit = name, share = 1 } })
    list[i] = { unit = name, share = 1 / seconds }
    sum = sum + 1 / seconds
  end
  for _, s in ipairs(list) do s.share = s.share / sum end
  return list
end

local function greedy(b) return board.run(b, tiny, everything(b)) end

-- Clusters go by their cores: 4 of 4, 2 of 4.
local function clusters(b, f)
  f(board.named(b.units, "gpu4"), 1)
  f(board.named(b.units, "gpu2"), 1 / 2)
end

-- Shares of the processor's speed and power that are the A15's and the A7's.
local function cores(b, f)
  f(board.named(b.units, "a15"), .846, .909)
  f(board.named(b.units, "a7"), .154, .091)
end

local function rate(unit, value)
  unit.classes[1].gflops, unit.classes[2].gflops = value, value
end

local MB = 4e-6 * 100
local im2col = 2 * 9 * 254 * 254 * MB -- each element of the matrix is read and written
local pooling, relu = 10 * 254 * 254 * MB, 2 * 256 * 256 * MB

-- Seconds without the launch, which the document's are, and watts.
local function memory_bound(b, megabytes)
  local unit = board.named(b.units, "gpu4")
  local seconds, joules = board.work(b, unit, { op = "im2col", flops = 0, bytes = megabytes * 1e6 })
  return seconds - unit.launch, joules / seconds
end

local function edp(b, megabytes)
  local seconds, watts = memory_bound(b, megabytes)
  return seconds ^ 2 * watts
end

local function v2f(b, mhz)
  for _, step in ipairs(board.named(b.clocks, "gpu").steps) do
    if step.mhz == mhz then return step.volts ^ 2 * mhz end
  end
end
local function monitor(b, mhz)
  local m = b.notes.monitor
  return m.seconds + m.megacycles / mhz, m.static + m.per_v2_mhz * v2f(b, mhz)
end
local function monitor_seconds(mhz) return function(b) return (monitor(b, mhz)) end end
local function monitor_watts(mhz) return function(b) return (select(2, monitor(b, mhz))) end end

local xu3 = {
  board = require "boards.odroid_xu3",
  steps = {
    { rows = { "W18 table 5.1, 177 MHz, seconds", "W18 table 5.1, 543 MHz, seconds" },
      tell = { monitor_seconds(177), monitor_seconds(543) },
      function(b, low, high)
        b.notes.monitor.megacycles = (low - high) / (1 / 177 - 1 / 543)
        b.notes.monitor.seconds = low - b.notes.monitor.megacycles / 177
      end },
    { rows = { "W18 table 5.1, 177 MHz, watts", "W18 table 5.1, 543 MHz, watts" },
      tell = { monitor_watts(177), monitor_watts(543) },
      function(b, low, high)
        b.notes.monitor.per_v2_mhz = (high - low) / (v2f(b, 543) - v2f(b, 177))
        b.notes.monitor.static = low - b.notes.monitor.per_v2_mhz * v2f(b, 177)
        for _, unit in ipairs(b.units) do
          if unit.rail == "gpu" then unit.power.static = b.notes.monitor.static * unit.cores / 6 end
        end
      end },
    { rows = { "W18 fig 3.4, im2col on the GPU, seconds" },
      tell = { function(b) return im2col * 1e-3 / board.named(b.units, "gpu4").classes[3].gbytes end },
      function(b, seconds) clusters(b, function(u, part) u.classes[3].gbytes = im2col * 1e-3 / seconds * part end) end },
    { rows = { "W18 fig 3.4, im2col on the CPU, seconds" },
      tell = { function(b)
        return im2col * 1e-3 / (board.named(b.units, "a15").classes[3].gbytes + board.named(b.units, "a7").classes[3].gbytes)
      end },
      function(b, seconds) cores(b, function(u, share) u.classes[3].gbytes = im2col * 1e-3 / seconds * share end) end },
    { rows = { "W18 table 4.1, GPU, seconds" }, tell = { on(gpu, "seconds") },
      function(b, seconds)
        local value = fit.solve(function(x) rate(board.named(b.units, "gpu4"), x) return on(gpu, "seconds")(b) end, seconds)
        clusters(b, function(u, part) rate(u, value * part) end)
      end },
    { rows = { "W18 table 4.1, GPU, joules", "W18 fig 3.4, im2col on the GPU, watts" },
      tell = { on(gpu, "joules"), function(b) return (select(2, memory_bound(b, im2col))) end },
      function(b, joules, watts)
        local function try(x)
          clusters(b, function(u, part)
            u.power.dynamic = x * part
            u.classes[3].activity = (watts * part - u.power.static) / u.power.dynamic
          end)
          return on(gpu, "joules")(b)
        end
        try(fit.solve(try, joules))
      end },
    { rows = { "W18 table 4.1, CPU, seconds" }, tell = { on(cpu, "seconds") },
      function(b, seconds)
        local function try(x)
          cores(b, function(u, share) rate(u, x * share) end)
          return on(cpu, "seconds")(b)
        end
        try(fit.solve(try, seconds))
      end },
    { rows = { "W18 table 4.1, CPU, joules" }, tell = { on(cpu, "joules") },
      function(b, joules)
        local function try(x)
          cores(b, function(u, _, watts) u.power.dynamic = x * watts end)
          return on(cpu, "joules")(b)
        end
        try(fit.solve(try, joules))
      end },
    { rows = { "W18 fig 4.7, our work, seconds" }, tell = { on(ours, "seconds") },
      function(b, seconds)
        local function try(x)
          for _, u in ipairs(b.units) do u.split.seconds = x end
          return on(ours, "seconds")(b)
        end
        try(fit.solve(try, seconds))
      end },
    { rows = { "W18 fig 4.7, our work, joules" }, tell = { on(ours, "joules") },
      function(b, joules)
        local function try(x)
          for _, u in ipairs(b.units) do u.split.joules = x end
          return on(ours, "joules")(b)
        end
        try(fit.solve(try, joules))
      end },
  },
  predict = {
    { "W18 fig 4.7, greedy, seconds", function(b) return (greedy(b)) end },
    { "W18 fig 4.7, greedy, watts", function(b) local t, e = greedy(b) return e / t end },
    { "W18 fig 4.7, greedy, joules", function(b) return (select(2, greedy(b))) end },
    { "W18 fig 4.7, EDP of greedy over that of our work", function(b)
      local t, e = greedy(b)
      local t2, e2 = board.run(b, tiny, ours)
      return t * e / (t2 * e2)
    end },
    { "W18 table 3.3, pooling on the GPU, EDP", function(b) return edp(b, pooling) end },
    { "W18 table 3.4, ReLU on the GPU, EDP", function(b) return edp(b, relu) end },
    { "W18 table 5.1, 480 MHz, seconds", monitor_seconds(480) },
    { "W18 table 5.1, 480 MHz, watts", monitor_watts(480) },
    { "W18 table 5.1, 480 MHz, joules", function(b) local t, p = monitor(b, 480) return t * p end },
  },
}

-- ---- boards of which one net is known ----

-- Both rates of a unit, of convolutions and dense layers, so that it takes the net as long as told.
local function speed(row, net, unit)
  local function seconds(b) return (board.run(b, net, { { unit = unit, share = 1 } })) end
  return { rows = { row }, tell = { seconds }, function(b, value)
    local u = board.named(b.units, unit)
    rate(u, fit.solve(function(x) rate(u, x) return seconds(b) end, value))
  end }
end

local alexnet, poor = nets.alexnet(), nets.fastpoornet()
local function alexnet_on(unit, watts_row, joules_row)
  local function run(b) return board.run(b, alexnet, { { unit = unit, share = 1 } }) end
  return { rows = { watts_row, joules_row },
           tell = { function(b) local t, e = run(b) return e / t end, function(b) return (select(2, run(b))) end },
           function(b, watts, joules)
             local u = board.named(b.units, unit)
             rate(u, fit.solve(function(x) rate(u, x) return (run(b)) end, joules / watts))
             u.power.dynamic = watts - (u.power.static or 0)
           end }
end

return {
  { name = "odroid_xu3", recipe = xu3 },
  { name = "snapdragon_820", recipe = { board = require "boards.snapdragon_820", steps = {
    speed("W18 3.4, AlexNet on Snapdragon 820's GPU, seconds", alexnet, "gpu") } } },
  { name = "htc_one_m9", recipe = { board = require "boards.htc_one_m9", steps = {
    alexnet_on("gpu", "CD 4.3, AlexNet on HTC One M9's GPU, watts", "CD 4.3, AlexNet on HTC One M9's GPU, joules"),
    alexnet_on("cpu", "CD 4.3, AlexNet on HTC One M9's CPU, watts", "CD 4.3, AlexNet on HTC One M9's CPU, joules") } } },
  { name = "adreno_330", recipe = { board = require "boards.adreno_330", steps = {
    speed("S16 table 3.1, FastPoorNet's convolutions on the CPU, seconds", poor, "cpu"),
    { rows = { "S16 3.4, bandwidth of the GPU, GB/s" },
      tell = { function(b) return board.named(b.units, "gpu").classes[3].gbytes end },
      function(b, value) board.named(b.units, "gpu").classes[3].gbytes = value end },
    { rows = { "S16 3.4, FastPoorNet with convolutions on the GPU, seconds", "S16 table 3.1, FastPoorNet on the CPU, seconds" },
      tell = { function(b) return board.run(b, poor, { { unit = "gpu", share = 1 } }) + b.notes.rest end,
               function(b) return board.run(b, poor, { { unit = "cpu", share = 1 } }) + b.notes.rest end },
      function(b, with, without) -- what is no convolution stays on the CPU
        local function seconds(unit) return (board.run(b, poor, { { unit = unit, share = 1 } })) end
        b.notes.rest = without - seconds "cpu"
        local u = board.named(b.units, "gpu")
        rate(u, fit.solve(function(x) rate(u, x) return seconds "gpu" end, with - b.notes.rest))
      end } } } },
  { name = "jetson_tk1", recipe = { board = require "boards.jetson_tk1", steps = {} } },
}
