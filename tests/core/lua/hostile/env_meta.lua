-- want: cannot change a protected metatable
setmetatable(_ENV, { __index = function(_, k) return _ENV[k] end })
return nosuchname
