-- want: C stack overflow
local m = {}
m.__eq = function(a, b) return a == b end
return setmetatable({}, m) == setmetatable({}, m)
