-- Watches a camera, a stream or a video: cnnrun monitor MODEL SOURCE [--page PORT] [-o OUT.mp4]
local c = require "cnnrun"
local app = require "lib.app"
local args = require "lib.args"
local comeback = require "lib.comeback"
local detector = require "lib.detector"
local draw = require "lib.draw"
local families = require "lib.families"
local gauges = require "lib.gauges"
local json = require "lib.json"
local live = require "lib.live"
local pictures = require "lib.pictures"
local recorder = require "lib.recorder"
local watchers = require "lib.watchers"

local flags = {
  { "-o, --output PATH", "record the drawn frames: .mp4, .mkv, .webm, .mov, .avi; or a folder for files that --on saves" },
  { "--segment SECONDS", "record in parts of that length, into the folder of -o" },
  { "--segment-limit SIZE", "maximum size of all parts, such as 20G; the oldest are removed first (no limit)" },
  { "--loop", "a file: repeat it without end" },
  { "--pace HOW", "a file: real: as fast as it was filmed; fast: as fast as this machine can (fast)" },
  { "--page WHERE", "a live page on this port of this machine alone, or on ADDRESS:PORT" },
  { "--token TEXT", "the page's password for changes (default: a random one)" },
  { "--app NAME", "detect, faces or classify (detected from the model)" },
  { "--governor POLICY", "frequency policy during the run: edp, fixed,at=lowest, mine.lua" },
  { "--place POLICY", "policy that places the net on devices before the start: best, fastest, mine.lua" },
  { "--on FILE", "Lua that returns function(found, frame): called with each frame's boxes" },
  { "--post URL", "an address for posts of --on; without --on, for arrivals and departures" },
  { "--every COUNT", "process every Nth frame (1)" },
  { "--from SECONDS", "start position in the video" },
  { "--to SECONDS", "end position in the video" },
  { "--score NUMBER", "minimum score (the family's)" },
  { "--conf NUMBER", "the same" },
  { "--classes LIST", "only these classes: names or numbers, person,car" },
  { "--save-crops DIR", "save the content of each new box as a picture in this folder" },
  { "--overlap NUMBER", "maximum overlap of boxes of a class (the family's)" },
  { "--across NUMBER", "maximum overlap of boxes of different classes (0.8)" },
  { "--family NAME", "output decoder (detected from the model)" },
  { "--size SIZE", "size of an input that the net leaves open: HEIGHTxWIDTH, or net for its own" },
  { "--longest COUNT", "or the picture's shape, with the longer side this long" },
  { "--smallest COUNT", "mtcnn: smallest face, in pixels (20)" },
  { "--swapped ANSWER", "mtcnn: yes, if the nets take transposed pictures" },
  { "--top COUNT", "classify: number of classes to print (3)" },
  { "--background COUNT", "classify: number of classes before the first label, such as a background" },
}

local spec = {
  operands = "NET [WEIGHTS] SOURCE", least = 2, most = 2, flags = flags, nets = true, pictures = true,
  example = "cnnrun monitor yolox_nano.onnx /dev/video0 --page 8080",
  about = "Watches a video, a camera (0, /dev/video0) or a stream (rtsp://..., http://...): boxes, names and " ..
          "numbers are drawn on each frame, recorded with -o and shown on a live page with --page. For a " ..
          "camera it uses the latest frame, for a file every frame. A camera or a stream that fails is opened " ..
          "again. A page stays when the source ends. Ctrl-C ends the program, and files are complete.",
  more = families.help(), refused = { ["--port"] = "the page's port is --page" },
}
for name, text in pairs(detector.other_names) do spec.refused[name] = text end

