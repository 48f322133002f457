-- want: kernel
local c = require "cnnrun"
local k = {}
for i = 1, 2000000 do k[i] = 1 end
return c.net { input = { "x", shape = { 1, 1, 8, 8 } }, c.maxpool { kernel = k } }
