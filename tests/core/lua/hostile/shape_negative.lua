-- want: want a size or a name
local c = require "cnnrun"
return c.net { input = { "x", shape = { 1, -3, 8, 8 } }, c.relu {} }
