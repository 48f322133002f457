-- Intrinsyc Open-Q 820: Snapdragon 820, four Kryo cores in two pairs, an Adreno 530.
local board = require "lib.board"
local sheet, fitted, assumed = board.sheet, board.fitted, board.assumed
local soc = "Qualcomm's product brief of the Snapdragon 820, W18 2.4.3"
local row = "W18 3.2, AlexNet on Snapdragon 820's GPU, seconds"
local split = { seconds = assumed(1e-3, "as a shared memory's caches take"), joules = assumed(2e-3, "two watts meanwhile") }
local free = { gbytes = assumed(0, "units share one memory"), seconds = assumed(0, "as gbytes") }

-- Two Kryo cores as a unit: its name, clock and GFLOP/s.
local function pair(name, mhz, gflops)
  return {
    name = name, title = "two Kryo cores", cores = sheet(2, soc), host = true, rail = "cpu", clock = name,
    launch = assumed(10e-6, "waking threads"),
    classes = { { op = "conv*", gflops = assumed(gflops, "a fifth of two cores' eight a cycle at " .. mhz .. " MHz") },
                { op = "dense", gflops = assumed(gflops, "as conv") },
                { op = "*", gbytes = assumed(4, "a part of LPDDR4's") } },
    power = { static = assumed(.1, "of two cores"), dynamic = assumed(1.5, "of two cores at the highest step") },
    split = split, transfer = free,
  }
end

return board.new {
  name = "snapdragon_820", machine = "Qualcomm Technologies, Inc. APQ 8096",
  rails = { { name = "gpu", idle = assumed(.02, "gated") }, { name = "cpu", idle = assumed(.1, "of four cores that wait") },
            { name = "memory", idle = assumed(.1, "refresh"), per_byte = assumed(60e-12, "LPDDR4") } },
  clocks = {
    { name = "gpu", steps = assumed(board.steps { 133, .75, 214, .775, 315, .8, 401, .825, 510, .875, 560, .9, 624, .95 },
                                    "kgsl's steps; voltages of neighbours") },
    { name = "kryo_low", steps = assumed(board.steps { 307, .7, 729, .75, 1228, .825, 1593, .9 }, "cpufreq's, thinned; voltages of neighbours") },
    { name = "kryo_high", steps = assumed(board.steps { 307, .7, 825, .75, 1401, .85, 1824, .925, 2150, 1.0 }, "the same") },
  },
  units = {
    { name = "gpu", title = "Adreno 530", cores = sheet(4, "W18 2.4.3"), rail = "gpu", clock = "gpu",
      launch = assumed(50e-6, "what a queue takes for a kernel"),
      classes = { { op = "conv*", gflops = fitted(3.926012306, row) }, { op = "dense", gflops = fitted(3.926012306, row) },
                  { op = "*", gbytes = assumed(10, "a part of LPDDR4's 29.8") } },
      power = { static = assumed(.1, "leakage"), dynamic = assumed(1.6, "at the highest step") },
      split = split, transfer = free },
    pair("kryo_high", 2150, 6.9), pair("kryo_low", 1593, 5.1),
    { name = "cpu", title = "four Kryo cores", cores = 4, host = true, members = { "kryo_high", "kryo_low" },
      launch = assumed(10e-6, "waking threads"), split = split, transfer = free },
  },
}
