-- The 9 convolutions and 3 dense layers of YOLO v1 tiny: 7x7 cells, 2 boxes each, 20 classes.
local c = require "cnnrun"
local darknet = require "lib.darknet"

local body = {}
for i = 1, 6 do
  body[#body + 1] = darknet.conv(8 << i, 3)
  body[#body + 1] = c.maxpool { "pool" .. i, kernel = 2, stride = 2 }
end
for _ = 7, 9 do body[#body + 1] = darknet.conv(1024, 3) end

return c.net {
  name = "yolo_v1_tiny", weights = "yolo_v1_tiny.cnr", input = darknet.input(448), body,
  c.dense { "fc10", out = 256 },
  c.dense { "fc11", out = 4096 }, darknet.leaky(), c.dropout { ratio = 0.5 },
  c.dense { "fc12", out = 1470 },
}
