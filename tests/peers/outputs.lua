-- Runs a net on .npy inputs and saves its outputs: cnnrun --trust outputs.lua NET OUT_PREFIX IN.npy...
local c = require "cnnrun"

return function(args)
  local net = c.load(args[1])
  local inputs = {}
  for i = 3, #args do inputs[#inputs + 1] = c.tensor(args[i]) end
  for i, out in ipairs { net:run(inputs) } do
    out:save(args[2] .. i .. ".npy")
  end
end
