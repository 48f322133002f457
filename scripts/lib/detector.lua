-- A detector: a net with its family. detector.open(path, options):find(picture) gives boxes in the
-- picture's pixels, best first.
local c = require "cnnrun"
local boxes = require "lib.boxes"
local families = require "lib.families"
local mtcnn = require "lib.mtcnn"
local nets = require "lib.nets"
local M = {}

local Detector = {}
Detector.__index = Detector

local steps = { "mean", "std", "scale", "channels", "letterbox", "resize", "crop" }
local values = { mean = true, std = true, scale = true } -- these belong together

-- The steps of preprocessing that go beside the net's own: flags, else what a family insists on,
-- else the family's where the net says nothing of the kind.
local function preprocessing(net, family, options)
  local own, input = { values = false, place = false }, family.input
  if type(input) == "function" then input = input(net) end
  local result = {}
  local function said(step) return net.meta("input." .. net.input.name .. "." .. step) end
  for _, step in ipairs(steps) do
    if said(step) and values[step] then own.values = true end
    if said(step) and (step == "letterbox" or step == "resize" or step == "crop") then
      own.place = true
    end
  end
  for _, step in ipairs(steps) do
    local told = own.place
    if values[step] then told = own.values
    elseif step == "channels" then told = said(step) end
    local usual = not told and input[step] or nil
    local insisted = family.insist and family.insist[step] or nil
    local value = options[step]
    if value == nil then value = insisted end
    if value == nil then value = usual end
    if net.channels == 1 and step == "channels" then value = options[step] end
    result[step] = value
  end
  return result
end

-- The picture's shape with its longer side at `longest`, in whole steps.
local function fitted(height, width, longest, multiple)
  local ratio = longest / math.max(height, width)
  local function side(n) return math.max(1, math.ceil(n * ratio / multiple - 1e-9)) * multiple end
  return { side(height), side(width) }
end

function M.open(path, options)
  if c.exists(path) == "folder" then return mtcnn.open(path, options) end
  local net = nets.open(path, options)
  local family = families.of(net, options.family)
  local self = setmetatable({ net = net, family = family }, Detector)
  self.steps = preprocessing(net, family, options)
  self.score = options.score or family.score
  self.overlap = options.overlap or family.overlap
  self.longest = options.longest or net.open_size and net.size.width == 0 and 640 or nil
  if options.size then
    local h, w = options.size:match("^(%d+)x(%d+)$")
    net.size = { height = math.tointeger(h) or error("--size: want HEIGHTxWIDTH", 0),
                 width = math.tointeger(w) }
  end
  self.kind, self.single = family.name, options.single
  return self
end

-- The boxes, and how many classes there are.
function Detector:decode(outputs)
  return self.family.decode(outputs, self.net, self.score)
end

function Detector:find(picture)
  local shape = picture:shape()
  local net, how = self.net, {}
  for key, value in pairs(self.steps) do how[key] = value end
  if self.longest then
    local size = fitted(shape[1], shape[2], self.longest, 32)
    net.size, net.priors = { height = size[1], width = size[2] }, nil
  end
  how.size = { net.size.height, net.size.width }
  local batch, place = net.model:prepare(picture, how)
  local found = boxes.to_picture(self:decode(net:run(batch)), place, shape[2], shape[1])
  return boxes.suppress(found, self.overlap, false, self.single)
end

-- The name of a class: given, the net's, the family's, or what so many classes usually are.
function Detector:label(class)
  local given = self.names and self.names[class + 1]
  if given then return given end
  local own = self.net.model:label(class)
  if own then return own end
  if self.family.labels then return self.family.labels[class + 1] or "class " .. class end
  local head = self.net.heads and self.net.heads[1]
  local n = head and head.classes or self.net:last_size() - 5
  if self.family.name == "nanodet" then n = self.net.outputs[1].sizes[3] end
  local usual = families.usual_labels(n)
  return usual and usual[class + 1] or n == 1 and "object" or "class " .. class
end

return M
