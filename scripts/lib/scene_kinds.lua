-- Kinds of scenes that are hard for a tracker, applied to a scene of lib/scenes.lua: what a camera, a coder or an unusual
-- object does to it. A kind has its own random numbers, so the scene is otherwise the one that its seed draws.
local c = require "cnnrun"
local dice = require "lib.dice"

---Kinds of hard scenes. Each: before(scene, d, height, width) changes sizes and textures, after(scene, d) what moves.
---@class lib.scene_kinds
local M = { names = { "small", "large", "faint", "motion", "shake", "compress", "edge", "elsewhere", "cross", "roll", "jerky",
                      "anamorphic", "odd" } }

-- From 0 to 1 between two frames, smoothly.
local function ramp(t, from, to)
  local u = math.max(0, math.min(1, (t - from) / (to - from)))
  return u * u * (3 - 2 * u)
end

-- The scene with its time running `factor` times as fast.
local function faster(s, factor)
  local function moved(f) return f and function(t, ...) return f(1 + (t - 1) * factor, ...) end end
  s.object, s.camera, s.occluder = moved(s.object), moved(s.camera), moved(s.occluder)
  for i, alike in ipairs(s.alikes) do s.alikes[i] = moved(alike) end
end

-- Changes where and how large the object is: change(p, t) returns p.
local function changed(s, change)
  local before = s.object
  s.object = function(t) return change(before(t), t) end
end

local kinds = {}

-- An object of about 15 x 15 pixels.
kinds.small = { before = function(s, d) s.w, s.h = d.from(13, 17), d.from(13, 17) end }

-- An object of half the picture's sides.
kinds.large = { before = function(s, d) s.w, s.h = s.width * d.from(.4, .6), s.height * d.from(.5, .7) end }

-- An object whose grey levels hardly differ.
kinds.faint = { before = function(s)
  local sum = 0
  for _, v in ipairs(s.texture) do sum = sum + v end
  local mean = sum / #s.texture
  for i, v in ipairs(s.texture) do s.texture[i] = mean + .25 * (v - mean) end
end }

-- Fast motion, exposed for half of the time between two frames.
kinds.motion = { after = function(s)
  faster(s, 2)
  local soft = s.blur
  s.blur = function(t)
    local a, b, _, _, width = s.object(t - .25), s.object(t + .25), soft(t)
    local dx, dy = b.x - a.x, b.y - a.y
    local by = math.min(1, 8 / math.max(1e-6, math.abs(dx), math.abs(dy)))
    return dx * by, dy * by, width
  end
end }

-- A camera in a hand: the whole picture jumps from frame to frame.
kinds.shake = { after = function(s, d)
  local x, y = { 0 }, { 0 }
  for t = 2, s.frames + 1 do
    x[t], y[t] = .5 * x[t - 1] + d.from(-9, 9), .5 * y[t - 1] + d.from(-9, 9)
  end
  local camera = s.camera
  local function shaken(f)
    return function(t)
      local p = f(t)
      p.x, p.y = p.x + (x[t] or 0), p.y + (y[t] or 0)
      return p
    end
  end
  s.object = shaken(s.object)
  for i, alike in ipairs(s.alikes) do s.alikes[i] = shaken(alike) end
  s.camera = function(t, w, h)
    local m = camera(t, w, h)
    m[3], m[6] = m[3] - m[1] * (x[t] or 0), m[6] - m[1] * (y[t] or 0)
    return m
  end
end }

-- The object moves out over an edge until a bit less than half of it is seen, stays, and comes back.
kinds.edge = { after = function(s, d)
  local side, at, stay = d.whole(1, 4), d.whole(20, 40), d.whole(15, 35)
  local out = d.from(-.05, .15) -- Of the object's side, from its middle to the border.
  changed(s, function(p, t)
    local away = ramp(t, at, at + 12) * (1 - ramp(t, at + 12 + stay, at + 24 + stay))
    local x = side == 1 and out * p.w or side == 2 and s.width - out * p.w or p.x
    local y = side == 3 and out * p.h or side == 4 and s.height - out * p.h or p.y
    p.x, p.y = p.x + away * (x - p.x), p.y + away * (y - p.y)
    return p
  end)
end }

