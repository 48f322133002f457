-- LeNet-5 for digits, as in Caffe: 20-50-500-10. Trained here on MNIST.
local c = require "cnnrun"

return c.net {
  name = "lenet5",
  weights = "lenet5.cnr",
  labels = { "0", "1", "2", "3", "4", "5", "6", "7", "8", "9" },
  input = { "data", shape = { "batch", 1, 28, 28 }, channels = "gray", scale = 1 / 255 },
  c.conv2d  { "conv1", out = 20, kernel = 5 },
  c.maxpool { "pool1", kernel = 2, stride = 2 },
  c.conv2d  { "conv2", out = 50, kernel = 5 },
  c.maxpool { "pool2", kernel = 2, stride = 2 },
  c.dense   { "ip1", out = 500 },
  c.relu    { "relu1" },
  c.dense   { "ip2", out = 10 },
  c.softmax { "prob" },
}
