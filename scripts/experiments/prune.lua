-- Prunes one layer to ten densities and draws the accuracy: NET DATA LAYER OUT.csv OUT.png
local c, csv, plot = require "cnnrun", require "lib.csv", require "lib.plot"
return function(args)
  local net, name, rows = c.load(args[1]), args[3] .. ".weight", {}
  for keep = 1, 10 do
    local small <close> = net:copy()
    small:set_weight(name, net:weight(name):pruned(keep / 10))
    rows[keep] = { keep / 10, small:evaluate { data = args[2], limit = 1000 }.top1 }
  end
  csv.write(args[4], { "keep", "top1" }, rows)
  plot.lines({ { rows, label = args[3] } }, { x = "weights kept", y = "top-1" }):save(args[5])
end
