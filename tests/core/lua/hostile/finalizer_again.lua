-- want: may not have finalizers
local mt = {}
local t = setmetatable({}, mt)
mt.__gc = function() while true do end end
setmetatable(t, mt)
