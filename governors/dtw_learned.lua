-- Like dtw.lua, but learns templates and thresholds from recordings of several scenes. Each
-- recording is cut into windows of M loads (option m: 40). Windows whose note says "scene:
-- inference" are positives, all others negatives. Every positive window is tried as a template. Its
-- threshold is where the fewest windows of all recordings are misclassified, in the middle of the
-- widest such gap. The best templates (option keep: 7), ordered by errors and then by the gap's
-- width relative to the threshold, vote: the majority decides. It learns once, before the first
-- tick, from the installed recordings or those given by --trace. So recordings of this machine
-- (cnnrun govern record) replace those measured or simulated elsewhere. Option band: as of dtw.lua.
local c = require "cnnrun"
local default = require "default"

-- Windows of m ticks from all recordings, with whether each is a loop.
local function windows(traces, m)
  local out = {}
  for _, trace in ipairs(traces) do
    local loop = trace.note:find("scene: inference", 1, true) ~= nil
    for from = 6, #trace.load - m + 1, m // 2 do
      local w = { loop = loop }
      for i = 1, m do w[i] = trace.load[from + i - 1] * 100 end
      out[#out + 1] = w
    end
  end
  return out
end

-- The threshold with the fewest errors (inference below it, others above), in the middle of the
-- widest such gap.
local function threshold(distances)
  table.sort(distances, function(a, b) return a.d < b.d end)
  local wrong, best = 0, nil
  for _, e in ipairs(distances) do wrong = wrong + (e.loop and 1 or 0) end
  for i = 1, #distances - 1 do
    wrong = wrong + (distances[i].loop and -1 or 1)
    local low, high = distances[i].d, distances[i + 1].d
    local gap = (high - low) / (high + 1)
    if not best or wrong < best.wrong or (wrong == best.wrong and gap > best.gap) then
      best = { wrong = wrong, gap = gap, at = (low + high) / 2 }
    end
  end
  return best
end

-- Learns which windows to keep as templates, and each one's threshold.
local function learn(all, keep, band)
  local found = {}
  for _, template in ipairs(all) do
    if template.loop then
      local distances = {}
      for i, w in ipairs(all) do distances[i] = { d = c.dtw(template, w, { band = band }), loop = w.loop } end
      local t = threshold(distances)
      if t then
        t.template = template
        found[#found + 1] = t
      end
    end
  end
  table.sort(found, function(a, b) return a.wrong < b.wrong or (a.wrong == b.wrong and a.gap > b.gap) end)
  return table.move(found, 1, math.min(#found, keep), 1, {})
end

return {
  start = function(seen, memory)
    memory.m, memory.loads = math.max(21, math.floor(seen.options.m or 40)), {}
    memory.band = seen.options.band or .25
    memory.learned = learn(windows(seen.traces, memory.m), seen.options.keep or 7, memory.band)
  end,
  step = function(seen, memory)
    local knob, loads = seen.knob, memory.loads
    if knob and knob.load then loads[#loads + 1] = knob.load * 100 end
    if #loads >= memory.m then
      local votes = 0
      for _, t in ipairs(memory.learned) do
        if c.dtw(t.template, loads, { band = memory.band, most = t.at }) < t.at then votes = votes + 1 end
      end
      memory.inference, memory.loads = votes * 2 > #memory.learned, {}
    end
    local wish = memory.inference and { [knob.name] = "highest" } or default.step(seen, memory)
    if wish then wish.why = memory.inference and "inference" or "other" end
    return wish
  end,
}
