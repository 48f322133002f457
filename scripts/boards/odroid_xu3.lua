-- Hardkernel ODROID-XU3: Exynos 5422, four A15, four A7, a Mali-T628 of two clusters, four rails with
-- INA231 sensors. W18 is Hu Wang's thesis of 2018 that measured it; its rows are in rows.lua.
local board = require "lib.board"
local sheet, fitted, assumed = board.sheet, board.fitted, board.assumed
local cpufreq = "/sys/devices/system/cpu/cpufreq/policy%d/scaling_cur_freq"
local linux = "mainline Linux's device tree for the Exynos 5422"

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

return board.new {
  -- the monitoring application of chapter 5 at a frequency of the GPU: seconds + megacycles / MHz, and
  -- static + per_v2_mhz * V^2 * MHz watts
  notes = { monitor = {
    seconds = fitted(0.206765082, "W18 table 5.1, 177 and 543 MHz, seconds"),
    megacycles = fitted(543.5891105, "W18 table 5.1, 177 and 543 MHz, seconds"),
    static = fitted(0.09767262343, "W18 table 5.1, 177 and 543 MHz, watts"),
    per_v2_mhz = fitted(0.002758526674, "W18 table 5.1, 177 and 543 MHz, watts"),
  } },
  name = "odroid_xu3", machine = "Hardkernel Odroid XU3",
  rails = {
    { name = "gpu", idle = assumed(0, "W18 tells joules of a region of code, not of an idle board") },
    { name = "a15", idle = assumed(0, "as gpu") },
    { name = "a7", idle = assumed(0, "as gpu") },
    { name = "memory", idle = assumed(0, "as gpu"), per_byte = assumed(0, "in the watts of those who move them") },
  },
  clocks = {
    { name = "gpu", at = assumed(600, "W18 4.4: at a fixed frequency, the highest for instance"),
      steps = sheet(board.steps { 177, .8125, 266, .8625, 350, .9125, 420, .9625, 480, 1.0, 543, 1.0375,
                                  600, 1.15 }, linux) },
    { name = "a15", steps = sheet(board.steps { 700, .9125, 800, .9375, 900, .9625, 1000, .9875, 1100, 1.0125,
        1200, 1.0375, 1300, 1.0625, 1400, 1.1125, 1500, 1.1375, 1600, 1.175, 1700, 1.2125, 1800, 1.25 }, linux) },
    { name = "a7", steps = sheet(board.steps { 600, .9375, 700, .975, 800, 1.025, 900, 1.0625, 1000, 1.1125,
        1100, 1.1625, 1200, 1.2125, 1300, 1.275 }, linux) },
  },
  units = {
    cluster("gpu4", 4), cluster("gpu2", 2),
    cores("a15", "four Cortex-A15", .846, .909), cores("a7", "four Cortex-A7", .154, .091),
    { name = "cpu", title = "four Cortex-A15 and four Cortex-A7", cores = 8, host = true, members = { "a15", "a7" },
      launch = assumed(10e-6, "waking threads"), split = split, transfer = free },
  },
  -- for meter-model, on a board whose sensors are missing or off: the same units, where Linux tells of them
  model = {
    { name = "a15", unit = "a15", feeds = "cpu:big", cpus = "4-7", frequency = cpufreq:format(4) },
    { name = "a7", unit = "a7", feeds = "cpu:little", cpus = "0-3", frequency = cpufreq:format(0) },
    { name = "gpu4", unit = "gpu4", feeds = "opencl:0", frequency = "/sys/class/devfreq/11800000.*/cur_freq" },
    { name = "gpu2", unit = "gpu2", feeds = "opencl:1", frequency = "/sys/class/devfreq/11800000.*/cur_freq" },
  },
}
