-- want: the error is a table value
local t = {}
t.t = t
error(setmetatable(t, { __tostring = function() return t end }))
