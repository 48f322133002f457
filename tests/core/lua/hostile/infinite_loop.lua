-- want: longer than it may
while true do end
