-- want: xxxxxxxx
error(string.rep("x", 10000000))
