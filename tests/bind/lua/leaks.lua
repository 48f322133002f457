-- Loads, runs and drops, as many as the second argument says.
local c = require "cnnrun"
local x = c.tensor { shape = { 1, 1, 28, 28 } }
for _ = 1, tonumber(arg[1]) do
  local net <close> = c.load("nets.lenet5")
  assert(#net:run(x) == 10)
end
for _ = 1, tonumber(arg[1]) do
  local net = c.load(c.net { input = { "x", shape = { 1, 4 } }, c.relu {} }) -- the collector drops it
  assert(not pcall(net.run, net, x))
end
