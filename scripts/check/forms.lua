-- A small net of many forms: windows, strides, paddings, dilations, groups, branches that join
-- again, values that two nodes read, and several outputs. cnnrun conform tries regions on it.
local c = require "cnnrun"

-- A convolution of x with that name and options, followed by the given activations.
local function block(x, name, conv, ...)
  conv[1], conv.name = x, name
  local y = c.conv2d(conv)
  for _, act in ipairs { ... } do y = act { y } end
  return y
end

return c.net {
  name = "forms",
  input = { "x", shape = { 2, 3, 21, 18 } },
  function(x)
    local a = block(x, "even", { out = 8, kernel = 3, stride = 2, pad = 1 }, c.relu)
    local b = c.max_pool { a, kernel = 2, stride = 2 }
    for _ = 1, 9 do b = c.add { b, b } end -- Large enough for relu6.
    local dilated = { out = 12, kernel = { 3, 2 }, pad = { 1, 0, 1, 2 }, dilation = { 1, 2 } }
    local d = block(b, "dilated", dilated, c.relu6)
    local e = block(b, "lopsided", { out = 12, kernel = 3, pad = { 0, 1, 2, 1 } }, c.relu)
    local joined = c.concat { c.add { d, e }, d, axis = 1 }
    local f = block(joined, "depthwise", { out = 24, kernel = 3, pad = 1, groups = 24 }, c.relu)
    local point = block(f, "point", { out = 5, kernel = 1, bias = false }, c.relu6)
    local g = c.max_pool { point, kernel = 3, stride = 2, pad = 1, ceil = true }
    local wide = block(x, "wide", { out = 4, kernel = { 5, 2 }, stride = { 3, 1 } })
    local twice = block(x, "twice", { out = 6, kernel = 3, stride = 2 })
    local over = c.add { c.relu { twice }, twice }
    local spread = c.max_pool { wide, kernel = { 2, 3 }, stride = 1, dilation = { 1, 2 } }
    return c.softmax { c.flatten { g } }, spread, wide, over
  end,
}
