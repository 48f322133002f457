-- Hardkernel ODROID-XU3: Exynos 5422, four A15, four A7, a Mali-T628 of two clusters, four rails with
-- INA231 sensors. W18 is Hu Wang's thesis of 2018 that measured it; its rows are in rows.lua.
-- The thesis has two programs. `odroid_xu3` describes that of chapter 4, with NEON and all cores.
-- `odroid_xu3,library=ch3` is that of chapter 3, with loops of one thread and im2col. Its GPU
-- multiplies matrices with float4 and dot(); `library=ch3_scalar` has the scalar kernel instead.
local board = require "lib.board"
local sheet, fitted, assumed = board.sheet, board.fitted, board.assumed
local cpufreq = "/sys/devices/system/cpu/cpufreq/policy%d/scaling_cur_freq"
local linux = "mainline Linux's device tree for the Exynos 5422"

-- Linux has .8625 V. The thesis' board draws as much at 266 as at 350 MHz.
local volts_266 = fitted(1.046709286, "W18 fig 5.4, watts at 266 MHz over 350 MHz")

local split = {
  seconds = fitted(0.003374381321, "W18 fig 4.7, our work, seconds"),
  joules = fitted(0.004141161363, "W18 fig 4.7, our work, joules"),
}
local free = { gbytes = assumed(0, "units share one memory: nothing is copied"), seconds = assumed(0, "as gbytes") }

-- `part` of the six GPU cores, four of which are the GPU of table 4.1.
local function cluster(name, cores)
  local part = cores / 4
  local by_cores = cores == 4 and "" or ", clusters as their cores"
  return {
    name = name, title = "Mali-T628, " .. cores .. " cores", cores = sheet(cores, "W18 2.4.2"),
    rail = "gpu", clock = "gpu", launch = assumed(100e-6, "what Mali's driver takes for a kernel"),
    classes = {
      { op = "conv*", gflops = fitted(2.568880019 * part, "W18 table 4.1, GPU, seconds" .. by_cores) },
      { op = "dense", gflops = fitted(2.568880019 * part, "W18 table 4.1, GPU, seconds" .. by_cores) },
      { op = "*", gbytes = fitted(3.143222987 * part, "W18 fig 3.4, im2col on the GPU, seconds" .. by_cores),
        activity = fitted(2.037309442, "W18 fig 3.4, im2col on the GPU, watts") },
    },
    power = {
      static = fitted(0.09767262343 * cores / 6, "W18 table 5.1, 177 and 543 MHz, watts" .. by_cores),
      dynamic = fitted(0.7097031446 * part, "W18 table 4.1, GPU, joules" .. by_cores),
    },
    split = split, transfer = free,
  }
end

-- A cluster of cores as a unit of the board: its share of the work and its watts.
local function cores(name, title, share, watts)
  return {
    name = name, title = title, cores = sheet(4, "W18 2.4.2"), host = true, rail = name, clock = name,
    launch = assumed(10e-6, "waking threads"),
    classes = {
      { op = "conv*", gflops = fitted(0.4079564855 * share, "W18 table 4.1, CPU, seconds") },
      { op = "dense", gflops = fitted(0.4079564855 * share, "W18 table 4.1, CPU, seconds") },
      { op = "*", gbytes = fitted(0.6286445974 * share, "W18 fig 3.4, im2col on the CPU, seconds") },
    },
    power = {
      static = assumed(0, "W18 does not tell it from the rest"),
      dynamic = fitted(4.365159129 * watts, "W18 table 4.1, CPU, joules"),
    },
    split = split, transfer = free,
  }
end

-- ---- chapter 3's program ----

local uncut = { seconds = assumed(0.0034, "as chapter 4's: chapter 3 divides no layer"),
                joules = assumed(0.0041, "as chapter 4's: chapter 3 divides no layer") }
local naive = "W18 fig 3.11, AlexNet on the CPU over the GPU, seconds"
-- A cluster as a unit of chapter 3's board, whose rate of products is `product` GFLOP/s.
local function ch3_cluster(name, cores, product)
  local part = cores / 4
  local by_cores = cores == 4 and "" or ", clusters as their cores"
  local memory = fitted(1.161538107, "W18 fig 3.4, im2col on the GPU, watts")
  -- A class of work that moves bytes, for that operator; what: the end of its source's name.
  local function bytes(op, what)
    return { op = op, gbytes = fitted(3.145351344 * part, "W18 table 3.2, im2col on the GPU, EDP" .. what .. by_cores), activity = memory }
  end
  local multiply = product == "scalar" and { 0.3765621357, "W18 table 3.1, scalar product on the GPU, EDP" }
                   or { 0.7197575464, "W18 table 3.1, float4 product on the GPU, EDP" }
  local conv = fitted(0.3562778157 * part, "W18 fig 3.12, AlexNet on the GPU, seconds" .. by_cores)
  return {
    name = name, title = "Mali-T628, " .. cores .. " cores", cores = sheet(cores, "W18 2.4.2"),
    rail = "gpu", clock = "gpu", launch = assumed(100e-6, "what Mali's driver takes for a kernel"),
    classes = {
      { op = "gemm", gflops = fitted(multiply[1] * part, multiply[2] .. by_cores) },
      { op = "matmul", gflops = fitted(multiply[1] * part, multiply[2] .. by_cores) },
      { op = "conv*", gflops = conv }, { op = "dense", gflops = conv },
      { op = "spmv", gflops = fitted(0.1406521582 * part, "W18 fig 3.19, dense over SpMV on the GPU, seconds" .. by_cores) },
      bytes("im2col", ""), bytes("*pool*", ""), bytes("relu", ""), bytes("lrn", ", which W18 does not time"),
      bytes("*", ", for what W18 does not time"),
    },
    power = { static = fitted(0.09767262343 * cores / 6, "W18 table 5.1, 177 and 543 MHz, watts" .. by_cores),
              dynamic = fitted(1.244801965 * part, "W18 fig 3.11, AlexNet on the GPU, watts" .. by_cores) },
    split = uncut, transfer = free,
  }
