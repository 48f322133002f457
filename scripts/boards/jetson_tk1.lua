-- NVIDIA Jetson TK1: Tegra K1, four A15 (and a fifth that saves power), a Kepler GK20A of 192
-- cores. No document has the time of a net on it. So values that are in no data sheet are assumed.
local board = require "lib.board"
local sheet, assumed = board.sheet, board.assumed
local soc = "NVIDIA's Tegra K1 technical brief, S16 2.3.2"
local split = { seconds = assumed(1e-3, "a shared memory's caches"), joules = assumed(3e-3, "three watts meanwhile") }
local free = { gbytes = assumed(0, "units share one memory"), seconds = assumed(20e-6, "a call") }

return board.new {
  name = "jetson_tk1", machine = "NVIDIA Tegra124 Jetson TK1",
  rails = { { name = "gpu", idle = assumed(.1, "gated") }, { name = "cpu", idle = assumed(.3, "four cores that wait") },
            { name = "memory", idle = assumed(.3, "refresh"), per_byte = assumed(120e-12, "DDR3L") } },
  clocks = {
    { name = "gpu", steps = assumed(board.steps { 72, .8, 180, .8, 252, .825, 396, .875, 540, .925, 684, 1.0, 852, 1.075 },
                                    "mainline Linux's steps of nouveau; voltages of neighbours") },
    { name = "cpu", steps = assumed(board.steps { 204, .8, 696, .825, 1092, .9, 1530, .975, 1938, 1.075, 2320, 1.2 }, "cpufreq's, thinned; voltages of neighbours") },
  },
  units = {
    { name = "gpu", title = "GK20A", cores = sheet(192, soc), rail = "gpu", clock = "gpu",
      launch = assumed(20e-6, "a CUDA call"),
      classes = { { op = "conv*", gflops = assumed(98, "three tenths of its 327") }, { op = "dense", gflops = assumed(98, "as conv"), gbytes = assumed(10, "weights are read once") },
                  { op = "*", gbytes = assumed(10, "a part of DDR3L's 14.9") } },
      power = { static = assumed(.3, "leakage"), dynamic = assumed(6, "at the highest step") },
      split = split, transfer = free },
    { name = "cpu", title = "four Cortex-A15", cores = sheet(4, soc), host = true, rail = "cpu", clock = "cpu",
      launch = assumed(10e-6, "waking threads"),
      classes = { { op = "conv*", gflops = assumed(22, "three tenths of four cores' eight a cycle") }, { op = "dense", gflops = assumed(22, "as conv"), gbytes = assumed(5, "as the rest") },
                  { op = "*", gbytes = assumed(5, "a part of DDR3L's") } },
      power = { static = assumed(.4, "leakage"), dynamic = assumed(8, "at the highest step") },
      split = split, transfer = free },
  },
}
