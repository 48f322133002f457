-- MTCNN finds faces in three stages. A small net proposes boxes in the picture at many sizes; the
-- second and third net refine each proposal, move its sides and give five points.
local c = require "cnnrun"
local boxes = require "lib.boxes"
local nets = require "lib.nets"
local M = {}

local Mtcnn = { kind = "mtcnn" }
Mtcnn.__index = Mtcnn

local cell, stride = 12, 2 -- of the first net
local sides = { false, 24, 48 } -- Picture sizes of the nets; the first takes any.

-- The stage's files in the folder, in any format.
local function stage(folder, i, options)
  local name = "det" .. i
  -- Path of the stage's file with this ending.
  local function at(ending) return folder .. "/" .. name .. ending end
  for _, ending in ipairs { ".cnr", ".onnx" } do
    if c.exists(at(ending)) then return nets.open(at(ending), options) end
  end
  if c.exists(at ".prototxt") then
    return nets.open(at ".prototxt" .. "," .. at ".caffemodel", options)
  end
  if c.exists(at "-symbol.json") then
    local shape = sides[i] and { ("shape=3,%d,%d"):format(sides[i], sides[i]) }
    return nets.open(at "-symbol.json" .. "," .. at "-0001.params",
                     { device = options.device, option = shape or nil })
  end
  error(("no %s in %s: a folder is taken for MTCNN's three nets, det1 to det3 (.cnr, .onnx, .prototxt with .caffemodel, or " ..
         "-symbol.json with -0001.params); of another net name the file"):format(name, folder), 0)
end

-- Identifies the outputs by their number of values.
local function ports(net)
  local by = {}
  for _, port in ipairs(net.outputs) do
    by[port.sizes[2] == 2 and "scores" or port.sizes[2] == 4 and "moves" or "points"] = port.name
  end
  return by
end

-- Loads the three stages in the folder; options as of detector.open.
function M.open(folder, options)
  local self = setmetatable({ stages = {} }, Mtcnn)
  for i = 1, 3 do
    local net = stage(folder, i, options)
    self.stages[i] = { net = net, ports = ports(net) }
  end
  -- The authors' nets take transposed pictures: those from Caffe, whose importer records the order
  -- of colours.
  local first = self.stages[1].net
  local swapped = first.meta("input." .. first.input.name .. ".channels") == "bgr"
  if options.swapped then swapped = options.swapped == "yes" end
  self.swapped = swapped
  self.steps = { mean = options.mean or 127.5, scale = options.scale or 0.0078125,
                 channels = options.channels or (swapped and "rgb" or "bgr") }
  self.least = math.max(1, options.smallest or 20)
  self.factor = 0.709
  self.scores = { .6, .7, options.score or .7 }
  return self
end

-- The name of the only class: the first label, or "face".
function Mtcnn:label() return self.names and self.names[1] or "face" end

-- The picture as the nets see it: rows and columns swapped for nets from MATLAB.
function Mtcnn:seen(picture)
  return self.swapped and picture:transposed { 2, 1, 3 } or picture
end

-- How a picture is prepared to be height x width, as steps for model:prepare.
function Mtcnn:how(height, width)
  local how = { size = self.swapped and { width, height } or { height, width } }
  for key, value in pairs(self.steps) do how[key] = value end
  return how
end

-- ---- stage 1 ----

-- Proposals at one scale of the picture, in its pixels.
function Mtcnn:propose(seen, height, width, scale)
  local s = self.stages[1]
  local outputs = s.net:run((s.net.model:prepare(seen, self:how(height, width))))
  local scores, moves = outputs[s.ports.scores], outputs[s.ports.moves]
  local shape = scores:shape()
  local inner = shape[4]
  local area, list = shape[3] * inner, {}
  for _, at in ipairs(scores:above(self.scores[1], area + 1, 2 * area)) do
    local i = at - area - 1
    local y, x = i // inner, i % inner
    if self.swapped then x, y = y, x end
    local x0, y0 = stride * x / scale, stride * y / scale
    local side = cell / scale
    local move = {}
    for k = 1, 4 do move[k] = moves[(k - 1) * area + i + 1] end
    list[#list + 1] = { class = 0, score = scores[at], x0 = x0, y0 = y0, x1 = x0 + side,
                        y1 = y0 + side, move = move }
  end
  return boxes.suppress(list, .5)
