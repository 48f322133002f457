-- want: longer than it may
local function f() pcall(f) f() end
while true do pcall(f) end
