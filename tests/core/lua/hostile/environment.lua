-- want: 'y' is assigned as a global
assert(getmetatable(_ENV) == false)
y = 1
