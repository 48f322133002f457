-- A student of any shape learns from this tree's LeNet-5 as a teacher, as well as from labels:
--
--   cnnrun scripts/experiments/distil.lua STUDENT SPEC OUT.cnr
local c = require "cnnrun"
local distill = require "losses.distill"
return function(args)
  local net = c.load(args[1], { weights = "random:1" })
  local r = net:train { data = args[2], rate = 0.01, loss = distill(c.load "nets.lenet5", function(x, given)
    x = c.maxpool { c.conv2d(given(x, "conv1")), kernel = 2, stride = 2 }
    x = c.maxpool { c.conv2d(given(x, "conv2")), kernel = 2, stride = 2 }
    return c.dense(given(c.relu { c.dense(given(x, "ip1")) }, "ip2"))
  end, { temperature = 4, share = 0.9 }) }
  net:save(args[3])
  print(("right on %.2f%% of %d for validation"):format(100 * r.best, r.validated))
end
