-- want: want 0 to 1048576
local c = require "cnnrun"
return c.net { input = { "x", shape = { 1, 3, 8, 8 } }, c.conv2d { out = 4, kernel = 1 << 40 } }
