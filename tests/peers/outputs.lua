-- Runs a net on .npy inputs and saves its outputs:
--   cnnrun --trust outputs.lua NET OUT_PREFIX IN.npy... [device=NAME]
local c = require "cnnrun"

return function(args)
  local inputs, device = {}, nil
  for i = 3, #args do
    local named = args[i]:match "^device=(.*)"
    if named then device = named else inputs[#inputs + 1] = c.tensor(args[i]) end
  end
  local net = c.load(args[1], { device = device })
  for i, out in ipairs { net:run(inputs) } do
    out:save(args[2] .. i .. ".npy")
  end
end
