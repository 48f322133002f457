-- What applications that look at pictures have in common: their flags, and the way from pictures
-- in to drawings out.
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
  { "-o, --output PATH", "draw: a .png for one picture, an .mp4 (.mkv, .webm, .avi, .gif) for a video, " ..
                         "a folder for several" },
  { "--contact FILE", "all drawn pictures, small, on one sheet" },
  { "--json", "one object a picture or frame, a line each" },
  { "-q, --quiet", "no progress" },
  { "--labels FILE", "names of the classes, one a line" },
  { "--every COUNT", "each so-manyth frame or picture (1)" },
  { "--from NUMBER", "of a video: from that second on" },
  { "--to NUMBER", "and up to that one" },
}

local after = {
  { "--device NAME", "where to run: cpu, opencl:0 (the best)" },
  { "--option TEXT", "NAME=VALUE for the importer, such as shape=3,224,224", many = true },
  { "--channels ORDER", "rgb, bgr or gray" },
  { "--mean LIST", "subtract: a number a channel" },
  { "--std LIST", "divide: a number a channel" },
  { "--scale NUMBER", "multiply: value = (pixel - mean) * scale / std" },
}

M.net_flags = after

-- The flags of all, around those of one.
local function flags(own)
  local list = {}
  for _, part in ipairs { before, own, after } do table.move(part, 1, #part, #list + 1, list) end
  return list
end

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
  if drawing and options.output and options.output:match("%.png$") and
    c.exists(options.output) == "file" then
    c.output(options.output, table.unpack(inputs)) -- a folder's are looked at one by one
  end
  local look = open(options)
  local list = pictures.list({ table.unpack(options, 2) },
                             { every = math.max(1, options.every or 1), from = options.from, to = options.to },
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
           c.writer(path, { from = entry.name, start = options.from, stop = options.to })
  end, function()
    if film then film:close() end
    film = nil
  end)
  if sheet then sheet:picture():save(options.contact) end
  return math.max(code, failed)
end

function M.main(spec, open)
  spec.flags, spec.least = flags(spec.flags), 2
  return function(words)
    return args.main(words, spec, function(options) return work(options, open) end)
  end
end

return M
