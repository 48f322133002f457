-- want: want a layer
local c = require "cnnrun"
return c.net { input = { "x", shape = { 1 } }, coroutine.create(print) }
