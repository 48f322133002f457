-- want: ok
local c = require "cnnrun"
for _, name in ipairs { "/etc/passwd", "../x", "x.npy" } do
  assert(not pcall(c.tensor, name))
  assert(not pcall(c.load, name))
  assert(not pcall(c.picture, name))
  assert(not pcall(c.samples, name))
end
assert(not pcall(function() c.tensor { shape = { 1 } }:save("/tmp/x.npy") end))
assert(not pcall(c.now))
