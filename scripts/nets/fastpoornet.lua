-- FastPoorNet, MXNet's net for weak devices: seven convolutions of known shapes. Its pools and
-- classifier were not published; these fit the shapes.
local c = require "cnnrun"
local blocks = require "lib.blocks"
local imagenet = require "lib.imagenet"
local conv = blocks.conv_relu

-- A pooling that halves the sides.
local function pool() return c.maxpool { kernel = 2, stride = 2 } end

return c.net {
  name = "fastpoornet", weights = "fastpoornet.cnr", input = imagenet.input(224),
  conv(64, 11, { stride = 4, pad = 0 }), pool(),
  conv(192, 3, { pad = 0 }), pool(),
  conv(96, 3), conv(160, 3), conv(144, 3), conv(160, 3), conv(256, 3), pool(),
  c.dropout { ratio = 0.5 }, c.dense { "fc", out = 1000 }, c.softmax { "prob" },
}
