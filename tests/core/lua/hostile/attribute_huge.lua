-- want: want 0 to 1073741824
local c = require "cnnrun"
return c.net { input = { "x", shape = { 1, 3, 8, 8 } }, c.conv2d { out = 1 << 62, kernel = 3 } }
