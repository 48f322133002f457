-- want: longer than it may
table.move({}, 1, 1 << 60, 2)
