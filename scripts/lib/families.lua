-- Detects the family of a detector. A family recognises a net by its file's metadata or by the
-- names and shapes of its outputs. It knows the preprocessing if the net does not, and the decoder
-- of the outputs.
--
--   fits(net)           does it look so? net: inputs, outputs (name, sizes), meta(key), size
--   input               steps of preprocessing that the net's own metadata may overrule; or of a net
--   insist              steps that overrule the metadata: importers guess these by a format's habit
--   score, overlap      least score; how far boxes of a class may overlap
--   classes(net)        how many, where it can be told
--   labels              names when there are no others
--   decode(outputs, net, size, least)   boxes in pixels of an input of that size
--   mask(outputs, net, size, box)       the mask of a box that is kept (box.inside: where, in those
--                       pixels), as lib.masks has them; nil: none
--   regions             what is decoded are regions, which do not suppress each other
local heads = require "lib.heads"
local labels = require "lib.labels"
local masks = require "lib.masks"
local priors = require "lib.priors"
local queries = require "lib.queries"

-- Size i of an input or output; nil: not a whole number.
local function dim(port, i)
  local d = port and port.sizes[i]
  return math.type(d) == "integer" and d or nil
end

-- The net's output of that name, or nil.
local function named(net, name)
  for _, port in ipairs(net.outputs) do
    if port.name == name then return port end
  end
end

-- How many cells the grids of these strides have together, on a picture of that size.
local function cells(size, strides)
  local n = 0
  for _, stride in ipairs(strides) do
    n = n + math.ceil(size.width / stride) * math.ceil(size.height / stride)
  end
  return n
end

-- The strides of grids that have n cells together on a picture of that size; nil: no usual ones.
local function strides_of(n, size)
  for _, strides in ipairs { { 8, 16, 32 }, { 8, 16, 32, 64 } } do
    if cells(size, strides) == n then return strides end
  end
end

-- The prototypes of masks, [batch, n, height, width], after the boxes; nil: there are none.
local function prototypes(net)
  local port = net.outputs[2]
  return #net.outputs == 2 and #port.sizes == 4 and port or nil
end

