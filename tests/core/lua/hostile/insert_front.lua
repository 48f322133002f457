-- want: longer than it may
local t = {}
for i = 1, 1000000 do t[i] = i end
while true do table.insert(t, 1, 0) end
