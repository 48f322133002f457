-- Snapdragon 801 of a Xiaomi Mi Note: four Krait 400, and an Adreno 330 whose driver copies. S16
-- measured it.
local board = require "lib.board"
local sheet, fitted, assumed = board.sheet, board.fitted, board.assumed
local split = { seconds = assumed(3e-3, "buffers are mapped"), joules = assumed(5e-3, "two watts meanwhile") }
local both = "S16 3.4, FastPoorNet with convolutions on the GPU, seconds"
local cpu = "S16 table 3.1, FastPoorNet's convolutions on the CPU, seconds"
-- Operators other than convolutions take the remaining time.
local rest = "S16 table 3.1, FastPoorNet on the CPU, seconds"

return board.new {
  name = "adreno_330", machine = "Qualcomm MSM 8974",
  rails = { { name = "gpu", idle = assumed(.02, "gated") }, { name = "cpu", idle = assumed(.1, "of four cores that wait") },
            { name = "memory", idle = assumed(.1, "refresh"), per_byte = assumed(100e-12, "LPDDR3") } },
  clocks = {
    { name = "gpu", steps = assumed(board.steps { 200, .8, 320, .85, 450, .95, 578, 1.05 }, "kgsl's steps; voltages of neighbours") },
    { name = "cpu", steps = assumed(board.steps { 300, .8, 960, .85, 1497, .95, 1958, 1.0, 2457, 1.1 }, "cpufreq's, thinned; voltages of neighbours") },
  },
  units = {
    { name = "gpu", title = "Adreno 330", cores = sheet(4, "S16 2.3.1"), rail = "gpu", clock = "gpu",
      launch = assumed(100e-6, "what a queue takes for a kernel"),
      classes = { { op = "gemm", gflops = fitted(7.21, "WX18 4, product on the GPU, GFLOP/s") },
                  { op = "matmul", gflops = fitted(7.21, "WX18 4, product on the GPU, GFLOP/s") },
                  { op = "conv*", gflops = fitted(1.740161754, both) }, { op = "dense", gflops = fitted(1.740161754, both) },
                  { op = "*", gbytes = fitted(8.4, "S16 fig 3.4, from device to device, GB/s") } },
      power = { static = assumed(.1, "leakage"), dynamic = assumed(1.5, "at the highest step") },
      split = split, transfer = { gbytes = fitted(2.42074928, "S16 fig 3.4, from host to device, GB/s"), seconds = assumed(200e-6, "mapping") } },
    { name = "cpu", title = "four Krait 400", cores = sheet(4, "S16 2.3.1"), host = true, rail = "cpu", clock = "cpu",
      launch = assumed(10e-6, "waking threads"),
      classes = { { op = "gemm", gflops = fitted(0.44, "WX18 4, product on the CPU, GFLOP/s") },
                  { op = "matmul", gflops = fitted(0.44, "WX18 4, product on the CPU, GFLOP/s") },
                  { op = "conv*", gflops = fitted(0.5667529568, cpu) }, { op = "dense", gflops = fitted(0.5667529568, cpu), gbytes = fitted(0.1431665221, rest) },
                  { op = "*", gbytes = fitted(0.1431665221, rest) } },
      power = { static = assumed(.2, "leakage"), dynamic = assumed(3, "four cores at the highest step") },
      split = split },
  },
}
