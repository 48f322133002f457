-- The tables and plots of a sweep, for the program (cnnrun/lab.h): text is JSON with `folder`,
-- which has results.jsonl, and the arguments of lib.sweeps.
local c = require "cnnrun"
local json = require "lib.json"
local sweeps = require "lib.sweeps"

return function(text)
  local about = json.decode(text)
  sweeps.report(c.text(about.folder .. "/results.jsonl"), about)
end
