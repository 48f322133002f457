-- Detects objects in pictures: cnnrun detect MODEL PICTURE... [-o OUT]
local app = require "lib.app"
local detector = require "lib.detector"
local draw = require "lib.draw"
local families = require "lib.families"
local json = require "lib.json"
local pictures = require "lib.pictures"

local spec = {
  operands = "NET [WEIGHTS] PICTURE...",
  example = "cnnrun detect yolox_nano.onnx dog.jpg -o found.png", refused = detector.other_names,
  about = "Detects objects in pictures: prints a box for each, and draws them. NET is a model file, " ..
          "a description with its weights after it or after a comma (yolo.cfg,yolo.weights), or a folder " ..
          "with MTCNN's three nets. PICTURE is a file, a folder, a pattern, a video, a camera " ..
          "(0, /dev/video0) or a stream (rtsp://...).",
  flags = {
    { "--score NUMBER", "minimum score (the family's)" },
    { "--conf NUMBER", "the same" },
    { "--classes LIST", "only these classes: names or numbers, person,car" },
    { "--count", "print the number of boxes of each class, instead of each box" },
    { "--save-crops DIR", "save the content of each box as a picture in this folder" },
    { "--overlap NUMBER", "maximum overlap of boxes of a class (the family's)" },
    { "--across NUMBER", "maximum overlap of boxes of different classes (0.8: a dog or a cat, " ..
                         "not both; 1: both)" },
    { "--family NAME", "output decoder (detected from the model)" },
    { "--size SIZE", "where the net leaves its input's size open: HEIGHTxWIDTH, or net for its own " ..
                     "(the picture's shape, its shorter side as long as the net's)" },
    { "--longest COUNT", "or the picture's shape, with the longer side this long" },
    { "--smallest COUNT", "mtcnn: smallest face, in pixels (20)" },
    { "--swapped ANSWER", "mtcnn: yes, if the nets take transposed pictures (default: if they come from Caffe)" },
  },
  more = families.help(),
}

-- v rounded to tenths, as a number; not-a-number (a hidden point) as it is.
local function rounded(v) return v == v and tonumber(("%.1f"):format(v)) or v end

-- The list { x, y, ... } as pairs, rounded; nil for nil.
local function pairs_of(numbers)
  if not numbers then return nil end
  local list = {}
  for k = 1, #numbers, 2 do list[#list + 1] = { rounded(numbers[k]), rounded(numbers[k + 1]) } end
  return list
end

-- What was found in a picture, as a table to be written as JSON.
local function as_object(name, shape, list, find, about)
  local found = { n = #list }
  for i, b in ipairs(list) do
    local mask, area = nil, 0
    for _, row in ipairs(b.mask or {}) do
      mask = mask or {}
      mask[#mask + 1] = { rounded(row.x0), rounded(row.y0), rounded(row.x1), rounded(row.y1) }
      area = area + (row.x1 - row.x0) * (row.y1 - row.y0)
    end
    found[i] = { mask = mask, area = mask and rounded(area), class = b.class, label = find:label(b.class), score = b.score,
                 points = pairs_of(b.points), corners = pairs_of(b.corners),
                 box = { rounded(b.x0), rounded(b.y0), rounded(b.x1), rounded(b.y1) } }
  end
  return { picture = name, frame = about and about.frame, seconds = about and about.seconds,
           width = shape[2], height = shape[1], boxes = found }
end

-- Prints what was found in a picture, a line a box.
local function show(name, shape, list, find, about)
  print(("%s  %d x %d, %d found"):format(pictures.title(name, about), shape[2], shape[1], #list))
  for _, b in ipairs(list) do
    print(("  %-16s %.2f  %6.0f %6.0f %6.0f %6.0f"):format(find:label(b.class), b.score, b.x0, b.y0,
                                                         b.x1, b.y1))
  end
end

-- The number of boxes of each class, the largest first.
local function counted(list, find)
  local by, order = {}, {}
  for _, b in ipairs(list) do
    local name = find:label(b.class)
    if not by[name] then order[#order + 1] = name end
    by[name] = (by[name] or 0) + 1
  end
  table.sort(order, function(a, b)
    if by[a] ~= by[b] then return by[a] > by[b] end
    return a < b
  end)
  return by, order
end

-- Prints how many boxes of each class were found.
local function show_counts(name, list, find, about, as_json)
  local by, order = counted(list, find)
  if as_json then
    print(json.encode({ picture = name, frame = about and about.frame, seconds = about and about.seconds,
                        count = #list, counts = by }, 7))
    return
  end
  print(("%s  %d found"):format(pictures.title(name, about), #list))
  for _, class in ipairs(order) do print(("  %-16s %d"):format(class, by[class])) end
end

-- True: all boxes are of one class, also where there are none.
local function has_one_class(list)
  for _, b in ipairs(list) do
    if b.class ~= list[1].class then return false end
  end
  return true
end

return app.main(spec, function(options)
  local find = detector.open(options[1], options)
  local crops = options.save_crops and pictures.crops(options.save_crops)
  return function(name, picture, about)
    local shape, found = picture:shape(), find:find(picture)
    if crops then crops(name, picture, about, found, function(b) return find:label(b.class) end) end
    if options.count then show_counts(name, found, find, about, options.json)
    elseif options.json then print(json.encode(as_object(name, shape, found, find, about), 7))
    else show(name, shape, found, find, about) end
    -- The text at a box: label and score, or the score alone where all have one class.
    local function text(b)
      local label, score = find:label(b.class), ("%d%%"):format((b.score * 100 + .5) // 1)
      return label .. " " .. score, has_one_class(found) and score or label
    end
    return function(tile) return draw.boxes(picture, found, text, tile) end,
           ("%s: %d"):format(pictures.stem(name), #found)
  end
end)
