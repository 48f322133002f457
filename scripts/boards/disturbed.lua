-- A drawn board (drawn.lua) on which times are not what any estimate says, --board disturbed,seed=7: units that work at once slow
-- each other down, clocks go down when it is hot, and no time is the same twice. At full load it comes to half up to one
-- and a half times the degrees above the air that it stands.
local dice = require "lib.dice"

return function(values)
  local b = require "boards.drawn"(values)
  local d, watts = dice(b.seed + 1000000), 0
  for _, u in ipairs(b.units) do watts = watts + u.power.static + u.power.dynamic end
  local rise = d.from(20, 60)
  b.name, b.contention, b.jitter = "disturbed", d.from(.05, .4), d.from(.02, .1)
  b.heat = { ambient = 25, ohms = rise * d.from(.5, 1.5) / watts, tau = d.scale(.05, .5), limit = 25 + rise, slack = 3 }
  return b
end
