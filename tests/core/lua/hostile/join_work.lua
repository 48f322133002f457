-- want: longer than it may
local t, s = {}, string.rep("x", 1 << 20)
for i = 1, 64 do t[i] = s end
for i = 1, 8 do pcall(table.concat, t) end
