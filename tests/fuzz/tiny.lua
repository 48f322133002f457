-- A small net with a branch: what make_corpus.py writes in each of our formats.
local c = require "cnnrun"

return c.net {
  name = "tiny",
  input = { "data", shape = { "batch", 2, 6, 6 } },
  c.conv2d { "conv1", out = 4, kernel = 3, pad = 1, group = 2 },
  c.batch_norm { "bn1" },
  c.relu { "relu1" },
  c.maxpool { "pool1", kernel = 2, stride = 2 },
  c.dense { "fc", out = 3 },
  c.softmax { "prob" },
}
