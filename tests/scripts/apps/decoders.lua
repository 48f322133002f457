-- Decoders of boxes on outputs made up here, against numbers worked out by hand; prints TAP.
local c = require "cnnrun"
local args = require "lib.args"
local boxes = require "lib.boxes"
local draw = require "lib.draw"
local families = require "lib.families"
local heads = require "lib.heads"
local json = require "lib.json"
local labels = require "lib.labels"
local masks = require "lib.masks"
local nets = require "lib.nets"
local pictures = require "lib.pictures"
local priors = require "lib.priors"

local count = 0
-- Prints one numbered TAP line: ok if `good`, else not ok.
local function ok(good, what)
  count = count + 1
  print((good and "ok " or "not ok ") .. count .. " - " .. what)
  return good
end

-- A test: both are equal.
local function is(got, want, what)
  if not ok(got == want, what) then print("# got " .. tostring(got) .. ", want " .. tostring(want)) end
end

-- True: both numbers agree.
local function near(a, b) return math.abs(a - b) < 1e-4 * (1 + math.abs(b)) end

-- One box: class, score, corners.
local function is_box(b, class, score, x0, y0, x1, y1, what)
  local good = b and b.class == class and near(b.score, score) and near(b.x0, x0) and near(b.y0, y0) and
               near(b.x1, x1) and near(b.y1, y1)
  if not ok(good, what) and b then
    print(("# got class %s, %.5f, %.4f %.4f %.4f %.4f"):format(b.class, b.score, b.x0, b.y0, b.x1, b.y1))
  end
end

-- A tensor of zeros.
local function zeros(...) return c.tensor { shape = { ... } } end

