-- want: longer than it may
local c = require "cnnrun"
local l = { c.seq {} }
for i = 1, 60 do l = { l, l } end
return c.net { input = { "x", shape = { 1 } }, l }
