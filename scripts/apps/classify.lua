-- Classifies pictures: cnnrun classify MODEL PICTURE... [-o OUT]
local app = require "lib.app"
local classifiers = require "lib.classifier"
local draw = require "lib.draw"
local json = require "lib.json"
local pictures = require "lib.pictures"

local spec = {
  operands = "NET [WEIGHTS] PICTURE...",
  example = "cnnrun classify net.onnx cat.jpg --labels names.txt",
  about = "Classifies pictures, and writes the classes on them. NET is a model file, or a description with its " ..
          "weights after it or after a comma. PICTURE is a file, a folder, a pattern, a video, a " ..
          "camera (0, /dev/video0) or a stream (rtsp://...).",
  flags = {
    { "--top COUNT", "number of classes to print (3)" },
    { "--background COUNT", "number of classes before the first label, such as a background (0)" },
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
