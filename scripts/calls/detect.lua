-- Detection for applications (cnnrun/lab.h). First call: text is JSON, { model = PATH,
-- ...options of cnnrun detect }; without `model` the caller's net is used. Later calls detect
-- objects in a picture: a tensor, or the path in the text. They return JSON: a list of { class,
-- label, score, box, points }.
local c = require "cnnrun"
local detector = require "lib.detector"
local json = require "lib.json"

local find

local function open(options, net)
  find = detector.open(options.model or net, options)
end

-- What the detector found, as a table for JSON: n, and for each object class, label, score, points
-- and box: { x, y, width, height }.
local function rows(list)
  local found = { n = #list }
  for i, b in ipairs(list) do
    found[i] = { class = b.class, label = find:label(b.class), score = b.score, points = b.points,
                 box = { b.x0, b.y0, b.x1 - b.x0, b.y1 - b.y0 } }
  end
  return found
end

return function(text, _, net, picture)
  if not find then return open(json.decode(text), net) end
  return json.encode(rows(find:find(picture or c.picture(text))))
end
