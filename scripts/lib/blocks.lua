-- Building blocks that many nets share.
local c = require "cnnrun"
local M = {}

-- The padding that keeps a picture's size: half of an odd kernel.
function M.same(kernel)
  if type(kernel) == "number" then return kernel // 2 end
  local pad = {}
  for i, k in ipairs(kernel) do pad[i] = k // 2 end
  return pad
end

-- Convolution without bias, batch norm, activation (relu; `act = false`: none).
function M.conv_bn(out, kernel, o)
  o = o or {}
  local pad = o.pad or M.same(kernel)
  local layers = {
    c.conv2d { out = out, kernel = kernel, stride = o.stride or 1, pad = pad,
               groups = o.groups or 1, bias = false },
    c.batch_norm { eps = o.eps or 1e-5 },
  }
  if o.act ~= false then layers[3] = (o.act or c.relu) {} end
  return layers
end

-- Convolution with bias, then relu, as a list of layers; o: stride, pad (by default the output has
-- the input's size), groups.
function M.conv_relu(out, kernel, o)
  o = o or {}
  return { c.conv2d { out = out, kernel = kernel, stride = o.stride or 1,
                      pad = o.pad or M.same(kernel), groups = o.groups or 1 }, c.relu {} }
end

-- body(x) + shortcut(x); without a shortcut, + x.
function M.residual(body, shortcut)
  return c.add { body, shortcut or c.seq {} }
end

-- Squeeze and excite: scales each channel by the output of a small net on the channels' means.
function M.squeeze_excite(channels, squeezed, act, gate)
  return c.mul { c.seq {}, c.seq {
    c.global_average_pool {},
    c.conv2d { out = squeezed, kernel = 1 }, act {},
    c.conv2d { out = channels, kernel = 1 }, gate {},
  } }
end

-- The end of a classifier: global average pooling, dense layer, softmax.
function M.classifier(classes, dropout)
  return { c.global_average_pool {}, c.dropout { ratio = dropout or 0 },
           c.dense { "fc", out = classes }, c.softmax { "prob" } }
end

return M
