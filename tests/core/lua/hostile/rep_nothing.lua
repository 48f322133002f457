-- want: ok
-- Lua's own string.rep would loop 2^62 times over nothing.
assert(string.rep("", 1 << 62) == "")
