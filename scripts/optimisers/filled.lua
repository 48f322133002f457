-- 1 - beta^step, the bias correction of a mean that begins at 0. In doubles, since at first it is
-- nearly 0.
local c = require "cnnrun"

return function(beta, step)
  local one, base = c.data { 1.0, dtype = "f64" }, c.data { beta, dtype = "f64" }
  return c.cast { c.sub { one, c.pow { base, step } }, to = "f32" }
end