-- Tests: Darknet's heads.
local function darknet()
  local line = "yolo output=9_yolo classes=2 coords=4 width=64 height=64 anchors=10.0,20.0\n"
  local parsed = heads.parse_heads(line .. line)
  ok(#parsed == 2 and parsed[1].kind == "yolo" and parsed[1].classes == 2 and
     parsed[1].output == "9_yolo" and parsed[1].anchors[2] == 20, "a line of heads")

  -- Anchor 10 x 20, 2 x 2 cells of 32 pixels; the cell in column 1, row 0 is element 2 of a plane.
  local t = zeros(1, 7, 2, 2)
  -- Sets plane k.
  local function plane(k, v) t[k * 4 + 2] = v end
  plane(0, .5); plane(1, .25); plane(2, 0); plane(3, math.log(2))
  plane(4, .8); plane(5, .1); plane(6, .9)
  local size = { width = 64, height = 64 }
  local found = heads.darknet({ t, ["9_yolo"] = t }, { heads = { parsed[1] }, size = size }, .5)
  is(#found, 1, "yolo: one cell scores")
  is_box(found[1], 1, .72, 43, -12, 53, 28, "yolo: anchors in pixels")
  is(#heads.darknet({ t }, { heads = { parsed[1] }, size = size }, .75), 0,
     "yolo: objectness alone is not enough")

  local square = heads.parse_heads(line:gsub("width", "square=1 width", 1))[1]
  plane(2, .5); plane(3, 1)
  found = heads.darknet({ t }, { heads = { square }, size = size }, .5)
  is_box(found[1], 1, .72, 43, -32, 53, 48, "yolo: sizes as squares")
  plane(2, 0); plane(3, math.log(2))

  local head = heads.parse_heads "region output=x classes=2 coords=4 anchors=1.0,1.5"[1]
  found = heads.darknet({ t }, { heads = { head }, size = size }, .5)
  is_box(found[1], 1, .72, 48 - 16, 8 - 48, 48 + 16, 8 + 48, "region: anchors in cells")

  -- Version 1: 2 x 2 cells, one class, one box; the last cell; sizes are roots.
  local v1 = zeros(1, 4 * (1 + 5))
  v1[4] = .9 -- class of cell 3
  v1[8] = .5 -- its confidence
  for k, v in ipairs { .5, .5, .5, .25 } do v1[8 + 3 * 4 + k] = v end
  head = heads.parse_heads "detection output=x classes=1 coords=4 anchors=2.0,1.0,1.0"[1]
  found = heads.darknet({ v1 }, { heads = { head }, size = { width = 100, height = 200 } }, .2)
  is_box(found[1], 0, .45, 75 - 12.5, 150 - 6.25, 75 + 12.5, 150 + 6.25, "detection: sizes squared")
end

-- Tests: grids of cells.
local function grids()
  -- 64 x 32 pixels: 8 x 4 cells of 8, 4 x 2 of 16, 2 x 1 of 32.
  local size, strides = { width = 64, height = 32 }, { 8, 16, 32 }
  local t = zeros(1, 32 + 8 + 2, 7)
  -- Sets a cell.
  local function cell(i, ...)
    for k, v in ipairs { ... } do t[i * 7 + k] = v end
  end
  cell(32 + 5, .5, 0, 0, math.log(2), .8, .1, .5) -- column 1, row 1 of 16
  cell(41, .25, .5, 0, 0, 1, .6, .2)              -- column 1, row 0 of 32
  local found = heads.yolox({ t }, { size = size, strides = strides }, .3)
  is(#found, 2, "yolox: two cells score")
  is_box(found[1], 1, .4, 24 - 8, 16 - 16, 24 + 8, 16 + 16, "yolox: second stride")
  is_box(found[2], 0, .6, 40 - 16, 16 - 16, 40 + 16, 16 + 16, "yolox: last cell of all")

  -- The same decoded in the net: the last cell's numbers are pixels.
  cell(32 + 5, 24, 16, 16, 32, .8, .1, .5)
  cell(41, 48, 16, 32, 32, 1, .6, .2)
  found = heads.yolox({ t }, { size = size, strides = strides }, .3)
  is(#found, 2, "yolox, decoded: two cells score")
  is_box(found[1], 1, .4, 16, 0, 32, 32, "yolox, decoded: as it is")
  is_box(found[2], 0, .6, 32, 0, 64, 32, "yolox, decoded: the last cell")

  -- Distances: even over 0 .. 7 means 3.5; all on one bin means that bin.
  local scores, distances = zeros(1, 8, 3), zeros(1, 8, 32)
  scores[5 * 3 + 3], scores[5 * 3 + 1] = .9, .5 -- cell 5: column 1, row 1 of 16
  distances[5 * 32 + 2 * 8 + 3] = 100           -- right: bin 2
  found = heads.nanodet({ scores, distances },
                        { size = size, levels = { { 1, 2, 16 } } }, .4)
  is(#found, 1, "nanodet: a cell with two classes above is one box")
  is_box(found[1], 2, .9, 24 - 56, 24 - 56, 24 + 32, 24 + 56, "nanodet: expected distances")

  -- The same in one, two classes and two bins: all on the first bin but to the right.
  local plus = zeros(1, 32 + 8 + 2, 2 + 4 * 2)
  local b = (32 + 5) * 10
  plus[b + 1], plus[b + 2] = .5, .9
  for k = 0, 3 do plus[b + 3 + 2 * k] = 100 end
  plus[b + 3 + 2 * 2], plus[b + 4 + 2 * 2] = 0, 100
  found = heads.nanodet_plus({ plus }, { size = size, strides = strides, bins = 2 }, .4)
  is(#found, 1, "nanodet-plus: distances are no scores")
  is_box(found[1], 1, .9, 16, 16, 16 + 16, 16, "nanodet-plus: from the cell's corner")

  -- Planes of 4 x 2 cells of 16: objectness, place, size, two classes; the last cell.
  local planes = zeros(1, 7, 2, 4)
  for k, v in ipairs { .5, 0, math.log(3) / 2, 0, math.log(3), .2, .5 } do planes[k * 8] = v end
  found = heads.fastestdet({ planes }, nil, size, .4)
  is(#found, 1, "fastestdet: a cell scores")
  is_box(found[1], 1, .5, 48 - 16, 24 - 12, 48 + 16, 24 + 12, "fastestdet: parts of the input")

  -- Two boxes a cell of 32: the second of the second.
  local sides, kps, two = zeros(4, 4), zeros(4, 4), zeros(4, 1)
  two[4] = .8
  for k, v in ipairs { .5, .25, 1, .5 } do sides[12 + k], kps[12 + k] = v, v end
  found = heads.scrfd({}, { size = size, anchors = 2, levels = { { two, sides, kps, 32 } } }, .5)
  is_box(found[1], 0, .8, 32 - 16, 0 - 8, 32 + 32, 16, "scrfd: distances in strides")
  ok(near(found[1].points[3], 64) and near(found[1].points[4], 16), "scrfd: points")

  local out = { cls_8 = zeros(1, 32, 1), obj_8 = zeros(1, 32, 1), bbox_8 = zeros(1, 32, 4),
                kps_8 = zeros(1, 32, 10) }
  out.cls_8[10], out.obj_8[10] = .9, .4 -- column 1, row 1
  out.bbox_8[9 * 4 + 1], out.bbox_8[9 * 4 + 3] = .5, math.log(2)
  out.kps_8[9 * 10 + 9], out.kps_8[9 * 10 + 10] = 1, -1
  found = heads.yunet(out, { size = size, strides = { 8 } }, .5)
  is_box(found[1], 0, .6, 12 - 8, 8 - 4, 12 + 8, 8 + 4, "yunet: root of the product")
  ok(near(found[1].points[9], 16) and near(found[1].points[10], 0) and near(found[1].points[1], 8),
     "yunet: points")
end

-- Tests: boxes in pixels.
local function pixels()
  local t = zeros(1, 5, 7) -- five boxes, two classes
  for k, v in ipairs { 30, 20, 10, 8, .5, .2, .9 } do t[2 * 7 + k] = v end
  for k, v in ipairs { 30, 20, 10, 8, .5, .5, .1 } do t[4 * 7 + k] = v end
  local found = heads.yolov5({ t }, nil, nil, .3)
  is(#found, 1, "yolov5: objectness times class must score")
  is_box(found[1], 1, .45, 25, 16, 35, 24, "yolov5: pixels")

  -- Planes of five cells: box, two classes, two points; the fourth cell scores in both classes.
  t = zeros(1, 4 + 2 + 6, 5)
  for k, v in ipairs { 30, 20, 10, 8, .4, .7, 11, 12, .9, 13, 14, .1 } do t[(k - 1) * 5 + 4] = v end
  t[6 * 5 + 1] = .8 -- a point is no class
  found = heads.yolov8({ t }, { classes = 2, points = true }, .3)
  is(#found, 1, "yolov8: a cell is one box")
  is_box(found[1], 1, .7, 25, 16, 35, 24, "yolov8: its best class")
  local p = found[1].points
  ok(#p == 4 and p[1] == 11 and p[2] == 12 and p[3] ~= p[3], "yolov8: points, hidden ones are none")
  is(heads.yolov8({ t }, { classes = 2 }, .3)[1].points, nil, "yolov8: masks are no points")
  local here = heads.yolov8({ t }, { classes = 2 }, .3)[1]
  ok(here.first == 6 * 5 + 4 and here.step == 5, "yolov8: where its coefficients stand")
  p = heads.yolov8({ t }, { classes = 2, points = true, numbers = 2 }, .3)[1].points
  ok(#p == 6 and math.abs(p[3] - .9) < 1e-6 and math.abs(p[6] - .1) < 1e-6, "yolov8: points of two numbers are all seen")

  t = zeros(1, 3, 6)
  for k, v in ipairs { 1, 2, 30, 40, .6, 7 } do t[6 + k] = v end
  found = heads.rows({ t }, {}, nil, .3)
  is(#found, 1, "rows: the rest is empty")
  is_box(found[1], 7, .6, 1, 2, 30, 40, "rows: as they are")
end

-- Masks of prototypes, by hand: 8 x 8 cells of 4 pixels; the first prototype is 1 in the left half and -1 in the right
-- one, the second 1 above and -1 below.
local function masked()
  local protos = c.tensor { shape = { 1, 2, 8, 8 } }
  for y = 0, 7 do
    for x = 0, 7 do
      protos[y * 8 + x + 1], protos[64 + y * 8 + x + 1] = x < 4 and 1 or -1, y < 4 and 1 or -1
    end
  end
  local size = { width = 32, height = 32 }
  -- How many rectangles of a mask cover a point.
  local function covered(mask, x, y)
    local n = 0
    for _, r in ipairs(mask) do
      if x > r.x0 and x < r.x1 and y >= r.y0 and y < r.y1 then n = n + 1 end
    end
    return n
  end
  -- Area of a mask.
  local function area(mask)
    local sum = 0
    for _, r in ipairs(mask) do sum = sum + (r.x1 - r.x0) * (r.y1 - r.y0) end
    return sum
  end
  local all = { x0 = 0, y0 = 0, x1 = 32, y1 = 32 }
  local left = masks.of_prototypes(protos, { 1, 0 }, all, size)
  ok(covered(left, 5, 20) == 1 and covered(left, 27, 20) == 0, "masks: where the sum is above 0, once")
  is(area(left), 512, "masks: half of the picture")
  is(area(masks.of_prototypes(protos, { -1, 0 }, all, size)), 512, "masks: the other half by the other sign")
  -- 1 in the upper left quarter, 0 beside and below, -1 in the last one; minus .5 makes a quarter of it
  local quarter = masks.of_prototypes(protos, { .5, .5 }, all, size)
  ok(covered(quarter, 5, 5) == 1 and covered(quarter, 27, 27) == 0, "masks: prototypes are added")
  local cut = masks.of_prototypes(protos, { 1, 0 }, { x0 = 8, y0 = 8, x1 = 24, y1 = 12 }, size)
  is(area(cut), 8 * 4, "masks: cut at the box")
  ok(covered(cut, 9, 9) == 1 and covered(cut, 4, 9) == 0, "masks: nothing outside of it")
  is(#masks.of_prototypes(protos, { 0, 0 }, all, size), 0, "masks: 0 is no mask")

  local t = zeros(1, 5, 4, 6) -- five classes
  -- Sets a cell's class.
  local function set(class, x, y) t[class * 24 + y * 6 + x + 1] = 2 end
  for x = 0, 5 do for y = 0, 3 do set(0, x, y) end end
  for x = 0, 2 do for y = 0, 1 do t[3 * 24 + y * 6 + x + 1] = 3 end end
  t[4 * 24 + 3 * 6 + 5 + 1] = 9
  local found = masks.of_classes(t, { width = 60, height = 40 }, 0, .001)
  is(#found, 2, "classes: those that are seen, without the background")
  is_box(found[1], 3, 6 / 24, 0, 0, 30, 20, "classes: the part of the picture, and what is around it")
  is_box(found[2], 4, 1 / 24, 50, 30, 60, 40, "classes: a single place")
  is(area(found[1].mask), 600, "classes: its pixels")
  is(#masks.of_classes(t, { width = 60, height = 40 }, nil, .001), 3, "classes: the first is one, too")
  is(#masks.of_classes(t, { width = 60, height = 40 }, 0, .1), 1, "classes: small ones are left out")
  local whole = c.tensor { shape = { 1, 2, 3 }, dtype = "i64", data = { 0, 7, 7, 0, 0, 7 } }
  found = masks.of_classes(whole, { width = 3, height = 2 }, 0, 0)
  is_box(found[1], 7, .5, 1, 0, 3, 2, "classes: as whole numbers")
end

-- Tests: sizes of inputs.
local function sizes()
  local net = { size = { height = 320, width = 320 }, meta = function() return nil end, open_size = true }
  -- The size for a picture.
  local function of(height, width, longest)
    local h, w = nets.size_for(net, height, width, longest)
    return h .. "x" .. w
  end
  is(of(424, 640), "320x512", "the picture's shape, not smaller than the net's size")
  is(of(1080, 810), "448x320", "upright")
  is(of(10, 10), "320x320", "a small picture gets larger")
  is(of(320, 640), "320x640", "twice the area")
  is(of(100, 1600), "128x1824", "a panorama: twice the area, whole steps")
  is(of(424, 640, 416), "288x416", "the longer side")
  net.size = { height = 0, width = 0 }
  is(of(1000, 500), "640x320", "no size of its own")
  net.meta = function(key) return key == "onnx.stride" and "64" or nil end
  is(of(1000, 600), "640x384", "steps that the exporter tells")
end

-- Tests: SSD's boxes.
local function ssd()
  local about = { size = { width = 100, height = 200 }, classes = 3,
                  priors = { .5, .5, .2, .2, .25, .5, .1, .4 } }
  local scores = c.tensor { shape = { 1, 2, 3 }, data = { .9, .05, .05, .1, .2, .7 } }
  local offsets = c.tensor { shape = { 1, 8 }, data = { 0, 0, 0, 0, 1, -1, 0, 5 * math.log(2) } }
  local found = priors.ssd(scores, offsets, about, .5)
  is(#found, 1, "ssd: background is no box")
  -- centre .25 + .1 * .1, .5 - .1 * .4; size .1, .4 * 2
  is_box(found[1], 1, .7, 26 - 5, 92 - 80, 26 + 5, 92 + 80, "ssd: centre and size from a prior")
  about.points = c.tensor { shape = { 1, 4 }, data = { 0, 0, 5, -10 } } -- two boxes, a point each
  local points = priors.ssd(scores, offsets, about, .5)[1].points
  ok(#points == 2 and near(points[1], 30) and near(points[2], 20), "ssd: points from a prior")
  about.points = nil
  local corners = c.tensor { shape = { 1, 8 }, data = { 0, 0, 1, 1, .1, .2, .3, .4 } }
  about.corners = true
  is_box(priors.ssd(scores, corners, about, .5)[1], 1, .7, 10, 40, 30, 80, "ssd: corners as they are")
  ok(priors.are_corners(corners) and not priors.are_corners(offsets), "corners are told from offsets")
  local rows = c.tensor { shape = { 1, 1, 2, 7 },
                          data = { 0, 3, .8, .1, .2, .3, .4, 0, 0, .9, 0, 0, 1, 1 } }
  found = priors.detections({ rows }, nil, about.size, .5)
  is(#found, 1, "detection_output: rows of the background are left out")
  is_box(found[1], 2, .8, 10, 40, 30, 80, "detection_output: corners in parts of the input")

  local sizes = priors.sizes(30, 60, { 4 })
  ok(#sizes == 4 and near(sizes[2][1], math.sqrt(1800)) and sizes[3][1] == 60 and sizes[3][2] == 15,
     "sizes of prior boxes")
  local list = priors.grids({ { 8, { { 10, 20 } } } }, { width = 12, height = 8 })
  ok(#list == 8 and near(list[5], 1) and near(list[6], .5) and near(list[8], 2.5),
     "priors: a last cell that is only half inside")
  local both = priors.centred(c.tensor { shape = { 1, 2, 4 }, data = { .1, .2, .5, .4, .1, .1, .2, .2 } })
  ok(#both == 4 and near(both[1], .3) and near(both[4], .2), "prior_box's corners as centres")
end

-- Tests: lists of boxes.
local function lists()
  -- A box.
  local function b(class, score, x0, x1)
    return { class = class, score = score, x0 = x0, y0 = 0, x1 = x1, y1 = 10 }
  end
  local kept = boxes.suppress({ b(0, .5, 0, 10), b(0, .9, 1, 11), b(1, .4, 0, 10), b(0, .3, 20, 30),
                                b(0, 0 / 0, 0, 10), b(0, .9, 5, 5) }, .5)
  is(#kept, 3, "suppression: per class; no empty boxes, no NaN")
  is(kept[1].score, .9, "suppression: best first")
  local two = { b(0, .5, 0, 10), b(1, .4, 1, 11) }
  is(#boxes.suppress(two, .5), 2, "suppression: other classes stay")
  is(#boxes.suppress(two, .5, .8), 1, "suppression: two classes for one place are one thing")
  is(#boxes.suppress(two, .5, .9), 2, "suppression: but not for two places")
  ok(near(boxes.overlap(b(0, 1, 0, 10), b(0, 1, 5, 15)), 1 / 3) and
     near(boxes.overlap(b(0, 1, 0, 10), b(0, 1, 5, 7), true), 1), "overlap of the union, of the smaller")
  local line = b(0, 10, 0, 10)
  line.corners = { 0, 0, 10, 10, 10, 10, 0, 0 }
  is(boxes.overlap(line, line), 0, "a turned box without area")
  local moved = boxes.to_picture({ { x0 = 10, y0 = 30, x1 = 500, y1 = 50, points = { 20, 40 } } },
                                 { factor = { 2, .5 }, shift = { 20, 5 } }, 100, 12)[1]
  ok(moved.x0 == 10 and moved.y0 == 5 and moved.x1 == 100 and moved.y1 == 12 and
     moved.points[1] == 30 and moved.points[2] == 10, "back to the picture, cut at its edges")
end

-- Tests: families are recognised.
local function recognised()
  -- A net of these outputs.
  local function net(width, height, ports, meta)
    local list = {}
    for i = 1, #ports, 2 do list[#list + 1] = { name = ports[i], sizes = ports[i + 1] } end
    return { outputs = list, size = { width = width, height = height }, channels = 3, input = { sizes = { 1, 3, height, width } },
             meta = function(key) return meta and meta[key] end }
  end
  -- The family of a net.
  local function of(...) return families.of(net(...)).name end
  is(of(320, 320, { "9_yolo", { "batch", 255, 10, 10 } }, { heads = "yolo" }), "darknet", "by metadata")
  is(of(416, 416, { "o", { 1, 3549, 85 } }), "yolox", "by the number of cells")
  is(of(416, 416, { "a", { 1, 2704, 80 }, "b", { 1, 676, 80 }, "c", { 1, 169, 80 },
                    "d", { 1, 2704, 32 }, "e", { 1, 676, 32 }, "f", { 1, 169, 32 } }), "nanodet",
     "by pairs of outputs")
  is(of(320, 320, { "o", { 1, 2125, 112 } }), "nanodet-plus", "by four strides in one output")
  is(of(352, 352, { "o", { 1, 85, 22, 22 } }), "fastestdet", "by a grid of stride 16")
  local faces = { "a", { 12800, 1 }, "b", { 3200, 1 }, "c", { 800, 1 }, "d", { 12800, 4 },
                  "e", { 3200, 4 }, "f", { 800, 4 } }
  is(of(640, 640, faces), "scrfd", "by what there is for each box")
  is(of(640, 640, { "a", { 1, 16800, 4 }, "b", { 1, 16800, 2 }, "c", { 1, 16800, 10 } }),
     "retinaface", "by boxes, scores and points")
  is(of(640, 640, { "o", { "batch", 25200, 85 } }), "yolov5", "by three boxes a cell")
  is(of(1280, 1280, { "o", { 1, 102000, 85 } }), "yolov5", "of four strides")
  is(of(640, 640, { "o", { 1, 84, 8400 } }), "yolov8", "by planes of cells")
  is(of(640, 640, { "o", { 1, 116, 8400 }, "masks", { 1, 32, 160, 160 } }), "yolov8", "with masks")
  is(of(520, 520, { "out", { 1, 21, 520, 520 }, "aux", { 1, 21, 520, 520 } }), "segmentation", "by scores for each place")
  is(of(512, 1024, { "out", { 1, 19, 64, 128 } }), "segmentation", "that are fewer than pixels")
  is(of(0, 0, { "o", { "batch", 84, "anchors" } }, { ["onnx.task"] = "detect" }), "yolov8",
     "by what the exporter says")
  is(of(0, 0, { "o", { "?", "?", "?" } }, { ["onnx.task"] = "detect" }), "yolov8", "whatever its sizes")
  is(of(640, 640, { "o", { 1, 300, 6 } }), "rows", "by six columns")
  is(of(320, 320, { "a", { 1600, 80 }, "b", { 400, 80 }, "c", { 100, 80 }, "d", { 1600, 32 },
                    "e", { 400, 32 }, "f", { 100, 32 } }), "nanodet", "without the batch")
  is(of(320, 240, { "boxes", { 1, "?", 4 }, "scores", { 1, "?", 2 } }), "ultraface", "by names")
  -- The scores' output that is found in a net with outputs of these sizes.
  local function scores(batch, ...) return families.scores { input = { sizes = { batch, 3, 8, 8 } }, outputs = { { sizes = { ... } } } } end
  is(scores(4, 4, 10, 1, 1), 10, "scores of a batch")
  is(scores("N", "N", 10), 10, "and of an open one")
  is(scores(1, 1000), 1000, "scores without a batch")
  is(scores(1, 40, 1, 37), nil, "steps of a sequence are no scores")
  local meta = { ["onnx.names"] = "{0: 'person', 1: \"driver's seat\", 2: '2'}" }
  local names = { outputs = { { name = "o", sizes = { 1, 7, 8400 } } }, size = { width = 640, height = 640 },
                  meta = function(key) return meta[key] end, model = { label = function() end } }
  -- The label of a class.
  local function label(class) return families.label(names, families.yolov8, class) end
  is(label(0) .. "; " .. label(1) .. "; " .. label(2), "person; driver's seat; class 2",
     "names that the exporter left")
  is(families.yolov8.classes(names), 3, "and how many")
  -- SSD in Caffe: the classes from the layers in front, pictures as the first layers want them.
  local function ssd(kernels)
    local list, n = {}, {}
    for i = 1, #kernels, 2 do
      list[#list + 1] = kernels[i]
      n[kernels[i]] = { shape = function() return kernels[i + 1] end }
    end
    return { model = { weights = function() return list end, label = function() end,
                       weight = function(_, name) return n[name] end }, meta = function() return nil end }
  end
  local mobile = ssd { "conv0.w", { 32, 3, 3, 3 }, "conv1_dw.w", { 32, 1, 3, 3 },
                       "conv11_mbox_loc.w", { 12, 512, 1, 1 }, "conv11_mbox_conf.w", { 63, 512, 1, 1 } }
  is(families.ssd.classes(mobile), 20, "SSD's classes besides the background")
  is(families.label(mobile, families.ssd, 14), "person", "SSD of VOC: its names")
  is(families.ssd.input(mobile).mean, 127.5, "SSD on MobileNet: pictures from -1 to 1")
  local face = ssd { "conv1.w", { 32, 3, 7, 7 }, "x_mbox_conf.w", { 8, 64, 3, 3 },
                     "x_mbox_loc.w", { 16, 64, 3, 3 } }
  is(families.label(face, families.ssd, 0), "face", "SSD of one class")
  is(families.ssd.input(face).mean[2], 177, "and what it subtracts")
  is(of(300, 300, { "detection_out", { 1, 1, "?", 7 } }), "ssd", "by seven columns")
  local good, why = pcall(families.of, net(28, 28, { "scores", { 1, 10 } }))
  ok(not good and why:find("scores [1,10]", 1, true) and why:find("--family", 1, true),
     "what fits nothing is told")
  ok(not pcall(families.of, net(1, 1, {}), "nonsense"), "no such family")
  ok(not pcall(families.of, net(224, 224, { "larger", { 1, 21, 672, 672 } })), "larger than the picture: rather another one")
  ok(not pcall(families.of, net(224, 224, { "picture", { 1, 3, 224, 224 } })), "three planes are rather a picture")
end

-- Tests: tensors.
local function host()
  local t = c.tensor { shape = { 2, 3 }, data = { 1, 2, 3, 4, 5, 6 } }
  -- The numbers of a tensor as text.
  local function list(x)
    local values = {}
    for i = 1, #x do values[i] = ("%g"):format(x[i]) end
    return table.concat(values, " ")
  end
  is(table.concat(t:above(2), ","), "3,4,5,6", "above")
  is(table.concat(t:above(1, 2, 6, 2), ","), "2,4,6", "above: every second from the second")
  is(#t:above(0, 4, 3), 0, "above: nowhere")
  ok(not pcall(t.above, t, 0, 0) and not pcall(t.above, t, 0, 1, 7), "above: outside")
  is(list(t:transposed { 2, 1 }), "1 4 2 5 3 6", "transposed")
  ok(not pcall(t.transposed, t, { 1, 1 }) and not pcall(t.transposed, t, { 1 }), "each axis once")
  is(list(t:region({ 2, 2 }, { 2, 3 })), "5 6 0 0 0 0", "region over the far edge")
  is(list(t:region({ 0, 0 }, { 2, 2 })), "0 0 0 1", "region over the near edge")
  is(list(t:region({ 9, 1 }, { 1, 2 })), "0 0", "region far outside")

  local picture = c.tensor { shape = { 10, 20, 3 }, dtype = "u8" }
  local net = c.load(c.net { input = { "x", shape = { "n", 3, "h", "w" }, letterbox = true },
                             c.relu {} })
  local batch, place = net:prepare(picture, { size = { 40, 40 } })
  ok(batch:shape()[3] == 40 and place.factor[1] == 2 and place.shift[1] == 10 and place.shift[2] == 0,
     "prepare tells where the picture lies")
  is(batch[1], 114, "the border is grey")
  batch, place = net:prepare(picture, { size = { 40, 40 }, letterbox = "50,corner", scale = .1 })
  ok(place.shift[1] == 0 and near(batch[1600], 5) and batch[1] == 0, "in the corner; settings for once")
  ok(not pcall(net.prepare, net, picture, { leterbox = 1 }), "no such setting")
end

-- Tests: words of a command.
local function words()
  local spec = { usage = "x", about = "y", least = 1,
                 flags = { { "-o, --output PATH", "" }, { "--json", "" },
                           { "--score NUMBER", "" }, { "--top COUNT", "" },
                           { "--option TEXT", "", many = true } } }
  local o = args.parse({ "a", "--score=.5", "-o", "b", "--json", "--", "-c" }, spec)
  ok(o and o[1] == "a" and o[2] == "-c" and o.score == .5 and o.output == "b" and o.json == true,
     "flags and words")
  o = args.parse({ "a", "--option", "x=1", "--top", "2", "--option=y=2" }, spec)
  ok(o and #o.option == 2 and o.option[1] == "x=1" and o.option[2] == "y=2" and o.top == 2,
     "flags that come again, whole numbers")
  for _, bad in ipairs { { "a", "--top", "1.5" }, { "a", "--top=-1" },
                         { "a", "--scor", "1" }, { "a", "--score", "x" }, { "a", "-o" }, {},
                         { "a", "--json=1" } } do
    local none, code = args.parse(bad, spec)
    ok(none == nil and code == 1, "refused: " .. table.concat(bad, " "))
  end
  is(json.encode { a = { 1, 2.5, "q\"\n" }, b = { n = 0 }, c = 0 / 0, d = true },
     '{"a":[1,2.5,"q\\u0022\\u000a"],"b":[],"c":null,"d":true}', "JSON")
  local names = labels.parse("'n01440764 tench, Tinca tinca'\nperson\r\n\nlast\n\n")
  ok(#names == 4 and names[1] == "tench, Tinca tinca" and names[2] == "person" and names[3] == "" and
     names[4] == "last", "a file of labels")
  is(#labels.coco, 80, "COCO's classes")
  is(#labels.voc, 20, "VOC's classes")
  is(pictures.stem "a.b/c.d.jpg", "c.d", "a picture's stem")
end

-- Can the letters be read on their plates? WCAG's contrast of 4.5.
local function contrast()
  -- A colour value of sRGB as light.
  local function light(v) return v <= .04045 and v / 12.92 or ((v + .055) / 1.055) ^ 2.4 end
  -- Brightness of a colour.
  local function of(colour)
    return .2126 * light(colour[1]) + .7152 * light(colour[2]) + .0722 * light(colour[3])
  end
  local worst = math.huge
  for class = 0, 999 do
    local a, b = of(draw.colour(class)), of(draw.ink(draw.colour(class)))
    worst = math.min(worst, (math.max(a, b) + .05) / (math.min(a, b) + .05))
  end
  local seen = {}
  for class = 0, 19 do seen[table.concat(draw.colour(class), " ")] = true end
  local n = 0
  for _ in pairs(seen) do n = n + 1 end
  is(n, 20, "twenty classes have a colour each")
  ok(worst >= 4.5, ("letters contrast with every class's colour (%.1f)"):format(worst))
end

-- Tests: drawn pictures.
local function drawn()
  if not draw.available() then
    ok(true, "drawing # SKIP the plugin draw-cairo is not there")
    return
  end
  local picture = c.tensor { shape = { 480, 600, 3 }, dtype = "u8" }
  local box = { class = 0, score = .5, x0 = 100, y0 = 100, x1 = 400, y1 = 300 }
  local result = draw.boxes(picture, { box }, function() return "thing 50%", "thing" end)
  -- The colour of a pixel.
  local function pixel(x, y)
    local at = (y * 600 + x) * 3
    return result[at + 1], result[at + 2], result[at + 3]
  end
  local r, g, b = pixel(250, 300 - 1)
  local want = draw.colour(0)
  ok(math.abs(r - 255 * want[1]) < 12 and math.abs(g - 255 * want[2]) < 12 and
     math.abs(b - 255 * want[3]) < 12, "the outline lies on the box, in its class's colour")
  ok(({ pixel(250, 200) })[1] == 0 and ({ pixel(500, 400) })[2] == 0, "inside and outside stay")
  ok(({ pixel(104, 90) })[2] > 100, "a plate above")
  local mask = { { x0 = 150, y0 = 150, x1 = 200, y1 = 160 }, { x0 = 150, y0 = 160, x1 = 180, y1 = 170 } }
  local masked_box = { class = 0, score = .5, x0 = 100, y0 = 100, x1 = 400, y1 = 300, mask = mask }
  result = draw.boxes(picture, { masked_box }, function() return "thing", "thing" end)
  -- True: a pixel has the first colour's tint.
  local function is_tinted(x, y, opacity)
    local pr, pg, pb = pixel(x, y)
    local colour = draw.colour(0)
    return math.abs(pr - 255 * colour[1] * opacity) < 6 and math.abs(pg - 255 * colour[2] * opacity) < 6 and
           math.abs(pb - 255 * colour[3] * opacity) < 6
  end
  ok(is_tinted(170, 155, .4) and is_tinted(170, 165, .4) and is_tinted(170, 160, .4) and is_tinted(190, 165, 0),
     "a mask lies on its pixels, without a seam")
  masked_box.is_region = true
  result = draw.boxes(picture, { masked_box }, function() return "thing", "thing" end)
  ok(is_tinted(170, 155, .55) and is_tinted(250, 299, 0), "a region is a colour, without an outline")
  local joints = {}
  for k = 1, 17 do joints[2 * k - 1], joints[2 * k] = 110 + 16 * k, k % 2 == 0 and 120 or 280 end
  result = draw.boxes(picture, { { class = 0, score = .5, x0 = 100, y0 = 100, x1 = 400, y1 = 300, points = joints } },
                      function() return "thing", "thing" end)
  ok(({ pixel((joints[11] + joints[13]) // 2, 200) })[2] > 100, "points of a person are joined by bones")
  result = draw.boxes(c.tensor { shape = { 5, 5, 1 }, dtype = "u8" }, {}, tostring)
  is(result:shape()[1], 20, "small grey pictures are drawn larger")
  local canvas = c.object("canvas", { width = 50, height = 20 })
  canvas:text("no UTF-8: \xff\xc3", { 0, 0 }, 12, { 1, 1, 1 })
  ok(not pcall(canvas.fill, canvas, { 0, 0, 1 / 0, 1 }, { 1, 1, 1 }), "no infinite rectangles")
  ok(not pcall(c.object, "canvas", { width = 1e9 // 1 | 0, height = 1 }), "no endless canvas")
  local good, why = pcall(function() return canvas.fil end)
  ok(not good and why:find("did you mean 'fill'", 1, true), "methods are suggested")
  local sheet = draw.sheet()
  for _ = 1, 3 do sheet:add(result, ("a name that is much too long for any tile "):rep(3)) end
  ok(sheet:picture():shape()[3] == 3, "a contact sheet")
  local lines = { { "tabby", .9 }, { "a very long name " .. ("x"):rep(300), .1 } }
  is(draw.caption(picture, lines):shape()[1], 480, "a caption")
  -- White but for a chessboard that fills all corners except the upper right one.
  local busy = c.tensor { shape = { 480, 640, 3 }, dtype = "u8" }
  for i = 1, #busy do
    local x, y = (i - 1) // 3 % 640, (i - 1) // 3 // 640
    busy[i] = (x < 300 or y > 200) and (x // 9 + y // 9) % 2 == 0 and 0 or 255
  end
  -- True: a pixel was drawn over.
  local function changed(result, x, y)
    local at = (y * 640 + x) * 3 + 1
    return result[at] ~= busy[at]
  end
  result = draw.caption(busy, { { "tabby", .9 }, { "dog", .001 } })
  ok(changed(result, 600, 25) and not changed(result, 40, 450) and not changed(result, 600, 80),
     "where there is least to see, without what is excluded")
  result = draw.caption(busy, lines, draw.tile)
  ok(result:shape()[1] == draw.tile.height and result:shape()[2] == draw.tile.width, "as a tile")
end

return function()
  darknet()
  grids()
  masked()
  pixels()
  sizes()
  ssd()
  lists()
  recognised()
  host()
  words()
  contrast()
  drawn()
  print("1.." .. count)
end
