-- GoogLeNet (Szegedy et al. 2014) as in Caffe's reference, without the auxiliary classifiers.
local c = require "cnnrun"
local blocks = require "lib.blocks"
local imagenet = require "lib.imagenet"
local conv = blocks.conv_relu

-- GoogLeNet's normalisation over five channels.
local function norm() return c.lrn { size = 5, alpha = 1e-4, beta = 0.75 } end
-- GoogLeNet's pooling: 3 x 3, by 2, with partial windows at the end.
local function pool() return c.maxpool { kernel = 3, stride = 2, ceil_mode = true } end
-- An inception module; the numbers are channels of its branches.
local function inception(name, n1, r3, n3, r5, n5, proj)
  return c.seq { name, c.concat {
    conv(n1, 1), { conv(r3, 1), conv(n3, 3) }, { conv(r5, 1), conv(n5, 5) },
    { c.maxpool { kernel = 3, stride = 1, pad = 1 }, conv(proj, 1) },
  } }
end

return c.net {
  name = "googlenet", weights = "googlenet.cnr", input = imagenet.caffe(224),
  conv(64, 7, { stride = 2 }), pool(), norm(), conv(64, 1), conv(192, 3), norm(), pool(),
  inception("3a", 64, 96, 128, 16, 32, 32),
  inception("3b", 128, 128, 192, 32, 96, 64), pool(),
  inception("4a", 192, 96, 208, 16, 48, 64),
  inception("4b", 160, 112, 224, 24, 64, 64),
  inception("4c", 128, 128, 256, 24, 64, 64),
  inception("4d", 112, 144, 288, 32, 64, 64),
  inception("4e", 256, 160, 320, 32, 128, 128), pool(),
  inception("5a", 256, 160, 320, 32, 128, 128),
  inception("5b", 384, 192, 384, 48, 128, 128),
  blocks.classifier(1000, 0.4),
}
