-- Draws the learning curves of a training: cnnrun curves CURVES.csv CURVES.png; the table is that
-- of train --curves.
local args = require "lib.args"
local curves = require "lib.curves"

return args.application({ operands = "CURVES.csv CURVES.png", least = 2, most = 2,
                          without = "it draws a table, no net runs",
                          example = "cnnrun curves curves.csv curves.png",
                          about = "Draws the loss and accuracy of a training by epoch." }, function(options)
  curves.draw(options[1], options[2])
  return 0
end)
