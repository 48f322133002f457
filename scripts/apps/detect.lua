-- Finds things in pictures: cnnrun detect MODEL PICTURE... [-o OUT]
local app = require "lib.app"
local detector = require "lib.detector"
local draw = require "lib.draw"
local families = require "lib.families"
local json = require "lib.json"
local labels = require "lib.labels"
local pictures = require "lib.pictures"

local spec = {
  usage = "detect MODEL PICTURE... [options]",
  about = "Finds things in pictures: prints a box for each, and draws them. MODEL is a file of a net, " ..
          "a description and its weights with a comma between (yolo.cfg,yolo.weights), or a folder " ..
          "with MTCNN's three nets. PICTURE is a file, a folder, a pattern, a video, a camera " ..
          "(/dev/video0) or a stream (rtsp://...).",
  flags = {
    { "--score NUMBER", "at least this score (the family's)" },
    { "--overlap NUMBER", "boxes of a class share at most this part (the family's)" },
    { "--across NUMBER", "boxes of different classes share at most this part (0.8: a dog or a cat, " ..
                         "not both; 1: both)" },
    { "--family NAME", "who decodes (told by the net)" },
    { "--size SIZE", "where the net leaves its input's size open: HEIGHTxWIDTH, or net for its own " ..
                     "(the picture's shape, its shorter side as long as the net's)" },
    { "--longest COUNT", "or the picture's shape, with the longer side this long" },
    { "--smallest COUNT", "mtcnn: smallest face, in pixels (20)" },
    { "--swapped ANSWER", "mtcnn: yes, when the nets see rows as columns (when they come from Caffe)" },
    { "--letterbox LEVEL", "keep the picture's shape, fill with this grey; LEVEL,corner: picture at " ..
                           "the top left; false: stretch" },
  },
  more = families.help(),
}

local function rounded(v) return tonumber(("%.1f"):format(v)) end

local function as_object(name, shape, list, find, about)
  local found = { n = #list }
  for i, b in ipairs(list) do
    local points
    if b.points then
      points = {}
      for k = 1, #b.points, 2 do
        points[#points + 1] = { rounded(b.points[k]), rounded(b.points[k + 1]) }
      end
    end
    found[i] = { class = b.class, label = find:label(b.class), score = b.score, points = points,
                 box = { rounded(b.x0), rounded(b.y0), rounded(b.x1), rounded(b.y1) } }
  end
  return { picture = name, frame = about and about.frame, seconds = about and about.seconds,
           width = shape[2], height = shape[1], boxes = found }
end

local function show(name, shape, list, find, about)
  print(("%s  %d x %d, %d found"):format(pictures.title(name, about), shape[2], shape[1], #list))
  for _, b in ipairs(list) do
    print(("  %-16s %.2f  %6.0f %6.0f %6.0f %6.0f"):format(find:label(b.class), b.score, b.x0, b.y0,
                                                         b.x1, b.y1))
  end
end

local function has_one_class(list)
  for _, b in ipairs(list) do
    if b.class ~= list[1].class then return false end
  end
  return true
end

return app.main(spec, function(options)
  local find = detector.open(options[1], options)
  if options.labels then find.names = labels.read(options.labels) end
  return function(name, picture, about)
    local shape, found = picture:shape(), find:find(picture)
    if options.json then print(json.encode(as_object(name, shape, found, find, about), 7))
    else show(name, shape, found, find, about) end
    local function text(b)
      local label, score = find:label(b.class), ("%d%%"):format((b.score * 100 + .5) // 1)
      return label .. " " .. score, has_one_class(found) and score or label
    end
    return function(tile) return draw.boxes(picture, found, text, tile) end,
           ("%s: %d"):format(pictures.stem(name), #found)
  end
end)
