-- A net of one box a cell of 16 pixels and three classes: outputs as FastestDet's.
local c = require "cnnrun"
return c.net { name = "grid", input = { "x", shape = { 1, 3, 96, 128 } },
  c.conv2d { "head", out = 8, kernel = 16, stride = 16 }, c.sigmoid {} }
