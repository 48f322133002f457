-- want: want a number, a text, true, false or a list of numbers
local c = require "cnnrun"
return c.net { input = { "x", shape = { 1, 3, 8, 8 } }, c.conv2d { out = function() end, kernel = 3 } }
