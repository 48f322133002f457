-- want: more memory than
local t = {}
for i = 1, 250 do t[i] = 0x10FFFF end
local s = utf8.char(table.unpack(t))
while true do s = s .. s end
