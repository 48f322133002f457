local nets = require "boards.nets"
return function(seed, layers)
  local list, side, maps = {}, 64, 3
  for i = 1, layers do
    local kind = (seed * 7 + i * 3) % 5
    local l
    if kind == 4 and side > 4 then
      l = nets.pool(maps, side)
      side = side // 2
      l.out_bytes, l.keeps = 4 * maps * side * side, true
    elseif i == layers then
      l = nets.dense(maps * side * side, 100)
      l.out_bytes = 400
    else
      local out = 16 << (kind % 4)
      l = nets.conv(maps, side, out, side, kind % 2 == 0 and 3 or 1, 1)
      maps = out
      l.out_bytes = 4 * maps * side * side
    end
    l.name, l.inputs = "l" .. i, { i - 1 }
    list[i] = l
  end
  return list
end

