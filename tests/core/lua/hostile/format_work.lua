-- want: longer than it may
local s = string.rep("x", 40 << 20)
for i = 1, 6 do pcall(string.format, "%q", s) end
