-- YOLOv4-tiny for COCO's 80 classes: two grids, 3 boxes each of 4 + 1 + 80 numbers a cell.
local c = require "cnnrun"
local darknet = require "lib.darknet"
local conv = darknet.conv

-- A convolution; half of its channels through two more; all of them concatenated. Returns that and
-- the last convolution, which the second grid needs.
local function stage(x, n)
  local whole = c.seq { conv(n, 3) } (x)
  local half = c.split { whole, axis = 1, num_outputs = 2 }[2]
  local first = c.seq { conv(n // 2, 3) } (half)
  local second = c.seq { conv(n // 2, 3) } (first)
  local joined = c.seq { conv(n, 1) } (c.concat { second, first })
  return c.maxpool { c.concat { whole, joined }, kernel = 2, stride = 2 }, joined
end

local data = c.input(darknet.input(416))
local x, fine = c.seq { conv(32, 3, 2), conv(64, 3, 2) } (data), nil
for i = 1, 3 do x, fine = stage(x, 32 << i) end
local coarse = c.seq { conv(512, 3), conv(256, 1) } (x)
local up = c.seq { conv(128, 1), c.resize { scales = { 1, 1, 2, 2 }, mode = "nearest",
  coordinate_transformation_mode = "asymmetric", nearest_mode = "floor" } } (coarse)

return c.net {
  name = "yolov4_tiny", weights = "yolov4_tiny.cnr",
  outputs = {
    c.seq { conv(512, 3), c.conv2d { "boxes13", out = 255, kernel = 1 } } (coarse),
    c.seq { conv(256, 3), c.conv2d { "boxes26", out = 255, kernel = 1 } } (c.concat { up, fine }),
  },
}
