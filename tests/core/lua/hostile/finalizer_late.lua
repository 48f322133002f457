-- want: ok
-- A metatable that gets its __gc later never counts.
local mt = {}
for i = 1, 100 do setmetatable({}, mt) end
mt.__gc = function() while true do end end
local garbage
for i = 1, 100000 do garbage = { i } end
