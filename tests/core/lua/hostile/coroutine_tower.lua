-- want: longer than it may
-- Each level may run a little before its own hook fires: 300 to the power of the depth.
local function level(n)
  while true do coroutine.resume(coroutine.create(level), n + 1) end
end
level(0)
