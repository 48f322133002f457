-- Whose noise it is: "loud" has one channel a thousand times as large as the others, so that one scale for all
-- leaves nothing of these; its own signal to noise is good. "quiet" reads the others alone, "last" what it makes.
-- Words: pictures, a folder to write nets to.
local c = require "cnnrun"

local n = 0
-- Prints one numbered TAP line: ok if `good`, else not ok.
local function ok(good, what)
  n = n + 1
  print((good and "ok " or "not ok ") .. n .. " - " .. what)
end

-- Which layers were quantised.
local function layers_of(about)
  local out = {}
  for _, l in ipairs(about.layers) do out[l.name] = l.quantized end
  return out
end

-- A net whose outputs are of this loudness.
local function made(loudness, ...)
  local net = c.load(c.net { name = "loud", input = { "x", shape = { 1, 1, 28, 28 }, scale = 1 / 255 },
    c.conv { "loud", out = 4, kernel = 1 }, c.conv { "quiet", out = 4, kernel = 3 },
    c.tanh {}, c.conv { "last", out = 2, kernel = 3 }, ... }, { weights = "random:1" })
  net:set_weight("loud.weight", c.tensor { shape = { 4, 1, 1, 1 }, data = { loudness, 1, -1, 0.5 } })
  net:set_weight("loud.bias", c.tensor { shape = { 4 }, data = { 0, 0.2, 0.1, -0.1 } })
  local quiet, changed = net:weight "quiet.weight", {}
  for i = 1, #quiet do changed[i] = (i - 1) // 9 % 4 == 0 and 0 or quiet[i] end
  net:set_weight("quiet.weight", c.tensor { shape = { 4, 4, 3, 3 }, data = changed })
  return net
end

return function(args)
  local net = made(1000)
  net:save(args[2] .. "/loud.cnr")
  made(200):save(args[2] .. "/poor.cnr")
  made(200, c.flatten {}, c.dense { "classes", out = 50 }):save(args[2] .. "/classes.cnr")

  local whole <close>, about = net:quantize { data = args[1], limit = 8, all = true }
  local is = layers_of(about)
  ok(is.loud == false, "the layer that spoils those behind it stays float")
  ok(is.last, "one that was spoiled only by layers before it does not")
  ok(about.decibels and about.decibels > 20,
     ("the output is what it was: %.1f dB"):format(about.decibels or 0 / 0))
  ok(about.agree == nil, "answers that are no classes agree in no number: " .. tostring(about.agree))
  ok(type(about.warnings) == "table", "warnings are a list")

  local good, text = pcall(net.quantize, net, { data = args[1], limit = 8, layers = "loud" })
  ok(not good and tostring(text):find("quiet", 1, true), "alone it is refused, naming what it spoils: " .. tostring(text))
  local _, forced = net:quantize { data = args[1], limit = 8, layers = "loud", min_snr = -100, check = 0,
                                       all = true }
  ok(forced.quantized == 1, "unless a person insists")
  good, text = pcall(net.quantize, net, { data = args[1], limit = 8, layers = "loud", min_snr = -100, all = true })
  ok(not good and tostring(text):find "in common", "but not that nothing of the answer is left: " .. tostring(text))
  print("1.." .. n)
end
