-- want: it is too large
local c = require "cnnrun"
return c.net { input = { "x", shape = { 1 << 31, 1 << 31, 1 << 31 } }, c.relu {} }
