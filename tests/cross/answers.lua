-- A net's outputs for a picture or a prepared input (.npy), a number a line: to compare machines.
--     cnnrun answers.lua NET WEIGHTS INPUT [INPUT.npy to write, or -] [MEMORY]
-- WEIGHTS: as --weights has them, or - for the net's own. MEMORY: bytes, as --memory has them.
local c = require "cnnrun"

return function(args)
  local net <close> = c.load(args[1], { weights = args[2] ~= "-" and args[2] or nil, memory_bound = math.tointeger(args[5]) })
  local input = args[3]:match("%.npy$") and c.tensor(args[3]) or net:prepare(c.picture(args[3]))
  if args[4] and args[4] ~= "-" then input:save(args[4]) end
  local scores = net:run(input)
  for i = 1, #scores do print(string.format("%.9g", scores[i])) end
end
