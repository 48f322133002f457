-- Runs each layer on the faster of two devices, and prints the milliseconds: NET DEVICE DEVICE
local c = require "cnnrun"
return function(args)
  local best, place = {}, {}
  for i = 2, 3 do
    for _, s in ipairs(c.load(args[1], { device = args[i] }):profile()) do
      if s.ms < (best[s.node] or math.huge) then best[s.node], place[s.node] = s.ms, args[i] end
    end
  end
  print(c.load(args[1], { place = place }):time(20).ms_median)
end