-- Frames per second over the last two seconds, and the net's load.
local function pace()
  local done, busy = {}, {}
  return function(frame)
    local now = frame.done or frame.now
    done[#done + 1], busy[#busy + 1] = now, frame.took or 0
    while #done > 2 and now - done[1] > 2 do
      table.remove(done, 1)
      table.remove(busy, 1)
    end
    local span, sum = now - done[1], 0
    if #done < 2 or span <= 0 then return nil, nil end
    for i = 2, #busy do sum = sum + busy[i] end
    return (#done - 1) / span, math.min(1, sum / span)
  end
end

-- The number by the format; nil stays nil.
local function number(v, form) return v and form:format(v) end

-- The line on the picture, as in the first document's fig. 5.1: rate, load, frequency, power.
local function status_of(s)
  local parts = {}
  -- Adds a part of the line; nil: nothing.
  local function add(text) if text then parts[#parts + 1] = text end end
  add(number(s.fps, "%.1f FPS"))
  add(number(s.inference and s.inference * 1000, "%.1f ms"))
  add(number(s.load and s.load * 100, "load %.0f%%"))
  add(number(s.hz and s.hz / 1e6, "%.0f MHz"))
  add(number(s.watts, "%.2f W"))
  add(s.governor)
  return table.concat(parts, "   ")
end

-- The folder for pictures of --on; all else is recorded to.
local function is_folder(path) return c.exists(path) == "folder" or not path:match "%.%w+$" and not path:find("%", 1, true) end

-- The places for the recording and for pictures of --on, by -o and --segment.
local function outputs_of(self, options)
  local segment = options.segment
  if segment and not (segment >= 1 and segment <= 86400) then error("--segment: want 1 to 86400 seconds", 0) end
  if segment and not (options.output and is_folder(options.output)) then
    error("--segment: -o names the folder that the parts go to", 0)
  end
  if options.segment_limit then
    if not segment then error("--segment-limit: want --segment SECONDS, too", 0) end
    self.limit = recorder.bytes("--segment-limit", options.segment_limit)
  end
  if not options.output then return end
  if is_folder(options.output) then
    self.folder, self.segment = options.output, segment
    c.folder(options.output)
  else
    if not pictures.is_video(options.output) and not options.output:find("%", 1, true) then
      error("-o " .. options.output .. ": want .mp4, .mkv, .webm, .mov or .avi, or a folder for files that --on saves", 0)
    end
    c.output(options.output, table.unpack(options))
  end
  self.records = (segment or not self.folder) and options.output
end

-- Checks and applies all options, before the first frame.
local function begin(options)
  local model, source = options[1], pictures.spec(options[2], ".mp4") -- Uses all pictures of a GIF.
  pictures.refuse(model)
  if options.pace and options.pace ~= "real" and options.pace ~= "fast" then
    error("--pace: want real or fast, got " .. options.pace, 0)
  end
  local self = { options = options, source = source, measured = gauges.new(), paced = pace(), sizes = {},
                 number = 0, now = 0, at = 0, lost = 0, skipped = 0 }
  outputs_of(self, options)
  if self.records or options.page then assert(draw.available()) end
  self.on = options.on and live.script(options.on)
  self.crops = options.save_crops and pictures.crops(options.save_crops)
  self.watcher = watchers.open(model, options)
  self.switches = live.switches(self.watcher, options)
  self.page = options.page and live.page(options.page, options.token)
  self.poster = options.post and live.poster(options.post)
  return self
end

-- Reports an event besides frames: as a line, as an object, on the page, and posted if no script
-- gets frames.
local function tell(self, text, object, later)
  local at = tonumber(("%.3f"):format((self.ends and self.ends.at or 0) + (later or 0)))
  object.seconds = at
  if self.options.json then print(json.encode(object, 9))
  elseif not self.options.quiet then print(("%9.2f s  %s"):format(at, text)) end
  if self.poster and not self.on then self.poster:post { seconds = at, text = text } end
  if self.page then self.switches:now(text) end
end

-- Tells an event of the recording: as JSON that a file was ended or removed, in any case that recording failed.
local function tell_recording(self, event)
  if event.segment then
    if self.options.json then print(json.encode(event, 9)) end
  elseif event.removed then
    if self.options.json then print(json.encode(event, 9)) end
  else
    local again = event.again and ("; tried again in %d s"):format(event.again) or ""
    local text = "not recorded: " .. args.plain(event.failed) .. again
    if self.options.json or self.options.quiet then c.note(text) end
    tell(self, text, { not_recorded = args.plain(event.failed), again = event.again })
  end
end

-- Reports that the source failed or returned, once each, and every attempt.
local function hooks_of(self)
  local hooks = {}
  -- A source was opened: takes it over, as the first frame of it comes next.
  function hooks.opened(feed)
    self.feed, self.switches.feed, self.switches.key, self.first = feed, feed, nil, nil
  end
  -- A source ended: later frames are numbered and timed after it.
  function hooks.ended(gap)
    local ends = self.ends
    self.number, self.now, self.at = ends.number, ends.now + math.max(gap, .04), ends.at + math.max(gap, .04)
    self.lost = ends.lost
  end
  -- The source is gone: tells why and when it is tried again.
  function hooks.away(why, pause)
    local again = pause and ("; tried again in %d s"):format(pause) or ""
    self.switches:away { why = why, again = pause or false }
    tell(self, ("the source is away: %s%s"):format(why, again), { source = "away", why = why, again = pause })
    if self.recorder and self.recorder.folder and self.worker then
      self.recorder:finish(self.worker)
      self:send()
    end
  end
  -- Tells that the source is back after so many seconds.
  function hooks.back(after)
    self.switches:away(nil)
    tell(self, ("the source is back after %d s"):format(after), { source = "back", after = after }, after)
  end
  -- While nothing comes: answers the page's requests, if there is a page.
  function hooks.idle()
    if self.page then self.switches:idle(self.page) end
  end
  return hooks
end

-- For a file that is shown at its own rate: waits until the frame is due. False: it is late, and
-- others follow.
local function is_due(self, frame)
  if self.options.pace ~= "real" or not frame.seconds or self.feed:live() then return true end
  local first = self.first or { now = frame.now, seconds = frame.seconds }
  self.first = first
  local due = first.now + frame.seconds - first.seconds
  if due > frame.now then
    c.wait(math.min(due - frame.now, 60))
    frame.now = due
  elseif frame.now - due > .2 and self.skipped < 4 then
    self.skipped = self.skipped + 1
    self.passed = (self.passed or 0) + 1
    return false
  end
  self.skipped = 0
  return true
end

-- Handles one frame; continues the numbers and the seconds of earlier plays.
local function look(self, frame)
  local shape, watcher = frame.picture:shape(), self.watcher
  local key, found = shape[1] .. "x" .. shape[2], nil
  if frame.outputs then found = watcher:decode(frame.outputs, frame.place, shape, self.sizes[key])
  else
    found = watcher:find(frame.picture)
    self.sizes[key] = self.switches:through(watcher, frame.picture, shape, key)
  end
  frame.number, frame.lost = frame.number + self.number, (frame.lost or 0) + (self.passed or 0) + self.lost
  for _, name in ipairs { "now", "came", "done" } do frame[name] = frame[name] and frame[name] + self.now end
  frame.seconds = frame.seconds and frame.seconds + self.at
  return found
end

-- Saves the pictures of what is new, if that was asked for.
local function save_crops(self, frame, new)
  if not self.crops or not new[1] or not new[1].x0 then return end
  self.crops(self.source:match "[^/]*$", frame.picture, { frame = frame.number }, new, function(b) return b.label end)
end

-- One frame: finds, tracks, shows and records; returns what was found.
local function step(self, frame)
  local watcher, switches, page, options = self.watcher, self.switches, self.page, self.options
  if page then switches:take(page:asked()) end
  local found = look(self, frame)
  local at = frame.seconds or frame.now
  local new, gone = watcher:track(found, at)
  switches:point(frame.picture)
  save_crops(self, frame, new)
  local fps, load = self.paced(frame)
  local state = self.measured:state(frame.now, { fps = fps, load = load, inference = frame.took,
    latency = frame.now - frame.came, governor = switches.governor, policy = switches.policy })
  local events = watcher:events(new, gone, at)
  if self.on then self.on(found, live.frame(frame, state, new, gone, self.poster, self.folder))
  elseif self.poster then
    for _, event in ipairs(events) do self.poster:post(event) end
  end
  watcher:tell(frame, found, new, gone, at, options)
  self.last = function()
    return watcher:draw(frame.picture, found, switches:over(draw.status(status_of(state))))
  end
  if self.recorder or page and page:wanted() == 1 then
    local drawn = self.last()
    if self.recorder then self.recorder:write(self.worker, drawn, frame.seconds or frame.now) end
    if page then self.worker:call(page, "picture", drawn) end
    self:send()
  end
  if page then switches:show(page, frame, state, watcher:list(found), self.source, events) end
  self.ends = { number = frame.number, now = frame.now, at = at, lost = frame.lost - (self.passed or 0) }
end

-- Starts the thread that draws and records, in self.worker.
local function new_worker(self)
  self.worker = c.worker()
  draw.by(self.worker)
end

-- Ends the batch. If the recording fails, another worker does the rest.
local function send(self)
  local good, why = pcall(self.worker.send, self.worker)
  if good then return end
  if not (self.recorder and self.recorder:failed(why)) then error(why, 0) end
  pcall(self.worker.close, self.worker)
  if not self.recorder.folder then self.code, self.recorder = self.recorder.code, nil end
  new_worker(self)
end

-- Ends the recording and sends what was told of it.
local function end_recording(self)
  if not self.recorder then return end
  self.recorder:finish(self.worker)
  self:send()
end

-- The source, from its first to its last frame.
local function play(self)
  local options = self.options
  local source = comeback.open(self.source, pictures.choice(options),
                               hooks_of(self), options.loop)
  if self.records and not self.played then
    local sound = not options.loop and not source.is_live and (self.source == "-" or #c.samples(self.source) < 0)
    self.recorder = recorder.open { path = self.records, segment = self.segment, limit = self.limit,
                                    source = sound and self.source or nil, from = options.from, to = options.to,
                                    tell = function(event) tell_recording(self, event) end }
  end
  self.played = true
  for frame in source:each() do
    if is_due(self, frame) then step(self, frame) end
  end
  source:close()
  if not self.ends then error(self.source .. ": there are no frames in it", 0) end
  self.number, self.now, self.at, self.lost = self.ends.number, self.ends.now + .04, self.ends.at + .04, self.ends.lost
end

-- The application: plays the source until its end.
local function watch(options)
  local self = begin(app.loading(options))
  self.send = send
  while true do
    if self.records or self.page then new_worker(self) end
    play(self)
    end_recording(self)
    if self.worker then self.worker:close() end
    if self.recorder then self.code = self.recorder:ended() end
    self.recorder = nil
    if not self.page then break end
    c.note("the source has ended; the page stays until Ctrl-C")
    local shown
    self.switches:stay(self.page, function()
      if not shown and self.page:wanted() == 1 then
        shown = true
        local worker = c.worker()
        draw.by(worker)
        worker:call(self.page, "picture", self.last())
        worker:send()
        worker:close()
      end
    end)
  end
  if self.poster then self.poster:close() end
  self.switches:stop()
  if self.ends and not options.quiet and not options.json then
    c.note(("%d frames%s"):format(self.ends.number, self.ends.lost > 0 and (", %d more lost"):format(self.ends.lost) or ""))
  end
  return self.code or 0
end

return args.application(spec, watch)
