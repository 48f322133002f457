-- want: nest deeper
local c = require "cnnrun"
local l = {}
l[1] = l
return c.net { input = { "x", shape = { 1 } }, l }
