-- want: ok
local c = require "cnnrun"
local x = c.relu { c.input { "x", shape = { 1 } } }
assert(not pcall(function() return x[0] end))
assert(not pcall(function() return x[1 << 40] end))
assert(not pcall(function() return x[{}] end))
local t = c.tensor { shape = { 2 } }
for _, i in ipairs { 0, 3, -1, 1.5, math.mininteger, math.maxinteger } do
  assert(not pcall(function() return t[i] end))
  assert(not pcall(function() t[i] = 1 end))
end
assert(not pcall(c.tensor, { shape = { -1 } }))
assert(not pcall(c.tensor, { shape = { 1, 1, 1, 1, 1, 1, 1, 1, 1 } }))
assert(not pcall(t.reshaped, t, { 3 }))
assert(not pcall(t.shape, 3))
assert(not pcall(t.shape, x))
