-- want: longer than it may
local function forever() while true do end end
while true do
  pcall(function()
    local x <close> = setmetatable({}, { __close = forever })
    forever()
  end)
end
