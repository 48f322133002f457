-- Watchers of a monitor's frames: a detector whose boxes keep their numbers, or a classifier.
local classifiers = require "lib.classifier"
local detector = require "lib.detector"
local draw = require "lib.draw"
local json = require "lib.json"
local tracks = require "lib.tracks"
local M = {}

-- v rounded to n decimal digits, as a number.
local function rounded(v, n) return tonumber(("%." .. n .. "f"):format(v)) end

-- ---- boxes ----

local Boxes = {}
Boxes.__index = Boxes

-- How pictures of that shape are prepared, and their size.
function Boxes:how(shape) return self.finder:how(shape) end
-- Boxes from the net's outputs.
function Boxes:decode(outputs, place, shape, size) return self.finder:decode(outputs, place, shape, size) end
-- Boxes in a picture.
function Boxes:find(picture) return self.finder:find(picture) end

-- Tracks that came and that went with these boxes since the last frame; `at`: seconds.
function Boxes:track(found, at)
  local new, gone = self.tracks:step(found, at)
  for _, list in ipairs { found, gone } do
    for _, b in ipairs(list) do b.label = self.finder:label(b.class) end
  end
  return new, gone
end

-- Pixels of the picture with what was found; more(canvas) draws on top.
function Boxes:draw(picture, found, more)
  return draw.frame(picture, found, function(b)
    local number = b.id and " " .. b.id or ""
    return ("%s%s %d%%"):format(b.label, number, (b.score * 100 + .5) // 1), b.label .. number
  end, more)
end

-- What was found, as a table for JSON.
function Boxes:list(found)
  local list = { n = #found }
  for i, b in ipairs(found) do
    list[i] = { id = b.id, class = b.class, label = b.label, score = rounded(b.score, 3),
                box = { rounded(b.x0, 1), rounded(b.y0, 1), rounded(b.x1, 1), rounded(b.y1, 1) } }
  end
  return list
end

-- What came and went, as events with words.
function Boxes:events(new, gone, at)
  local list = {}
  for _, b in ipairs(new) do list[#list + 1] = ("%s %d came"):format(b.label, b.id) end
  for _, t in ipairs(gone) do
    list[#list + 1] = ("%s %d went, seen for %.1f s"):format(t.label, t.id, t.at - t.since)
  end
  for i, text in ipairs(list) do list[i] = { seconds = rounded(at, 3), text = text } end
  return list
end

-- ---- classes ----

local Classes = {}
Classes.__index = Classes

-- How pictures of that shape are prepared, and the shape.
function Classes:how(shape) return self.finder:how(shape), shape end
-- The best classes from the net's outputs.
function Classes:decode(outputs) return self.finder:decode(outputs) end
-- The best classes of a picture.
function Classes:find(picture) return self.finder:find(picture) end

-- The best class, once it was the best three times.
function Classes:track(found)
  local best = found[1]
  self.times = best and self.last == best[3] and self.times + 1 or 1
  self.last = best and best[3]
  local new = best and self.times == 3 and self.told ~= best[3]
  if new then self.told = best[3] end
  return new and { best } or {}, {}
end

-- Pixels of the picture with the best classes in a corner; more(canvas) draws on top.
function Classes:draw(picture, found, more)
  return draw.caption(picture, found, draw.size(picture), more)
end

-- The best classes, as a table for JSON.
function Classes:list(found)
  local list = { n = #found }
  for i, line in ipairs(found) do
    list[i] = { class = line[3], label = line[1], score = rounded(line[2], 4) }
  end
  return list
end

-- An event if the best class changed, else none.
function Classes:events(new, _, at)
  return new[1] and { { seconds = rounded(at, 3), text = "now " .. new[1][1] } } or {}
end

-- ---- both ----

-- Tells a frame's findings: a line of JSON with --json, else of text.
local function tell(self, frame, found, new, gone, at, options)
  if options.json then
    print(json.encode({ frame = frame.number, seconds = frame.seconds, ms = frame.took and frame.took * 1000,
                        lost = frame.lost, found = self:list(found) }, 7))
  elseif not options.quiet then
    for _, event in ipairs(self:events(new, gone, at)) do print(("%9.2f s  %s"):format(at, event.text)) end
  end
end
Boxes.tell, Classes.tell = tell, tell

-- The watcher for the task that the options name.
function M.open(path, options)
  local kind = options.app or "detect"
  if kind == "classify" then
    local finder = classifiers.open(path, options)
    return setmetatable({ kind = kind, finder = finder, net = finder.net, times = 0 }, Classes)
  elseif kind ~= "detect" and kind ~= "faces" then
    error("--app: want detect, faces or classify, got " .. kind, 0)
  end
  local finder = detector.open(path, options)
  return setmetatable({ kind = kind, finder = finder, net = finder.net, tracks = tracks.new() }, Boxes)
end

return M
