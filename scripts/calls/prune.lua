-- Pruning for applications (cnnrun/lab.h) by a schedule in the call itself: text is JSON,
-- `model` (the net's path), `schedule`, and the options of cnnrun prune. A schedule in a file is
-- called in the same way: see lib.prune.
local json = require "lib.json"
local prune = require "lib.prune"

return function(text, tell)
  local schedule = json.decode(text).schedule
  return prune.schedule(schedule)(text, tell)
end
