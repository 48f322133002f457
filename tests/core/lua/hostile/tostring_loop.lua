-- want: longer than it may
while true do tostring(print) end
