-- Saves a picture of each person who appears and posts it to an address: for monitor's --on. A
-- starting point.
--
--   cnnrun monitor yolo.cfg yolo.weights 0 --on scripts/on/person.lua -o seen --post http://HOST:PORT/PATH
--
-- Each is a file seen/person-NUMBER.jpg, and JSON: { came, seconds, file, picture }, the picture in base64. Without -o
-- nothing is written and no picture posted; without --post nothing is posted.
local c = require "cnnrun"
local base64 = require "lib.base64"

local wanted = { person = true } -- labels; add dog, car ...

-- The content of a box, with a margin.
local function crop(picture, b)
  local shape, more = picture:shape(), .1 * (b.x1 - b.x0 + b.y1 - b.y0) / 2
  local x0, y0 = math.max(0, math.floor(b.x0 - more)), math.max(0, math.floor(b.y0 - more))
  local x1, y1 = math.min(shape[2], math.ceil(b.x1 + more)), math.min(shape[1], math.ceil(b.y1 + more))
  return picture:region({ y0 + 1, x0 + 1, 1 }, { math.max(1, y1 - y0), math.max(1, x1 - x0), shape[3] })
end

return function(_, frame)
  for _, b in ipairs(frame.new) do
    if wanted[b.label] then
      local file, picture
      if frame.folder then
        file = ("%s/%s-%d.jpg"):format(frame.folder, b.label, b.id)
        crop(frame.picture, b):save(file)
        picture = base64.encode(c.text(file))
      end
      if frame.posts then
        frame.post { came = ("%s %d"):format(b.label, b.id), seconds = frame.seconds, file = file, picture = picture }
      end
    end
  end
end
