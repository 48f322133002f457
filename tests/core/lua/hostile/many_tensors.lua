-- want: more memory than
local c = require "cnnrun"
local t = {}
for i = 1, 100 do t[i] = c.tensor { shape = { 1000, 1000, 4 } } end
