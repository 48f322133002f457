-- Minimises energy times delay of a pass from measured times and joules, without knowledge of the
-- board. The policy starts at the highest steps, measures some passes, and tries other steps, one
-- knob after the other (GPU core, memory bus, clusters of cores: every writable one), first a third
-- of the range away and then nearer; it keeps improvements. It does not start a trial that would
-- lose too much time according to the frequencies (option lose: 0.25 of a pass's time). Trials last
-- several passes, at least option window seconds (1), after one pass that is discarded because the
-- step changed during it. If no near step is better, it stays and goes on measuring: if a pass
-- takes 6% more or less than before (other work, heat or neighbours), trials start again from
-- there. Without a meter it minimises time alone. Option only: the name of a knob; no other is set.

-- Forgets the trial's sums, and lets its first pass be discarded.
local function settle(m)
  m.t, m.e, m.n, m.skip = 0, 0, 0, 1
end

-- The wish for the state m: the steps tried or held, with the reason.
local function answer(m)
  local wish = { why = ("%s, EDP %.4g"):format(m.trial and "tries" or "holds", m.best or 0) }
  for i, knob in ipairs(m.knobs) do wish[knob.name] = knob.steps[m.at[i]] end
  return wish
end

-- Begins the search again from the present steps.
local function restart(m)
  m.stride, m.failed, m.trial, m.turn, m.best = {}, 0, nil, 0, nil
  for i, knob in ipairs(m.knobs) do m.stride[i] = m.again and 1 or math.max(1, #knob.steps // 3) end
  m.again = true
end

-- The next step that is worth a trial: each knob in turn, down and up.
local function next_trial(m, lose)
  while true do
    if m.failed >= 2 * #m.knobs then
      local finer = false
      for i, stride in ipairs(m.stride) do
        if stride > 1 then m.stride[i], finer = stride - 1, true end
      end
      if not finer then return end
      m.failed = 0
    end
    local i, dir = m.turn // 2 % #m.knobs + 1, m.turn % 2 == 0 and -1 or 1
    local to = m.at[i] + dir * m.stride[i]
    local steps = m.knobs[i].steps
    if to >= 1 and to <= #steps and steps[m.at[i]] / steps[to] <= 1 + lose then
      m.trial = { knob = i, from = m.at[i] }
      m.at[i] = to
      return
    end
    m.turn, m.failed = m.turn + 1, m.failed + 1
  end
end

return {
  start = function(seen, m)
    m.knobs, m.at = {}, {}
    for _, knob in ipairs(seen.knobs) do
      if knob.writable and #knob.steps > 1 and knob.name == (seen.options.only or knob.name) then m.knobs[#m.knobs + 1], m.at[#m.at + 1] = knob, #knob.steps end
    end
    restart(m)
    settle(m)
  end,
  step = function(seen, m)
    local runs = seen.runs
    if #m.knobs == 0 then return nil end
    if runs.fresh == 0 or not runs.cycle then return answer(m) end
    if m.skip > 0 then m.skip = m.skip - 1 return answer(m) end
    m.t, m.n = m.t + runs.cycle * runs.fresh, m.n + runs.fresh
    m.e = m.e + (runs.joules or 1) * runs.fresh
    if m.n < 2 or m.t < (seen.options.window or 1) then return answer(m) end
    local t, edp = m.t / m.n, m.t / m.n * m.e / m.n
    local trial = m.trial
    m.trial = nil
    if not m.best then m.best, m.time = edp, t
    elseif trial then
      if edp < m.best * .998 then m.best, m.time, m.failed = edp, t, 0
      else m.at[trial.knob], m.turn, m.failed = trial.from, m.turn + 1, m.failed + 1 end
    elseif math.abs(t / m.time - 1) > .06 then restart(m) m.best, m.time = edp, t end
    next_trial(m, seen.options.lose or .25)
    settle(m)
    if not m.trial and not trial then m.skip = 0 end
    return answer(m)
  end,
}
