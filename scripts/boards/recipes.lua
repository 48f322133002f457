-- The recipes by which each board's parameters are fitted to rows of documents, one row for each
-- step, and the rows that are predicted. lib/fit.lua runs them, fit.lua prints the results.
local board = require "lib.board"
local fit = require "lib.fit"
local nets = require "boards.nets"
local placement = require "lib.placement"

-- ---- the ODROID-XU3 ----

local tiny = nets.table_4_2()
local gpu, ours = { { unit = "gpu4", share = 1 } }, { { unit = "gpu4", share = 2 / 3 }, { unit = "gpu2", share = 1 / 3 } }
local cpu = { { unit = "cpu", share = 1 } }

-- A function of a board that runs the tiny net divided so; what: it tells "seconds", "joules",
-- "EDP" (their product) or watts.
local function on(shares, what)
  return function(b)
    local seconds, joules = board.run(b, tiny, shares)
    return what == "seconds" and seconds or what == "joules" and joules or what == "EDP" and seconds * joules or joules / seconds
  end
end

-- The shares of all units in proportion to their speeds (algorithm 4.2).
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

-- Seconds and joules of the tiny net divided by those shares.
local function greedy(b) return board.run(b, tiny, everything(b)) end

-- Shares of clusters follow from their cores: 4 of 4, 2 of 4.
local function clusters(b, f)
  f(board.named(b.units, "gpu4"), 1)
  f(board.named(b.units, "gpu2"), 1 / 2)
end

-- The shares of the A15's and the A7's in the processor's speed and power.
local function cores(b, f)
  f(board.named(b.units, "a15"), .846, .909)
  f(board.named(b.units, "a7"), .154, .091)
end

-- Sets both rates of a unit, GFLOP/s.
local function rate(unit, value)
  unit.classes[1].gflops, unit.classes[2].gflops = value, value
end

-- Megabytes; each element of the matrix is read and written.
local im2col = 2 * 9 * 254 * 254 * 4e-6 * 100

-- The document's seconds are without the launch; and watts.
local function memory_bound(b, megabytes)
  local unit = board.named(b.units, "gpu4")
  local seconds, joules = board.work(b, unit, { op = "im2col", flops = 0, bytes = megabytes * 1e6 })
  return seconds - unit.launch, joules / seconds
end

-- Volts squared times MHz at that step of the board's GPU clock; nil: there is no such step.
local function v2f(b, mhz)
  for _, step in ipairs(board.named(b.clocks, "gpu").steps) do
    if step.mhz == mhz then return step.volts ^ 2 * mhz end
  end
end
-- Seconds of a frame and watts of the monitor at that GPU clock.
local function monitor(b, mhz)
  local m = b.notes.monitor
  return m.seconds + m.megacycles / mhz, m.static + m.per_v2_mhz * v2f(b, mhz)
end
-- A function of a board: seconds of the monitor's frame at that clock.
local function monitor_seconds(mhz) return function(b) return (monitor(b, mhz)) end end
-- A function of a board: watts of the monitor at that clock.
local function monitor_watts(mhz) return function(b) return (select(2, monitor(b, mhz))) end end

local monitor_steps = {
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
  { rows = { "W18 fig 5.4, watts at 266 MHz over 350 MHz" },
    tell = { function(b) return select(2, monitor(b, 266)) / select(2, monitor(b, 350)) end },
    function(b, ratio)
      local m, steps = b.notes.monitor, board.named(b.clocks, "gpu").steps
      steps[2].volts = ((ratio * select(2, monitor(b, 350)) - m.static) / (m.per_v2_mhz * 266)) ^ .5
    end },
}

