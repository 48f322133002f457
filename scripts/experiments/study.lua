-- The loss of a net by epoch and its accuracy at the end, from weights at random. With seeds the
-- pictures have bands:
--
--   cnnrun sweep scripts/experiments/study.lua NET SPEC --seeds 1..5 -o DIR
--   cnnrun sweep scripts/experiments/study.lua NET SPEC --grid rate=log:1e-3:1e-1:5 --seeds 1..5 -o DIR
return function(p)
  local net <close> = require "cnnrun".load(p[1], { weights = "random:" .. p.seed })
  local loss = {}
  net:train { data = p[2], rate = p.rate or 0.02, epochs = p.epochs or 3, seed = p.seed, on_epoch = function(e) loss[e.epoch] = e.loss end }
  return { loss = loss, top1 = net:evaluate { data = p[2] }.top1 }
end
