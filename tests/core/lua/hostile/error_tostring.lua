-- want: the error is a table value
error(setmetatable({}, { __tostring = function() while true do end end }))