local xu3 = {
  board = board.load "odroid_xu3",
  steps = {
    monitor_steps[1], monitor_steps[2], monitor_steps[3],
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
        -- Sets the clusters' dynamic power to x times their parts, and the activity of copies that
        -- gives these their watts; returns joules.
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
        -- Sets the cores' rates to x times their shares; returns seconds.
        local function try(x)
          cores(b, function(u, share) rate(u, x * share) end)
          return on(cpu, "seconds")(b)
        end
        try(fit.solve(try, seconds))
      end },
    { rows = { "W18 table 4.1, CPU, joules" }, tell = { on(cpu, "joules") },
      function(b, joules)
        -- Sets the cores' dynamic power to x times their watts; returns joules.
        local function try(x)
          cores(b, function(u, _, watts) u.power.dynamic = x * watts end)
          return on(cpu, "joules")(b)
        end
        try(fit.solve(try, joules))
      end },
    { rows = { "W18 fig 4.7, our work, seconds" }, tell = { on(ours, "seconds") },
      function(b, seconds)
        -- Sets what a division costs in seconds; returns the net's seconds.
        local function try(x)
          for _, u in ipairs(b.units) do u.split.seconds = x end
          return on(ours, "seconds")(b)
        end
        try(fit.solve(try, seconds))
      end },
    { rows = { "W18 fig 4.7, our work, joules" }, tell = { on(ours, "joules") },
      function(b, joules)
        -- Sets what a division costs in joules; returns the net's joules.
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
    { "W18 fig 4.7, seconds of our work over greedy's, less 1", function(b) return board.run(b, tiny, ours) / greedy(b) - 1 end },
    { "W18 fig 4.7, our work, watts", on(ours, "watts") },
    { "W18 table 4.1, GPU, EDP", on(gpu, "EDP") },
    { "W18 table 4.1, CPU, EDP", on(cpu, "EDP") },
    { "W18 table 4.1, EDP of the CPU over the GPU's", function(b) return on(cpu, "EDP")(b) / on(gpu, "EDP")(b) end },
    { "W18 table 5.1, 480 MHz, seconds", monitor_seconds(480) },
    { "W18 table 5.1, 480 MHz, watts", monitor_watts(480) },
    { "W18 table 5.1, 480 MHz, joules", function(b) local t, p = monitor(b, 480) return t * p end },
  },
}

-- ---- the ODROID-XU3 with chapter 3's program ----

local n = 100 * 256 * 256
local works = {
  gemm = nets.gemm(512, 512, 1024),
  im2col = { op = "im2col", flops = 0, bytes = im2col * 1e6 },
  pool = { op = "max_pool", flops = 9 * 100 * 254 * 254, bytes = 10 * 254 * 254 * 4 * 100 },
  relu = nets.each("relu", n),
  dense = nets.dense(9216, 4096), spmv = { op = "spmv", products = 2 * .15 * 9216 * 4096, flops = 2 * .15 * 9216 * 4096,
                                           bytes = 8 * .15 * 9216 * 4096 + 4 * (9216 + 4096) },
}
local lenet, alexnet_18 = nets.table_3_5(), nets.table_3_7()

-- Of a single operator or a list of layers: seconds, joules, watts or EDP.
local function takes(unit, what, quantity)
  return function(b)
    local seconds, joules = board.run(b, what.op and { what } or what, { { unit = unit, share = 1 } })
    return quantity == "seconds" and seconds or quantity == "joules" and joules or
           quantity == "watts" and joules / seconds or seconds * joules
  end
end

-- A function of a board: that quantity of `what` on one unit (cpu) over that on another (gpu4).
local function over(what, quantity, first, second)
  return function(b) return takes(first or "cpu", what, quantity)(b) / takes(second or "gpu4", what, quantity)(b) end
end

-- Calls f for each class of the unit whose operator the pattern names.
local function classes_of(unit, pattern, f)
  for _, class in ipairs(unit.classes) do
    if pattern[class.op] then f(class) end
  end
end
local products, multiply = { ["conv*"] = true, dense = true }, { gemm = true, matmul = true }
local moves = { im2col = true, ["*pool*"] = true, relu = true, lrn = true, ["*"] = true }
local naive = { ["conv*"] = true, dense = true, gemm = true, matmul = true }

