-- want: longer than it may
local s = utf8.char(0x20ac):rep(1000000)
while true do utf8.len(s) end
