-- Nets of the documents as lists of layers, for sums without a planner: op, flops (a multiply and
-- add is two; fused operators are included), products (of those), bytes (values in, weights, values
-- out; f32), and size: the pieces into which a layer may be divided.
local nets = {}

-- The work of a convolution: flops, products and bytes; maps x side x side in, out x to x to out;
-- `after`: operations on each output behind it.
function nets.conv(maps, side, out, to, kernel, after)
  local outputs = out * to * to
  local products = 2 * outputs * maps * kernel * kernel
  return { op = "conv", size = out, out = outputs, products = products, flops = products + (1 + (after or 0)) * outputs,
           bytes = 4 * (maps * side * side + out * maps * kernel * kernel + out + outputs) }
end

-- The work of a max_pool that halves the side.
function nets.pool(maps, side)
  return { op = "max_pool", size = maps, out = maps * (side // 2) ^ 2, flops = 4 * maps * (side // 2) ^ 2, bytes = 4 * maps * (side * side + (side // 2) ^ 2) }
end

-- A window of any size and stride, from `side` to `to`.
function nets.pooled(maps, side, to, kernel)
  return { op = "max_pool", size = maps, out = maps * to * to, flops = kernel ^ 2 * maps * to * to, bytes = 4 * maps * (side * side + to * to) }
end

-- An operator that reads and writes each of n values.
function nets.each(op, n) return { op = op, out = n, flops = 0, bytes = 8 * n } end

-- The work of a product of m x k by k x n.
function nets.gemm(m, n, k)
  return { op = "gemm", size = m, products = 2 * m * n * k, flops = 2 * m * n * k, bytes = 4 * (m * k + k * n + m * n) }
end

-- The work of a dense layer of n inputs; `after`: operations on each output behind it.
function nets.dense(n, out, after)
  return { op = "dense", size = out, out = out, products = 2 * n * out, flops = 2 * n * out + (1 + (after or 0)) * out, bytes = 4 * (n + n * out + 2 * out) }
end

-- The work of each layer of W18's table 4.2, the net scripts/nets/yolo_v1_tiny.lua.
function nets.table_4_2()
  local list, side, maps = {}, 448, 3
  for i = 1, 9 do
    local out = math.min(8 << i, 1024)
    list[#list + 1] = nets.conv(maps, side, out, side, 3, 1)
    if i <= 6 then
      list[#list + 1] = nets.pool(out, side)
      side = side // 2
    end
    maps = out
  end
  list[#list + 1] = nets.dense(50176, 256)
  list[#list + 1] = nets.dense(256, 4096, 1)
  list[#list + 1] = nets.dense(4096, 1470)
  return list
end

-- AlexNet's five convolutions (two of the middle and the last in two groups) and three dense layers.
function nets.alexnet()
  -- The work of a convolution in two groups: half the operations.
  local function grouped(...)
    local layer = nets.conv(...)
    layer.flops, layer.products = layer.flops / 2, layer.products / 2
    return layer
  end
  return { nets.conv(3, 227, 96, 55, 11, 1), grouped(96, 27, 256, 27, 5, 1), nets.conv(256, 13, 384, 13, 3, 1),
           grouped(384, 13, 384, 13, 3, 1), grouped(384, 13, 256, 13, 3, 1),
           nets.dense(9216, 4096, 1), nets.dense(4096, 4096, 1), nets.dense(4096, 1000) }
end

-- The work of each layer of W18's table 3.7: AlexNet without groups. documents/alexnet.lua is the
-- same net for the planner.
function nets.table_3_7()
  return { nets.conv(3, 227, 96, 55, 11, 1), nets.each("lrn", 96 * 55 * 55), nets.pooled(96, 55, 27, 3),
           nets.conv(96, 27, 256, 27, 5, 1), nets.each("lrn", 256 * 27 * 27), nets.pooled(256, 27, 13, 3),
           nets.conv(256, 13, 384, 13, 3, 1), nets.conv(384, 13, 384, 13, 3, 1), nets.conv(384, 13, 256, 13, 3, 1),
           nets.pooled(256, 13, 6, 3), nets.dense(9216, 4096, 1), nets.dense(4096, 4096, 1), nets.dense(4096, 1000),
           nets.each("softmax", 1000) }
end

-- The work of each layer of W18's table 3.5, the net scripts/nets/lenet5.lua.
function nets.table_3_5()
  return { nets.conv(1, 28, 20, 24, 5), nets.pooled(20, 24, 12, 2), nets.conv(20, 12, 50, 8, 5), nets.pooled(50, 8, 4, 2),
           nets.dense(800, 500, 1), nets.dense(500, 10), nets.each("softmax", 10) }
end

-- The work of each layer of S16's tables 3.1 and 3.2, the net scripts/nets/fastpoornet.lua.
function nets.fastpoornet()
  local list = { nets.conv(3, 224, 64, 54, 11, 1), nets.pooled(64, 54, 27, 2),
                 nets.conv(64, 27, 192, 25, 3, 1), nets.pooled(192, 25, 12, 2) }
  local maps = 192
  for _, out in ipairs { 96, 160, 144, 160, 256 } do
    list[#list + 1] = nets.conv(maps, 12, out, 12, 3, 1)
    maps = out
  end
  list[#list + 1] = nets.pooled(256, 12, 6, 2)
  list[#list + 1] = nets.dense(9216, 1000)
  list[#list + 1] = nets.each("softmax", 1000)
  return nets.chain(list)
end

-- The layers as a chain in the form of lib/placement.lua, with names such as Conv1: the list
-- itself, changed.
function nets.chain(list)
  local counts, short = {}, { conv = "Conv", max_pool = "Pool", dense = "FC" }
  for i, layer in ipairs(list) do
    counts[layer.op] = (counts[layer.op] or 0) + 1
    layer.name = (short[layer.op] or layer.op) .. (layer.op == "dense" and counts.conv or 0) + counts[layer.op]
    layer.inputs, layer.out_bytes, layer.keeps = { i - 1 }, 4 * layer.out, layer.op == "max_pool"
  end
  return list
end

return nets