-- A function of a board and a goal that sets `key` of those classes of the units to one number so
-- that `tell` returns the value.
local function set(units, pattern, key, tell, value)
  return function(b, goal)
    -- Sets those classes' `key` of the units to x (a half for gpu2); returns what `tell` says then.
    local function try(x)
      for _, name in ipairs(units) do
        local unit = board.named(b.units, name)
        classes_of(unit, pattern, function(class) class[key] = x * (name == "gpu2" and 1 / 2 or 1) end)
      end
      return tell(b)
    end
    try(fit.solve(try, value and value(b, goal) or goal))
  end
end
local gpus = { "gpu4", "gpu2" }

-- The dynamic watts of a unit and the activity of operators that move bytes, from the watts of
-- AlexNet and of im2col.
local function power(units, alexnet_watts, im2col_watts)
  return function(b)
    -- Sets the units' dynamic power to x (a half for gpu2), and the activity that gives im2col its
    -- watts; returns AlexNet's watts.
    local function try(x)
      for _, name in ipairs(units) do
        local unit, part = board.named(b.units, name), name == "gpu2" and 1 / 2 or 1
        unit.power.dynamic = x * part
        classes_of(unit, moves, function(class) class.activity = (im2col_watts * part - unit.power.static) / (x * part) end)
      end
      return takes(units[1], alexnet_18, "watts")(b)
    end
    try(fit.solve(try, alexnet_watts))
  end
end

-- A function of a board: that quantity of the dense product over the sparse one's, on a unit.
local function spmv_ratio(unit, quantity)
  return function(b) return takes(unit, works.dense, quantity)(b) / takes(unit, works.spmv, quantity)(b) end
end

-- The steps of the recipe for chapter 3's GPUs, from the table's row of products.
local function ch3_gpu_steps(product_row)
  local w, e = "W18 fig 3.4, im2col on the GPU, watts", "W18 table 3.2, im2col on the GPU, EDP"
  local seconds = set(gpus, moves, "gbytes", takes("gpu4", works.im2col, "seconds"))
  local rate_of = set(gpus, products, "gflops", takes("gpu4", alexnet_18, "seconds"))
  return {
    monitor_steps[1], monitor_steps[2], monitor_steps[3],
    { rows = { w, e, "W18 fig 3.12, AlexNet on the GPU, seconds", "W18 fig 3.11, AlexNet on the GPU, watts" },
      tell = { takes("gpu4", works.im2col, "watts"), takes("gpu4", works.im2col), takes("gpu4", alexnet_18, "seconds"),
               takes("gpu4", alexnet_18, "watts") },
      function(b, im2col_watts, im2col_edp, alexnet_seconds, alexnet_watts)
        seconds(b, (im2col_edp / im2col_watts) ^ .5)
        rate_of(b, alexnet_seconds)
        power(gpus, alexnet_watts, im2col_watts)(b)
      end },
    { rows = { product_row }, tell = { takes("gpu4", works.gemm) }, set(gpus, multiply, "gflops", takes("gpu4", works.gemm)) },
    { rows = { "W18 fig 3.19, dense over SpMV on the GPU, seconds" }, tell = { spmv_ratio("gpu4", "seconds") },
      set(gpus, { spmv = true }, "gflops", spmv_ratio("gpu4", "seconds")) },
  }
end

