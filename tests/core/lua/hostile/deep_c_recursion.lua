-- want: overflow
local function f() pcall(f) error("x") end
local t = setmetatable({}, {})
local mt = {}
mt.__index = function(t, k) return t[k .. "x"] end
local u = setmetatable({}, mt)
local x = u.x
