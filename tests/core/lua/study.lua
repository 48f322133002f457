local c, csv, plot = require "cnnrun", require "lib.csv", require "lib.plot"
return function(args)                       -- cnnrun study.lua lenet5.lua mnist:DIR out.csv curve.png
  local net = c.load(args[1], { weights = "random:1" })        -- a handle of this script: training changes it alone
  net:train { data = args[2], split = "train", epochs = 2, limit = 12000, batch = 64, rate = 0.02, momentum = 0.9, optimizer = "sgd", seed = 1,
              on_epoch = function(e) return e.top1 < 0.999 end }  -- e: epoch, loss, top1, seconds; false stops, nil goes on
  local rows = {}
  for _, keep in ipairs { 0.5, 0.2, 0.1 } do
    local small = net:copy()
    small:set_weight("ip1.weight", net:weight "ip1.weight":pruned(keep))   -- magnitude
    small:mask("ip1.weight", true)                             -- zeros stay zero while it trains; false lets go
    small:train { data = args[2], epochs = 1, limit = 6000, rate = 0.005 }
    local r = small:evaluate { data = args[2], limit = 2000 }  -- r: n, top1, top5, loss, confusion, seconds
    rows[#rows + 1] = { keep, r.top1 }
  end
  for _, s in ipairs(net:profile { runs = 10 }) do print(s.node, s.operator, s.kernel, s.device, s.ms, s.flops) end
  csv.write(args[3], { "keep", "top1" }, rows)
  plot.lines({ { rows, label = "ip1" } }, { x = "kept", y = "top-1" }):save(args[4])
end
