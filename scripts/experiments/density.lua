-- How many weights can be removed? Each layer is pruned alone, by magnitude, to several densities;
-- then all of them, with and without training afterwards.
--
--   cnnrun scripts/experiments/density.lua scripts/nets/lenet5.lua mnist:DIR -o out
local c, plot = require "cnnrun", require "lib.plot"
local experiment = require "lib.experiment"

-- A copy of the net with these weights pruned to the share `keep`; they stay zero in training.
local function pruned(net, names, keep)
  local copy = net:copy()
  for _, name in ipairs(names) do
    copy:set_weight(name, net:weight(name):pruned(keep))
    copy:mask(name, true)
  end
  return copy
end

return experiment.main({
  name = "density", words = "NET DATA",
  about = "Prunes a trained net's layers to several densities and prints how often it is right then.",
  flags = {
    { "--densities LIST", "1,0.5,0.3,0.2,0.1,0.05,0.02,0.01" },
    { "--test COUNT", "pictures for the accuracy (1000)" },
    { "--limit COUNT", "pictures to train on after all layers were pruned; 0: none (4000)" },
    { "--rate NUMBER", "learning rate of that training (0.02)" } } },
  function(options, say)
    local densities = experiment.numbers(options.densities, { 1, .5, .3, .2, .1, .05, .02, .01 })
    local net = c.load(options[1], { weights = options.weights })
    local all, rows, series, curves = {}, {}, {}, {}
    -- Evaluates a copy of the net and adds its row: share kept, accuracy and loss.
    local function judge(what, keep, copy)
      local r = copy:evaluate { data = options[2], limit = options.test or 1000 }
      rows[#rows + 1] = { what, keep, r.top1, r.loss }
      if not curves[what] then
        curves[what] = {}
        series[#series + 1] = { curves[what], label = what }
      end
      table.insert(curves[what], { keep, r.top1 })
      say("%s, %g kept: top-1 %.3f", what, keep, r.top1)
    end
    for _, layer in ipairs(net:layers()) do
      local weight = layer.weights[1]
      if weight and #net:weight(weight):shape() > 1 then
        all[#all + 1] = weight
        for _, keep in ipairs(densities) do
          local copy <close> = pruned(net, { weight }, keep)
          judge(layer.name, keep, copy)
        end
      end
    end
    local limit = options.limit or 4000
    for _, keep in ipairs(densities) do
      local copy <close> = pruned(net, all, keep)
      judge("all", keep, copy)
      if limit > 0 then
        copy:train { data = options[2], limit = limit, epochs = 1, batch = 32,
                     rate = options.rate or .02, validation = 0 }
        judge("all, trained again", keep, copy)
      end
    end
    return { "layer", "density", "top1", "loss" }, rows,
           plot.lines(series, { x = "weights kept", y = "top-1", log = "x" })
  end)
