-- want: large
local c = require "cnnrun"
return c.net { input = { "x", shape = { 1 << 40, 1 << 40 } }, c.dense { out = 1 << 29 } }
