-- Says what pictures show: cnnrun classify MODEL PICTURE... [-o OUT]
local app = require "lib.app"
local draw = require "lib.draw"
local json = require "lib.json"
local labels = require "lib.labels"
local nets = require "lib.nets"
local pictures = require "lib.pictures"

local spec = {
  usage = "classify MODEL PICTURE... [options]",
  about = "Says what pictures show, and writes it on them. MODEL is a file of a net, or a description " ..
          "and its weights with a comma between. PICTURE is a file, a folder, a pattern, a video, a " ..
          "camera (/dev/video0) or a stream (rtsp://...).",
  flags = {
    { "--top COUNT", "how many classes (3)" },
    { "--background COUNT", "so many classes in front of the labels' first are none of them (0)" },
    { "--resize SIZE", "HxW, or the shorter side" },
    { "--crop SIZE", "the middle: HxW, N, or a part such as 0.875" },
  },
}

local steps = { "resize", "crop", "channels", "mean", "std", "scale" }

-- Scores as parts of 1: as they are when the net ends in a softmax, else through one.
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

return app.main(spec, function(options)
  local net, how = nets.open(options[1], options), {}
  local names = options.labels and labels.read(options.labels)
  for _, step in ipairs(steps) do how[step] = options[step] end
  local function check(classes) -- a class with its neighbour's name is worse than one without
    local wanted = classes - (options.background or 0)
    if not names or #names == wanted then return end
    error(("%s has %d names, the net %d classes%s"):format(options.labels, #names, classes,
      #names == classes - 1 and ": if its first is none of them, say --background 1"
      or ": want a line for each, in the net's order"), 0)
  end
  local function label(class)
    local shifted = class - (options.background or 0)
    local name = names and names[shifted + 1] or net.model:label(class)
    if shifted < 0 then name = "none of these" end
    return (name or "class " .. class):match("^[^,]+")
  end
  return function(name, picture, about)
    local scores = net:run((net.model:prepare(picture, how)))[1]
    check(#scores)
    local best, part, lines = scores:topk(options.top or 3), parts(scores), {}
    for i, one in ipairs(best) do lines[i] = { label(one.index), part(one.score), one.index } end
    if options.json then
      local classes = {}
      for i, line in ipairs(lines) do
        classes[i] = { class = line[3], label = line[1], score = line[2] }
      end
      print(json.encode({ picture = name, frame = about and about.frame,
                          seconds = about and about.seconds, classes = classes }, 7))
    else
      print(pictures.title(name, about))
      for _, line in ipairs(lines) do print(("  %5.1f%%  %s"):format(line[2] * 100, line[1])) end
    end
    return function(tile) return draw.caption(picture, lines, tile) end, pictures.stem(name)
  end
end)
