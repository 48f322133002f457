-- Which learning rate? A net is trained from the same start with each rate, and evaluated on other
-- pictures. If the loss diverges, nothing is kept, and the row says so.
--
--   cnnrun scripts/experiments/learning_rate.lua scripts/nets/lenet5.lua mnist:DIR -o out
local c, plot = require "cnnrun", require "lib.plot"
local experiment = require "lib.experiment"

return experiment.main({
  name = "learning_rate", words = "NET DATA",
  about = "Trains a net with each of several learning rates, for a short while, and prints how often " ..
          "it is right afterwards.",
  flags = {
    { "--rates LIST", "0.0003,0.001,0.003,0.01,0.03,0.1,0.3" },
    { "--optimizer NAME", "sgd, adam or both: sgd,adam (sgd)" },
    { "--limit COUNT", "pictures to train on (4000)" },
    { "--test COUNT", "pictures for the accuracy (1000)" },
    { "--epochs COUNT", "epochs over them (1)" },
    { "--batch COUNT", "batch size (64)" } } },
  function(options, say)
    local rates = experiment.numbers(options.rates, { 3e-4, 1e-3, 3e-3, .01, .03, .1, .3 })
    local start = c.load(options[1], { weights = options.weights or "random:1" })
    local rows, series = {}, {}
    for optimizer in (options.optimizer or "sgd"):gmatch "[^,]+" do
      local curve = {}
      for _, rate in ipairs(rates) do
        local net <close> = start:copy()
        local good, why = pcall(net.train, net, {
          data = options[2], limit = options.limit or 4000, rate = rate, epochs = options.epochs or 1,
          batch = options.batch or 64, optimizer = optimizer, validation = 0 })
        if not good and not tostring(why):find "the loss is" then error(why, 0) end
        local r = good and net:evaluate { data = options[2], limit = options.test or 1000 }
        rows[#rows + 1] = { optimizer, rate, r and r.top1 or "diverged", r and r.loss or "" }
        if r then curve[#curve + 1] = { rate, r.top1 } end
        say("%s %g: %s", optimizer, rate, r and ("top-1 %.3f"):format(r.top1) or "diverged")
      end
      series[#series + 1] = { curve, label = optimizer }
    end
    return { "optimizer", "rate", "top1", "loss" }, rows,
           plot.lines(series, { x = "learning rate", y = "top-1", log = "x" })
  end)
