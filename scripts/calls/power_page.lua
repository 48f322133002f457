-- The live page of `cnnrun energy log --page`, for the program (cnnrun/lab.h). First call: text is where, "8080" or
-- "ADDRESS:8080". Later calls show a reading: JSON, { now = seconds, rails = { { name =, value = watts } ... },
-- energies = (joules so far, likewise) }.
local c = require "cnnrun"
local json = require "lib.json"
local live = require "lib.live"

local page

return function(text)
  if not page then
    page = live.page(text, nil, true)
    return
  end
  local state = json.decode(text)
  state.app, state.source, state.at = "power", c.simulated() and "power, simulated" or "power", select(2, c.date())
  state.found, state.events = { n = 0 }, { n = 0 }
  page:tell(json.encode(state))
end
