-- want: outside
local c = require "cnnrun"
return c.net { weights = "/etc/passwd", input = { "x", shape = { 1, 4 } }, c.dense { out = 2 } }
