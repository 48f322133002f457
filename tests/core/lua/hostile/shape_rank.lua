-- want: got more than 8
local c = require "cnnrun"
return c.net { input = { "x", shape = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 } }, c.relu {} }
