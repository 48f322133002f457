-- MobileNet v2 (Sandler et al. 2018).
local c = require "cnnrun"
local blocks = require "lib.blocks"
local imagenet = require "lib.imagenet"
local mobile = require "lib.mobile"

local body, from = {}, 32
for _, row in ipairs { -- Expansion, channels, repeats, stride of the first.
  { 1, 16, 1, 1 }, { 6, 24, 2, 2 }, { 6, 32, 3, 2 }, { 6, 64, 4, 2 }, { 6, 96, 3, 1 },
  { 6, 160, 3, 2 }, { 6, 320, 1, 1 } } do
  local widen, out, n, stride = table.unpack(row)
  for i = 1, n do
    body[#body + 1] = mobile.inverted("block" .. #body + 1, from, widen * from, out,
                                      { stride = i == 1 and stride or 1, act = c.relu6 })
    from = out
  end
end

return c.net {
  name = "mobilenet_v2", weights = "mobilenet_v2.cnr", input = imagenet.input(224),
  blocks.conv_bn(32, 3, { stride = 2, act = c.relu6 }), body,
  blocks.conv_bn(1280, 1, { act = c.relu6 }), blocks.classifier(1000, 0.2),
}
