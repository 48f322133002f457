-- want: too large
local c = require "cnnrun"
c.tensor { shape = { 1 << 31, 1 << 31 } }
