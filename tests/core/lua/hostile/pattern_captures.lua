-- want: too many captures
string.find("x", string.rep("()", 40))
