-- What applications that look at pictures have in common: their flags, and the way from pictures
-- in to drawings out.
--
--   return app.main({ usage = ..., about = ..., flags = {...} }, function(options)
--     return function(name, picture)   -- prints what it sees
--       return function(tile) ... end, "title"   -- draws it: on its own, or as a contact sheet's tile
--     end
--   end)
local c = require "cnnrun"
local args = require "lib.args"
local draw = require "lib.draw"
local pictures = require "lib.pictures"
local M = {}

local before = {
  { "-o, --output PATH", "draw: a .png for one picture, a folder for several" },
  { "--contact FILE", "all drawn pictures, small, on one sheet" },
  { "--json", "one object a picture, a line each" },
  { "-q, --quiet", "no progress" },
  { "--labels FILE", "names of the classes, one a line" },
}

local after = {
  { "--device NAME", "where to run: cpu, opencl:0 (the best)" },
  { "--option TEXT", "NAME=VALUE for the importer, such as shape=3,224,224", many = true },
  { "--channels ORDER", "rgb, bgr or gray" },
  { "--mean LIST", "subtract: a number a channel" },
  { "--std LIST", "divide: a number a channel" },
  { "--scale NUMBER", "multiply: value = (pixel - mean) * scale / std" },
}

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
  local list = pictures.list({ table.unpack(options, 2) })
  local place = drawing and options.output and pictures.places(options.output, #list)
  local sheet = drawing and options.contact and draw.sheet()
  local failed = pictures.each(list, options.quiet, function(name, picture)
    local drawn, title = look(name, picture)
    if place then drawn():save(place(name)) end
    if sheet then sheet:add(drawn(draw.tile), title) end
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
