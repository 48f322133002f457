-- Other loads of a phone's GPU, by a seed: other.lua,kind=mail,seed=7. Kinds are mail (bursts of a
-- second with pauses), game2d, game3d, video (frames at a fixed rate) and idle.
local dice, monitor = require "lib.dice", require "monitor"

-- Frames a second, megacycles of each from .. to, relative variation.
local frames = { game2d = { 60, 1.2, 3, .3 }, game3d = { 60, 6, 9.5, .25 }, video = { 30, 2, 5, .1 } }

return function(values)
  local seed, kind = values.seed or 1, values.kind or "mail"
  local d, scene = dice(seed), monitor { most = values.most }
  scene.name, scene.note, scene.seed, scene.kind = kind, "scene: " .. kind, seed, kind
  scene.clocks[1].rest, scene.phases = .1, {}
  local f = frames[kind]
  if f then
    scene.vary = f[4]
    scene.phases[1] = { clock = "gpu", megacycles = d.from(f[2], f[3]), pace = 1 / f[1], run = true }
  elseif kind == "mail" or kind == "idle" then
    scene.vary = .3
    for i = 1, 24 do
      local busy = kind == "mail" and d.from(0, 1) < .4
      scene.phases[i] = { seconds = d.scale(.1, 1.5), clock = "gpu",
                          megacycles = busy and d.scale(5, 200) or d.from(.2, 3), run = i == 24 }
    end
  else
    error("kind: want mail, idle, game2d, game3d or video, got " .. tostring(kind), 0)
  end
  return scene
end