end

-- All cores together as a unit of chapter 3's board.
local function ch3_cpu()
  local memory = fitted(1.252757518, "W18 table 3.2, im2col on the CPU, EDP")
  local products = fitted(0.0237433599, naive)
  -- A class of work that moves bytes at `value` GB/s, with that source.
  local function bytes(op, value, of) return { op = op, gbytes = fitted(value, of), activity = memory } end
  return {
    name = "cpu", title = "one thread of a Cortex-A15", cores = 1, host = true, rail = "a15", clock = "a15",
    launch = assumed(1e-6, "a call"),
    classes = {
      { op = "gemm", gflops = products }, { op = "matmul", gflops = products },
      { op = "conv*", gflops = products }, { op = "dense", gflops = products },
      { op = "spmv", gflops = fitted(0.02492922244, "W18 fig 3.19, dense over SpMV on the CPU, seconds") },
      bytes("im2col", 0.6286454482, "W18 fig 3.4, im2col on the CPU over the GPU, seconds"),
      bytes("*pool*", 0.2301917257, "W18 table 3.3, pooling on the CPU, EDP"),
      bytes("relu", 0.5151156204, "W18 table 3.4, ReLU on the CPU, EDP"),
      bytes("lrn", 0.6286454482, "W18 fig 3.4, im2col on the CPU over the GPU, seconds, as im2col"),
      bytes("*", 0.6286454482, "W18 fig 3.4, im2col on the CPU over the GPU, seconds, as im2col"),
    },
    power = { static = assumed(0, "W18 does not tell it from the rest"),
              dynamic = fitted(2.619880626, "W18 fig 3.11, AlexNet on the CPU over the GPU, watts") },
    split = uncut, transfer = free,
  }
end

-- ---- the boards ----

local libraries = {
  ch3 = function() return { ch3_cluster("gpu4", 4), ch3_cluster("gpu2", 2), ch3_cpu() } end,
  ch3_scalar = function() return { ch3_cluster("gpu4", 4, "scalar"), ch3_cluster("gpu2", 2, "scalar"), ch3_cpu() } end,
  ch4 = function()
    return {
      cluster("gpu4", 4), cluster("gpu2", 2),
      cores("a15", "four Cortex-A15", .846, .909), cores("a7", "four Cortex-A7", .154, .091),
      { name = "cpu", title = "four Cortex-A15 and four Cortex-A7", cores = 8, host = true, members = { "a15", "a7" },
        launch = assumed(10e-6, "waking threads"), split = split, transfer = free },
    }
  end,
}

return function(values)
  local library = values and values.library or "ch4"
  if not libraries[library] then error("library: want ch3, ch3_scalar or ch4, got " .. tostring(library), 0) end
  local units = libraries[library]()
  return board.new {
    -- The monitoring application of chapter 5 at a frequency of the GPU: seconds + megacycles /
    -- MHz, and static + per_v2_mhz * V^2 * MHz watts.
    notes = { monitor = {
      seconds = fitted(0.206765082, "W18 table 5.1, 177 and 543 MHz, seconds"),
      megacycles = fitted(543.5891105, "W18 table 5.1, 177 and 543 MHz, seconds"),
      static = fitted(0.09767262343, "W18 table 5.1, 177 and 543 MHz, watts"),
      per_v2_mhz = fitted(0.002758526674, "W18 table 5.1, 177 and 543 MHz, watts"),
    } },
    name = "odroid_xu3", library = library, machine = "Hardkernel Odroid XU3",
    rails = {
      { name = "gpu", idle = assumed(0, "W18 tells joules of a region of code, not of an idle board") },
      { name = "a15", idle = assumed(0, "as gpu") },
      { name = "a7", idle = assumed(0, "as gpu") },
      { name = "memory", idle = assumed(0, "as gpu"), per_byte = assumed(0, "in the watts of those who move them") },
    },
    clocks = {
      { name = "gpu", at = assumed(600, "W18 4.4: at a fixed frequency, the highest for instance"),
        steps = sheet(board.steps { 177, .8125, 266, volts_266, 350, .9125, 420, .9625, 480, 1.0, 543, 1.0375,
                                    600, 1.15 }, linux) },
      { name = "a15", steps = sheet(board.steps { 700, .9125, 800, .9375, 900, .9625, 1000, .9875, 1100, 1.0125,
          1200, 1.0375, 1300, 1.0625, 1400, 1.1125, 1500, 1.1375, 1600, 1.175, 1700, 1.2125, 1800, 1.25 }, linux) },
      { name = "a7", steps = sheet(board.steps { 600, .9375, 700, .975, 800, 1.025, 900, 1.0625, 1000, 1.1125,
          1100, 1.1625, 1200, 1.2125, 1300, 1.275 }, linux) },
    },
    units = units,
    -- For meter-model, on a board whose sensors are missing or off: the same units, where Linux
    -- reports them.
    model = library == "ch4" and {
      { name = "a15", unit = "a15", feeds = "cpu:big", cpus = "4-7", frequency = cpufreq:format(4) },
      { name = "a7", unit = "a7", feeds = "cpu:little", cpus = "0-3", frequency = cpufreq:format(0) },
      { name = "gpu4", unit = "gpu4", feeds = "opencl:0", frequency = "/sys/class/devfreq/11800000.*/cur_freq" },
      { name = "gpu2", unit = "gpu2", feeds = "opencl:1", frequency = "/sys/class/devfreq/11800000.*/cur_freq" },
    } or nil,
  }
end
