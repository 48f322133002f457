-- One constant is the shift of a normalisation, which kernels may pack, and the bias of a convolution behind it,
-- which they read as it is: on a device with memory of its own both need it there.
local c = require "cnnrun"

return c.net { input = { "x", shape = { 1, 8, 12, 12 } }, function(x)
  local numbers, kernel = { shape = { 8 } }, { shape = { 8, 8, 3, 3 } }
  for i = 1, 8 do numbers[i] = i / 8 end
  for i = 1, 576 do kernel[i] = i % 7 / 7 - 0.4 end
  local shift = c.data(numbers)
  local y = c.relu(c.batch_normalization { c.relu(x), shift, shift, shift, shift })
  return c.relu(c.conv { y, c.data(kernel), shift, pads = 1 })
end }
