-- Samsung Galaxy Note 4 (SM-N910C): Exynos 5433, four A57 and four A53, a Mali-T760. CNNdroid also
-- ran on it, but its text has no number for it. So values that are in no data sheet are assumed.
local board = require "lib.board"
local sheet, assumed = board.sheet, board.assumed
local split = { seconds = assumed(2e-3, "as a shared memory's caches take"), joules = assumed(4e-3, "two watts meanwhile") }
local free = { gbytes = assumed(0, "units share one memory"), seconds = assumed(0, "as gbytes") }
local m9 = "the HTC One M9's, which CNNdroid measured"

-- The classes of work of a unit with assumed rates, GFLOP/s and GB/s, for that reason.
local function classes(gflops, gbytes, why)
  return { { op = "conv*", gflops = assumed(gflops, why) }, { op = "dense", gflops = assumed(gflops, why) },
           { op = "*", gbytes = assumed(gbytes, "a part of LPDDR3's 13.2") } }
end

return board.new {
  name = "galaxy_note_4", machine = "Samsung SM-N910C",
  rails = { { name = "battery", idle = assumed(0, "as Trepn tells it: above the base line") } },
  clocks = {
    { name = "gpu", steps = assumed(board.steps { 160, .75, 266, .8, 350, .85, 420, .875, 500, .925, 550, .95, 600, 1.0, 700, 1.075 },
                                    "the vendor kernel's steps; voltages of neighbours") },
    { name = "cpu", steps = assumed(board.steps { 700, .85, 1000, .95, 1300, 1.05, 1600, 1.15, 1900, 1.25 }, "cpufreq's, thinned; voltages of neighbours") },
  },
  units = {
    { name = "gpu", title = "Mali-T760 MP6", cores = sheet(6, "Samsung"), rail = "battery", clock = "gpu",
      launch = assumed(200e-6, "RenderScript"), classes = classes(1.4, 5, "by the peaks of both GPUs from " .. m9),
      power = { static = assumed(.05, "leakage"), dynamic = assumed(.6, "a little above " .. m9) }, split = split, transfer = free },
    { name = "cpu", title = "one thread of a Cortex-A57", cores = 1, host = true, rail = "battery", clock = "cpu",
      launch = assumed(1e-6, "a call"), classes = classes(.0637, 1, "by the clocks of both A57 from " .. m9),
      power = { static = assumed(.1, "leakage"), dynamic = assumed(2.3, "as " .. m9) }, split = split, transfer = free },
  },
}
