-- want: ok
local c = require "cnnrun"
assert(getmetatable(c.relu {}) == false)
assert(getmetatable(c) == false)
assert(not pcall(setmetatable, c, {}))
assert(not pcall(function() c.relu = 1 end))
