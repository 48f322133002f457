-- Below the point at which the hardware throttles, with the least time lost: option limit, degrees (80), is
-- that point; option below (0.4) how far it stays away from it. Hardware that throttles goes down fast and
-- comes up late; what it loses there is won by staying just below. The temperature of the next ticks is
-- told by how fast it rises now (option ahead: 0.2 s): where that is too hot it goes a step down, where
-- it is cool enough a step up: so it ends between two neighbours, in the share that the heat allows.
-- A sensor that is slow or coarse wants more of both options: what it tells is past when it is read.
-- Without a temperature it does as fixed.lua, and says so.
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
