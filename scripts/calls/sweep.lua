-- The tables and pictures of a sweep, for the program (cnnrun/script.h): text is JSON with `folder`, in which
-- results.jsonl lies, and what lib.sweeps wants.
local c = require "cnnrun"
local json = require "lib.json"
local sweeps = require "lib.sweeps"

return function(text)
  local about = json.decode(text)
  sweeps.report(c.text(about.folder .. "/results.jsonl"), about)
end
