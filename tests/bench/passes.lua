-- Runs a net of one picture a number of times: cnnrun passes.lua NET PASSES [WEIGHTS]
local c = require "cnnrun"

return function(args)
  local net, data = c.load(args[1], { weights = args[3] }), {}
  local _, planes, height, width = table.unpack(net:inputs()[1].sizes)
  for i = 1, planes * height * width do data[i] = i * 7919 % 255 - 127 end
  local x, y = c.tensor { shape = { 1, planes, height, width }, data = data }, nil
  for _ = 1, tonumber(args[2]) do y = net:run(x) end
  print(#y, y[1])
end
