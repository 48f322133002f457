-- want: closing
local x <close> = setmetatable({}, { __close = function() error("closing") end })
error("first")
