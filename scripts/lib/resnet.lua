-- Residual nets (He et al. 2015), the stride in the 3x3 convolution as in PyTorch's.
local c = require "cnnrun"
local blocks = require "lib.blocks"
local imagenet = require "lib.imagenet"
local conv_bn = blocks.conv_bn

-- A basic block of that width and stride, as a list of layers, and its width.
local function basic(width, stride)
  return { conv_bn(width, 3, { stride = stride }), conv_bn(width, 3, { act = false }) }, width
end

-- A block with a bottleneck, and its width.
local function bottleneck(width, stride)
  return { conv_bn(width, 1), conv_bn(width, 3, { stride = stride }),
           conv_bn(4 * width, 1, { act = false }) }, 4 * width
end

-- depths: the number of blocks in each of the four stages.
return function(name, block, depths)
  local kinds = { basic = basic, bottleneck = bottleneck }
  local body, channels = {}, 64
  for stage, depth in ipairs(depths) do
    for i = 1, depth do
      local stride = (stage > 1 and i == 1) and 2 or 1
      local layers, out = kinds[block](32 << stage, stride)
      local shortcut
      if stride > 1 or channels ~= out then
        shortcut = conv_bn(out, 1, { stride = stride, act = false })
      end
      body[#body + 1] = c.seq { "layer" .. stage .. "_" .. i,
                                blocks.residual(layers, shortcut), c.relu {} }
      channels = out
    end
  end
  return c.net {
    name = name, weights = name .. ".cnr", input = imagenet.input(224),
    conv_bn(64, 7, { stride = 2 }), c.maxpool { kernel = 3, stride = 2, pad = 1 },
    body, blocks.classifier(1000),
  }
end
