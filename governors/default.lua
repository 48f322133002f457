-- Imitates the GPU's own driver: a ladder of thresholds as in Mali's driver for the Exynos 5422. At
-- each tick the load is compared with the two thresholds of the current step: above the upper one
-- it goes a step up; below the lower one, for the number of successive ticks that the step
-- requires, a step down. If a knob does not have six steps, each step uses the thresholds at the
-- same relative height. The load drops in each gap between two passes, and the policy follows it:
-- the "ping-pong" of W18, chapter 5.
local ladder = { { low = 0, high = 90, stay = 2 }, { low = 60, high = 90, stay = 1 }, { low = 70, high = 90, stay = 1 },
                 { low = 78, high = 90, stay = 1 }, { low = 90, high = 99, stay = 1 }, { low = 99, high = 100, stay = 1 } }

-- The highest step that is not above hz, else the first.
local function index_of(steps, hz)
  for i = #steps, 2, -1 do
    if steps[i] <= hz then return i end
  end
  return 1
end

-- The thresholds of step i of n, from the same relative height of the ladder.
local function rung(i, n)
  return ladder[n < 2 and #ladder or 1 + math.floor((i - 1) / (n - 1) * (#ladder - 1) + .5)]
end

return {
  step = function(seen, memory)
    local knob = seen.knob
    if not knob or not knob.load or #knob.steps < 2 then return nil end
    local n, load = #knob.steps, math.floor(knob.load * 100 + .5)
    local i = index_of(knob.steps, knob.asked or knob.hz)
    local at = rung(i, n)
    if load > at.high and i < n then
      i, memory.stay = i + 1, nil
    elseif load < at.low and i > 1 then
      memory.stay = (memory.stay or at.stay) - 1
      if memory.stay <= 0 then i, memory.stay = i - 1, nil end
    else
      memory.stay = nil
    end
    return { [knob.name] = knob.steps[i], why = "load " .. load }
  end,
}
