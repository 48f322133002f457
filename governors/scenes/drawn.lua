-- A random machine and a loop on it, by seeds: drawn.lua,seed=3,scene=5 is board 3 with scene 5 of
-- eight, which differ in the part of a pass that no frequency changes. `bus`: the memory's clock
-- can be set too, and scenes differ in how much they wait for memory. `fps`: the loop waits for the
-- next frame. `hot`: the board throttles at 80 degrees and can't sustain its highest step.
local dice = require "lib.dice"

-- A clock with steps drawn between low and high, and its power.
local function clock(d, name, low, high, watts)
  local steps, n = {}, d.whole(5, 12)
  local v_low, v_high, bend = d.from(.65, .85), d.from(.95, 1.25), d.from(1.2, 1.8)
  for i = 1, n do
    local part = (i - 1) / (n - 1)
    steps[i] = { mhz = math.floor(low + (high - low) * part), volts = v_low + (v_high - v_low) * part ^ bend }
  end
  local top = steps[n]
  local static = watts * d.from(.05, .3)
  return { name = name, feeds = name == "gpu" and "opencl:0" or "", steps = steps, static = static,
           per_v2_mhz = (watts - static) / (top.volts ^ 2 * top.mhz), rest = d.from(.05, .5) }
end

return function(values)
  local d, s = dice(values.seed or 1), dice(100 + (values.scene or 1))
  local out = { name = "drawn", seed = values.seed or 1, scene = values.scene or 1, bus = values.bus or 0, fps = values.fps or 0,
                hot = values.hot or 0, note = "scene: inference", vary = 0 }
  local high = d.from(500, 900)
  local gpu = clock(d, "gpu", high * d.from(.25, .4), high, d.scale(1, 6))
  local bus = clock(d, "bus", 200, d.from(600, 1000), d.scale(.4, 2))
  out.watts = d.scale(.1, 1)
  local seconds = s.scale(.15, 1.5)   -- of a pass at the highest step
  local rest, memory = s.from(.02, .3), s.from(.3, 1.3)
  local work = seconds * (1 - rest)
  out.clocks = { gpu }
  out.phases = { { clock = "gpu", seconds = seconds * rest, megacycles = work * gpu.steps[#gpu.steps].mhz, run = true } }
  if values.bus then
    out.clocks[2] = bus
    out.phases[1].bus, out.phases[1].bus_megacycles = "bus", work * memory * bus.steps[#bus.steps].mhz
  end
  if values.fps then out.phases[1].pace = 1 / values.fps end
  if values.hot then
    local most = gpu.static + gpu.per_v2_mhz * gpu.steps[#gpu.steps].volts ^ 2 * gpu.steps[#gpu.steps].mhz + out.watts
    out.heat = { ambient = 25, ohms = 55 / most * d.from(1.15, 1.6), tau = d.from(30, 90), limit = 80, slack = d.from(5, 10) }
  end
  return out
end
