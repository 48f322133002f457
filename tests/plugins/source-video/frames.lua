-- Prints each frame of a video: number, time, height, width and the colour a quarter from its corner. A second path:
-- the frames go there, too.
local c = require "cnnrun"
return function(words)
  local samples = c.samples(words[1])
  local out = words[2] and c.writer(words[2], { from = words[1] })
  for i, picture, _, _, seconds in samples:each(200) do
    local h, w, n = table.unpack(picture:shape())
    local at = ((h // 4) * w + w // 4) * n
    print(("%d %.6f %d %d %d %d %d"):format(i, seconds, h, w, picture[at + 1] // 1, picture[at + 2] // 1,
      picture[at + 3] // 1))
    if out then out:write(picture, { time = seconds }) end
  end
  if out then out:close() end
end