-- Appends to steps what chapter 3 tells of the CPU.
local function ch3_cpu_steps(steps)
  local cpu = { "cpu" }
  local alexnet_seconds = over(alexnet_18, "seconds")
  local im2col_seconds = over(works.im2col, "seconds")
  steps[#steps + 1] = { rows = { "W18 fig 3.4, im2col on the CPU over the GPU, seconds" }, tell = { im2col_seconds },
    set(cpu, { im2col = true, lrn = true, ["*"] = true }, "gbytes", im2col_seconds) }
  steps[#steps + 1] = {
    rows = { "W18 fig 3.11, AlexNet on the CPU over the GPU, seconds", "W18 fig 3.11, AlexNet on the CPU over the GPU, watts",
             "W18 table 3.2, im2col on the CPU, EDP", "W18 table 3.3, pooling on the CPU, EDP", "W18 table 3.4, ReLU on the CPU, EDP" },
    tell = { alexnet_seconds, over(alexnet_18, "watts"), takes("cpu", works.im2col), takes("cpu", works.pool), takes("cpu", works.relu) },
    function(b, seconds, watts, im2col_edp, pool_edp, relu_edp)
      local im2col_watts = im2col_edp / takes("cpu", works.im2col, "seconds")(b) ^ 2
      classes_of(board.named(b.units, "cpu"), { ["*pool*"] = true }, function(class)
        class.gbytes = works.pool.bytes * 1e-9 / (pool_edp / im2col_watts) ^ .5
      end)
      classes_of(board.named(b.units, "cpu"), { relu = true }, function(class)
        class.gbytes = works.relu.bytes * 1e-9 / (relu_edp / im2col_watts) ^ .5
      end)
      set(cpu, naive, "gflops", alexnet_seconds)(b, seconds)
      power(cpu, watts * takes("gpu4", alexnet_18, "watts")(b), im2col_watts)(b)
    end }
  steps[#steps + 1] = { rows = { "W18 fig 3.19, dense over SpMV on the CPU, seconds" }, tell = { spmv_ratio("cpu", "seconds") },
    set(cpu, { spmv = true }, "gflops", spmv_ratio("cpu", "seconds")) }
  return steps
end

-- A function of a board: the EDP of `what` on the CPU over that on the GPU.
local function edp_over(what) return over(what) end
-- The entry of a recipe for a board of chapter 3: its steps, and rows that it predicts.
local function ch3(spec, product_row, predict)
  return { name = spec, recipe = { board = board.load(spec), steps = ch3_cpu_steps(ch3_gpu_steps(product_row)), predict = predict } }
end
local float4 = board.load "odroid_xu3,library=ch3"
local ch3_predict = {
  { "W18 table 3.1, product on the CPU, EDP", takes("cpu", works.gemm) },
  { "W18 table 3.1, EDP of the CPU over float4's", edp_over(works.gemm) },
  { "W18 fig 3.2, product on the CPU over the GPU, watts", over(works.gemm, "watts") },
  { "W18 fig 3.4, im2col on the CPU over the GPU, joules", over(works.im2col, "joules") },
  { "W18 table 3.2, EDP of im2col on the CPU over the GPU's", edp_over(works.im2col) },
  { "W18 table 3.3, pooling on the GPU, EDP", takes("gpu4", works.pool) },
  { "W18 fig 3.5, pooling on the CPU over the GPU, seconds", over(works.pool, "seconds") },
  { "W18 fig 3.5, pooling on the CPU over the GPU, joules", over(works.pool, "joules") },
  { "W18 table 3.3, EDP of pooling on the CPU over the GPU's", edp_over(works.pool) },
  { "W18 table 3.4, ReLU on the GPU, EDP", takes("gpu4", works.relu) },
  { "W18 fig 3.6, ReLU on the CPU over the GPU, seconds", over(works.relu, "seconds") },
  { "W18 fig 3.6, ReLU on the CPU over the GPU, joules", over(works.relu, "joules") },
  { "W18 fig 3.6, ReLU on the CPU over the GPU, watts", over(works.relu, "watts") },
  { "W18 table 3.4, EDP of ReLU on the CPU over the GPU's", edp_over(works.relu) },
  { "W18 table 3.6, LeNet-5 on the CPU, EDP", takes("cpu", lenet) },
  { "W18 table 3.6, LeNet-5 on the GPU, EDP", takes("gpu4", lenet) },
  { "W18 fig 3.9, LeNet-5 on the GPU, watts", takes("gpu4", lenet, "watts") },
  { "W18 fig 3.9, LeNet-5 on the CPU over the GPU, seconds", over(lenet, "seconds") },
  { "W18 fig 3.9, LeNet-5 on the CPU over the GPU, joules", over(lenet, "joules") },
  { "W18 table 3.6, EDP of LeNet-5 on the CPU over the GPU's", edp_over(lenet) },
  { "W18 fig 3.11, AlexNet on the CPU over the GPU, joules", over(alexnet_18, "joules") },
  { "W18 table 3.8, EDP of AlexNet on the CPU over the GPU's", edp_over(alexnet_18) },
  { "W18 fig 3.19, dense over SpMV on the GPU, joules", spmv_ratio("gpu4", "joules") },
  { "W18 fig 3.19, dense over SpMV on the CPU, joules", spmv_ratio("cpu", "joules") },
}
local ch3_scalar_predict = {
  { "W18 fig 3.2, product on the CPU over scalar, seconds", over(works.gemm, "seconds") },
  { "W18 fig 3.2, scalar product over float4, seconds", function(b)
    return takes("gpu4", works.gemm, "seconds")(b) / takes("gpu4", works.gemm, "seconds")(float4)
  end },
}

