-- Labels as rows of 0 and 1, [batch, classes], for the losses of this folder.
local c = require "cnnrun"

return function(labels, classes)
  return c.one_hot { labels, c.data { classes }, c.data { 0.0, 1.0, shape = { 2 } } }
end
