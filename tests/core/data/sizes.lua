-- Sums and sizes of a picture that reached a net of open sizes, three ways; a line a net for sizes.t:
-- a picture through net:picture, then through net:prepare and net:run.
local c = require "cnnrun"

-- A line: the sum of a tensor, and its type.
local function line(t)
  local sum = 0
  for i = 1, #t do sum = sum + t[i] end
  return string.format("%s %.0f", tostring(t), sum)
end

return function(args)
  for i = 2, #args do
    local net = c.load(args[i])
    for _, way in ipairs { function() return net:picture(args[1]) end,
                           function() return net:run { net:prepare(c.picture(args[1])) } end } do
      local fine, t = pcall(way)
      print(fine and line(t) or t)
    end
  end
end
