-- SqueezeNet's fire module and the layers that its two versions share (Iandola et al. 2016).
local c = require "cnnrun"
local blocks = require "lib.blocks"
local imagenet = require "lib.imagenet"
local M = {}

-- A fire module: a 1x1 convolution to `squeezed` channels, then 1x1 and 3x3 side by side.
function M.fire(name, squeezed, expanded)
  return c.seq { name, blocks.conv_relu(squeezed, 1),
                 c.concat { blocks.conv_relu(expanded, 1), blocks.conv_relu(expanded, 3) } }
end

-- SqueezeNet's pooling: 3 x 3, by 2.
function M.pool() return c.maxpool { kernel = 3, stride = 2, ceil_mode = true } end

-- A SqueezeNet of that name with this body between input and classes.
function M.net(name, body)
  return c.net {
    name = name, weights = name .. ".cnr", input = imagenet.caffe(227), body,
    c.dropout { ratio = 0.5 }, c.conv2d { "conv10", out = 1000, kernel = 1 }, c.relu {},
    c.global_average_pool {}, c.flatten {}, c.softmax { "prob" },
  }
end

return M
