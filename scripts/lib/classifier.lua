-- A classifier: a net with names for its classes. classifier.open(path, options):see(picture)
-- returns the best classes as lines { name, share (0 to 1), class }.
local c = require "cnnrun"
local families = require "lib.families"
local labels = require "lib.labels"
local nets = require "lib.nets"
local M = {}

local Classifier = {}
Classifier.__index = Classifier

local steps = { "preset", "resize", "crop", "channels", "mean", "std", "scale", "letterbox" }

-- For a net of another task, names the command that fits it.
local function check_task(net, path, options)
  local weights = options.load and options.load.weights
  local words = weights and path .. " " .. weights or path
  local family = families.find(net)
  if family then
    error(("%s is %s: cnnrun detect %s PICTURE"):format(path, family.regions and "a segmentation net" or
      "a detector (" .. family.name .. ")", words), 0)
  end
  if families.scores(net) then return end
  local port = net.outputs[1]
  error(("%s: its output %s [%s] is not a score for each class; cnnrun run %s PICTURE shows its outputs"):format(path,
    port.name, table.concat(port.sizes, ","), words), 0)
end

-- Nets from other frameworks rarely take levels from 0 to 255.
local function warn_raw(net, path, options)
  for _, step in ipairs { "preset", "mean", "std", "scale" } do
    if options[step] or net.meta("input." .. net.input.name .. "." .. step) then return end
  end
  local file = path:match "^[^,]*"
  if file:match "%.lua$" or file:match "%.cnr$" or #net.input.sizes ~= 4 then return end
  c.note(("warning: %s does not say how pictures are prepared, so levels from 0 to 255 are used; --preset NAME " ..
          "(torchvision, tf ...) or --mean, --std, --scale say it (--scale 1: this is right)"):format(file))
end

-- Scores from 0 to 1: unchanged if the net ends in a softmax, else after one.
local function parts(t)
  local sum, least, top = 0, math.huge, -math.huge
  for i = 1, #t do
    sum, least, top = sum + t[i], math.min(least, t[i]), math.max(top, t[i])
  end
  if least >= 0 and math.abs(sum - 1) < .02 then return function(v) return v end end
  local all = 0
  for i = 1, #t do all = all + math.exp(t[i] - top) end
  return function(v) return math.exp(v - top) / all end
end

-- Opens a classifier; an error where the net is of another task.
function M.open(path, options)
  local top = options.top or 3
  if top < 1 or top > 100 then error(("--top %d: want 1 to 100 classes"):format(top), 0) end
  local self = setmetatable({ net = nets.open(path, options), steps = {}, options = options }, Classifier)
  check_task(self.net, path, options)
  if not options.quiet then warn_raw(self.net, path, options) end
  self.names = options.labels and labels.read(options.labels)
  for _, step in ipairs(steps) do self.steps[step] = options[step] end
  return self
end

-- A class with the name of its neighbour is worse than one without a name.
local function check(self, classes)
  local names, o = self.names, self.options
  local wanted = classes - (o.background or 0)
  if not names or #names == wanted then return end
  local hint = ": want a line for each, in the net's order"
  if #names == classes - 1 then hint = ": if its first class has no name, use --background 1"
  elseif #names > 2 * classes then -- Darknet ships such a list for ImageNet and takes the first lines.
    hint = hint .. "; if the first ones are meant, as with Darknet: head -n " .. wanted .. " " .. o.labels .. " > names.txt"
  end
  error(("%s has %d names, the net %d classes%s"):format(o.labels, #names, classes, hint), 0)
end

-- Name of a class, from 0, up to its first comma: from the file of labels, else the net's own, else
-- "class" and number; "none of these" for the background.
function Classifier:label(class)
  local shifted = class - (self.options.background or 0)
  local name = self.names and self.names[shifted + 1] or self.net.model:label(class)
  if shifted < 0 then name = "none of these" end
  return (name or "class " .. class):match("^[^,]+")
end

-- How pictures are prepared, as steps for model:prepare.
function Classifier:how() return self.steps end

-- The best classes as lines of label, share and class.
function Classifier:decode(outputs)
  local scores = outputs[1]
  check(self, #scores)
  local part, lines = parts(scores), {}
  for i, one in ipairs((scores:topk(self.options.top or 3))) do
    lines[i] = { self:label(one.index), part(one.score), one.index }
  end
  return lines
end

-- The best classes of a picture, as decode gives them.
function Classifier:find(picture)
  local batch = self.net.model:prepare(picture, self.steps)
  return self:decode { self.net.model:run { batch } }
end

return M