-- The object leaves over one side, and comes in over another one, nearer or farther away.
kinds.elsewhere = { after = function(s, d)
  local at, gone, scale = d.whole(35, 50), d.whole(15, 30), d.from(0, 1) < .5 and d.from(.6, .75) or d.from(1.3, 1.6)
  local out, into = d.whole(1, 2), d.whole(1, 2)
  changed(s, function(p, t)
    local back = t >= at + 10 + gone
    if back then p.w, p.h = p.w * scale, p.h * scale end
    local away = back and 1 - ramp(t, at + 10 + gone, at + 25 + gone) or ramp(t, at, at + 10)
    if back then p.y = p.y + away * ((into == 1 and -p.h or s.height + p.h) - p.y)
    else p.x = p.x + away * ((out == 1 and -p.w or s.width + p.w) - p.x) end
    return p
  end)
end }

-- Two that look nearly the same cross the object's way, behind it.
kinds.cross = { after = function(s, d)
  s.alikes = {}
  for k = 1, 2 do
    local meets, speed, angle = d.whole(25, 45) + 35 * (k - 1), d.from(2, 5), d.from(0, 6.28)
    s.alikes[k] = function(t)
      local p = s.object(t)
      local far = speed * (t - meets)
      return { x = p.x + far * math.cos(angle), y = p.y + far * math.sin(angle), w = p.w, h = p.h, roll = p.roll }
    end
  end
end }

-- The object turns by a quarter, either way.
kinds.roll = { after = function(s, d)
  local way, from = d.from(0, 1) < .5 and 1 or -1, s.frames // 6
  changed(s, function(p, t)
    p.roll = (p.roll or 0) + way * math.pi / 2 * ramp(t, from, s.frames * 2 // 3)
    return p
  end)
end }

-- Five pictures a second of what moves as at 25.
kinds.jerky = { after = function(s)
  s.frames = s.frames // 2
  faster(s, 5)
end }

-- Pixels that are not square, seen while the object turns.
kinds.anamorphic = { after = function(s, d)
  local stretch, turn = d.from(.6, .75), d.from(.3, .6)
  changed(s, function(p, t)
    p.roll, p.stretch = (p.roll or 0) + turn * math.sin(t * .05), stretch
    p.x = p.x / stretch
    return p
  end)
end }

-- Sides that are no multiple of anything.
kinds.odd = { before = function(s, d)
  s.width, s.height = 2 * d.whole(90, 260) + 1, 2 * d.whole(70, 180) + 1
  s.w, s.h = math.min(s.w, s.width / 2), math.min(s.h, s.height / 2)
end }

-- ---- compression ----

local coders = {}

-- A net that codes pictures of that size as JPEG does, with steps `coarse` times those of its table for grey pictures.
local function coder(width, height, coarse)
  local key = ("%dx%d %g"):format(width, height, coarse)
  if coders[key] then return coders[key] end
  local cosines, turned, step, back = {}, {}, {}, {}
  for u = 0, 7 do
    for x = 0, 7 do
      local v = math.cos((2 * x + 1) * u * math.pi / 16) * (u == 0 and math.sqrt(1 / 8) or .5)
      cosines[8 * u + x + 1], turned[8 * x + u + 1] = v, v
      step[8 * u + x + 1] = coarse * (12 + 6 * (u + x) + (u + x) ^ 2)
      back[8 * u + x + 1] = 1 / step[8 * u + x + 1]
    end
  end
  local function block(data) return c.data(c.tensor { shape = { 8, 8 }, data = data }) end
  local rows, columns = height // 8, width // 8
  local input = c.input { "picture", shape = { height, width, 1 }, dtype = "u8" }
  local v = c.reshape { c.cast { input, to = "f32" }, shape = { rows, 8, columns, 8 } }
  v = c.transpose { v, perm = { 0, 2, 1, 3 } }
  v = c.matmul { block(cosines), c.matmul { v, block(turned) } }
  v = c.mul { c.round { c.mul { v, block(back) } }, block(step) }
  v = c.matmul { block(turned), c.matmul { v, block(cosines) } }
  v = c.reshape { c.transpose { v, perm = { 0, 2, 1, 3 } }, shape = { height, width, 1 } }
  v = c.cast { c.clip { c.round { v }, min = 0, max = 255 }, to = "u8" }
  coders[key] = c.load(c.net { name = "coder", outputs = { v } })
  return coders[key]
end

-- A coder that leaves blocks and rings.
kinds.compress = { after = function(s, d)
  local coarse = d.from(2.5, 5)
  s.coded = function(picture) return (coder(s.width, s.height, coarse):run { picture }) end
end }

---Applies the part "before" or "after" of the scene's kind, if it has one.
---@param scene table
---@param part string
function M.apply(scene, part)
  local kind = scene.kind and kinds[scene.kind]
  if kind and kind[part] then kind[part](scene, dice(scene.seed + (part == "before" and 700001 or 700002))) end
end

return M
