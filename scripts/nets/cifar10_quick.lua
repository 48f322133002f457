-- Caffe's quick net for CIFAR-10 (Krizhevsky's layers).
local c = require "cnnrun"
local labels = { "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship",
                 "truck" }

return c.net {
  name = "cifar10_quick", weights = "cifar10_quick.cnr", labels = labels,
  input = { "data", shape = { "batch", 3, 32, 32 }, channels = "rgb",
            mean = { 125.3, 123, 113.9 } },
  c.conv2d  { "conv1", out = 32, kernel = 5, pad = 2 },
  c.maxpool { "pool1", kernel = 3, stride = 2, ceil_mode = true },
  c.relu    {},
  c.conv2d  { "conv2", out = 32, kernel = 5, pad = 2 },
  c.relu    {},
  c.avgpool { "pool2", kernel = 3, stride = 2, ceil_mode = true },
  c.conv2d  { "conv3", out = 64, kernel = 5, pad = 2 },
  c.relu    {},
  c.avgpool { "pool3", kernel = 3, stride = 2, ceil_mode = true },
  c.dense   { "ip1", out = 64 },
  c.dense   { "ip2", out = 10 },
  c.softmax { "prob" },
}
