-- Shared by applications that look at pictures: their flags, reading of pictures and writing of
-- drawings.
--
--   return app.main({ usage = ..., about = ..., flags = {...} }, function(options)
--     return function(name, picture, about)   -- prints what it sees; about = { frame, seconds } of a
--                                             -- video's
--       return function(tile) ... end, "title"   -- draws it: on its own, or as a contact sheet's tile
--     end
--   end)
local c = require "cnnrun"
local args = require "lib.args"
local draw = require "lib.draw"
local pictures = require "lib.pictures"
local M = {}

local before = {
  { "-o, --output PATH", "draw: a .png, .jpg ... for one picture, an .mp4 (.mkv, .webm, .avi, .gif) for a video, " ..
                         "a folder for several" },
  { "--contact FILE", "all drawn pictures, small, on one sheet" },
  { "--every COUNT", "process every Nth frame or picture (1)" },
  { "--from SECONDS", "start position in the video" },
  { "--to SECONDS", "end position in the video" },
}

-- The options for c.load: the program's options for nets. Labels belong to the application.
function M.loading(options)
  options.labels, options.load.labels = options.load.labels, nil
  if options.mean and not options.mean:match "^[%s%d.,+eE-]+$" then
    error(("--mean %s: want a number for each channel; cnnrun run takes a mean picture"):format(options.mean), 0)
  end
  return options
end

-- A list of all flags: those common to applications, then `own`.
local function flags(own)
  local list = {}
  for _, part in ipairs { before, own } do table.move(part, 1, #part, #list + 1, list) end
  return list
end

-- Runs the application: over all pictures, drawn where an output is wanted; returns its exit
-- code.
local function work(options, open)
  local drawing, code = options.output or options.contact, 0
  if drawing then
    local able, why = draw.available()
    if not able then
      c.note(why)
      drawing, code = nil, 1
    end
  end
  pictures.refuse(options[1])
  local inputs = { options.labels or options[1], table.unpack(options) }
  if drawing and options.contact then c.output(options.contact, table.unpack(inputs)) end
  if drawing and options.output and pictures.is_picture(options.output) and
    c.exists(options.output) == "file" then
    c.output(options.output, table.unpack(inputs)) -- The pictures of a folder are checked one by one.
  end
  local look = open(options)
  local list = pictures.list({ table.unpack(options, 2) },
                             pictures.choice(options),
                             drawing and options.output)
  local place = drawing and options.output and pictures.places(options.output, list)
  local sheet = drawing and options.contact and draw.sheet()
  local path, film
  local failed = pictures.each(list, options.quiet, function(name, picture, about)
    local drawn, title = look(name, picture, about)
    if film then film:write(drawn(draw.size(picture)), { time = about.seconds })
    elseif place then drawn():save(path) end
    if sheet and not about then sheet:add(drawn(draw.tile), title) end
  end, function(entry)
    path = place and place(entry)
    film = path and entry.frames and
           c.writer(path, { from = entry.source, start = options.from, stop = options.to })
  end, function()
    if film then film:close() end
    film = nil
  end)
  if sheet then sheet:picture():save(options.contact) end
  return math.max(code, failed)
end

-- The application's table, with the flags that all have.
function M.main(spec, open)
  spec.flags, spec.least, spec.nets, spec.pictures = flags(spec.flags), 2, true, true
  return args.application(spec, function(options) return work(M.loading(options), open) end)
end

return M
