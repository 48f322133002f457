-- Each frame's boxes in a loop of your own: cnnrun watch MODEL SOURCE [OUT.mp4]
-- A starting point: what monitor does, without its page and its switches.
local c = require "cnnrun"
local app = require "lib.app"
local args = require "lib.args"
local detector = require "lib.detector"
local draw = require "lib.draw"
local tracks = require "lib.tracks"

-- The application: detects in a source, tracks and draws, until the source ends; words: model,
-- source, output.
local function work(words)
  local model, source, output = words[1], words[2], words[3]
  local find, tracked, size = detector.open(model, app.loading(words)), tracks.new(), nil
  if not find.net then error(model .. ": several nets in turn: cnnrun monitor runs them on a video", 0) end
  local feed = c.feed(source)                     -- Reads ahead on threads.
  local out = output and c.writer(output, { from = source })
  for frame in feed:each() do
    local shape, found = frame.picture:shape(), nil
    if frame.outputs then                         -- The net has already run.
      found = find:decode(frame.outputs, frame.place, shape, size)
    else                                          -- The first frames, and frames of another size.
      found = find:find(frame.picture)
      if not size and #find.net.inputs == 1 then  -- Others get their further inputs from `find`.
        local how
        how, size = find:how(shape)
        feed:through(find.net.model, frame.picture, how)
      end
    end
    local new = tracked:step(found, frame.seconds or frame.now)
    for _, b in ipairs(new) do print(("%.2f s: %s %d"):format(frame.seconds or frame.now, find:label(b.class), b.id)) end
    if out then
      out:write(draw.frame(frame.picture, found, function(b) return find:label(b.class) end),
                { time = frame.seconds })
    end
  end
  if out then out:close() end
end

return args.application({ operands = "NET [WEIGHTS] SOURCE [OUT.mp4]", least = 2, most = 3, nets = true, pictures = true,
                          example = "cnnrun watch yolox_nano.onnx film.mp4",
                          about = "Prints the objects that appear in a video or a camera; an example to start from." }, work)
