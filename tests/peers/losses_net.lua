-- A small net for losses.lua: what softmax and other losses see, and gradients through two layers and a tanh.
local c = require "cnnrun"
return c.net {
  name = "losses_net", input = { "data", shape = { 6, 12 } },
  c.dense { "ip1", out = 9 }, c.tanh {}, c.dense { "ip2", out = 5 }, c.softmax {},
}
