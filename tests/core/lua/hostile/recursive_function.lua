-- want: overflow
local c = require "cnnrun"
local f
f = function(x) return c.seq { f } (x) end
return c.net { input = { "x", shape = { 1 } }, f }
