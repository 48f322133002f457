-- want: too many results
table.unpack({}, 1, 10000000)
