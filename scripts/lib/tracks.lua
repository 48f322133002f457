-- Gives boxes of one object in many frames one number. Each track is predicted by a Kalman filter
-- (position and size, constant speed) and takes the box of its class that overlaps it most.
--
--   local tracks = require("lib.tracks").new()
--   local new, gone = tracks:step(found, seconds)   -- b.id, b.age (frames) for each box of found
--
-- A track counts after `sure` frames with a box, and ends after `patience` seconds without one.
local boxes = require "lib.boxes"
local M = {}

local Tracks = {}
Tracks.__index = Tracks

---@param options? table overlap (0.2), sure (3 frames), patience (1 second)
function M.new(options)
  options = options or {}
  return setmetatable({ list = {}, last = 0, overlap = options.overlap or .2, sure = options.sure or 3,
                        patience = options.patience or 1 }, Tracks)
end

-- ---- a number that moves: its value, its speed, and how unsure both are ----

-- State of a filter: value, speed and their covariance.
local function begin(value, noise)
  return { value, 0, noise, 0, 100 * noise } -- and the covariance: value, both, speed
end

-- push: what may change the speed, squared, a second
local function predict(s, dt, push)
  s[1] = s[1] + s[2] * dt
  s[3] = s[3] + dt * (2 * s[4] + dt * s[5]) + push * dt ^ 3 / 3
  s[4] = s[4] + dt * s[5] + push * dt ^ 2 / 2
  s[5] = s[5] + push * dt
end

-- Takes a measured value with that noise (a variance) into the state s, in place: value, speed and
-- their variances.
local function correct(s, value, noise)
  local gain = s[3] / (s[3] + noise)
  local gain_speed, off = s[4] / (s[3] + noise), value - s[1]
  s[1], s[2] = s[1] + gain * off, s[2] + gain_speed * off
  s[5] = s[5] - gain_speed * s[4]
  s[4], s[3] = (1 - gain) * s[4], (1 - gain) * s[3]
end

-- ---- tracks ----

-- A box as the values that are tracked: middle and sides.
local function measures(b) -- middle and sides
  return { (b.x0 + b.x1) / 2, (b.y0 + b.y1) / 2, b.x1 - b.x0, b.y1 - b.y0 }
end

-- The variance of a box's values, whose deviation is a twentieth of its side.
local function noise_of(b) -- a box is off by a twentieth of its side
  return (.05 * math.max(8, (b.x1 - b.x0 + b.y1 - b.y0) / 2)) ^ 2
end

-- The box that a track stands at, with sides of at least 1.
local function box_of(t)
  local x, y, w, h = t.states[1][1], t.states[2][1], math.max(1, t.states[3][1]), math.max(1, t.states[4][1])
  return { x0 = x - w / 2, y0 = y - h / 2, x1 = x + w / 2, y1 = y + h / 2 }
end

-- Starts a track at a box, and returns it.
local function start(self, b, now)
  local t = { class = b.class, seen = 0, since = now, states = {} }
  for i, v in ipairs(measures(b)) do t.states[i] = begin(v, noise_of(b)) end
  self.list[#self.list + 1] = t
  return t
end

-- Takes a box into its track at time `now`: corrects its states; b.age becomes the number of boxes
-- that the track had.
local function take(t, b, now)
  local noise = noise_of(b)
  for i, v in ipairs(measures(b)) do correct(t.states[i], v, noise) end
  t.seen, t.at, t.box, t.score = t.seen + 1, now, b, b.score
  b.age = t.seen
end

-- Pairs of tracks and boxes of one class that overlap enough, those with the largest overlap first.
local function pairs_of(self, found)
  local list = {}
  for _, t in ipairs(self.list) do
    local expected = box_of(t)
    for _, b in ipairs(found) do
      local share = b.class == t.class and boxes.overlap(expected, b) or 0
      if share > self.overlap then list[#list + 1] = { track = t, box = b, share = share } end
    end
  end
  table.sort(list, function(a, b) return a.share > b.share end)
  return list
end

---Numbers the boxes; boxes of tracks that do not count yet get none.
---@param found table[] boxes
---@param now number seconds
---@return table[] new boxes whose number is new: one came
---@return table[] gone { id, class, since, at }: one went
function Tracks:step(found, now)
  local dt = math.max(0, now - (self.now or now))
  self.now = now
  for _, t in ipairs(self.list) do
    for i = 1, 4 do predict(t.states[i], dt, 20 * noise_of(t.box)) end
  end
  local owner = {}
  for _, pair in ipairs(pairs_of(self, found)) do
    if pair.track.at ~= now and not owner[pair.box] then
      take(pair.track, pair.box, now)
      owner[pair.box] = pair.track
    end
  end
  local new, gone, kept = {}, {}, {}
  for _, b in ipairs(found) do
    if not owner[b] then
      owner[b] = start(self, b, now)
      take(owner[b], b, now)
    end
    local t = owner[b]
    if t.seen >= self.sure and not t.id then
      self.last = self.last + 1
      t.id = self.last
      new[#new + 1] = b
    end
    b.id = t.id
  end
  for _, t in ipairs(self.list) do
    local sure_or_seen = t.id or t.at == now
    if now - t.at > self.patience or not sure_or_seen then
      if t.id then gone[#gone + 1] = { id = t.id, class = t.class, since = t.since, at = t.at } end
    else
      kept[#kept + 1] = t
    end
  end
  self.list = kept
  return new, gone
end

return M
