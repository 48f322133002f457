-- Algorithm 5.1 of W18: a template of 40 loads, 0.1 s apart, describes a loop of inference. M loads
-- are collected (option m: 40, more than 20). Then dynamic time warping gives their distance from
-- the template: below the threshold the program runs inference and gets the highest frequency;
-- otherwise, and before the first M loads, the driver's own policy applies (default.lua). In the
-- thesis the template is a figure, to which its threshold of 480 belongs. Here the template is a
-- part of the recording traces/loop4.csv, and the threshold is the one that `cnnrun govern
-- calibrate` finds between loops of inference and other scenes; option threshold sets another.
-- Loads are in percent. Option template: the name of another recording, of which 40 loads are used.
-- Option band: how far a path of the warping may stray from the diagonal, as a part of the 40 loads
-- (0.25; 1: anywhere, as in the thesis). The threshold is the same without a band.
local c = require "cnnrun"
local default = require "default"
local N, THRESHOLD = 40, 739

-- The loads of the recording that the option `template` names.
local function template_of(seen)
  local wanted = seen.options.template or "loop4"
  for _, trace in ipairs(seen.traces) do
    if trace.name:find(wanted, 1, true) then
      local out = {}
      for i = 1, math.min(N, #trace.load - 5) do out[i] = trace.load[i + 5] * 100 end
      return out
    end
  end
  error("there is no recording '" .. wanted .. "' to take the template from", 0)
end

return {
  start = function(seen, memory)
    memory.template, memory.loads, memory.distance = template_of(seen), {}, math.huge
    memory.m = math.max(21, math.floor(seen.options.m or 40))
    memory.band = seen.options.band or .25
    memory.threshold = seen.options.threshold or THRESHOLD
  end,
  step = function(seen, memory)
    local knob, loads = seen.knob, memory.loads
    if knob and knob.load then loads[#loads + 1] = knob.load * 100 end
    if #loads >= memory.m then
      memory.distance = c.dtw(memory.template, loads, { band = memory.band, most = 4 * memory.threshold })
      memory.loads = {}
    end
    if memory.distance < memory.threshold then
      return { [knob.name] = "highest", why = ("inference: distance %.0f"):format(memory.distance) }
    end
    local wish = default.step(seen, memory)
    if wish then wish.why = ("other: distance %.0f"):format(memory.distance) end
    return wish
  end,
}
