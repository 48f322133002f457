-- want: lists nest deeper than
local c = require "cnnrun"
local l = { c.relu {} }
for i = 1, 100000 do l = { l } end
return c.net { input = { "x", shape = { 1, 3 } }, l }
