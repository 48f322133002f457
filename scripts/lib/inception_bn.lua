-- Inception with batch normalisation (Ioffe and Szegedy 2015) as in MXNet's examples.
local c = require "cnnrun"
local blocks = require "lib.blocks"
local conv = blocks.conv_bn
local M = {}

-- Widths of: 1x1; 1x1 and 3x3; 1x1 and two 3x3; the 1x1 behind a pool.
function M.keep(name, n1, r3, n3, r33, n33, pool, proj)
  return c.seq { name, c.concat {
    conv(n1, 1),
    { conv(r3, 1), conv(n3, 3) },
    { conv(r33, 1), conv(n33, 3), conv(n33, 3) },
    { pool { kernel = 3, stride = 1, pad = 1 }, conv(proj, 1) },
  } }
end

-- Halves the picture. pad: of the pool; without padding the pool extends over the border.
function M.halve(name, r3, n3, r33, n33, pad)
  return c.seq { name, c.concat {
    { conv(r3, 1), conv(n3, 3, { stride = 2 }) },
    { conv(r33, 1), conv(n33, 3), conv(n33, 3, { stride = 2 }) },
    c.maxpool { kernel = 3, stride = 2, pad = pad, ceil_mode = pad == 0 },
  } }
end

-- The layers before the first block; n1, r2 and n2 are the convolutions' outputs.
function M.stem(n1, r2, n2)
  return { conv(n1, 7, { stride = 2 }), c.maxpool { kernel = 3, stride = 2, ceil_mode = true },
           conv(r2, 1), conv(n2, 3), c.maxpool { kernel = 3, stride = 2, ceil_mode = true } }
end

-- The blocks from 4b on, the same in both nets except for n33, the width of 4d's two 3x3, and
-- `pad`.
function M.tail(n33, pad)
  return {
    M.keep("4b", 192, 96, 128, 96, 128, c.avgpool, 128),
    M.keep("4c", 160, 128, 160, 128, 160, c.avgpool, 128),
    M.keep("4d", 96, 128, 192, 160, n33, c.avgpool, 128),
    M.halve("4e", 128, 192, 192, 256, pad),
    M.keep("5a", 352, 192, 320, 160, 224, c.avgpool, 128),
    M.keep("5b", 352, 192, 320, 192, 224, c.maxpool, 128),
  }
end

return M
