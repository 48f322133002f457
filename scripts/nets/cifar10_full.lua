-- Caffe's full net for CIFAR-10: local response normalisation within each channel, one dense layer.
local c = require "cnnrun"
local labels = { "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship",
                 "truck" }

-- Caffe's normalisation within channels, over 3 x 3.
local function norm() return c.lrn_within { size = 3, alpha = 5e-5, beta = 0.75 } end

return c.net {
  name = "cifar10_full", weights = "cifar10_full.cnr", labels = labels,
  input = { "data", shape = { "batch", 3, 32, 32 }, channels = "rgb",
            mean = { 125.3, 123, 113.9 } },
  c.conv2d  { "conv1", out = 32, kernel = 5, pad = 2 },
  c.maxpool { "pool1", kernel = 3, stride = 2, ceil_mode = true },
  c.relu    {}, norm(),
  c.conv2d  { "conv2", out = 32, kernel = 5, pad = 2 },
  c.relu    {},
  c.avgpool { "pool2", kernel = 3, stride = 2, ceil_mode = true }, norm(),
  c.conv2d  { "conv3", out = 64, kernel = 5, pad = 2 },
  c.relu    {},
  c.avgpool { "pool3", kernel = 3, stride = 2, ceil_mode = true },
  c.dense   { "ip1", out = 10 },
  c.softmax { "prob" },
}
