-- want: too large
string.rep("x", 1 << 40)
