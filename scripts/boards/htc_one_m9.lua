-- HTC One M9: Snapdragon 810, four A57 and four A53, an Adreno 430. CNNdroid measured AlexNet on its GPU
-- and, in one thread of Java, on its processor.
local board = require "lib.board"
local sheet, fitted, assumed = board.sheet, board.fitted, board.assumed
local split = { seconds = assumed(2e-3, "as a shared memory's caches take"), joules = assumed(4e-3, "two watts meanwhile") }
local free = { gbytes = assumed(0, "units share one memory"), seconds = assumed(0, "as gbytes") }

-- The source of a unit's watts and joules, as text.
local function watts_and_joules(of) return "CD 4.3, AlexNet on HTC One M9's " .. of .. ", watts and joules" end

return board.new {
  name = "htc_one_m9", machine = "HTC One M9",
  rails = { { name = "battery", idle = assumed(0, "Trepn tells what is above the base line") } },
  clocks = {
    { name = "gpu", steps = assumed(board.steps { 180, .75, 305, .8, 390, .85, 450, .875, 510, .925, 600, 1.0 }, "kgsl's steps; voltages of neighbours") },
    { name = "cpu", steps = assumed(board.steps { 384, .75, 864, .8, 1248, .9, 1555, 1.0, 1958, 1.15 }, "cpufreq's, thinned; voltages of neighbours") },
  },
  units = {
    { name = "gpu", title = "Adreno 430", cores = sheet(4, "Qualcomm"), rail = "battery", clock = "gpu",
      launch = assumed(200e-6, "RenderScript"),
      classes = { { op = "conv*", gflops = fitted(1.899635119, watts_and_joules "GPU") }, { op = "dense", gflops = fitted(1.899635119, watts_and_joules "GPU") },
                  { op = "*", gbytes = assumed(8, "a part of LPDDR4's 24.9") } },
      power = { static = assumed(.05, "leakage"), dynamic = fitted(0.473, watts_and_joules "GPU") },
      split = split, transfer = free },
    { name = "cpu", title = "one thread of a Cortex-A57", cores = 1, host = true, rail = "battery", clock = "cpu",
      launch = assumed(1e-6, "a call"),
      classes = { { op = "conv*", gflops = fitted(0.06569222312, watts_and_joules "CPU") }, { op = "dense", gflops = fitted(0.06569222312, watts_and_joules "CPU") },
                  { op = "*", gbytes = assumed(1, "Java's loops") } },
      power = { static = assumed(.1, "leakage"), dynamic = fitted(2.238, watts_and_joules "CPU") },
      split = split, transfer = free },
  },
}
