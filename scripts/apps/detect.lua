-- Finds things in pictures: cnnrun scripts/apps/detect.lua MODEL PICTURE... [-o OUT]
local c = require "cnnrun"
local args = require "lib.args"
local detector = require "lib.detector"
local draw = require "lib.draw"
local families = require "lib.families"
local json = require "lib.json"
local labels = require "lib.labels"
local pictures = require "lib.pictures"

local spec = {
  usage = "scripts/apps/detect.lua MODEL PICTURE... [options]",
  about = "Finds things in pictures: prints a box for each, and draws them. MODEL is a file of a net, " ..
          "a description and its weights with a comma between (yolo.cfg,yolo.weights), or a folder " ..
          "with MTCNN's three nets. PICTURE is a file, a folder or a pattern.",
  least = 2,
  flags = {
    { "-o, --output PATH", "draw: a .png for one picture, a folder for several" },
    { "--contact FILE", "all drawn pictures, small, on one sheet" },
    { "--json", "one object a picture, a line each" },
    { "-q, --quiet", "no progress" },
    { "--labels FILE", "names of the classes, one a line" },
    { "--score NUMBER", "at least this score (the family's)" },
    { "--overlap NUMBER", "boxes of a class share at most this part (the family's)" },
    { "--across NUMBER", "boxes of different classes share at most this part (0.8: a dog or a cat, " ..
                         "not both; 1: both)" },
    { "--family NAME", "who decodes (told by the net)" },
    { "--device NAME", "where to run: cpu, opencl:0 (the best)" },
    { "--size SIZE", "where the net leaves its input's size open: HEIGHTxWIDTH, or net for its own " ..
                     "(the picture's shape, its shorter side as long as the net's)" },
    { "--longest NUMBER", "or the picture's shape, with the longer side this long" },
    { "--option TEXT", "NAME=VALUE for the importer, such as shape=3,300,300", many = true },
    { "--smallest NUMBER", "mtcnn: smallest face, in pixels (20)" },
    { "--swapped ANSWER", "mtcnn: yes, when the nets see rows as columns (told by the files)" },
    { "--channels ORDER", "rgb, bgr or gray" },
    { "--mean LIST", "subtract: a number a channel" },
    { "--std LIST", "divide: a number a channel" },
    { "--scale NUMBER", "multiply: value = (pixel - mean) * scale / std" },
    { "--letterbox LEVEL", "keep the picture's shape, fill with this grey; LEVEL,corner: picture at " ..
                           "the top left; false: stretch" },
  },
  more = families.help(),
}

local function rounded(v) return tonumber(("%.1f"):format(v)) end

local function as_object(name, shape, list, find)
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
  return { picture = name, width = shape[2], height = shape[1], boxes = found }
end

local function show(name, shape, list, find)
  print(("%s  %d x %d, %d found"):format(name, shape[2], shape[1], #list))
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

local function work(options)
  local drawing, code = options.output or options.contact, nil
  if drawing then
    local able, why = draw.available()
    if not able then
      c.note(why)
      drawing, code = nil, 1
    end
  end
  pictures.refuse(options[1])
  local find = detector.open(options[1], options)
  if options.labels then find.names = labels.read(options.labels) end
  local list = pictures.list({ table.unpack(options, 2) })
  local place = drawing and options.output and pictures.places(options.output, #list)
  local sheet = drawing and options.contact and draw.sheet()
  local failed = pictures.each(list, options.quiet, function(name, picture)
    local shape, found = picture:shape(), find:find(picture)
    if options.json then print(json.encode(as_object(name, shape, found, find)))
    else show(name, shape, found, find) end
    if not drawing then return end
    local function text(b)
      local label, score = find:label(b.class), ("%d%%"):format((b.score * 100 + .5) // 1)
      return label .. " " .. score, has_one_class(found) and score or label
    end
    if place then draw.boxes(picture, found, text):save(place(name)) end
    if sheet then
      local drawn = draw.boxes(picture, found, text, draw.tile)
      sheet:add(drawn, ("%s: %d"):format(pictures.stem(name), #found))
    end
  end)
  if sheet then sheet:picture():save(options.contact) end
  return code or failed
end

return function(words) return args.main(words, spec, work) end
