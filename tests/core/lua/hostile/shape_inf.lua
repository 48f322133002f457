-- want: want a size or a name
local c = require "cnnrun"
return c.net { input = { "x", shape = { 1, math.huge } }, c.relu {} }
