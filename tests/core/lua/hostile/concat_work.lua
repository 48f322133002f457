-- want: longer than it may
-- One instruction, megabytes of work each.
local s = string.rep("x", 40000000)
while true do local t = s .. "y" end
