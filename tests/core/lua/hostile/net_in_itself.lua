-- want: lists nest deeper than
local c = require "cnnrun"
local body = {}
body[1] = body
return c.net { input = { "x", shape = { 1, 3, 8, 8 } }, body }
