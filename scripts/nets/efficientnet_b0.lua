-- EfficientNet-B0 (Tan and Le 2019).
local c = require "cnnrun"
local blocks = require "lib.blocks"
local imagenet = require "lib.imagenet"
local mobile = require "lib.mobile"

local body, from = {}, 32
for _, row in ipairs { -- Expansion, kernel, stride of the first, channels, repeats.
  { 1, 3, 1, 16, 1 }, { 6, 3, 2, 24, 2 }, { 6, 5, 2, 40, 2 }, { 6, 3, 2, 80, 3 },
  { 6, 5, 1, 112, 3 }, { 6, 5, 2, 192, 4 }, { 6, 3, 1, 320, 1 } } do
  local widen, kernel, stride, out, n = table.unpack(row)
  for i = 1, n do
    body[#body + 1] = mobile.inverted("block" .. #body + 1, from, widen * from, out, {
      kernel = kernel, stride = i == 1 and stride or 1, act = c.swish,
      squeeze = from // 4, squeeze_act = c.swish, gate = c.sigmoid })
    from = out
  end
end

return c.net {
  name = "efficientnet_b0", weights = "efficientnet_b0.cnr", input = imagenet.input(224),
  blocks.conv_bn(32, 3, { stride = 2, act = c.swish }), body,
  blocks.conv_bn(1280, 1, { act = c.swish }), blocks.classifier(1000, 0.2),
}
