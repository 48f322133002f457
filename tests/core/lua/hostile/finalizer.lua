-- want: may not have finalizers
-- Finalizers run without hooks.
setmetatable({}, { __gc = function() while true do end end })
