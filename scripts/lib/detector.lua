-- A detector: a net with its family of decoders. detector.open(path, options):find(picture) returns
-- boxes in the picture's pixels, best first.
local c = require "cnnrun"
local boxes = require "lib.boxes"
local families = require "lib.families"
local labels = require "lib.labels"
local mtcnn = require "lib.mtcnn"
local nets = require "lib.nets"
local M = {}

local Detector = {}
Detector.__index = Detector

local steps = { "mean", "std", "scale", "channels", "letterbox", "resize", "crop" }
local values = { mean = true, std = true, scale = true } -- These belong together.

-- The preprocessing steps beside the net's own, as a table: flags, else those that a family
-- requires, else the family's where the net has none of that kind.
local function preprocessing(net, family, options)
  local own, input = { values = false, place = false }, family.input
  if type(input) == "function" then input = input(net) end
  local result = {}
  -- The model's own note on how its input is prepared.
  local function said(step) return net.meta("input." .. net.input.name .. "." .. step) end
  result.preset, own.values = options.preset, options.preset ~= nil
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

-- The size for all pictures; nil: the shape of each picture. Nets with heads for several scales
-- gain by that. On nets with one head (YOLO's first two versions) large objects become larger than
-- the area that a cell sees.
local function fixed_size(net, text, longest)
  local own = net.size
  if longest and not net.open_size then
    error(("--longest: this net takes %dx%d only"):format(own.height, own.width), 0)
  end
  if not text then
    local shaped = net.open_size and (longest or own.width == 0 or #net.outputs > 1)
    return not shaped and own or nil
  end
  if text == "net" then
    return own.width > 0 and own or error("--size net: this net has no size of its own", 0)
  end
  local h, w = text:match("^(%d+)x(%d+)$")
  if not h then error("--size: want HEIGHTxWIDTH or net, got " .. text, 0) end
  local size = { height = math.tointeger(h), width = math.tointeger(w) }
  if not net.open_size and (size.height ~= own.height or size.width ~= own.width) then
    error(("--size %s: this net takes %dx%d only"):format(text, own.height, own.width), 0)
  end
  return size
end

-- Names that other programs give to options of applications that detect, with the names here: `refused` of their spec.
M.other_names = {}
for name, text in pairs { ["--threshold --thresh --confidence --conf-thres"] = "the minimum score is --conf",
                          ["--iou --iou-thres --nms"] = "the maximum overlap is --overlap",
                          ["--source --input --image"] = "pictures and videos are named without an option",
                          ["--model"] = "the net is named first, without an option" } do
  for word in name:gmatch "%S+" do M.other_names[word] = text end
end

-- Scores and overlaps are parts of 1; elsewhere they are often percentages.
local function check_parts(options)
  for _, name in ipairs { "score", "conf", "overlap", "across" } do
    local value = options[name]
    if value and not (value >= 0 and value <= 1) then error(("--%s %g: want a number from 0 to 1"):format(name, value), 0) end
  end
end

-- path: a file or a folder, or an open net.
function M.open(path, options)
  check_parts(options)
  if type(path) == "string" and c.exists(path) == "folder" then return mtcnn.open(path, options) end
  local net = nets.open(path, options)
  local family = families.of(net, options.family)
  local self = setmetatable({ net = net, family = family }, Detector)
  self.steps = preprocessing(net, family, options)
  self.score = options.score or options.conf or family.score
  self.overlap = options.overlap or family.overlap
  self.size, self.longest = fixed_size(net, options.size, options.longest), options.longest
  self.across = options.across or .8
  local names = options.labels -- a file, or a list
  if names then self.names = type(names) == "table" and names or labels.read(names) end
  if options.classes then self:only(options.classes) end
  return self
end

-- The preparation of a picture of that shape, and the size of the input.
function Detector:how(shape)
  local how, size = {}, self.size
  for key, value in pairs(self.steps) do how[key] = value end
  if not size then
    local height, width = nets.size_for(self.net, shape[1], shape[2], self.longest)
    size = { height = height, width = width }
  end
  how.size = { size.height, size.width }
  return how, size
end

-- Boxes from the net's outputs: of a picture of that shape, at `place` in the input.
function Detector:decode(outputs, place, shape, size)
  local family, named = self.family, self.net:named(outputs)
  local found = family.decode(named, self.net, size, self.score)
  for _, b in ipairs(family.mask and found or {}) do
    b.inside = { x0 = b.x0, y0 = b.y0, x1 = b.x1, y1 = b.y1 } -- in pixels of the input
  end
  boxes.to_picture(found, place, shape[2], shape[1])
  if not family.regions then found = boxes.suppress(found, self.overlap, self.across) end
  found = labels.filter(found, self.wanted, function(class) return self:label(class) end)
  for _, b in ipairs(family.mask and found or {}) do -- Only the boxes that are kept.
    b.mask = family.mask(named, self.net, size, b)
    if b.mask then boxes.to_picture(b.mask, place, shape[2], shape[1]) end
  end
  return found
end

-- Boxes in a picture, in its pixels.
function Detector:find(picture)
  local shape = picture:shape()
  local how, size = self:how(shape)
  local batch, place = self.net.model:prepare(picture, how)
  return self:decode(self.net:see(batch, size), place, shape, size)
end

-- The names of all classes; nil: their number is unknown.
function Detector:classes()
  local n = self.family.classes and self.family.classes(self.net) or self.names and #self.names or
            self.family.labels and #self.family.labels
  local list = {}
  for i = 1, n or 0 do list[i] = self:label(i - 1) end
  return n and n > 0 and list or nil
end

-- Restricts the classes from now on: names and numbers separated by commas; nil: all.
function Detector:only(text) self.wanted = text and labels.wanted(text, self:classes()) end

-- Name of a class, from 0: from the file of labels, else as families.label has it; kept for later
-- calls.
function Detector:label(class)
  self.known = self.known or {}
  local name = self.names and self.names[class + 1] or self.known[class] or
               families.label(self.net, self.family, class)
  self.known[class] = name
  return name
end

return M
