-- SqueezeNet 1.1: the accuracy of 1.0 with 2.4 times less work.
local c = require "cnnrun"
local squeezenet = require "lib.squeezenet"
local fire, pool = squeezenet.fire, squeezenet.pool

return squeezenet.net("squeezenet_v1_1", {
  c.conv2d { "conv1", out = 64, kernel = 3, stride = 2 }, c.relu {}, pool(),
  fire("fire2", 16, 64), fire("fire3", 16, 64), pool(),
  fire("fire4", 32, 128), fire("fire5", 32, 128), pool(),
  fire("fire6", 48, 192), fire("fire7", 48, 192), fire("fire8", 64, 256), fire("fire9", 64, 256),
})
