-- A random loop of inference, by a seed, on the GPU of monitor.lua: takes a picture, computes a
-- pass of a third of a second to a second and a half, draws the answer. loop.lua,seed=7
local dice, monitor = require "lib.dice", require "monitor"

return function(values)
  local seed = values.seed or 1
  local d, scene = dice(seed), monitor { most = values.most }
  scene.name, scene.seed, scene.vary, scene.clocks[1].rest = "loop", seed, d.from(0, .06), d.from(.1, .6)
  scene.phases = {
    { seconds = d.from(.05, .16), clock = "gpu", megacycles = 0 },
    { clock = "gpu", megacycles = d.scale(180, 800) },
    { seconds = d.from(.02, .08), clock = "gpu", megacycles = d.from(1, 8), run = true },
  }
  return scene
end
