-- Darknet's convolution, followed by batch normalisation and a leaky relu.
local c = require "cnnrun"
local blocks = require "lib.blocks"
local M = {}

-- Darknet's leaky_relu, with slope 0.1.
function M.leaky() return c.leaky_relu { alpha = 0.1 } end

-- A convolution with batch normalisation and leaky_relu, as a list of layers.
function M.conv(out, kernel, stride)
  return blocks.conv_bn(out, kernel, { stride = stride, act = M.leaky })
end

-- A picture letterboxed and scaled to 0 .. 1.
function M.input(size)
  return { "data", shape = { "batch", 3, size, size }, letterbox = true, scale = 1 / 255,
           channels = "rgb" }
end

return M
