-- Watches a camera, a stream or a video: cnnrun monitor MODEL SOURCE [--page PORT] [-o OUT.mp4]
local c = require "cnnrun"
local app = require "lib.app"
local args = require "lib.args"
local draw = require "lib.draw"
local families = require "lib.families"
local gauges = require "lib.gauges"
local json = require "lib.json"
local live = require "lib.live"
local pictures = require "lib.pictures"
local watchers = require "lib.watchers"

local flags = {
  { "-o, --output FILE", "record what is drawn: .mp4, .mkv, .webm, .mov, .avi" },
  { "--page WHERE", "a live page on this port of this machine alone, or on ADDRESS:PORT" },
  { "--token TEXT", "what the page wants of whoever changes something (one at random)" },
  { "--app NAME", "detect, faces or classify (told by the net: detect)" },
  { "--governor POLICY", "set frequencies by it meanwhile: edp, fixed,at=lowest, mine.lua" },
  { "--place POLICY", "have a policy share the net among devices first: best, fastest, mine.lua" },
  { "--on FILE", "Lua that returns function(found, frame): called with each frame's boxes" },
  { "--post URL", "an address for what --on posts; without --on, for who came and went" },
  { "--json", "one object a frame, a line each" },
  { "-q, --quiet", "nothing of who came and went" },
  { "--labels FILE", "names of the classes, one a line" },
  { "--every COUNT", "each so-manyth frame (1)" },
  { "--from NUMBER", "of a video: from that second on" },
  { "--to NUMBER", "and up to that one" },
  { "--score NUMBER", "at least this score (the family's)" },
  { "--overlap NUMBER", "boxes of a class share at most this part (the family's)" },
  { "--across NUMBER", "boxes of different classes share at most this part (0.8)" },
  { "--family NAME", "who decodes (told by the net)" },
  { "--size SIZE", "of an input that the net leaves open: HEIGHTxWIDTH, or net for its own" },
  { "--longest COUNT", "or the picture's shape, with the longer side this long" },
  { "--smallest COUNT", "mtcnn: smallest face, in pixels (20)" },
  { "--swapped ANSWER", "mtcnn: yes, when the nets see rows as columns" },
  { "--letterbox LEVEL", "keep the picture's shape, fill with this grey" },
  { "--top COUNT", "classify: how many classes (3)" },
  { "--background COUNT", "classify: so many classes in front of the labels' first are none of them" },
  { "--resize SIZE", "classify: HxW, or the shorter side" },
  { "--crop SIZE", "classify: the middle: HxW, N, or a part such as 0.875" },
}
table.move(app.net_flags, 1, #app.net_flags, #flags + 1, flags)

local spec = {
  usage = "monitor MODEL SOURCE [options]", least = 2, flags = flags,
  about = "Watches a video, a camera (/dev/video0) or a stream (rtsp://..., http://...): boxes, names and " ..
          "numbers are drawn on each frame, recorded with -o and shown on a live page with --page. Of a " ..
          "camera the latest frame is taken, of a file every one. Ctrl-C ends it, and leaves whole files.",
  more = families.help(),
}

-- Frames a second over the last two seconds, and how busy the net was.
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

local function number(v, form) return v and form:format(v) end

-- The line on the picture, as the first document's fig. 5.1 has it: pace, load, frequency, power.
local function status_of(s)
  local parts = {}
  local function add(text) if text then parts[#parts + 1] = text end end
  add(number(s.fps, "%.1f FPS"))
  add(number(s.inference and s.inference * 1000, "%.1f ms"))
  add(number(s.load and s.load * 100, "load %.0f%%"))
  add(number(s.hz and s.hz / 1e6, "%.0f MHz"))
  add(number(s.watts, "%.2f W"))
  add(s.governor)
  return table.concat(parts, "   ")
end

local function watch(options)
  local model, source = options[1], pictures.spec(options[2], ".mp4") -- of a GIF all pictures
  pictures.refuse(model)
  if options.output then
    if not pictures.is_video(options.output) and not options.output:find("%", 1, true) then
      error("-o " .. options.output .. ": want .mp4, .mkv, .webm, .mov or .avi", 0)
    end
    c.output(options.output, table.unpack(options))
  end
  local drawing = options.output or options.page
  if drawing then assert(draw.available()) end
  local on = options.on and live.script(options.on)
  local watcher = watchers.open(model, options)
  local switches = live.switches(watcher, options)
  local feed = c.feed(source, { every = math.max(1, options.every or 1), from = options.from, to = options.to })
  local out = options.output and c.writer(options.output, { from = source, start = options.from, stop = options.to })
  local page = options.page and live.page(options.page, options.token)
  local paced, measured, sizes = pace(), gauges.new(), {}
  local worker, poster = drawing and c.worker(), options.post and live.poster(options.post)
  if worker then draw.by(worker) end
  switches.feed = feed
  for frame in feed:each() do
    local shape = frame.picture:shape()
    local key, found = shape[1] .. "x" .. shape[2], nil
    if page then switches:take(page:asked()) end
    if frame.outputs then
      found = watcher:decode(frame.outputs, frame.place, shape, sizes[key])
    else
      found = watcher:find(frame.picture)
      sizes[key] = switches:through(watcher, frame.picture, shape, key)
    end
    local at = frame.seconds or frame.now
    local new, gone = watcher:track(found, at)
    switches:point(frame.picture)
    local fps, load = paced(frame)
    local state = measured:state(frame.now, { fps = fps, load = load, inference = frame.took,
      latency = frame.now - frame.came, governor = switches.governor, policy = switches.policy })
    local events = watcher:events(new, gone, at)
    if on then on(found, live.frame(frame, state, new, gone, poster))
    elseif poster then
      for _, event in ipairs(events) do poster:post(event) end
    end
    watcher:tell(frame, found, new, gone, at, options)
    if out or page and page:wanted() == 1 then
      local drawn = watcher:draw(frame.picture, found, switches:over(draw.status(status_of(state))))
      if out then worker:write(out, drawn, { time = frame.seconds }) end
      if page then worker:call(page, "picture", drawn) end
      worker:send()
    end
    if page then
      switches:show(page, frame, state, watcher:list(found), source, events)
    end
  end
  if worker then worker:close() end
  if poster then poster:close() end
  if out then out:close() end
  switches:stop()
  return 0
end

return function(words) return args.main(words, spec, watch) end
