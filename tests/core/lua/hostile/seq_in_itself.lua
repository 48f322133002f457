-- want: attempt to index a cnnrun layer value
local c = require "cnnrun"
local s = c.seq { "s", c.relu {} }
s[2] = s
return c.net { input = { "x", shape = { 1, 3, 8, 8 } }, s }
