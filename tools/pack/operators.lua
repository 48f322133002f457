-- The operators of a net as it was loaded: operators.lua NET.cnr
local c = require "cnnrun"

return function(words)
  local net <close> = c.load(words[1])
  for _, layer in ipairs(net:layers()) do print(layer.operator) end
  return 0
end