end

-- Boxes of the first stage, over all scales.
function Mtcnn:pyramid(seen, height, width)
  local list, scale = {}, cell / self.least
  while math.min(height, width) * scale >= cell do
    local h, w = math.ceil(height * scale), math.ceil(width * scale)
    for _, b in ipairs(self:propose(seen, h, w, scale)) do list[#list + 1] = b end
    scale = scale * self.factor
  end
  return boxes.suppress(list, .7)
end

-- ---- stages 2 and 3 ----

-- Moves the sides by the net's output, relative to the size of the box.
local function moved(b)
  local w, h, m = b.x1 - b.x0, b.y1 - b.y0, b.move
  b.x0, b.y0, b.x1, b.y1 = b.x0 + m[1] * w, b.y0 + m[2] * h, b.x1 + m[3] * w, b.y1 + m[4] * h
  return b
end

-- Makes the box a square of its longer side.
local function squared(b)
  local side = math.max(b.x1 - b.x0, b.y1 - b.y0)
  local x, y = (b.x0 + b.x1) / 2, (b.y0 + b.y1) / 2
  b.x0, b.y0, b.x1, b.y1 = x - side / 2, y - side / 2, x + side / 2, y + side / 2
  return b
end

-- The content of the box; black beyond the picture's edge.
function Mtcnn:crop(seen, b)
  local side = math.max(1, (b.x1 - b.x0 + .5) // 1)
  local x, y = (b.x0 + .5) // 1 + 1, (b.y0 + .5) // 1 + 1
  if self.swapped then x, y = y, x end
  -- v as an integer; nil: it is none.
  local function whole(v) return math.tointeger(v) end
  return seen:region({ whole(y), whole(x), 1 }, { whole(side), whole(side), seen:shape()[3] })
end

-- Batches of one size, so that one plan serves all; the last one is filled up.
local batch_of = { [2] = 16, [3] = 4 }

-- The boxes of the list that stage n keeps, corrected by it.
function Mtcnn:refine(seen, list, n)
  local s, batch, kept = self.stages[n], batch_of[n], {}
  local side = s.net.size.width
  for first = 1, #list, batch do
    local crops = {}
    for k = 1, batch do crops[k] = self:crop(seen, list[math.min(first + k - 1, #list)]) end
    crops[batch + 1] = self:how(side, side)
    local outputs = s.net:run((s.net.model:prepare(table.unpack(crops))))
    local scores, moves, points =
      outputs[s.ports.scores], outputs[s.ports.moves], outputs[s.ports.points]
    for k = 0, math.min(batch, #list - first + 1) - 1 do
      local b, score = list[first + k], scores[2 * k + 2]
      if score > self.scores[n] then
        b.score, b.move = score, { table.unpack({ moves[4 * k + 1], moves[4 * k + 2],
                                                  moves[4 * k + 3], moves[4 * k + 4] }) }
        if points then
          b.points = {}
          for p = 1, 5 do
            b.points[2 * p - 1] = b.x0 + points[10 * k + p] * (b.x1 - b.x0)
            b.points[2 * p] = b.y0 + points[10 * k + 5 + p] * (b.y1 - b.y0)
          end
        end
        kept[#kept + 1] = b
      end
    end
  end
  return kept
end

-- Changes each box of the list by each function.
local function each(list, ...)
  for _, change in ipairs { ... } do
    for _, b in ipairs(list) do change(b) end
  end
  return list
end

-- Faces in a picture, in its pixels.
function Mtcnn:find(picture)
  local shape = picture:shape()
  local seen = self:seen(picture)
  local list = each(self:pyramid(seen, shape[1], shape[2]), moved, squared)
  list = self:refine(seen, list, 2)
  list = each(boxes.suppress(list, .7), moved, squared)
  list = each(self:refine(seen, list, 3), moved)
  list = boxes.suppress(list, .7, nil, true)
  return boxes.to_picture(list, { factor = { 1, 1 }, shift = { 0, 0 } }, shape[2], shape[1])
end

return M
