-- want: longer than it may
for _ in string.gmatch(string.rep("a", 3000), "(.*)(.*)(.*)(.*)b") do end
