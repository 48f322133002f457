-- want: longer than it may
local c = require "cnnrun"
return c.net { input = { "x", shape = { 1, 3 } }, c.relu { ("n"):rep(50000000) } }
