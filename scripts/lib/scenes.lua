-- Generates sequences with known truth for judging trackers: an object before a moving background,
-- with scale, rotation in and out of the plane, light, blur, occlusion, look-alikes, leaving and
-- coming back. A seed determines all.
--
--   local scene = require("lib.scenes").draw(7, { frames = 120 })
--   scene:each(function(frame, picture, box) end)   -- u8 [240, 320, 1]; { x, y, w, h } or false: not visible
--
-- Textures are noise and shapes. With `pictures` objects and backgrounds are cut from those files, with `videos`
-- backgrounds are their frames.
local c = require "cnnrun"
local dice = require "lib.dice"
local kinds = require "lib.scene_kinds"

---Generated sequences with known truth.
---@class lib.scenes
local M = {}

local SIDE = 64        -- The side of a drawn texture, in pixels.
local FINE = 192       -- The side of a sampled texture: it is interpolated once, beforehand.
local KERNEL = 9       -- The side of the blur.
local VISIBLE = .5     -- The share of the object that must be in view for it to count as visible.

M.effects = { "scale", "turn", "tilt", "light", "blur", "occlusion", "alike", "leave", "camera", "fast" }

-- ---- textures ----

-- A texture of `w` x `h` numbers from 0 to 255: smooth noise of several sizes, and flat shapes with
-- sharp edges.
local function noise_texture(d, w, h, coarsest, shapes)
  local data = {}
  for i = 1, w * h do data[i] = 0 end
  local size, weight = coarsest, 1
  while size >= 3 do
    local nx, ny, lattice = w // size + 2, h // size + 2, {}
    for i = 0, nx * ny - 1 do lattice[i] = d.from(-1, 1) * weight end
    for y = 0, h - 1 do
      local iy, fy = y // size, y % size / size
      for x = 0, w - 1 do
        local at, fx = iy * nx + x // size, x % size / size
        local a = lattice[at] + fx * (lattice[at + 1] - lattice[at])
        local b = lattice[at + nx] + fx * (lattice[at + nx + 1] - lattice[at + nx])
        data[y * w + x + 1] = data[y * w + x + 1] + a + fy * (b - a)
      end
    end
    size, weight = size // 2, weight * .7
  end
  local middle, range = d.from(90, 160), d.from(35, 60)
  for i = 1, w * h do data[i] = middle + range * data[i] end
  for _ = 1, shapes do
    local x0, y0 = d.whole(-w // 8, w - 1), d.whole(-h // 8, h - 1)
    local sx, sy, value = d.whole(w // 16, w // 3), d.whole(h // 16, h // 3), d.from(20, 235)
    local round = d.from(0, 1) < .5
    for y = math.max(0, y0), math.min(h - 1, y0 + sy) do
      for x = math.max(0, x0), math.min(w - 1, x0 + sx) do
        local u, v = (2 * (x - x0) - sx) / sx, (2 * (y - y0) - sy) / sy
        if not round or u * u + v * v <= 1 then data[y * w + x + 1] = value + .15 * (data[y * w + x + 1] - middle) end
      end
    end
  end
  for i = 1, w * h do data[i] = math.max(0, math.min(255, data[i])) end
  return data
end

-- A random part of a picture as a texture.
local function cut(d, picture)
  local shape = picture:shape()
  local h, w, channels = shape[1], shape[2], shape[3]
  local side = math.floor(math.min(w, h) * d.from(.35, .7))
  local x0, y0, data = d.whole(0, w - side), d.whole(0, h - side), {}
  for y = 0, SIDE - 1 do
    for x = 0, SIDE - 1 do
      local sum = 0
      for k = 0, 3 do -- Four samples for each pixel.
        local px = x0 + math.floor((x + .25 + .5 * (k % 2)) * side / SIDE)
        local py = y0 + math.floor((y + .25 + .5 * (k // 2)) * side / SIDE)
        local at = (py * w + px) * channels
        for ch = 1, channels do sum = sum + picture[at + ch] end
      end
      data[y * SIDE + x + 1] = sum / (4 * channels)
    end
  end
  return data
end

-- Standard deviation of the numbers.
local function contrast(data)
  local sum, squares = 0, 0
  for _, v in ipairs(data) do sum, squares = sum + v, squares + v * v end
  return math.sqrt(math.max(0, squares / #data - (sum / #data) ^ 2))
end

-- A part with structure: a flat one cannot be tracked.
local function object_texture(d, pictures)
  for _ = 1, 20 do
    local data = pictures and cut(d, c.picture(pictures[d.whole(1, #pictures)]))
                 or noise_texture(d, SIDE, SIDE, 32, d.whole(2, 6))
    if contrast(data) > 25 then return data end
  end
  return noise_texture(d, SIDE, SIDE, 32, 6)
end

-- The picture of SIDE x SIDE numbers, mirrored left to right.
local function mirrored(data)
  local out = {}
  for y = 0, SIDE - 1 do
    for x = 1, SIDE do out[y * SIDE + x] = data[y * SIDE + SIDE + 1 - x] end
  end
  return out
end

-- Textures are drawn SIDE pixels wide and sampled FINE pixels wide.
local function enlarged(data)
  local out = {}
  for y = 0, FINE - 1 do
    local v = math.max(0, math.min(SIDE - 1.001, (y + .5) * SIDE / FINE - .5))
    local iy = v // 1 | 0
    for x = 0, FINE - 1 do
      local u = math.max(0, math.min(SIDE - 1.001, (x + .5) * SIDE / FINE - .5))
      local ix = u // 1 | 0
      local at, fx = iy * SIDE + ix + 1, u - ix
      local a = data[at] + fx * (data[at + 1] - data[at])
      local b = data[at + SIDE] + fx * (data[at + SIDE + 1] - data[at + SIDE])
      out[y * FINE + x + 1] = a + (v - iy) * (b - a)
    end
  end
  return out
end

-- A mask: 1 within |u|^n + |v|^n <= 1, soft at the edge. n = 2 is an ellipse, a large n nearly a
-- rectangle.
local function mask_of(power)
  local data = {}
  for y = 0, FINE - 1 do
    for x = 0, FINE - 1 do
      local u, v = math.abs(2 * (x + .5) / FINE - 1), math.abs(2 * (y + .5) / FINE - 1)
      local r = (u ^ power + v ^ power) ^ (1 / power)
      data[y * FINE + x + 1] = math.max(0, math.min(1, (.97 - r) * 14))
    end
  end
  return data
end

-- ---- geometry: 3 x 3 matrices, row by row ----

-- Inverse of a 3 x 3 matrix, a list of nine numbers by rows.
local function inverse(m)
  local a, b, e, f, g, h, i, j, k = table.unpack(m)
  local A, B, C = g * k - h * j, -(f * k - h * i), f * j - g * i
  local det = a * A + b * B + e * C
  return { A / det, (e * j - b * k) / det, (b * h - e * g) / det,
           B / det, (a * k - e * i) / det, (e * f - a * h) / det,
           C / det, (b * i - a * j) / det, (a * g - b * f) / det }
end

-- The point (x, y) after a projective matrix of nine numbers; returns both coordinates.
local function apply(m, x, y)
  local w = m[7] * x + m[8] * y + m[9]
  return (m[1] * x + m[2] * y + m[3]) / w, (m[4] * x + m[5] * y + m[6]) / w
end

-- The matrix from a texture's pixels to the screen's: a card of p.w x p.h pixels about (p.x, p.y),
-- rotated about three axes. p.stretch: the width of a pixel is 1 / stretch of its height.
local function placed(p)
  local cr, sr = math.cos(p.roll or 0), math.sin(p.roll or 0)
  local cy, sy = math.cos(p.yaw or 0), math.sin(p.yaw or 0)
  local cp, sp = math.cos(p.pitch or 0), math.sin(p.pitch or 0)
  local far = 3 * math.max(p.w, p.h)
  -- The columns of roll * yaw * pitch.
  local ax, ay, az = cr * cy, sr * cy, -sy
  local bx, by, bz = cr * sy * sp - sr * cp, sr * sy * sp + cr * cp, cy * sp
  local sx, sy2 = p.w / FINE, p.h / FINE
  local m = { far * ax + p.x * az, far * bx + p.x * bz, p.x * far,
              far * ay + p.y * az, far * by + p.y * bz, p.y * far,
              az, bz, far }
  local half = FINE / 2
  local out = {}
  for r = 0, 2 do
    local u, v, w = m[3 * r + 1] * sx, m[3 * r + 2] * sy2, m[3 * r + 3]
    out[3 * r + 1], out[3 * r + 2], out[3 * r + 3] = u, v, w - half * (u + v)
  end
  for k = 1, 3 do out[k] = out[k] * (p.stretch or 1) end
  return out
end

-- True: (u, v) lies in the rounded mask.
local function in_mask(u, v, power)
  u, v = math.abs(2 * u / FINE - 1), math.abs(2 * v / FINE - 1)
  return u < 1 and v < 1 and (u ^ power + v ^ power) <= .93 ^ power
end

-- True: the sprite in front, by its matrix, covers the point.
local function covered(over, x, y)
  local u, v = apply(over, x, y)
  return in_mask(u, v, 20)
end

-- The box of the object within the picture; false if less than half of it is visible.
local function truth_of(scene, object, occluder)
  local m, over = placed(object), occluder and inverse(placed(occluder))
  local x0, y0, x1, y1, all, seen = math.huge, math.huge, -math.huge, -math.huge, 0, 0
  for i = 0, 15 do
    for j = 0, 15 do
      local u, v = (i + .5) * FINE / 16, (j + .5) * FINE / 16
      if in_mask(u, v, scene.power) then
        local x, y = apply(m, u, v)
        all = all + 1
        local inside = x >= 0 and y >= 0 and x < scene.width and y < scene.height
        if inside and not (over and covered(over, x, y)) then seen = seen + 1 end
      end
    end
  end
  for k = 0, 47 do
    local a = k * math.pi / 24
    local ca, sa = math.cos(a), math.sin(a)
    local r = .94 / (math.abs(ca) ^ scene.power + math.abs(sa) ^ scene.power) ^ (1 / scene.power)
    local x, y = apply(m, FINE / 2 * (1 + r * ca), FINE / 2 * (1 + r * sa))
    x0, y0, x1, y1 = math.min(x0, x), math.min(y0, y), math.max(x1, x), math.max(y1, y)
  end
  x0, y0, x1, y1 = math.max(0, x0), math.max(0, y0), math.min(scene.width, x1), math.min(scene.height, y1)
  if seen < VISIBLE * all or x1 - x0 < 4 or y1 - y0 < 4 then return false end
  return { x0, y0, x1 - x0, y1 - y0 }
end

-- ---- the renderer: a net of elementary operators ----

-- The operator that takes elements [from, to) of an axis of v.
local function sliced(v, axis, from, to) return c.slice { v, axes = { axis }, starts = { from }, ends = { to } } end

-- The positions of the screen's pixels in a texture, kept within it: columns and rows.
local function placed_at(matrix, screen, width, height)
  local at = c.matmul { matrix, screen }
  local depth = sliced(at, 0, 2, 3)
  return c.clip { c.div { sliced(at, 0, 0, 1), depth }, min = 0, max = width - 1.01 },
         c.clip { c.div { sliced(at, 0, 1, 2), depth }, min = 0, max = height - 1.01 }
end

-- The operator of element numbers of points in a picture of that width.
local function index_of(x, y, width) return c.cast { c.add { c.mul { y, { width } }, x }, to = "i32" } end

-- The operator of a texture's colours at points between pixels.
local function bilinear(texture, x, y, width, height)
  local ix, iy = c.floor { x }, c.floor { y }
  local fx, fy, index, n = c.sub { x, ix }, c.sub { y, iy }, index_of(ix, iy, width), width * height
  -- Colours of the pixel that is `by` elements further.
  local function corner(by) return c.gather { sliced(texture, 0, by, n), index, axis = 0 } end
  -- The operator of a value between a and b: a at part 0, b at 1.
  local function between(a, b, part) return c.add { a, c.mul { c.sub { b, a }, part } } end
  return between(between(corner(0), corner(1), fx), between(corner(width), corner(width + 1), fx), fy)
end

local renderers = {}

-- Inputs: the background, the matrices from the screen to the background and to each sprite,
-- textures and masks, factor and offset of each sprite's light, blur, noise.
local function renderer(width, height, sprites, ground)
  local key = table.concat({ width, height, sprites, ground[1], ground[2], ground[3] }, "x")
  if renderers[key] then return renderers[key] end
  local n, coordinates = width * height, {}
  for i = 0, n - 1 do coordinates[i + 1], coordinates[n + i + 1], coordinates[2 * n + i + 1] = i % width, i // width, 1 end
  local screen = c.data(c.tensor { shape = { 3, n }, data = coordinates })
  local picture = c.input { "ground", shape = ground, dtype = "u8" }
  local grey = c.cast { picture, to = "f32" }
  if ground[3] > 1 then grey = c.reduce_mean { grey, axes = { 2 }, keepdims = false } end
  local matrices = c.input { "matrices", shape = { sprites + 1, 3, 3 } }
  local textures = c.input { "textures", shape = { sprites, 2, FINE * FINE } }
  local light = c.input { "light", shape = { sprites, 2 } }
  local kernel = c.input { "kernel", shape = { 1, 1, KERNEL, KERNEL } }
  local noise = c.input { "noise", shape = { height, width } }
  -- The operator of part k of v, in this shape.
  local function part(v, k, shape) return c.reshape { sliced(v, 0, k, k + 1), shape = shape } end
  -- The operator of row k of v, as a vector.
  local function row(v, k) return part(v, k, { -1 }) end
  local x, y = placed_at(part(matrices, 0, { 3, 3 }), screen, ground[2], ground[1])
  local out = bilinear(c.reshape { grey, shape = { ground[1] * ground[2] } }, x, y, ground[2], ground[1])
  for k = 1, sprites do
    x, y = placed_at(part(matrices, k, { 3, 3 }), screen, FINE, FINE)
    local index = index_of(c.floor { x }, c.floor { y }, FINE)
    local both, lit = part(textures, k - 1, { 2, FINE * FINE }), part(light, k - 1, { 2, 1 })
    local value = c.add { c.mul { c.gather { row(both, 0), index, axis = 0 }, row(lit, 0) }, row(lit, 1) }
    out = c.add { out, c.mul { c.sub { value, out }, c.gather { row(both, 1), index, axis = 0 } } }
  end
  out = c.reshape { out, shape = { 1, 1, height, width } }
  out = c.conv2d { out, kernel, out = 1, kernel = KERNEL, pad = KERNEL // 2, bias = false }
  out = c.add { c.reshape { out, shape = { height, width } }, noise }
  out = c.cast { c.clip { c.round { out }, min = 0, max = 255 }, to = "u8" }
  renderers[key] = c.load(c.net { name = "scene", outputs = { c.reshape { out, shape = { height, width, 1 } } } })
  return renderers[key]
end

-- ---- events: functions of time, drawn once ----

-- A smooth path from -1 to 1, of two waves.
local function wave(d, shortest, longest)
  local a, b = d.scale(shortest, longest), d.scale(shortest, longest)
  local p, q, share = d.from(0, 6.28), d.from(0, 6.28), d.from(.3, .8)
  return function(t) return share * math.sin(6.2832 * t / a + p) + (1 - share) * math.sin(6.2832 * t / b + q) end
end

-- The change of a wave since the first frame: scenes begin without a change.
local function from_first(f) return function(t) return f(t) - f(1) end end

-- A function of the frame that goes from 0 to 1 and back, with ramps of that many frames.
local function bump(from, to, ramp)
  return function(t) return math.max(0, math.min(1, (t - from) / ramp, (to - t) / ramp)) end
end

-- A kernel of sum 1, as a tensor [1,1,KERNEL,KERNEL], that blurs along (dx, dy) and by `soft`
-- pixels.
local function kernel_of(dx, dy, soft)
  local data, sum, half = {}, 0, KERNEL // 2
  for y = -half, half do
    for x = -half, half do
      local v = 0
      for k = -8, 8 do
        local u, w = x - k / 16 * dx, y - k / 16 * dy
        v = v + math.exp(-.5 * (u * u + w * w) / (soft * soft))
      end
      data[#data + 1], sum = v, sum + v
    end
  end
  for i = 1, #data do data[i] = data[i] / sum end
  return c.tensor { shape = { 1, 1, KERNEL, KERNEL }, data = data }
end

local Scene = {}
Scene.__index = Scene

---Draws a scene. options: frames (120), width (320), height (240), pictures and videos (files), effects (a list:
---these and no others), kind (a name of lib/scene_kinds.lua).
---@param seed integer
---@param options table?
function M.draw(seed, options)
  options = options or {}
  local d = dice(seed)
  local s = setmetatable({ seed = seed, frames = options.frames or 120, width = options.width or 320,
                           height = options.height or 240, d = d, has = {}, effects = {}, kind = options.kind }, Scene)
  local wanted = {}
  for _, name in ipairs(options.effects or {}) do wanted[name] = true end
  for _, name in ipairs(M.effects) do
    local drawn = d.from(0, 1) < .4
    if options.effects then drawn = wanted[name] or false end
    s.has[name] = drawn
    if drawn then s.effects[#s.effects + 1] = name end
  end
  s.power = d.scale(1.3, 8)
  s.texture = object_texture(d, options.pictures)
  s.w = d.scale(16, 80)
  s.h = math.max(20, math.min(110, s.w * d.scale(.6, 3.2)))
  kinds.apply(s, "before")
  local video = options.videos and #options.videos > 0 and d.from(0, 1) < .5 and options.videos[d.whole(1, #options.videos)]
  if video then s.video, s.video_from = video, d.whole(0, 40)
  elseif options.pictures then s.ground = c.picture(options.pictures[d.whole(1, #options.pictures)])
  else
    local w, h = 400, 300
    s.ground = c.tensor { shape = { h, w, 1 }, data = noise_texture(d, w, h, 64, 14), dtype = "u8" }
  end
  s:plan()
  kinds.apply(s, "after")
  return s
end

-- All changing values, as functions of the frame.
function Scene:plan()
  local d, has, n = self.d, self.has, self.frames
  -- A span of frames with a drawn beginning and length.
  local function span(least, most) -- The start of an event of that length.
    local length = d.whole(least, most)
    local from = math.max(14, d.whole(n // 6, math.max(n // 6, n - length - n // 6))) -- Never in the first frame.
    return from, from + length
  end
  local slow, quick = has.fast and 35 or 90, has.fast and 80 or 220
  local px, py = wave(d, slow, quick), wave(d, slow, quick)
  local scale, roll, yaw, pitch = from_first(wave(d, 70, 200)), from_first(wave(d, 60, 160)), from_first(wave(d, 60, 160)),
                                  from_first(wave(d, 60, 160))
  local size, turn, tilt = d.from(.15, .45), d.from(.1, .35), d.from(.25, .55)
  local away_from, away_to = span(12, 30)
  local away, side = bump(away_from - 12, away_to + 12, 12), d.whole(1, 4)
  local reach_x, reach_y = self.width / 2 - self.w * .6, self.height / 2 - self.h * .6
  self.object = function(t)
    local by = has.scale and math.exp(size * scale(t)) or 1
    local p = { x = self.width / 2 + .85 * reach_x * px(t), y = self.height / 2 + .85 * reach_y * py(t),
                w = self.w * by, h = self.h * by, roll = has.turn and turn * roll(t) or 0,
                yaw = has.tilt and tilt * yaw(t) or 0, pitch = has.tilt and .6 * tilt * pitch(t) or 0 }
    if has.leave then -- Over an edge, by its speed and its size.
      local out = away(t)
      if side == 1 then p.x = p.x + out * (-self.w - p.x) elseif side == 2 then p.x = p.x + out * (self.width + self.w - p.x)
      elseif side == 3 then p.y = p.y + out * (-self.h - p.y) else p.y = p.y + out * (self.height + self.h - p.y) end
    end
    return p
  end
  local over_from, over_to = span(15, 40)
  local over, cover, from_left = bump(over_from - 10, over_to + 10, 10), d.from(.9, 1.6), d.from(0, 1) < .5
  self.occluder = has.occlusion and function(t) -- Comes from the side, stays before the object, moves on.
    local o = self.object(t)
    local gap = (1 - over(t)) * (self.width + 2 * self.w)
    if t > (over_from + over_to) / 2 then gap = -gap end
    return { x = o.x + (from_left and -gap or gap), y = o.y, w = self.w * cover, h = self.h * cover * 1.3 }
  end
  self.over = has.occlusion and object_texture(d, nil)
  local ax, ay, bx, by = wave(d, 70, 200), wave(d, 70, 200), wave(d, 70, 200), wave(d, 70, 200)
  self.alikes = has.alike and { function(t)
    return { x = self.width / 2 * (1 + ax(t)), y = self.height / 2 * (1 + ay(t)), w = self.w, h = self.h }
  end, function(t)
    return { x = self.width / 2 * (1 + bx(t)), y = self.height / 2 * (1 + by(t)), w = self.w * 1.1, h = self.h * .9,
             roll = .2 * ax(t) }
  end } or {}
  local gain, step_from, step_to = from_first(wave(d, 50, 200)), span(20, 60)
  local shade, depth = bump(step_from, step_to, 4), d.from(.1, .4)
  self.light = function(t)
    if not has.light then return 1, 0 end
    return 1 + .25 * gain(t) - depth * shade(t), 12 * gain(t)
  end
  local soft_from, soft_to = span(4, 14)
  local soft, shake = bump(soft_from, soft_to, 2), has.blur and d.from(2, 6) or 0
  self.blur = function(t)
    if not has.blur then return 0, 0, .35 end
    local angle = 1.7 * t
    local length = shake * math.max(0, math.sin(.6 * t)) ^ 3
    return length * math.cos(angle), length * math.sin(angle), .4 + 1.4 * soft(t)
  end
  local cx, cy, zoom = wave(d, 40, 160), wave(d, 40, 160), d.from(.8, 1)
  self.camera = function(t, gw, gh) -- From the screen to the background.
    local k = math.min(gw / self.width, gh / self.height) * .85 * zoom
    local room_x, room_y = gw - k * self.width, gh - k * self.height
    local x = room_x * (has.camera and .5 + .5 * cx(t) or .5)
    local y = room_y * (has.camera and .5 + .5 * cy(t) or .5)
    return { k, 0, x, 0, k, y, 0, 0, 1 }
  end
  self.noise = d.from(.5, 5)
end

-- In the order in which they are drawn: { place(t), texture, mask, lit }.
function Scene:sprites()
  local list, mask, plain = {}, mask_of(self.power), enlarged(self.texture)
  for _, place in ipairs(self.alikes) do list[#list + 1] = { place, enlarged(mirrored(self.texture)), mask, true } end
  list[#list + 1] = { self.object, plain, mask, true }
  if self.occluder then list[#list + 1] = { self.occluder, enlarged(self.over), mask_of(20), false } end
  return list
end

-- More noise than a frame has pixels: each frame begins at another position.
local function noise_pool(d, n, deviation)
  local pool = {}
  for i = 1, n do pool[i] = (d.from(-1, 1) + d.from(-1, 1) + d.from(-1, 1)) * deviation end
  return c.tensor { shape = { n, 1 }, data = pool }
end

---Calls fn(frame, picture, box) for each frame from 1 on; box is false if the object is not
---visible.
---@param fn fun(frame: integer, picture: cnnrun.Tensor, box: number[]|false)
function Scene:each(fn)
  local sprites, both, d = self:sprites(), {}, dice(self.seed + 1)
  for _, sprite in ipairs(sprites) do
    for k = 2, 3 do table.move(sprite[k], 1, FINE * FINE, #both + 1, both) end
  end
  local textures = c.tensor { shape = { #sprites, 2, FINE * FINE }, data = both }
  local count, offsets = self.width * self.height, 6000
  local pool = noise_pool(d, count + offsets, self.noise)
  -- The picture of frame t on its ground.
  local function frame(t, ground)
    local shape = ground:shape()
    local matrices, light, factor, offset = self.camera(t, shape[2], shape[1]), {}, self.light(t)
    for _, sprite in ipairs(sprites) do
      table.move(inverse(placed(sprite[1](t))), 1, 9, #matrices + 1, matrices)
      light[#light + 1] = sprite[4] and factor or 1
      light[#light + 1] = sprite[4] and offset or 0
    end
    local noise = pool:region({ d.whole(1, offsets), 1 }, { count, 1 }):reshaped { self.height, self.width }
    local picture = renderer(self.width, self.height, #sprites, shape):run {
      ground, c.tensor { shape = { #sprites + 1, 3, 3 }, data = matrices }, textures,
      c.tensor { shape = { #sprites, 2 }, data = light }, kernel_of(self.blur(t)), noise }
    if self.coded then picture = self.coded(picture) end
    fn(t, picture, truth_of(self, self.object(t), self.occluder and self.occluder(t)))
  end
  if not self.video then
    for t = 1, self.frames do frame(t, self.ground) end
    return
  end
  local t, from = 0, self.video_from
  while t < self.frames do -- A video that is too short begins again.
    local before = t
    for _, picture in c.samples(self.video, nil, { from = from }):each() do
      if t == self.frames then break end
      t = t + 1
      frame(t, picture)
    end
    if t == before and from == 0 then error(self.video .. ": there are no pictures in it", 0) end
    from = 0
  end
end

return M
