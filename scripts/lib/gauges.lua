-- The state of the machine during a run, sampled once a second: frequencies (`clocks`; `hz`: the
-- highest), load, power and temperature, beside numbers of the run. gauges.new():state(now, { fps =
-- ... }) returns all.
local c = require "cnnrun"
local M = {}

local Gauges = {}
Gauges.__index = Gauges

-- A reader of gauges that has seen none yet.
function M.new() return setmetatable({ seen = {}, at = -math.huge }, Gauges) end

-- The power of the whole machine if a meter has it, else the sum of all meters; and that of each
-- domain: { { name =, value = watts } ... }.
local function power(list, before)
  local sum, whole, rails = nil, nil, {}
  for _, g in ipairs(list) do
    local watts
    if g.quantity == "power" then watts = g.value
    elseif g.quantity == "energy" and g.value then
      local old = before[g.plugin .. g.name]
      if old and g.time > old.time and g.value >= old.value then
        watts = (g.value - old.value) / (g.time - old.time)
      end
      before[g.plugin .. g.name] = { value = g.value, time = g.time }
    end
    if watts then
      sum = (sum or 0) + watts
      rails[#rails + 1] = { name = g.name, value = watts }
      if g.feeds == "" or not g.feeds then whole = math.max(whole or 0, watts) end
    end
  end
  return whole or sum, #rails > 1 and rails or nil
end

-- Reads all gauges now; energies become watts since the last look.
local function look(self)
  local good, list = pcall(c.gauges)
  local seen = { simulated = c.simulated() or nil }
  self.before = self.before or {}
  for _, g in ipairs(good and list or {}) do
    if g.quantity == "knob" and g.hz then
      seen.clocks = seen.clocks or {}
      table.insert(seen.clocks, { name = g.name, hz = g.hz })
      if g.hz > (seen.hz or 0) then seen.hz, seen.machine_load = g.hz, g.load end
    elseif g.quantity == "temperature" and g.value then
      seen.temperature = math.max(seen.temperature or g.value, g.value)
    end
  end
  if good then seen.watts, seen.rails = power(list, self.before) end
  return seen
end

---@param now number seconds
---@param run table fps, inference ...
---@return table state
function Gauges:state(now, run)
  if now - self.at >= 1 then self.seen, self.at = look(self), now end
  for key, value in pairs(self.seen) do run[key] = value end
  if run.watts and run.fps and run.fps > 0 then -- Joules for a frame times its seconds.
    run.joules = run.watts / run.fps
    run.edp = run.joules / run.fps
  end
  return run
end

return M
