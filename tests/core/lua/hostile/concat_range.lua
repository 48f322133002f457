-- want: longer than it may
table.concat(setmetatable({}, { __index = function() return "" end }), "", 1, 1 << 60)
