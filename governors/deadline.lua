-- The least energy that still meets a frame rate: option fps (30). A pass may take the duration of
-- a frame, less option margin (0.01) of it. The policy starts at the highest step and times its
-- passes. The longest of them, in cycles, bounds the time at any other step: work that does not
-- depend on the frequency only makes it shorter. So a step that could be late is hardly ever tried.
-- It tries each step that is in time once, downwards, for option window seconds (1), and stays at
-- the one with the least joules a frame. If passes get longer, the bound and the step change at the
-- next tick. Without a meter it takes the lowest step in time. Bounds are kept for each step: a
-- measurement at a step replaces the bound derived from other steps.

-- The index of the highest step that is at most hz; 1: none is.
local function index_of(steps, hz)
  for i = #steps, 2, -1 do
    if steps[i] <= hz then return i end
  end
  return 1
end

-- An upper bound on the time of a pass at step i: measured there if possible. Else it is
-- extrapolated from the steps above, assuming that all of the time scales with the frequency. If at
-- least half of the time of the two nearest steps above did scale, a fixed and a scaling part are
-- fitted to them, plus 2%.
local function bound(m, steps, i)
  local most, near = m.longest[i], {}
  if most then return most end
  for j = i + 1, #steps do
    local longest = m.longest[j]
    if longest then
      most = math.min(most or math.huge, longest * steps[j] / steps[i])
      if #near < 2 then near[#near + 1] = { 1 / steps[j], longest } end
    end
  end
  if #near == 2 and near[1][2] / near[2][2] > .5 + .5 * near[1][1] / near[2][1] then
    local slope = (near[1][2] - near[2][2]) / (near[1][1] - near[2][1])
    most = math.min(most, 1.02 * (near[1][2] + slope * (1 / steps[i] - near[1][1])))
  end
  for j = 1, i - 1 do
    if m.longest[j] then most = math.min(most or math.huge, m.longest[j]) end
  end
  return most or math.huge
end

return {
  start = function(_, m)
    m.longest, m.joules, m.t, m.e, m.skip = {}, {}, 0, 0, 1
  end,
  step = function(seen, m)
    local knob, runs = seen.knob, seen.runs
    if not knob or #knob.steps == 0 then return nil end
    local steps = knob.steps
    local target = 1 / (seen.options.fps or 30) * (1 - (seen.options.margin or .01))
    if not m.at then m.at = #steps return steps[m.at] end
    m.at = index_of(steps, knob.asked or steps[m.at])
    if runs.fresh > 0 and runs.seconds then
      if m.skip > 0 then m.skip = m.skip - 1
      else
        m.longest[m.at] = math.max((m.longest[m.at] or 0) * .9995, runs.seconds)
        m.t, m.e = m.t + (runs.cycle or 0) * runs.fresh, m.e + (runs.joules or 0) * runs.fresh
      end
    end
    local late = bound(m, steps, m.at) > target
    if not late and m.t < (seen.options.window or 1) then return nil end
    if m.t > 0 then m.joules[m.at] = m.e / m.t end
    local best, least = #steps, math.huge
    for i = #steps, 1, -1 do
      if bound(m, steps, i) <= target then
        local joules = m.joules[i] or -1 -- not tried yet: now
        if seen.joules == nil then joules = i end
        if joules < least then best, least = i, joules end
        if joules < 0 then break end
      end
    end
    m.t, m.e, m.skip = 0, 0, best ~= m.at and 1 or 0
    return { [knob.name] = steps[best], why = ("%.4g s of %.4g"):format(bound(m, steps, best), target) }
  end,
}
