-- want: longer than it may
-- s:find is the same function as string.find.
local s = string.rep("a", 400)
s:find(string.rep("a*", 60) .. "b")
