-- want: longer than it may
for _ in coroutine.wrap(function() while true do coroutine.yield(1) end end) do end
