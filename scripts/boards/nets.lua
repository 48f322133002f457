-- Nets of the documents as lists of layers, for sums without a planner: op, flops (a multiply and add
-- is two; what follows in the same kernel is in it), products (of those), bytes (values in, weights, values out; f32), and
-- size: the pieces that a layer may be cut into.
local nets = {}

function nets.conv(maps, side, out, to, kernel, after)
  local outputs = out * to * to
  local products = 2 * outputs * maps * kernel * kernel
  return { op = "conv", size = out, products = products, flops = products + (1 + (after or 0)) * outputs,
           bytes = 4 * (maps * side * side + out * maps * kernel * kernel + out + outputs) }
end

function nets.pool(maps, side)
  return { op = "max_pool", size = maps, flops = 4 * maps * (side // 2) ^ 2, bytes = 4 * maps * (side * side + (side // 2) ^ 2) }
end

function nets.dense(n, out, after)
  return { op = "dense", size = out, products = 2 * n * out, flops = 2 * n * out + (1 + (after or 0)) * out, bytes = 4 * (n + n * out + 2 * out) }
end

-- W18 table 4.2: scripts/nets/yolo_v1_tiny.lua.
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
  local function grouped(...)
    local layer = nets.conv(...)
    layer.flops, layer.products = layer.flops / 2, layer.products / 2
    return layer
  end
  return { nets.conv(3, 227, 96, 55, 11, 1), grouped(96, 27, 256, 27, 5, 1), nets.conv(256, 13, 384, 13, 3, 1),
           grouped(384, 13, 384, 13, 3, 1), grouped(384, 13, 256, 13, 3, 1),
           nets.dense(9216, 4096, 1), nets.dense(4096, 4096, 1), nets.dense(4096, 1000) }
end

-- S16 table 3.2: the matrix products that FastPoorNet's convolutions are.
function nets.fastpoornet()
  local list = {}
  for _, s in ipairs { { 2916, 64, 363 }, { 625, 192, 576 }, { 144, 96, 1728 }, { 144, 160, 864 },
                       { 144, 144, 1440 }, { 144, 160, 1296 }, { 144, 256, 1440 } } do
    local m, n, k = table.unpack(s)
    list[#list + 1] = { op = "conv", size = n, flops = 2 * m * n * k, products = 2 * m * n * k, bytes = 4 * (m * k + k * n + m * n) }
  end
  return list
end

return nets
