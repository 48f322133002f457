-- want: longer than it may
string.find(string.rep("a", 400), string.rep("a*", 60) .. "b")
