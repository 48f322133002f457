-- ShuffleNet v2, width 1.0 (Ma et al. 2018).
local c = require "cnnrun"
local blocks = require "lib.blocks"
local imagenet = require "lib.imagenet"
local conv_bn = blocks.conv_bn

-- A depthwise convolution of 3 x 3 with normalisation, as a list of layers.
local function filter(channels, stride)
  return conv_bn(channels, 3, { stride = stride, groups = channels, act = false })
end
-- A branch of a block: 1x1 to `out` channels, depthwise by `stride`, 1x1.
local function branch(from, out, stride)
  return { conv_bn(out, 1), filter(out, stride), conv_bn(out, 1) }
end
-- The first of a stage halves the picture; the others change half of the channels.
local function first(from, out)
  return c.concat { { filter(from, 2), conv_bn(out // 2, 1) }, branch(from, out // 2, 2) }
end
-- A unit that leaves half of the channels.
local function other(out)
  return function(x)
    local halves = c.split { x, axis = 1, num_outputs = 2 }
    return c.concat { halves[1], c.seq(branch(out // 2, out // 2, 1)) (halves[2]) }
  end
end

local body, from = {}, 24
for i, n in ipairs { 4, 8, 4 } do
  local out = 58 << i
  for k = 1, n do
    body[#body + 1] = { k == 1 and first(from, out) or other(out), c.channel_shuffle { groups = 2 } }
  end
  from = out
end

return c.net {
  name = "shufflenet_v2", weights = "shufflenet_v2.cnr", input = imagenet.input(224),
  conv_bn(24, 3, { stride = 2 }), c.maxpool { kernel = 3, stride = 2, pad = 1 }, body,
  conv_bn(1024, 1), blocks.classifier(1000),
}
