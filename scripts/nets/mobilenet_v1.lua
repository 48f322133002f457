-- MobileNet v1 (Howard et al. 2017): each convolution is a depthwise and a 1x1 one.
local c = require "cnnrun"
local blocks = require "lib.blocks"
local imagenet = require "lib.imagenet"

local body, from = {}, 32
-- Adds a depthwise convolution of that stride and a pointwise one to the body.
local function add(out, stride)
  local act = { stride = stride, groups = from, act = c.relu6 }
  body[#body + 1] = { blocks.conv_bn(from, 3, act), blocks.conv_bn(out, 1, { act = c.relu6 }) }
  from = out
end
add(64, 1) add(128, 2) add(128, 1) add(256, 2) add(256, 1) add(512, 2)
for _ = 1, 5 do add(512, 1) end
add(1024, 2) add(1024, 1)

return c.net {
  name = "mobilenet_v1", weights = "mobilenet_v1.cnr", input = imagenet.tensorflow(224),
  blocks.conv_bn(32, 3, { stride = 2, act = c.relu6 }), body, blocks.classifier(1000),
}
