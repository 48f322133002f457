-- want: longer than it may
-- Running out of memory again and again must end too.
while true do pcall(function() local s = "xxxxxxxx" while true do s = s .. s end end) end
