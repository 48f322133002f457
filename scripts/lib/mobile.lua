-- Inverted residuals: expand, depthwise convolution, scale the channels, project (MobileNet v2, v3,
-- EfficientNet).
local c = require "cnnrun"
local blocks = require "lib.blocks"
local conv_bn = blocks.conv_bn
local M = {}

-- The nearest multiple of 8 that is at most 10% smaller.
function M.round8(n)
  local m = math.max(8, (n + 4) // 1 // 8 * 8)
  return m < 0.9 * n and m + 8 or m
end

-- o: kernel, stride, act, squeeze (width inside squeeze-and-excite, or nil), squeeze_act, gate.
function M.inverted(name, from, wide, out, o)
  local stride = o.stride or 1
  local layers = {}
  if wide ~= from then layers[1] = conv_bn(wide, 1, { act = o.act }) end
  layers[#layers + 1] = conv_bn(wide, o.kernel or 3, { stride = stride, groups = wide, act = o.act })
  if o.squeeze then
    layers[#layers + 1] = blocks.squeeze_excite(wide, o.squeeze, o.squeeze_act, o.gate)
  end
  layers[#layers + 1] = conv_bn(out, 1, { act = false })
  local same = stride == 1 and from == out
  return c.seq { name, same and blocks.residual(layers) or layers }
end

return M
