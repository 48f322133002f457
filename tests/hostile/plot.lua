-- A table and plots, for when memory fails: out.csv out.png out.svg
local c, csv, plot = require "cnnrun", require "lib.csv", require "lib.plot"
return function(args)
  local rows = { { 1, .5 }, { 2, .7 }, { 4, .9 } }
  csv.write(args[1], { "x", "y" }, rows)
  local p = plot.lines({ { rows, label = "one" } }, { x = "x", width = 120, height = 90, scale = 1 })
  p:save(args[2]):save(args[3])
  print(#c.text(args[3]) > 1000)
end
