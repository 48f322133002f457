-- Saves the pictures of a data set as a net's first input takes them: cnnrun prepared.lua NET SPEC FOLDER
local c = require "cnnrun"

return function(args)
  local net, samples = c.load(args[1]), c.samples(args[2], "eval")
  c.folder(args[3])
  for i, picture in samples:each() do
    net:prepare(picture):save(("%s/%05d.npy"):format(args[3], i))
  end
end
