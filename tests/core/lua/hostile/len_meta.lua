-- want: a table with __len is not accepted here
local t = setmetatable({}, { __len = function() return math.maxinteger end })
return table.concat(t)
