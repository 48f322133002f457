-- want: malformed pattern
string.find("x", "[a-")