-- True: an output of rank 4 has the classes as its last axis, as nets whose pictures have the channels
-- last (TensorFlow's).
local function ends_in_classes(net)
  local port = net.outputs[1]
  return net.channels_last and #port.sizes == 4 and dim(port, 4) ~= net.size.width
end

-- Segmentation: scores [batch, classes, height, width] (or with the classes last) no larger than the
-- picture, or integers [batch, height, width]. Three planes are more likely a picture.
local function scores_places(net)
  local port = net.outputs[1]
  local rank = port and #port.sizes
  local last = rank == 4 and ends_in_classes(net)
  local h, w = dim(port, rank and rank - (last and 2 or 1)), dim(port, rank and rank - (last and 1 or 0))
  local size = net.size
  if not h or not w or h < 8 or w < 8 or size.height > 0 and (h > size.height or w > size.width) then return false end
  local classes = rank == 4 and dim(port, last and 4 or 2) or rank == 3 and 1
  if classes == 1 then return port.dtype == "i64" or port.dtype == "i32" or port.dtype == "u8" end
  return classes and classes ~= 3 and classes <= 1000
end

-- Names that the exporter left: {0: 'person', 1: 'bicycle'}. Numbers do not count as names.
local function exported_names(net)
  local names, n = {}, 0
  for index, _, name in (net.meta "onnx.names" or ""):gmatch("(%d+):%s*(['\"])(.-)%2") do
    names[math.tointeger(index) + 1] = name ~= index and name or nil
    n = n + 1
  end
  return names, n
end

-- ---- Ultralytics ----

-- Columns of a box before its classes, its classes, and columns behind them by the net's task: masks'
-- coefficients, points, an angle. Nil, where the exporter left no names.
local function exported_columns(net)
  local _, classes = exported_names(net)
  if classes == 0 then return nil end
  local task, behind = net.meta "onnx.task", 0
  if task == "segment" and prototypes(net) then behind = dim(prototypes(net), 2) or 0 end
  if task == "obb" then behind = 1 end
  local points, numbers = (net.meta "onnx.kpt_shape" or ""):match "(%d+),%s*(%d+)"
  if task == "pose" and points then behind = math.tointeger(points) * math.tointeger(numbers) end
  return 4, classes, behind
end

-- True: the output is cells x planes, where Ultralytics' exporter has planes x cells.
local function is_transposed(net)
  local out = net.outputs[1]
  local n, each = dim(out, 2), dim(out, 3)
  if #out.sizes ~= 3 or not n or not each or not strides_of(n, net.size) then return false end
  local before, classes, behind = exported_columns(net)
  if classes then return each == before + classes + behind end
  return each == 84 or each == 116 and prototypes(net) ~= nil
end

-- What decoders of Ultralytics' nets are told, besides the classes.
local function ultralytics(net, classes)
  local points = net.meta "onnx.kpt_shape"
  return { classes = classes, points = points, numbers = points and tonumber(points:match ",%s*(%d+)"),
           is_turned = net.meta "onnx.task" == "obb" }
end

-- The mask of a box whose coefficients stand in the first output, of the prototypes in the second.
local function prototype_mask(outputs, net, size, box)
  local protos = prototypes(net) and outputs[2]
  if not protos or not box.first then return nil end
  local weights = {}
  for k = 1, protos:shape()[2] do weights[k] = outputs[1][box.first + (k - 1) * box.step] end
  return masks.of_prototypes(protos, weights, box.inside, size)
end

-- How rows of final boxes are made, as heads.rows takes it; nil: the net is another.
local function final_rows(net)
  local out = net.outputs[1]
  local rank, each = #out.sizes, dim(out, #out.sizes)
  if rank == 2 and each == 7 and #net.outputs == 1 then return { batch = true } end
  local _, classes, behind = exported_columns(net)
  local wide = 6 + (classes and behind or 0)
  if rank ~= 3 or each ~= wide or #net.outputs > 1 and not prototypes(net) then return nil end
  if wide > 6 and (dim(out, 2) or 1) > 2000 then return nil end
  return ultralytics(net, classes)
end

local M = {}

-- ---- NanoDet: pairs of outputs, and their stride ----

-- The outputs of each level of NanoDet; nil: the net is another.
local function nanodet_levels(net, size)
  local by_cells, order = {}, {}
  for i, port in ipairs(net.outputs) do
    local rank = #port.sizes
    local n = dim(port, rank - 1)
    if not n or (rank ~= 3 and rank ~= 2) or not dim(port, rank) then return nil end
    if not by_cells[n] then order[#order + 1] = n end
    by_cells[n] = by_cells[n] or {}
    table.insert(by_cells[n], i)
  end
  local levels = {}
  -- The width of the distances is four times a number of bins; they come second.
  for _, n in ipairs(order) do
    local pair = by_cells[n]
    if #pair ~= 2 then return nil end
    local sizes = net.outputs[pair[2]].sizes
    local distance = sizes[#sizes]
    if distance % 4 ~= 0 or distance < 8 then return nil end
    local stride
    for _, s in ipairs { 4, 8, 16, 32, 64, 128 } do
      if cells(size, { s }) == n then stride = s end
    end
    if not stride then return nil end
    levels[#levels + 1] = { pair[1], pair[2], stride }
  end
  return levels[1] and levels
end

-- ---- face detectors with boxes relative to priors that are not in the file ----

-- A list of squares { side, side } of these sides.
local function squares(...)
  local list = {}
  for i, side in ipairs { ... } do list[i] = { side, side } end
  return list
end

-- The list, each number limited to [0, 1], in place.
local function clamped(list)
  for i, v in ipairs(list) do list[i] = math.max(0, math.min(1, v)) end
  return list
end

-- UltraFace's priors for a picture of that size.
local function ultraface_priors(size)
  return clamped(priors.grids({ { 8, squares(10, 16, 24) }, { 16, squares(32, 48) },
                                { 32, squares(64, 96) }, { 64, squares(128, 192, 256) } }, size))
end

-- The boxes of ResNet-10 SSD; its last two grids have 5 x 5 cells whatever their stride.
local function res10_priors(size)
  local s = priors.sizes
  local rows = { { 8, s(30, 60, { 2 }) }, { 16, s(60, 111, { 2, 3 }) },
                 { 32, s(111, 162, { 2, 3 }) }, { 64, s(162, 213, { 2, 3 }) },
                 { 100, s(213, 264, { 2 }), 5, 5 }, { 300, s(264, 315, { 2 }), 5, 5 } }
  return priors.grids(rows, size)
end

-- For each of these numbers the index of an output whose last dimension has it, as several results;
-- nil: none.
local function last_dims(net, ...)
  local found = {}
  for k, wanted in ipairs { ... } do
    for i, port in ipairs(net.outputs) do
      if dim(port, #port.sizes) == wanted then found[k] = i end
    end
  end
  return table.unpack(found, 1, select("#", ...))
end

-- RetinaFace's priors for a picture of that size.
local function retinaface_priors(size)
  return priors.grids({ { 8, squares(16, 32) }, { 16, squares(64, 128) },
                        { 32, squares(256, 512) } }, size)
end

-- ---- SCRFD: outputs by the number of values for a box, finest grid first ----

-- Numbers of the outputs of scores, boxes and points, by their widths 1, 4 and 10; nil: the net is another.
local function by_width(net)
  local by = { {}, {}, {} }
  for i, port in ipairs(net.outputs) do
    local wide = dim(port, #port.sizes)
    local list = wide == 1 and by[1] or wide == 4 and by[2] or wide == 10 and by[3]
    if not list then return nil end
    list[#list + 1] = i
  end
  local n = #by[1]
  return n >= 3 and #by[2] == n and (#by[3] == n or #by[3] == 0) and by or nil
end

-- The outputs of each level of SCRFD: scores, boxes and points with their stride.
local function scrfd_levels(net, outputs, size)
  local by, levels, n = by_width(net) or error("the outputs are not in groups of three", 0), {}, 0
  for _, list in ipairs(by) do
    table.sort(list, function(a, b) return #outputs[a] > #outputs[b] end)
  end
  for k, i in ipairs(by[1]) do
    local points = by[3][k]
    levels[k] = { outputs[i], outputs[by[2][k]], points and outputs[points], 4 << k }
    n = n + #outputs[i]
  end
  local strides = {}
  for k, level in ipairs(levels) do strides[k] = level[4] end
  return levels, n // cells(size, strides)
end

-- Names of the outputs of offsets and of scores; nothing: the net is another.
local function offsets(net)
  for _, port in ipairs(net.outputs) do
    if port.name:find("loc", 1, true) then
      for _, other in ipairs(net.outputs) do
        if other.name:find("conf", 1, true) then return port.name, other.name end
      end
    end
  end
end

-- ---- preprocessing, deduced from the first layers ----

-- ---- queries ----

-- True: the last column of the queries' classes is "nothing", as DETR's and YOLOS' 100 queries have it.
-- Nets with more queries have a probability for each class. sizes: of the logits, as the net or a result has them.
local function has_nothing(sizes) return sizes[2] == 100 or sizes[3] == 92 end

-- Nets with COCO's own numbers of classes have ImageNet's mean and deviation, and so do those with 100 queries;
-- others (RT-DETR) take values from 0 to 1.
local function detr_input(net)
  local logits = queries.pair(net.outputs)
  local sizes = net.outputs[logits].sizes
  if not has_nothing(sizes) and sizes[3] ~= 91 then return { channels = "rgb", scale = 1 / 255 } end
  return { channels = "rgb", mean = { 123.675, 116.28, 103.53 }, std = { 58.395, 57.12, 57.375 } }
end

-- The net's output whose name has this text, from a list of results; nil: none.
local function result_named(net, outputs, text)
  for i, port in ipairs(net.outputs) do
    if port.name:find(text, 1, true) then return outputs[i], port end
  end
end

-- Tensors of boxes that are ready, as queries.rows takes them.
local function ready_rows(outputs, net)
  local at = queries.ready(net.outputs) or error("there are no outputs of boxes, classes and scores", 0)
  local name, rank = net.outputs[at.boxes].name, #net.outputs[at.boxes].sizes
  local points, port = result_named(net, outputs, "keypoints")
  local from_one = rank == 2 or name:find("detection_", 1, true) or name == "bboxes" -- 0 is the background.
  return { boxes = outputs[at.boxes], scores = outputs[at.scores], classes = outputs[at.classes],
           base = from_one and 1 or 0, swapped = name:find("detection_boxes", 1, true) ~= nil,
           points = points and port.sizes[#port.sizes] == 3 and points or nil }
end

-- Calls visit(shape, name) for the weights of convolutions until it returns something.
local function first_kernel(net, visit)
  for _, name in ipairs(net.model:weights()) do
    local shape = net.model:weight(name):shape()
    local found = #shape == 4 and visit(shape, name)
    if found then return found end
  end
end

-- How YOLOX's pictures are prepared. Its first release takes pictures normalised with ImageNet's
-- mean and deviation, later ones plain pixels. The file does not say which, but the first weights
-- do: those for numbers up to 255 are small. Nets with other first layers are related ones
-- (YOLOv6), which take values from 0 to 1.
local function yolox_input(net)
  local name = first_kernel(net, function(shape, name) return shape[2] == 12 and name end)
  if not name then return { channels = "rgb", letterbox = 114, scale = 1 / 255 } end
  local weight, sum = net.model:weight(name), 0
  for i = 1, #weight do sum = sum + math.abs(weight[i]) end
  if sum / #weight < .015 then return { channels = "bgr", letterbox = "114,corner" } end
  return { channels = "rgb", letterbox = "114,corner", mean = { 123.675, 116.28, 103.53 },
           std = { 58.395, 57.12, 57.375 } }
end

-- SSD in Caffe: pictures go from -1 to 1 on MobileNet; on VGG the mean is subtracted; face
-- detectors have another mean.
local function ssd_input(net)
  -- True: a weight of this shape is depthwise.
  local function depthwise(shape) return shape[2] == 1 and shape[1] > 1 end
  if first_kernel(net, depthwise) then
    return { channels = "bgr", mean = 127.5, scale = 1 / 127.5 }
  end
  return { channels = "bgr", mean = M.ssd.classes(net) == 1 and { 104, 177, 123 } or
                                    { 104, 117, 123 } }
end

-- The number of classes besides the background, from the layers before detection_output: the number
-- of a cell's scores compared with that of its corners.
local function ssd_classes(net)
  local sizes = {}
  for _, name in ipairs(net.model:weights()) do
    local stem, part = name:match("^(.*)mbox_(%a+)")
    local n = net.model:weight(name):shape()
    if part and #n == 4 then
      sizes[stem .. part] = n[1]
      local loc, conf = sizes[stem .. "loc"], sizes[stem .. "conf"]
      if loc and conf then return conf * 4 // loc - 1 end
    end
  end
end

M.list = {
  {
    name = "darknet", about = "yolo, region and detection layers of Darknet",
    fits = function(net) return net.meta "heads" ~= nil end,
    input = { scale = 1 / 255, channels = "rgb", letterbox = 127 },
    score = .3, overlap = .45,
    classes = function(net) return heads.parse_heads(net.meta "heads")[1].classes end,
    decode = function(outputs, net, size, least)
      local list = heads.parse_heads(net.meta "heads" or
        error("the net has no metadata \"heads\", which Darknet's importer writes", 0))
      return heads.darknet(outputs, { heads = list, size = size }, least)
    end,
  },
  {
    name = "yolox", about = "YOLOX, YOLOv6: one output, cells x (5 + classes), strides 8, 16, 32",
    fits = function(net)
      local out = net.outputs[1]
      return #net.outputs == 1 and #out.sizes == 3 and (dim(out, 3) or 0) > 5 and
             dim(out, 2) == cells(net.size, { 8, 16, 32 }) and not is_transposed(net)
    end,
    input = yolox_input, score = .3, overlap = .45,
    classes = function(net) return dim(net.outputs[1], 3) - 5 end,
    decode = function(outputs, _, size, least)
      return heads.yolox(outputs, { strides = { 8, 16, 32 }, size = size }, least)
    end,
  },
  {
    name = "nanodet-plus", about = "NanoDet-Plus: cells x (classes + 4 x 8), four strides",
    fits = function(net)
      local out = net.outputs[1]
      return #net.outputs == 1 and #out.sizes == 3 and (dim(out, 3) or 0) > 32 and
             dim(out, 2) == cells(net.size, { 8, 16, 32, 64 })
    end,
    input = { channels = "bgr", mean = { 103.53, 116.28, 123.675 }, std = { 57.375, 57.12, 58.395 },
              letterbox = 0 },
    score = .4, overlap = .6,
    classes = function(net) return dim(net.outputs[1], 3) - 32 end,
    decode = function(outputs, _, size, least)
      return heads.nanodet_plus(outputs, { bins = 8, strides = { 8, 16, 32, 64 }, size = size },
                                least)
    end,
  },
  {
    name = "fastestdet", about = "FastestDet: (5 + classes) planes of one grid of stride 16",
    fits = function(net)
      local out = net.outputs[1]
      return #net.outputs == 1 and #out.sizes == 4 and (dim(out, 2) or 0) > 5 and
             net.size.width > 0 and dim(out, 3) == net.size.height // 16 and
             dim(out, 4) == net.size.width // 16
    end,
    input = { scale = 1 / 255, channels = "bgr" }, score = .5, overlap = .45,
    classes = function(net) return dim(net.outputs[1], 2) - 5 end,
    decode = heads.fastestdet,
  },
  {
    name = "yolov5", about = "YOLOv5, YOLOv7: boxes x (5 + classes), masks",
    fits = function(net)
      local out = net.outputs[1]
      local n, wide = dim(out, 2), dim(out, 3)
      return #out.sizes == 3 and n and wide and wide > 5 and n % 3 == 0 and
             strides_of(n // 3, net.size)
    end,
    input = { scale = 1 / 255, channels = "rgb", letterbox = 114 },
    score = .3, overlap = .45,
    classes = function(net)
      local protos = prototypes(net)
      return dim(net.outputs[1], 3) - 5 - (protos and dim(protos, 2) or 0)
    end,
    decode = function(outputs, net, size, least)
      return heads.yolov5(outputs, { classes = M.yolov5.classes(net) }, size, least)
    end,
    mask = prototype_mask,
  },
  {
    name = "yolov8", about = "YOLOv8, YOLO11 and others of Ultralytics: (4 + classes) x cells, masks, points, angles",
    fits = function(net)
      local out, task = net.outputs[1], net.meta "onnx.task"
      local n = dim(out, 3)
      return #out.sizes == 3 and (dim(out, 2) or 5) > 4 and
             (n and strides_of(n, net.size) or is_transposed(net) or
              not n and (task == "detect" or task == "pose" or task == "segment" or task == "obb"))
    end,
    input = { scale = 1 / 255, channels = "rgb", letterbox = 114 },
    score = .3, overlap = .45,
    classes = function(net)
      local _, n = exported_names(net)
      local protos = prototypes(net)
      local planes = dim(net.outputs[1], is_transposed(net) and 3 or 2)
      return n > 0 and n or (planes or 84) - 4 - (protos and dim(protos, 2) or 0)
    end,
    decode = function(outputs, net, _, least)
      if is_transposed(net) then outputs[1] = outputs[1]:transposed { 1, 3, 2 } end
      return heads.yolov8(outputs, ultralytics(net, M.yolov8.classes(net)), least)
    end,
    mask = prototype_mask,
  },
  {
    name = "rows", about = "final boxes (YOLOv10, YOLO26, exported with suppression): corners, score, class",
    fits = function(net) return final_rows(net) ~= nil end,
    input = function(net) -- RT-DETR's pictures are stretched.
      local stretched = (net.meta "onnx.description" or ""):lower():find("rt%-?detr")
      return { scale = 1 / 255, channels = "rgb", letterbox = not stretched and 114 or nil }
    end,
    score = .3, overlap = .7,
    classes = function(net) return ({ exported_names(net) })[2] end,
    decode = function(outputs, net, size, least) return heads.rows(outputs, final_rows(net) or {}, size, least) end,
    mask = prototype_mask,
  },
  {
    name = "yunet", about = "YuNet: cls, obj, bbox and kps for strides 8, 16, 32",
    fits = function(net)
      return named(net, "cls_8") and named(net, "obj_8") and named(net, "bbox_8")
    end,
    input = { channels = "bgr", letterbox = "0,corner" },
    score = .6, overlap = .3, labels = { "face" },
    decode = function(outputs, _, size, least)
      return heads.yunet(outputs, { strides = { 8, 16, 32 }, size = size }, least)
    end,
  },
  {
    name = "scrfd", about = "SCRFD: for each stride scores, distances and points",
    fits = function(net) return by_width(net) ~= nil end,
    input = { channels = "rgb", mean = 127.5, scale = 1 / 128, letterbox = "0,corner" },
    score = .5, overlap = .4, labels = { "face" },
    decode = function(outputs, net, size, least)
      local levels, anchors = scrfd_levels(net, outputs, size)
      return heads.scrfd(outputs, { levels = levels, anchors = anchors, size = size }, least)
    end,
  },
  {
    name = "retinaface", about = "RetinaFace: boxes, scores and points of n priors",
    fits = function(net)
      local loc, conf, points = last_dims(net, 4, 2, 10)
      return #net.outputs == 3 and loc and conf and points
    end,
    input = { channels = "bgr", mean = { 104, 117, 123 }, letterbox = "110,corner" },
    score = .6, overlap = .4, labels = { "face" },
    decode = function(outputs, net, size, least)
      local loc, conf, points = last_dims(net, 4, 2, 10)
      return priors.ssd(outputs[conf], outputs[loc],
                        { classes = 2, size = size, priors = retinaface_priors(size),
                          points = outputs[points] }, least)
    end,
  },
  {
    name = "ultraface", about = "Ultra-Light face detectors: scores and boxes, decoded or not",
    fits = function(net)
      return #net.outputs == 2 and named(net, "scores") and named(net, "boxes")
    end,
    input = { mean = 127, scale = 1 / 128 }, insist = { channels = "rgb" },
    score = .7, overlap = .3, labels = { "face", "masked face" },
    decode = function(outputs, _, size, least)
      local corners = priors.are_corners(outputs.boxes)
      return priors.ssd(outputs.scores, outputs.boxes,
                       { classes = #outputs.scores // (#outputs.boxes // 4), size = size,
                         corners = corners,
                         priors = not corners and ultraface_priors(size) }, least)
    end,
  },
  {
    name = "qrcode", about = "SSD on grey pictures, such as WeChat's detector of QR codes",
    fits = function(net)
      return #net.outputs == 1 and dim(net.outputs[1], 4) == 7 and net.channels == 1
    end,
    input = { scale = 1 / 255 }, score = .2, overlap = .5, labels = { "QR code" },
    decode = priors.detections,
  },
  {
    name = "ssd", about = "SSD that ends in detection_output: rows of seven numbers",
    fits = function(net)
      return #net.outputs == 1 and #net.outputs[1].sizes == 4 and dim(net.outputs[1], 4) == 7
    end,
    input = ssd_input, score = .3, overlap = .45, classes = ssd_classes,
    decode = priors.detections,
  },
  {
    name = "res10", about = "the ResNet-10 SSD face detector of OpenCV, without its last layer",
    fits = function(net)
      return net.size.width == 300 and net.size.height == 300 and offsets(net)
    end,
    input = { channels = "bgr", mean = { 104, 177, 123 } }, score = .5, overlap = .45,
    labels = { "face" },
    decode = function(outputs, net, size, least)
      local loc, conf = offsets(net)
      return priors.ssd(outputs[conf], outputs[loc],
                       { classes = 2, size = size, priors = res10_priors(size) }, least)
    end,
  },
  {
    name = "ssd-raw", about = "SSD with outputs loc, conf and prior",
    fits = function(net)
      return offsets(net) and (named(net, "prior") or named(net, "mbox_priorbox"))
    end,
    input = { channels = "bgr", mean = { 104, 117, 123 } }, score = .3, overlap = .45,
    decode = function(outputs, net, size, least)
      local loc, conf = offsets(net)
      local prior = outputs.prior or outputs.mbox_priorbox
      return priors.ssd(outputs[conf], outputs[loc],
                       { classes = #outputs[conf] // (#outputs[loc] // 4), size = size,
                         priors = priors.centred(prior),
                         variances = { prior[#prior // 2 + 1], prior[#prior // 2 + 3] } }, least)
    end,
  },
  {
    name = "nanodet", about = "NanoDet: for each stride scores and distributions of distances",
    fits = function(net) return nanodet_levels(net, net.size) ~= nil end,
    input = { channels = "bgr", mean = { 103.53, 116.28, 123.675 }, std = { 57.375, 57.12, 58.395 },
              letterbox = 0 },
    score = .4, overlap = .6,
    classes = function(net) return net.outputs[1].sizes[#net.outputs[1].sizes] end,
    decode = function(outputs, net, size, least)
      local levels = nanodet_levels(net, size) or error("the outputs are not in pairs", 0)
      return heads.nanodet(outputs, { levels = levels, size = size }, least)
    end,
  },
  {
    name = "detr", about = "DETR, YOLOS, RT-DETR: queries x classes and queries x 4",
    fits = function(net) return queries.pair(net.outputs) ~= nil end,
    input = detr_input, score = .5, overlap = .8,
    classes = function(net)
      local sizes = net.outputs[queries.pair(net.outputs)].sizes
      return has_nothing(sizes) and sizes[3] - 1 or sizes[3]
    end,
    decode = function(outputs, net, size, least)
      local logits, boxes = queries.pair(net.outputs)
      if not logits then error("there are no outputs of classes and boxes of queries", 0) end
      return queries.detr({ logits = outputs[logits], boxes = outputs[boxes],
                            softmax = has_nothing(outputs[logits]:shape()) }, size, least)
    end,
  },
  {
    name = "ready", about = "outputs of corners, classes and scores (torchvision, TensorFlow's detection API), masks, points",
    fits = function(net) return queries.ready(net.outputs) ~= nil end,
    input = function(net)
      local boxes = net.outputs[queries.ready(net.outputs).boxes]
      return boxes.name:find("detection_", 1, true) and { channels = "rgb" } or { channels = "rgb", scale = 1 / 255 }
    end,
    score = .5, overlap = .7,
    decode = function(outputs, net, size, least) return queries.rows(ready_rows(outputs, net), size, least) end,
    mask = function(outputs, net, size, box)
      local t, port = result_named(net, outputs, "masks")
      return t and queries.mask(t, box, size, port.name:find("detection_", 1, true)) or nil
    end,
  },
  {
    name = "segmentation", about = "a class for each position: classes x height x width, as FCN, DeepLab, LR-ASPP",
    fits = scores_places,
    input = { channels = "rgb", mean = { 123.675, 116.28, 103.53 }, std = { 58.395, 57.12, 57.375 } },
    score = .005, overlap = 1, regions = true,
    classes = function(net)
      local axis = ends_in_classes(net) and 4 or 2
      return #net.outputs[1].sizes == 4 and dim(net.outputs[1], axis) or nil
    end,
    decode = function(outputs, net, size, least)
      local classes = M.segmentation.classes(net)
      local one = classes == 1 and not outputs[1]:dtype():find "^[iu]" -- named by --family: a thing, and the rest
      local background = (classes == 21 or classes == 2 or one) and 0 or nil
      return masks.of_classes(outputs[1], size, background, least, ends_in_classes(net))
    end,
  },
}

for _, family in ipairs(M.list) do M[family.name] = family end

-- The family that fits the net; nil: none.
function M.find(net)
  for _, family in ipairs(M.list) do
    if family.fits(net) then return family end
  end
end

-- The number of classes of the net's first output if it holds only scores: [classes], or [batch, classes] with sides of 1
-- anywhere; else nil. A first side that is not the input's batch counts steps of a sequence.
function M.scores(net)
  local sizes, batch, classes = net.outputs[1] and net.outputs[1].sizes or {}, net.input.sizes[1], nil
  local whole = math.type(batch) == "integer" and math.type(sizes[1]) == "integer"
  if #sizes > 1 and whole and sizes[1] ~= batch and sizes[1] ~= 1 then return nil end
  for i = #sizes > 1 and 2 or 1, #sizes do
    local side = sizes[i]
    if math.type(side) ~= "integer" or side ~= 1 and classes then return nil end
    if side > 1 then classes = side end
  end
  return classes
end

-- The family called `name`, or the first that fits.
function M.of(net, name)
  local known = {}
  for i, family in ipairs(M.list) do known[i] = family.name end
  known = table.concat(known, ", ")
  local named = name and (M[name] or error("no family '" .. name .. "'; there are " .. known, 0))
  if named and named.fits(net) then return named end
  for _, family in ipairs(M.list) do
    if family.fits(net) then
      if not named then return family end
      error(("--family %s: this net is of the family %s, by its outputs or its file; without " ..
             "--family it is decoded as that"):format(name, family.name), 0)
    end
  end
  if named then return named end
  local ports = {}
  for i, port in ipairs(net.outputs) do
    ports[i] = port.name .. " [" .. table.concat(port.sizes, ",") .. "]"
  end
  local classes = not named and M.scores(net)
  if classes and #net.outputs == 1 then
    error(("its output %s is a score for each of %d classes, so it is a classifier: cnnrun classify NET PICTURE " ..
           "(if it is a detector, use --family NAME: %s)"):format(ports[1], classes, known), 0)
  end
  error("no known family of detectors has the outputs " .. table.concat(ports, ", ") ..
        "; if it belongs to one of them, use --family NAME: " .. known, 0)
end

-- The name of a class without a file of labels: the net's own, the family's, or that of the usual
-- data set with so many classes.
function M.label(net, family, class)
  local own = net.model:label(class) or exported_names(net)[class + 1]
  if own then return own end
  local n = family.classes and family.classes(net)
  local usual = family.labels or family.regions and (n == 21 and labels.voc_places or n == 19 and labels.streets) or
                n == 80 and labels.coco or (n == 90 or n == 91) and labels.coco_numbers(n) or n == 20 and labels.voc or
                n == 1 and { family.name == "ssd" and "face" or "object" }
  return usual and usual[class + 1] or "class " .. class
end

-- The families as lines of text for the help.
function M.help()
  local lines = { "families:" }
  for _, family in ipairs(M.list) do
    lines[#lines + 1] = ("  %-12s %s"):format(family.name, family.about)
  end
  lines[#lines + 1] = "  mtcnn        NET is a folder with the three nets det1, det2, det3"
  return table.concat(lines, "\n")
end

return M
