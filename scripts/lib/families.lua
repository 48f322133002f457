-- Which detector is this? A family tells a net by its file's metadata or by its outputs' names and
-- shapes, says how pictures go in where the net does not, and who decodes what comes out.
--
--   fits(net)           does it look so? net: inputs, outputs (name, sizes), meta(key), size
--   input               steps of preprocessing that the net's own metadata may overrule
--   insist              steps that overrule the metadata: importers guess these by a format's habit
--   score, overlap      least score; how far boxes of a class may overlap
--   labels              names when there are no others
--   decode(outputs, net, least)   boxes in pixels of the input
local heads = require "lib.heads"
local labels = require "lib.labels"

local function dim(port, i)
  local d = port and port.sizes[i]
  return math.type(d) == "integer" and d or nil
end

local function named(net, name)
  for _, port in ipairs(net.outputs) do
    if port.name == name then return port end
  end
end

local function cells(size, strides)
  local n = 0
  for _, stride in ipairs(strides) do
    n = n + math.ceil(size.width / stride) * math.ceil(size.height / stride)
  end
  return n
end

-- ---- NanoDet: which outputs belong together, and their stride ----

local function nanodet_levels(net)
  local by_cells, order = {}, {}
  for i, port in ipairs(net.outputs) do
    local n = dim(port, 2)
    if not n or #port.sizes ~= 3 or not dim(port, 3) then return nil end
    if not by_cells[n] then order[#order + 1] = n end
    by_cells[n] = by_cells[n] or {}
    table.insert(by_cells[n], i)
  end
  local levels, widths = {}, {}
  for _, n in ipairs(order) do
    local pair = by_cells[n]
    if #pair ~= 2 then return nil end
    for _, i in ipairs(pair) do
      local wide = dim(net.outputs[i], 3)
      widths[wide] = (widths[wide] or 0) + 1
    end
  end
  -- The distances' width is four times a number of bins, and the same everywhere; they come second.
  for _, n in ipairs(order) do
    local pair = by_cells[n]
    local distance = dim(net.outputs[pair[2]], 3)
    if distance % 4 ~= 0 or distance < 8 then return nil end
    local stride
    for _, s in ipairs { 4, 8, 16, 32, 64, 128 } do
      if cells(net.size, { s }) == n then stride = s end
    end
    if not stride then return nil end
    levels[#levels + 1] = { pair[1], pair[2], stride }
  end
  return levels[1] and levels
end

-- ---- the face detectors that tell boxes by priors without giving them ----

local function squares(...)
  local list = {}
  for i, side in ipairs { ... } do list[i] = { side, side } end
  return list
end

local function clamped(list)
  for i, v in ipairs(list) do list[i] = math.max(0, math.min(1, v)) end
  return list
end

local function ultraface_priors(size)
  return clamped(heads.priors({ { 8, squares(10, 16, 24) }, { 16, squares(32, 48) },
                                { 32, squares(64, 96) }, { 64, squares(128, 192, 256) } }, size))
end

-- The boxes of ResNet-10 SSD; its last two grids have 5 x 5 cells whatever their stride.
local function res10_priors(size)
  local s = heads.prior_sizes
  local rows = { { 8, s(30, 60, { 2 }) }, { 16, s(60, 111, { 2, 3 }) },
                 { 32, s(111, 162, { 2, 3 }) }, { 64, s(162, 213, { 2, 3 }) },
                 { 100, s(213, 264, { 2 }), 5, 5 }, { 300, s(264, 315, { 2 }), 5, 5 } }
  return heads.priors(rows, size)
end

local function offsets(net)
  for _, port in ipairs(net.outputs) do
    if port.name:find("loc", 1, true) then
      for _, other in ipairs(net.outputs) do
        if other.name:find("conf", 1, true) then return port.name, other.name end
      end
    end
  end
end

local M = {}

M.list = {
  {
    name = "darknet", about = "yolo, region and detection layers of Darknet",
    fits = function(net) return net.meta "heads" ~= nil end,
    input = { scale = 1 / 255, channels = "rgb", letterbox = 127 },
    score = .3, overlap = .45,
    decode = function(outputs, net, least)
      net.heads = net.heads or heads.parse_heads(net.meta "heads" or
        error("the net has no metadata \"heads\", which Darknet's importer writes"))
      return heads.darknet(outputs, net, least)
    end,
  },
  {
    name = "yolox", about = "YOLOX: one output, cells x (5 + classes), strides 8, 16, 32",
    fits = function(net)
      local out = net.outputs[1]
      return #net.outputs == 1 and #out.sizes == 3 and (dim(out, 3) or 0) > 5 and
             dim(out, 2) == cells(net.size, { 8, 16, 32 })
    end,
    input = function(net) return M.yolox_input(net) end,
    score = .3, overlap = .45,
    decode = function(outputs, net, least)
      net.strides = { 8, 16, 32 }
      return heads.yolox(outputs, net, least)
    end,
  },
  {
    name = "yunet", about = "YuNet: cls, obj, bbox and kps for strides 8, 16, 32",
    fits = function(net)
      return named(net, "cls_8") and named(net, "obj_8") and named(net, "bbox_8")
    end,
    input = { channels = "bgr", letterbox = "0,corner" },
    score = .6, overlap = .3, labels = { "face" },
    decode = function(outputs, net, least)
      net.strides = { 8, 16, 32 }
      return heads.yunet(outputs, net, least)
    end,
  },
  {
    name = "ultraface", about = "Ultra-Light face detectors: scores and boxes, decoded or not",
    fits = function(net)
      return #net.outputs == 2 and named(net, "scores") and named(net, "boxes")
    end,
    input = { mean = 127, scale = 1 / 128 }, insist = { channels = "rgb" },
    score = .7, overlap = .3, labels = { "face" },
    decode = function(outputs, net, least)
      net.classes = 2
      net.corners = heads.are_corners(outputs.boxes)
      if not net.corners then net.priors = net.priors or ultraface_priors(net.size) end
      return heads.ssd(outputs.scores, outputs.boxes, net, least)
    end,
  },
  {
    name = "qrcode", about = "SSD on grey pictures, as WeChat's finder of QR codes",
    fits = function(net)
      return #net.outputs == 1 and dim(net.outputs[1], 4) == 7 and net.channels == 1
    end,
    input = { scale = 1 / 255 }, score = .2, overlap = .5, labels = { "QR code" },
    decode = heads.detections,
  },
  {
    name = "ssd", about = "SSD that ends in detection_output: rows of seven numbers",
    fits = function(net)
      return #net.outputs == 1 and #net.outputs[1].sizes == 4 and dim(net.outputs[1], 4) == 7
    end,
    input = { channels = "bgr", mean = { 104, 117, 123 } }, score = .3, overlap = .45,
    decode = heads.detections,
  },
  {
    name = "res10", about = "the ResNet-10 SSD face detector of OpenCV, without its last layer",
    fits = function(net)
      return net.size.width == 300 and net.size.height == 300 and offsets(net)
    end,
    input = { channels = "bgr", mean = { 104, 177, 123 } }, score = .5, overlap = .45,
    labels = { "face" },
    decode = function(outputs, net, least)
      local loc, conf = offsets(net)
      net.classes, net.priors = 2, net.priors or res10_priors(net.size)
      return heads.ssd(outputs[conf], outputs[loc], net, least)
    end,
  },
  {
    name = "ssd-raw", about = "SSD with outputs loc, conf and prior",
    fits = function(net)
      return offsets(net) and (named(net, "prior") or named(net, "mbox_priorbox"))
    end,
    input = { channels = "bgr", mean = { 104, 117, 123 } }, score = .3, overlap = .45,
    decode = function(outputs, net, least)
      local loc, conf = offsets(net)
      local prior = outputs.prior or outputs.mbox_priorbox
      net.priors = net.priors or heads.centred(prior)
      net.classes = #outputs[conf] // (#outputs[loc] // 4)
      net.variances = { prior[#prior // 2 + 1], prior[#prior // 2 + 3] }
      return heads.ssd(outputs[conf], outputs[loc], net, least)
    end,
  },
  {
    name = "nanodet", about = "NanoDet: for each stride scores and distributions of distances",
    fits = function(net) return nanodet_levels(net) ~= nil end,
    input = { channels = "bgr", mean = { 103.53, 116.28, 123.675 }, std = { 57.375, 57.12, 58.395 },
              letterbox = 0 },
    score = .4, overlap = .6,
    decode = function(outputs, net, least)
      net.levels = net.levels or nanodet_levels(net) or error("the outputs do not fit in pairs")
      return heads.nanodet(outputs, net, least)
    end,
  },
}

-- YOLOX's first release takes pictures with ImageNet's mean and deviation, later ones plain pixels.
-- The file does not say which, but the first weights do: those for numbers up to 255 are small.
function M.yolox_input(net)
  local sum, n = 0, 0
  for _, name in ipairs(net.model:weights()) do
    local weight = net.model:weight(name)
    if n == 0 and #weight:shape() == 4 and weight:shape()[2] == 12 then
      n = #weight
      for i = 1, n do sum = sum + math.abs(weight[i]) end
    end
  end
  if n > 0 and sum / n < .015 then return { channels = "bgr", letterbox = "114,corner" } end
  return { channels = "rgb", letterbox = "114,corner", mean = { 123.675, 116.28, 103.53 },
           std = { 58.395, 57.12, 57.375 } }
end

for _, family in ipairs(M.list) do M[family.name] = family end

-- The family called `name`, or the first that fits.
function M.of(net, name)
  if name then return M[name] or error("no family '" .. name .. "'; --help lists them", 0) end
  for _, family in ipairs(M.list) do
    if family.fits(net) then return family end
  end
  local ports = {}
  for i, port in ipairs(net.outputs) do
    ports[i] = port.name .. " [" .. table.concat(port.sizes, ",") .. "]"
  end
  error("no decoder known here fits the outputs " .. table.concat(ports, ", ") ..
        "; say which with --family", 0)
end

-- What a number of classes usually means.
function M.usual_labels(n)
  return n == 80 and labels.coco or n == 20 and labels.voc or nil
end

function M.help()
  local lines = { "families:" }
  for _, family in ipairs(M.list) do
    lines[#lines + 1] = ("  %-10s %s"):format(family.name, family.about)
  end
  lines[#lines + 1] = "  mtcnn      MODEL is a folder with the three nets det1, det2, det3"
  return table.concat(lines, "\n")
end

return M
