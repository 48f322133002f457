-- want: C stack overflow
local t
t = setmetatable({}, { __newindex = function(s, k, v) s[k] = v end })
t.x = 1
