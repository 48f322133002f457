-- want: more memory than
local c = require "cnnrun"
return c.net { input = { "x", shape = { 1, 3 } }, function(x) while true do x = c.relu { x } end end }
