-- Classifies pictures: cnnrun classify MODEL PICTURE... [-o OUT]
local app = require "lib.app"
local classifiers = require "lib.classifier"
local draw = require "lib.draw"
local json = require "lib.json"
local pictures = require "lib.pictures"

local spec = {
  operands = "NET [WEIGHTS] PICTURE...",
  example = "cnnrun classify net.onnx cat.jpg --labels names.txt",
  about = "Says what pictures show, and writes it on them. NET is a file of a net, or a description with its " ..
          "weights behind it or behind a comma. PICTURE is a file, a folder, a pattern, a video, a " ..
          "camera (0, /dev/video0) or a stream (rtsp://...).",
  flags = {
    { "--top COUNT", "how many classes (3)" },
    { "--background COUNT", "so many classes in front of the labels' first are none of them (0)" },
  },
}

return app.main(spec, function(options)
  local classifier = classifiers.open(options[1], options)
  return function(name, picture, about)
    local lines = classifier:find(picture)
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
