-- want: 1 numbers for a shape of 1099511627776 elements
local c = require "cnnrun"
return c.net { input = { "x", shape = { 1, 3 } }, function(x) return c.add { x, c.data { 1, shape = { 1 << 40 } } } end }
