-- want: more than 256 arguments
local c = require "cnnrun"
local args = {}
for i = 1, 100000 do args["k" .. i] = 1 end
return c.net { input = { "x", shape = { 1, 1, 8, 8 } }, c.relu(args) }
