-- Trains a net with a rate that rises and then falls, and judges it: NET DATA OUT.cnr
local c = require "cnnrun"
return function(args)
  local net = c.load(args[1], { weights = "random:1" })
  net:train {
    data = args[2], limit = 12000, epochs = 2,
    rate = function(step, steps)
      local part = step / steps
      return .04 * (part < .1 and part / .1 or (1 + math.cos(math.pi * (part - .1) / .9)) / 2)
    end,
    on_epoch = function(e) c.note("epoch", e.epoch, "loss", e.loss, "top-1", e.top1) end }
  local r = net:evaluate { data = args[2], limit = 2000 }
  print(("top-1 %.4f, loss %.4f"):format(r.top1, r.loss))
  net:save(args[3])
end
