-- SqueezeNet 1.0 (Iandola et al. 2016).
local c = require "cnnrun"
local squeezenet = require "lib.squeezenet"
local fire, pool = squeezenet.fire, squeezenet.pool

return squeezenet.net("squeezenet_v1_0", {
  c.conv2d { "conv1", out = 96, kernel = 7, stride = 2 }, c.relu {}, pool(),
  fire("fire2", 16, 64), fire("fire3", 16, 64), fire("fire4", 32, 128), pool(),
  fire("fire5", 32, 128), fire("fire6", 48, 192), fire("fire7", 48, 192), fire("fire8", 64, 256), pool(),
  fire("fire9", 64, 256),
})
