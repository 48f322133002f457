-- Stays just below the temperature at which the hardware throttles, with the least loss of time.
-- Option limit, degrees (80), is that temperature; option below (0.4) is the distance kept from it.
-- Throttling hardware lowers the clock quickly and raises it late; staying just below avoids that
-- loss. The temperature of the next ticks is extrapolated from its present rise (option ahead: 0.2
-- s). If it will be too hot, the policy goes one step down; if it is cool enough, one step up. So
-- it alternates between two adjacent steps in the proportion that the heat allows. A slow or coarse
-- sensor needs larger values of both options, since its readings are late. Without a temperature it
-- acts like fixed.lua, and reports so.

-- The index of the highest step that is at most hz; 1: none is.
local function index_of(steps, hz)
  for i = #steps, 2, -1 do
    if steps[i] <= hz then return i end
  end
  return 1
end

return {
  step = function(seen, m)
    local knob = seen.knob
    local now = knob and (knob.temperature or seen.temperature)
    if not knob then return nil end
    if not now then return { [knob.name] = "highest", why = "no temperature is told" } end
    local limit = (seen.options.limit or 80) - (seen.options.below or .4)
    local i = index_of(knob.steps, knob.asked or knob.hz)
    if not m.before then m.before, m.rise, i = now, 0, #knob.steps end
    if seen.period > 0 then m.rise = .7 * m.rise + .3 * (now - m.before) / seen.period end
    m.before = now
    local ahead = now + m.rise * (seen.options.ahead or .2)
    if (ahead > limit or now > limit) and i > 1 then i = i - 1
    elseif ahead < limit - .3 and now < limit - .3 and i < #knob.steps then i = i + 1 end
    return { [knob.name] = knob.steps[i], why = ("%.1f degrees, %.1f soon"):format(now, ahead) }
  end,
}
