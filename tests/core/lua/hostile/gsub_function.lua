-- want: longer than it may
local n = 0
;("x"):rep(1000000):gsub(".", function() for i = 1, 1000 do n = n + i end end)
return {}
