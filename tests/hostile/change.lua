-- A net of a script is trained, changed, copied, judged and written: for sweep.t.
local c = require "cnnrun"

return function(args)
  local net = c.load(args[1], { weights = "random:1", place = { ["*"] = "cpu" } })
  local samples = c.samples(args[2])
  local small = net:copy()
  small:set_weight("fc.weight", net:weight "fc.weight":pruned(0.5))
  small:mask("fc.weight", true)
  local epochs = 0
  local r = small:train { data = samples, epochs = 1, batch = 5, validation = 5,
                          rate = function(step, steps) return 0.01 * (1 - step / steps) end,
                          on_epoch = function(e) epochs = epochs + e.epoch end }
  local batch = small:prepare((samples:at(1)), (samples:at(2)))
  local gradients, loss, scores = small:gradients(batch, { 0, 1 })
  small:set_weight("fc.bias", small:weight "fc.bias":plus(gradients["fc.bias"], -0.1))
  local e = small:evaluate { data = samples, limit = 4 }
  local whole, about = small:quantize { data = samples, limit = 3, check = 2, all = true }
  print(epochs, r.trained, r.validated, #small:weights(), small:weight "fc.weight":density(), #scores,
        loss > 0, e.n, #e.confusion, about.quantized, whole:evaluate { data = samples, limit = 2 }.n,
        #small:layers(), #small:profile { runs = 1, warm = 0 })
  small:save(args[3])
  small:close()
end
