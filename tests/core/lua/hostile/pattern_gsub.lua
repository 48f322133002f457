-- want: longer than it may
string.gsub(string.rep("a", 3000), ".-.-.-.-.-b", "")
