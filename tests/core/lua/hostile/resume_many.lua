-- want: longer than it may
for i = 1, 1e9 do coroutine.resume(coroutine.create(function() coroutine.yield() end)) end