-- ---- boards with the time of one net only ----

-- Both rates of a unit, of convolutions and of dense layers, so that the net takes the documented
-- time.
local function speed(row, net, unit)
  -- Seconds of the net on that unit alone.
  local function seconds(b) return (board.run(b, net, { { unit = unit, share = 1 } })) end
  return { rows = { row }, tell = { seconds }, function(b, value)
    local u = board.named(b.units, unit)
    rate(u, fit.solve(function(x) rate(u, x) return seconds(b) end, value))
  end }
end

local alexnet, poor = nets.alexnet(), nets.fastpoornet()
-- The recipe's entry for AlexNet on a unit: it sets rate and power from rows of watts and joules.
local function alexnet_on(unit, watts_row, joules_row)
  -- Seconds and joules of AlexNet on that unit.
  local function run(b) return board.run(b, alexnet, { { unit = unit, share = 1 } }) end
  return { rows = { watts_row, joules_row },
           tell = { function(b) local t, e = run(b) return e / t end, function(b) return (select(2, run(b))) end },
           function(b, watts, joules)
             local u = board.named(b.units, unit)
             rate(u, fit.solve(function(x) rate(u, x) return (run(b)) end, joules / watts))
             u.power.dynamic = watts - (u.power.static or 0)
           end }
end

-- FastPoorNet as in S16: convolutions on the GPU, the rest on the processor, with copies between
-- them.
local function on_adreno(b, unit)
  local answer = {}
  for _, layer in ipairs(poor) do answer[layer.name] = layer.op == "conv" and unit or "cpu" end
  board.machine(b, true)
  return (placement.run(b, poor, placement.plan(poor, answer)))
end
-- Seconds of the convolutions of FastPoorNet on the CPU, all together.
local function convolutions(b)
  local sum, each = 0, select(3, board.run(b, poor, { { unit = "cpu", share = 1 } }))
  for i, layer in ipairs(poor) do sum = sum + (layer.op == "conv" and each[i].seconds or 0) end
  return sum
end
-- A function that gives the work of FastPoorNet's convolution `number` on the board's CPU.
local function convolution(number)
  return function(b)
    for _, layer in ipairs(poor) do
      if layer.name == "Conv" .. number + 1 then return (board.work(b, board.named(b.units, "cpu"), layer)) end
    end
  end
end

-- A function that sets `key` of the unit's classes that the patterns name to a value.
local function class_set(unit, patterns, key)
  return function(b, value)
    classes_of(board.named(b.units, unit), patterns, function(class) class[key] = value end)
  end
end
-- The entry that sets a unit's rate of products to a row of the document.
local function product_rate(unit)
  local rate = function(b) return b.units[unit == "gpu" and 1 or 2].classes[1].gflops end
  return { rows = { ("WX18 4, product on the %s, GFLOP/s"):format(unit:upper()) }, tell = { rate }, class_set(unit, multiply, "gflops") }, rate
