-- want: __len
table.insert(setmetatable({}, { __len = function() return 1 << 62 end }), 1, 0)
