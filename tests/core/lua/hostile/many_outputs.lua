-- want: outputs
local c = require "cnnrun"
local x = c.relu { c.input { "x", shape = { 1 } } }
return c.net { output = x[1000] }
