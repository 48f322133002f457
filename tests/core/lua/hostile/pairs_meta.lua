-- want: longer than it may
local t = setmetatable({}, { __pairs = function() return function() return 1, 2 end end })
for _ in pairs(t) do end
