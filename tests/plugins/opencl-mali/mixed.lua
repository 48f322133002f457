-- What attention, style and U-shaped nets are made of, small: every node of it has an OpenCL kernel.
local c = require "cnnrun"

return c.net {
  name = "mixed",
  input = { "data", shape = { "batch", 1, 28, 28 }, channels = "gray", scale = 1 / 255 },
  c.pad { "pad", pads = { 0, 0, 2, 2, 0, 0, 2, 2 } },
  c.conv2d { "conv", out = 32, kernel = 4, stride = 4 },
  c.group_norm { "groups", groups = 4 },
  c.conv_transpose { "up", out = 12, kernel = 3, stride = 2 },
  c.instance_norm { "instances" },
  c.reshape { "tokens", shape = { 0, 12, -1 } },
  c.transpose { "turn", perm = { 0, 2, 1 } },
  c.layer_norm { "layer", axis = -1 },
  c.gather { "columns", indices = c.data(c.tensor { shape = { 8 }, data = { 3, 1, 4, 1, 5, 9, 2, 6 }, dtype = "i32" }), axis = 2 },
  c.reduce_mean { "mean", axes = { 1 }, keepdims = false },
  c.dense { "scores", out = 10 },
  c.softmax { "prob" },
}
