-- The monitoring application of W18, chapter 5 (sample, infer, draw) on the ODROID-XU3's GPU,
-- fitted to the rows for 177 and 543 MHz of its table 5.1 (scripts/boards/odroid_xu3.lua). The part
-- of a pass that no frequency changes shows as the narrow dip of its load. `most` megahertz: the
-- six steps of the thesis end at 543.
local board = require("lib.board").load "odroid_xu3"

return function(values)
  local steps, m = {}, board.notes.monitor
  for _, step in ipairs(board.clocks[1].steps) do
    if step.mhz <= (values.most or 543) then steps[#steps + 1] = { mhz = step.mhz, volts = step.volts } end
  end
  return {
    name = "monitor", note = "scene: inference", most = values.most or 543,
    clocks = { { name = "gpu", feeds = "opencl:0", steps = steps, static = m.static, per_v2_mhz = m.per_v2_mhz, rest = 1 } },
    phases = { { clock = "gpu", seconds = m.seconds, megacycles = m.megacycles, run = true } },
  }
end
