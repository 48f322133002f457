-- Runs a net of 227x227 pictures a number of times: cnnrun passes.lua NET PASSES
local c = require "cnnrun"

return function(args)
  local net, data = c.load(args[1]), {}
  for i = 1, 3 * 227 * 227 do data[i] = i * 7919 % 255 - 127 end
  local x, y = c.tensor { shape = { 1, 3, 227, 227 }, data = data }, nil
  for _ = 1, tonumber(args[2]) do y = net:run(x) end
  print(#y, y[1])
end
