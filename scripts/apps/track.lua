-- Tracks what is marked in the first picture: cnnrun track SOURCE --box X,Y,W,H [-o OUT]
local c = require "cnnrun"
local args = require "lib.args"
local draw = require "lib.draw"
local cascade = require "lib.cascade"
local follow = require "lib.follow"
local json = require "lib.json"
local pictures = require "lib.pictures"

local spec = {
  operands = "SOURCE... --box X,Y,W,H",
  example = "cnnrun track film.mp4 --box 142,125,90,39 -o followed.mp4",
  about = "Tracks one object through pictures, folders of them, a video or a camera (0, /dev/video0): learns its appearance, " ..
          "reports when it is out of view, and finds it again. Prints a line for each frame: its " ..
          "number, x, y, width, height in pixels from the top left, confidence (0 to 1).",
  flags = {
    { "--box LIST", "position of the object in the first frame: X,Y,WIDTH,HEIGHT" },
    { "-o, --output PATH", "draw: a video (.mp4, .mkv ...), or a folder with a picture for each frame" },
    { "--compare", "with options of nets: also compare patches on the device (the detector's third stage)" },
    { "--times", "with --json: ms, the tracker's time for the frame" },
    { "--seed COUNT", "seed of all random choices (1); the same seed gives the same boxes" },
    { "--model FILE", "begin with the object learned there; without --box the tracker searches for it" },
    { "--save FILE", "save the learned object" },
    { "--every COUNT", "process every Nth frame or picture (1)" },
    { "--from SECONDS", "videos: begin at this second" },
    { "--to SECONDS", "videos: end at this second" },
    { "--set TEXT", "NAME=VALUE, an option of the tracker (below); repeatable", many = true },
  },
  least = 1, nets = true, without = "frames go to the tracker as they are",
  refused = {},
}
local no_file = "the tracker's net is made here, of no file"
for _, name in ipairs { "weights", "labels", "net", "option", "symbol" } do spec.refused["--" .. name] = no_file end

-- The box that --box gives; an error where it is no four numbers.
local function box_of(text)
  local box = {}
  for word in (text .. ","):gmatch("([^,]*),") do box[#box + 1] = tonumber(word) end
  local commas = select(2, text:gsub(",", ""))
  if #box ~= 4 or commas ~= 3 then error(("--box %s: want X,Y,WIDTH,HEIGHT"):format(text), 0) end
  return box
end

-- A tracker with the options' seed, threads and settings.
local function tracker_of(options)
  local list = { seed = options.seed or 1, threads = options.threads }
  for _, word in ipairs(options.set or {}) do
    local name, value = word:match("^([%w_]+)=(.+)$")
    value = tonumber(value)
    if not value then error(("--set %s: want NAME=NUMBER"):format(word), 0) end
    list[name] = value
  end
  local tracker = c.object("tld", list)
  if options.model then tracker:load(c.text(options.model)) end
  return tracker
end

-- The output for drawn frames: write(picture, seconds) and close(); nil: none.
local function sink_of(options)
  local out = options.output
  if not out then return nil end
  local able, why = draw.available()
  if not able then error(why, 0) end
  local first = options[1]
  if pictures.is_video(out) then
    c.output(out, table.unpack(options))
    local moves = #options == 1 and #c.samples(first) < 0 -- Its sound and its times are kept.
    return c.writer(out, moves and { from = first, start = options.from, stop = options.to } or nil)
  end
  if out:find("%", 1, true) then return c.writer(out) end
  if pictures.is_picture(out) then
    error(("-o %s: several frames need a folder, a video, or numbered pictures, frames-%%04d.png"):format(out), 0)
  end
  c.folder(out)
  return c.writer(out:gsub("/+$", "") .. "/%05d.png")
end

-- v rounded to this many decimal digits, as a number.
local function rounded(v, digits) return tonumber((("%%.%df"):format(digits):format(v):gsub(",", "."))) end

-- Prints where the object is in a frame.
local function tell(options, frame, r)
  local box = r.box and { rounded(r.box[1], 2), rounded(r.box[2], 2), rounded(r.box[3], 2), rounded(r.box[4], 2) }
  if options.json then
    print(json.encode({ frame = frame, box = box or json.null, confidence = rounded(r.confidence, 4), error = r.error,
                        ms = options.times and r.ms or nil }, 6))
  elseif r.error then print(("%6d  unreadable"):format(frame))
  elseif not box then print(("%6d  absent"):format(frame))
  else print((("%6d  %7.1f %7.1f %7.1f %7.1f  %.2f"):format(frame, box[1], box[2], box[3], box[4], r.confidence))) end
end

-- The application: tracks one object through a source.
local function work(options)
  local box = options.box and box_of(options.box)
  if not box and not options.model then error("--box X,Y,WIDTH,HEIGHT is missing: the object to track", 0) end
  for i, word in ipairs(options) do options[i] = pictures.spec(word, ".mp4") end -- Uses all pictures of a GIF.
  for _, word in ipairs(options.save and options or {}) do
    local folder = word:gsub("/*$", "/")
    if options.save:sub(1, #folder) == folder and c.exists(options.save) then
      error(("--save %s: this file is an input"):format(options.save), 0)
    end
    c.output(options.save, word)
  end
  local tracker = tracker_of(options)
  local away = options.compare or next(options.load) ~= nil -- Any option of nets is given.
  local run = follow.start(tracker, box, options.model ~= nil, away and cascade.new(tracker, options.load, options.compare))
  local sink, frames = sink_of(options), 0
  local failed = follow.each({ table.unpack(options) }, pictures.choice(options), function(frame, picture, seconds, why)
    frames = frame
    local r = run:frame(picture, why)
    if r.error then c.note(("frame %d: %s"):format(frame, r.error)) end
    tell(options, frame, r)
    if sink and picture then sink:write(run:drawn(picture, r), { time = seconds }) end
  end)
  if sink then sink:close() end
  if frames == 0 then error(table.concat(options, ", ") .. ": there are no pictures in it", 0) end
  if options.save then c.write(options.save, run.tracker:save()) end
  if not options.quiet and not options.json then
    c.note(("%d frames, in %d of them it is absent; %.2f ms a frame"):format(frames, run.absent, run:milliseconds()))
  end
  return failed
end

-- The tracker's own options, as lines for the help; or that the plugin is missing.
function spec.more()
  local good, tracker = pcall(c.object, "tld")
  if not good then return "The plugin object-tld, which tracks, is missing." end
  local lines = { "With --json one object for each frame: frame, box ([x, y, w, h] or null), confidence.",
                  "Options of nets are for the detector's first stages, which then run as a net beside the tracker:",
                  "--device opencl:0, or --policy fastest --devices cpu,opencl:0. --compare adds the third stage.",
                  "Options of the tracker, with their defaults (\"document\": the thesis; \"authors\": OpenTLD):" }
  for line in tracker:options():gmatch("[^\n]+") do
    local name, value, help = line:match("^(%S+) (%S+) (.*)$")
    lines[#lines + 1] = ("  %-25s %s"):format(name .. "=" .. value, args.wrap(help, 68, 28))
  end
  return table.concat(lines, "\n")
end

return args.application(spec, work)
