-- want: lies outside
local c = require "cnnrun"
return c.net { labels = "/dev/zero", input = { "x", shape = { 1, 3, 8, 8 } }, c.relu {} }
