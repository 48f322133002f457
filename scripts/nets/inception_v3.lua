-- Inception v3 (Szegedy et al. 2015), without the auxiliary classifier.
local c = require "cnnrun"
local blocks = require "lib.blocks"
local imagenet = require "lib.imagenet"

-- A convolution with batch normalisation and relu, as a list of layers.
local function conv(out, kernel, stride, pad)
  return blocks.conv_bn(out, kernel, { stride = stride, pad = pad, eps = 1e-3 })
end
-- A mean pooling and a convolution to n channels.
local function pooled(n)
  return { c.avgpool { kernel = 3, stride = 1, pad = 1, count_include_pad = true }, conv(n, 1) }
end
-- A pooling that halves the sides.
local function shrink() return c.maxpool { kernel = 3, stride = 2 } end

-- Inception module A, whose pooled branch has n channels.
local function a(name, n)
  return c.seq { name, c.concat { conv(64, 1), { conv(48, 1), conv(64, 5) },
                                  { conv(64, 1), conv(96, 3), conv(96, 3) }, pooled(n) } }
end
-- Reduction module B, which halves the sides.
local function b(name)
  return c.seq { name, c.concat { conv(384, 3, 2, 0),
                                  { conv(64, 1), conv(96, 3), conv(96, 3, 2, 0) }, shrink() } }
end
-- Inception module C, with n channels inside.
local function cc(name, n)
  local row, column = { 1, 7 }, { 7, 1 }
  return c.seq { name, c.concat {
    conv(192, 1), { conv(n, 1), conv(n, row), conv(192, column) },
    { conv(n, 1), conv(n, column), conv(n, row), conv(n, column), conv(192, row) }, pooled(192) } }
end
-- Reduction module D, which halves the sides.
local function d(name)
  return c.seq { name, c.concat {
    { conv(192, 1), conv(320, 3, 2, 0) },
    { conv(192, 1), conv(192, { 1, 7 }), conv(192, { 7, 1 }), conv(192, 3, 2, 0) }, shrink() } }
end
-- Inception module E, the widest.
local function e(name)
  -- A row and a column convolution, side by side.
  local function both() return c.concat { conv(384, { 1, 3 }), conv(384, { 3, 1 }) } end
  return c.seq { name, c.concat { conv(320, 1), { conv(384, 1), both() },
                                  { conv(448, 1), conv(384, 3), both() }, pooled(192) } }
end

return c.net {
  name = "inception_v3", weights = "inception_v3.cnr", input = imagenet.input(299, 342),
  conv(32, 3, 2, 0), conv(32, 3, 1, 0), conv(64, 3), shrink(),
  conv(80, 1), conv(192, 3, 1, 0), shrink(),
  a("5b", 32), a("5c", 64), a("5d", 64), b("6a"),
  cc("6b", 128), cc("6c", 160), cc("6d", 160), cc("6e", 192), d("7a"), e("7b"), e("7c"),
  blocks.classifier(1000, 0.5),
}
