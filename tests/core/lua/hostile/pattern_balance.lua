-- want: longer than it may
string.find(string.rep("(", 3000000), "%b()")
