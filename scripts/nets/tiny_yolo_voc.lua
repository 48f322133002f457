-- Tiny YOLO v2 for VOC's 20 classes: 13x13 cells, 5 boxes each of 4 + 1 + 20 numbers.
local c = require "cnnrun"
local darknet = require "lib.darknet"

local body = {}
for i = 1, 6 do
  body[#body + 1] = darknet.conv(8 << i, 3)
  body[#body + 1] = c.maxpool { "pool" .. i, kernel = 2, stride = i < 6 and 2 or 1,
                                auto_pad = "SAME_UPPER" }
end

return c.net {
  name = "tiny_yolo_voc", weights = "tiny_yolo_voc.cnr", input = darknet.input(416), body,
  darknet.conv(1024, 3), darknet.conv(1024, 3),
  c.conv2d { "boxes", out = 125, kernel = 1 },
}
