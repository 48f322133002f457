-- want: want a device's name
local c = require "cnnrun"
return c.net { input = { "x", shape = { 1, 3, 8, 8 } }, c.relu { "r", place = { axis = 1, cpu = 0/0 } } }
