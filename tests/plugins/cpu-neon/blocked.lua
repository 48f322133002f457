-- A net of all that works on channels in blocks, against the plain kernels: cnnrun blocked.lua BATCH.
-- With "layouts" behind it: one whose values change between two block sizes and the plain layout.
-- Prints the largest difference of each output and its largest value, with tabs between.
local c = require "cnnrun"

-- A net with many neighbours in blocks.
local function net()
  local x = c.input { "x", shape = { "batch", 3, 21, 19 } }
  local stem = c.seq { c.conv2d { out = 24, kernel = 3, stride = 2, pad = 1 }, c.relu {},
    c.maxpool { kernel = 3, stride = 2 } } (x) -- blocks of 8
  local wide = c.seq { c.conv2d { out = 32, kernel = 3, pad = 1 }, c.leaky_relu {} } (stem)
  local half = c.split { wide, axis = 1, num_outputs = 2 }[2]
  local deep = c.seq { c.conv2d { out = 16, kernel = 5, pad = 2, groups = 16 }, c.hard_swish {},
    c.conv2d { out = 16, kernel = 3, pad = 2, dilation = 2 } } (half)
  local joined = c.concat { c.add { deep, half }, wide }
  local gate = c.seq { c.global_average_pool {}, c.conv2d { out = 12, kernel = 1 }, c.relu {},
    c.conv2d { out = 48, kernel = 1 }, c.sigmoid {} } (joined)
  local gated = c.mul { joined, gate }
  -- a sum whose second operand is computed behind the first
  local main = c.seq { c.conv2d { out = 384, kernel = 1 } } (gated)
  local side = c.seq { c.conv2d { out = 384, kernel = 1 } } (joined)
  gated = c.seq { c.relu {}, c.conv2d { out = 48, kernel = 1 } } (c.add { main, side })
  local up = c.resize { gated, scales = { 1, 1, 2, 3 }, mode = "nearest",
    coordinate_transformation_mode = "asymmetric", nearest_mode = "floor" }
  local pooled = c.average_pool { up, kernel_shape = { 3, 2 }, strides = { 2, 2 }, pads = { 1, 0, 1, 1 } }
  return c.net { name = "blocks", outputs = { pooled,
    c.seq { c.conv2d { out = 40, kernel = 3, groups = 2 }, c.global_average_pool {} } (gated) } }
end

-- A net in which values have several layouts.
local function layouts()
  local x = c.input { "x", shape = { "batch", 3, 21, 19 } }
  local joined = c.concat { c.conv2d { out = 8, kernel = 3 } (x), c.conv2d { out = 8, kernel = 3 } (x) }
  local deep = c.conv2d { out = 16, kernel = 3, groups = 16 } (joined)
  local turned = c.transpose { deep, perm = { 0, 2, 3, 1 } }
  local back = c.conv2d { out = 24, kernel = 3, pad = 1 } (c.resize { c.softmax { deep, axis = 2 },
    scales = { 1, 2, 1, 1 }, mode = "nearest" })
  return c.net { name = "layouts", outputs = { turned, back } }
end

-- Loads the net with that batch and these kernels.
local function loaded(batch, kernels, made)
  return c.load(made(), { weights = "random:3", sizes = { batch = batch }, device = "cpu",
                         kernels = kernels })
end

local plain = { [net] = { "conv=conv_f32_gemm", "max_pool=max_pool_f32_planes", "concat=reference",
  "average_pool=average_pool_f32_planes", "global_average_pool=global_average_pool_f32",
  "mul=elementwise_f32", "resize=reference", "split=reference" },
  [layouts] = { "conv=conv_f32_gemm", "concat=reference", "resize=reference" } }

return function(args)
  local batch = math.tointeger(tonumber(args[1]))
  local data, r = {}, 1
  for i = 1, batch * 3 * 21 * 19 do
    r = (r * 1103515245 + 12345) % 2147483648
    data[i] = r / 1073741824 - 1
  end
  local x = c.tensor { shape = { batch, 3, 21, 19 }, data = data }
  local made = args[2] == "layouts" and layouts or net
  local a, b = { loaded(batch, nil, made):run(x) }, { loaded(batch, plain[made], made):run(x) }
  for k = 1, #a do
    local off, most = 0, 0
    for i = 1, #a[k] do
      off = math.max(off, math.abs(a[k][i] - b[k][i]))
      most = math.max(most, math.abs(b[k][i]))
    end
    print(#a[k], off, most)
  end
  for _, row in ipairs(loaded(batch, nil, made):profile { runs = 1, warm = 0 }) do print(row.kernel) end
end
