-- A net that trains in a moment.
local c = require "cnnrun"

return c.net {
  name = "small",
  input = { "data", shape = { "batch", 1, 28, 28 }, channels = "gray", scale = 1 / 255 },
  c.conv2d { "conv1", out = 3, kernel = 5, stride = 2 },
  c.relu { "relu1" },
  c.maxpool { "pool1", kernel = 2, stride = 2 },
  c.dense { "fc", out = 10 },
  c.softmax { "prob" },
}
