-- want: longer than it may
-- A message handler runs without hooks when a hook raised the error.
xpcall(function() while true do end end, function() while true do end end)
