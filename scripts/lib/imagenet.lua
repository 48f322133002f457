-- Inputs of nets for ImageNet's 1000 classes, with their authors' preprocessing.
local M = {}

-- PyTorch's models: RGB, each channel minus its mean, divided by its deviation.
function M.input(size, resize)
  return { "data", shape = { "batch", 3, size, size }, resize = resize or 256, crop = size,
           mean = { 123.675, 116.28, 103.53 }, std = { 58.395, 57.12, 57.375 }, channels = "rgb" }
end

-- The input of Caffe's models, of that size: BGR, minus the mean colour.
function M.caffe(size)
  return { "data", shape = { "batch", 3, size, size }, resize = { 256, 256 }, crop = size,
           mean = { 104, 117, 123 }, channels = "bgr" }
end

-- The input of TensorFlow's models, of that size: values from -1 to 1.
function M.tensorflow(size)
  return { "data", shape = { "batch", 3, size, size }, resize = size * 8 // 7, crop = size,
           mean = 127.5, scale = 1 / 127.5, channels = "rgb" }
end

return M
