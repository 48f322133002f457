-- want: ok
assert(getmetatable("") == false)
assert(not pcall(setmetatable, "", {}))
