-- AlexNet (Krizhevsky et al. 2012) as in Caffe's reference: two groups, normalisation before
-- pooling.
local c = require "cnnrun"
local blocks = require "lib.blocks"
local imagenet = require "lib.imagenet"
local conv = blocks.conv_relu

-- AlexNet's normalisation over five channels.
local function norm() return c.lrn { size = 5, alpha = 1e-4, beta = 0.75 } end
-- AlexNet's pooling: 3 x 3, by 2.
local function pool() return c.maxpool { kernel = 3, stride = 2 } end

return c.net {
  name = "alexnet", weights = "alexnet.cnr", input = imagenet.caffe(227),
  conv(96, 11, { stride = 4, pad = 0 }), norm(), pool(),
  conv(256, 5, { groups = 2 }), norm(), pool(),
  conv(384, 3), conv(384, 3, { groups = 2 }), conv(256, 3, { groups = 2 }), pool(),
  c.dense { "fc6", out = 4096 }, c.relu {}, c.dropout { ratio = 0.5 },
  c.dense { "fc7", out = 4096 }, c.relu {}, c.dropout { ratio = 0.5 },
  c.dense { "fc8", out = 1000 }, c.softmax { "prob" },
}
