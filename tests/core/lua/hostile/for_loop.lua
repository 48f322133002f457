-- want: longer than it may
for i = 1, math.maxinteger do end
