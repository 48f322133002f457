-- Noise and time of each layer that could be quantised, for the program (cnnrun/lab.h): text is JSON with
-- `output` (.png, .svg), title, and rows: name, decibels, float_for, ms_float, ms_quantized.
local draw = require "lib.draw"
local json = require "lib.json"
local plot = require "lib.plot"

return function(text)
  local about = json.decode(text)
  local able, why = draw.available()
  if not able then error(why, 0) end
  local bars, timed = {}, false
  for _, r in ipairs(about.rows) do timed = timed or r.ms_float ~= nil end
  for i, r in ipairs(about.rows) do
    local db = type(r.decibels) == "number" and ("%.1f dB"):format(r.decibels) or ""
    local name = ("%s  %s  %s"):format(r.name, r.float_for and "float: " .. r.float_for or "8 bits", db)
    if timed then bars[i] = { name, r.ms_float or 0, r.ms_quantized or 0 }
    else bars[i] = { name, type(r.decibels) == "number" and r.decibels or 0 } end
  end
  plot.bars(bars, { horizontal = true, width = 900, title = about.title,
                    labels = timed and { "ms in floats", "ms in 8 bits" } or nil,
                    x = timed and "ms, with what stands behind the layer" or "signal to noise, dB" })
    :save(about.output)
end
