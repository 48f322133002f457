-- want: the script
local t = {}
for i = 1, 10000000 do t = setmetatable({}, { __index = t }) end
return t.x
