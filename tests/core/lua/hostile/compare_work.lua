-- want: longer than it may
local a, b = string.rep("x", 30000000) .. "a", string.rep("x", 30000000) .. "b"
while true do local t = a < b end
