-- want: zero byte
local c = require "cnnrun"
return c.net { input = { "x", shape = { 1, 3 } }, c.relu { "a\0b" } }
