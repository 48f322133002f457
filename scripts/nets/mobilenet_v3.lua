-- MobileNet v3, the large one (Howard et al. 2019).
local c = require "cnnrun"
local blocks = require "lib.blocks"
local imagenet = require "lib.imagenet"
local mobile = require "lib.mobile"

-- The gate of a squeeze: hard_sigmoid.
local function gate() return c.hard_sigmoid { alpha = 1 / 6 } end
local body, from = {}, 16
for _, row in ipairs { -- Kernel, inner width, channels, squeeze and excite, activation, stride.
  { 3, 16, 16, false, c.relu, 1 },        { 3, 64, 24, false, c.relu, 2 },
  { 3, 72, 24, false, c.relu, 1 },        { 5, 72, 40, true, c.relu, 2 },
  { 5, 120, 40, true, c.relu, 1 },        { 5, 120, 40, true, c.relu, 1 },
  { 3, 240, 80, false, c.hard_swish, 2 }, { 3, 200, 80, false, c.hard_swish, 1 },
  { 3, 184, 80, false, c.hard_swish, 1 }, { 3, 184, 80, false, c.hard_swish, 1 },
  { 3, 480, 112, true, c.hard_swish, 1 }, { 3, 672, 112, true, c.hard_swish, 1 },
  { 5, 672, 160, true, c.hard_swish, 2 }, { 5, 960, 160, true, c.hard_swish, 1 },
  { 5, 960, 160, true, c.hard_swish, 1 } } do
  local kernel, wide, out, squeeze, act, stride = table.unpack(row)
  body[#body + 1] = mobile.inverted("block" .. #body + 1, from, wide, out, {
    kernel = kernel, stride = stride, act = act, squeeze_act = c.relu, gate = gate,
    squeeze = squeeze and mobile.round8(wide / 4) or nil })
  from = out
end

return c.net {
  name = "mobilenet_v3", weights = "mobilenet_v3.cnr", input = imagenet.input(224),
  blocks.conv_bn(16, 3, { stride = 2, act = c.hard_swish }), body,
  blocks.conv_bn(960, 1, { act = c.hard_swish }), c.global_average_pool {},
  c.dense { "fc1", out = 1280 }, c.hard_swish {}, c.dropout { ratio = 0.2 },
  c.dense { "fc2", out = 1000 }, c.softmax { "prob" },
}
