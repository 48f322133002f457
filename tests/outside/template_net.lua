-- A net on the template's made-up operators, with layers of ours around them.
local c = require "cnnrun"
return c.net {
  name = "made_up",
  input = { "data", shape = { "batch", 1, 28, 28 }, scale = 1 / 255 },
  c.conv2d { "conv1", out = 16, kernel = 3, pad = 1 },
  c.relu {},
  c.channel_mix { "mix1", out = 8 },
  c.batch_norm { "bn1" },
  c.soft_threshold { "shrink1", threshold = 0.1 },
  c.channel_mix { "mix2", out = 8 },
  c.relu {},
  c.dense { "scores", out = 10 },
  c.softmax {},
}
