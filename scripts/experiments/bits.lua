-- How many bits does a weight need? Weights are rounded to so many levels, with one scale for a
-- whole layer or for each of its output channels. Activations are unchanged. For eight bits also
-- the net of `cnnrun quantize`, whose activations are integers, too.
--
--   cnnrun scripts/experiments/bits.lua scripts/nets/lenet5.lua mnist:DIR -o out
local c, plot = require "cnnrun", require "lib.plot"
local experiment = require "lib.experiment"

-- The weight with `n` elements from `from` on rounded to multiples of one scale.
local function round(w, from, n, levels)
  local largest = 0
  for i = from, from + n - 1 do largest = math.max(largest, math.abs(w[i])) end
  local scale = largest / levels
  if scale == 0 then return end
  for i = from, from + n - 1 do w[i] = math.floor(w[i] / scale + .5) * scale end
end

-- A copy of the net whose weights are rounded to this many bits.
local function rounded(net, names, bits, by_channel)
  local copy = net:copy()
  for _, name in ipairs(names) do
    local w = net:weight(name)
    local parts = by_channel and w:shape()[1] or 1
    for part = 0, parts - 1 do round(w, part * #w // parts + 1, #w // parts, 2 ^ (bits - 1) - 1) end
    copy:set_weight(name, w)
  end
  return copy
end

return experiment.main({
  name = "bits", words = "NET DATA",
  about = "Rounds the weights of a trained net to several numbers of bits and prints how often it is " ..
          "right then.",
  flags = {
    { "--bits LIST", "2,3,4,5,6,8" },
    { "--test COUNT", "pictures for the accuracy (1000)" },
    { "--calibrate COUNT", "pictures to find the activations' ranges by; 0: no such net (100)" } } },
  function(options, say)
    local net = c.load(options[1], { weights = options.weights })
    local names, rows, series = {}, {}, {}
    for _, layer in ipairs(net:layers()) do
      local weight = layer.weights[1]
      if weight and #net:weight(weight):shape() > 1 then names[#names + 1] = weight end
    end
    -- Evaluates a copy of the net, adds its row (bits, accuracy and loss) and returns { bits,
    -- accuracy }.
    local function judge(what, bits, copy)
      local r = copy:evaluate { data = options[2], limit = options.test or 1000 }
      rows[#rows + 1] = { what, bits, r.top1, r.loss }
      say("%s, %d bits: top-1 %.3f", what, bits, r.top1)
      return { bits, r.top1 }
    end
    for _, what in ipairs { "one scale a layer", "one scale a channel" } do
      local curve = {}
      for i, bits in ipairs(experiment.numbers(options.bits, { 2, 3, 4, 5, 6, 8 })) do
        local copy <close> = rounded(net, names, bits // 1, what == "one scale a channel")
        curve[i] = judge(what, bits // 1, copy)
      end
      series[#series + 1] = { curve, label = what }
    end
    local calibrate = options.calibrate or 100
    if calibrate > 0 then
      local whole <close> = net:quantize { data = options[2], limit = calibrate, check = 0, all = true }
      series[#series + 1] = { { judge("activations, too", 8, whole) }, label = "activations, too" }
    end
    local float = judge("as it was", 32, net)[2]
    return { "weights", "bits", "top1", "loss" }, rows,
           plot.lines(series, { x = "bits a weight", y = "top-1",
                                title = ("as it was: %.1f%%"):format(100 * float):gsub(",", ".") })
  end)