end
local gpu_product, gpu_rate = product_rate "gpu"
local cpu_product, cpu_rate = product_rate "cpu"
local adreno_predict = {
  { "WX18 4, product on the GPU over the CPU, GFLOP/s", function(b) return gpu_rate(b) / cpu_rate(b) end },
  { "S16 fig 3.4, from device to host, GB/s", function(b) return board.named(b.units, "gpu").transfer.gbytes end },
  { "S16 table 3.1, FastPoorNet's share of convolutions", function(b) return convolutions(b) / on_adreno(b, "cpu") end },
  { "S16 table 3.3, FastPoorNet, speed-up", function(b) return on_adreno(b, "cpu") / on_adreno(b, "gpu") end },
}
for i = 0, 6 do
  adreno_predict[#adreno_predict + 1] = { ("S16 table 3.2, convolution %d on the CPU, seconds"):format(i), convolution(i) }
end
-- A function that sets `key` of those classes so that `tell`, of the board, reaches a goal.
local function solved(unit, patterns, key, tell)
  local write = class_set(unit, patterns, key)
  return function(b, goal)
    -- Sets the key to x; returns what `tell` says then.
    local function try(x) write(b, x) return tell(b) end
    try(fit.solve(try, goal))
  end
end
local rest = { ["*"] = true, dense = true }
local adreno_steps = {
  gpu_product, cpu_product,
  { rows = { "S16 fig 3.4, from device to device, GB/s" },
    tell = { function(b) return board.named(b.units, "gpu").classes[5].gbytes end },
    class_set("gpu", { ["*"] = true }, "gbytes") },
  { rows = { "S16 fig 3.4, from host to device, GB/s" },
    tell = { function(b) return board.named(b.units, "gpu").transfer.gbytes end },
    function(b, value) board.named(b.units, "gpu").transfer.gbytes = value end },
  { rows = { "S16 table 3.1, FastPoorNet's convolutions on the CPU, seconds" }, tell = { convolutions },
    solved("cpu", { ["conv*"] = true, dense = true }, "gflops", convolutions) },
  { rows = { "S16 table 3.1, FastPoorNet on the CPU, seconds" }, tell = { function(b) return on_adreno(b, "cpu") end },
    solved("cpu", rest, "gbytes", function(b) return on_adreno(b, "cpu") end) },
  { rows = { "S16 3.4, FastPoorNet with convolutions on the GPU, seconds" }, tell = { function(b) return on_adreno(b, "gpu") end },
    solved("gpu", { ["conv*"] = true, dense = true }, "gflops", function(b) return on_adreno(b, "gpu") end) },
}

return {
  { name = "odroid_xu3", recipe = xu3 },
  ch3("odroid_xu3,library=ch3", "W18 table 3.1, float4 product on the GPU, EDP", ch3_predict),
  ch3("odroid_xu3,library=ch3_scalar", "W18 table 3.1, scalar product on the GPU, EDP", ch3_scalar_predict),
  { name = "snapdragon_820", recipe = { board = require "boards.snapdragon_820", steps = {
    speed("W18 3.2, AlexNet on Snapdragon 820's GPU, seconds", alexnet_18, "gpu") } } },
  { name = "htc_one_m9", recipe = { board = require "boards.htc_one_m9", steps = {
    alexnet_on("gpu", "CD 4.3, AlexNet on HTC One M9's GPU, watts", "CD 4.3, AlexNet on HTC One M9's GPU, joules"),
    alexnet_on("cpu", "CD 4.3, AlexNet on HTC One M9's CPU, watts", "CD 4.3, AlexNet on HTC One M9's CPU, joules") } } },
  { name = "adreno_330", recipe = { board = require "boards.adreno_330", steps = adreno_steps, predict = adreno_predict } },
  { name = "jetson_tk1", recipe = { board = require "boards.jetson_tk1", steps = {} } },
}
