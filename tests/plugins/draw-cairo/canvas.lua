-- The object "canvas", told as TAP by canvas.t: where its ink falls, and what it refuses.
local c = require "cnnrun"

local n = 0
-- Prints one numbered TAP line: ok if `good`, else not ok.
local function ok(good, what)
  n = n + 1
  print((good and "ok " or "not ok ") .. n .. " - " .. what)
end
-- A test: f fails with such a message.
local function fails(pattern, what, f, ...)
  local good, why = pcall(f, ...)
  ok(not good and why:find(pattern) ~= nil, what)
  if good or not why:find(pattern) then print("# " .. tostring(why)) end
end

local red, black, white = { 1, 0, 0 }, { 0, 0, 0 }, { 1, 1, 1 }

-- A new canvas.
local function fresh(options)
  options = options or {}
  options.width, options.height = options.width or 40, options.height or 30
  local canvas = c.object("canvas", options)
  canvas:fill({ 0, 0, options.width, options.height }, white)
  return canvas
end

-- Red, green and blue of pixel (x, y) as one number.
local function at(picture, x, y)
  local i = (y * picture:shape()[2] + x) * 3
  return picture[i + 1] * 65536 + picture[i + 2] * 256 + picture[i + 3]
end

-- The box of all that is not white: x0, y0, x1, y1; nil when all is.
local function ink(canvas)
  local picture = canvas:pixels()
  local shape, x0, y0, x1, y1 = picture:shape(), nil, nil, nil, nil
  for y = 0, shape[1] - 1 do
    for x = 0, shape[2] - 1 do
      if at(picture, x, y) ~= 0xffffff then
        x0, x1 = math.min(x0 or x, x), math.max(x1 or x, x)
        y0, y1 = y0 or y, y
      end
    end
  end
  return x0, y0, x1, y1
end

-- Tests: shapes.
local function shapes()
  local canvas = fresh()
  canvas:line({ 5, 10.5, 20, 10.5, 20, 20.5 }, red, 1)
  local p = canvas:pixels()
  ok(at(p, 6, 10) == 0xff0000 and at(p, 12, 10) == 0xff0000 and at(p, 12, 11) == 0xffffff, "a line")
  canvas = fresh()
  canvas:line({ 0, 10.5, 40, 10.5 }, red, 1, { 10, 5 })
  p = canvas:pixels()
  ok(at(p, 5, 10) == 0xff0000 and at(p, 12, 10) == 0xffffff and at(p, 20, 10) == 0xff0000, "a broken one")
  canvas:line({ 0, 15.5, 40, 15.5 }, red, 1)
  ok(at(canvas:pixels(), 12, 15) == 0xff0000, "the next is whole again")
  canvas = fresh()
  canvas:area({ 10, 10, 30, 10, 10, 25 }, red)
  p = canvas:pixels()
  ok(at(p, 11, 12) == 0xff0000 and at(p, 28, 23) == 0xffffff, "an area")
  canvas = fresh()
  canvas:clip { 10, 10, 5, 5 }
  canvas:fill({ 0, 0, 40, 30 }, red)
  local x0, y0, x1, y1 = ink(canvas)
  ok(x0 == 10 and y0 == 10 and x1 == 14 and y1 == 14, "nothing outside of a clip")
  canvas:clip()
  canvas:fill({ 0, 0, 40, 30 }, red)
  ok(at(canvas:pixels(), 39, 29) == 0xff0000, "until it is taken away")
end

-- Tests: texts.
local function letters()
  local canvas = fresh { width = 100, height = 100 }
  canvas:text("mmmm", { 30, 30 }, 12, black)
  local x0, y0, x1, y1 = ink(canvas)
  local extent = canvas:extent("mmmm", 12)
  ok(x0 >= 29 and y0 >= 30 and x1 <= 31 + extent[1] and y1 <= 31 + extent[2], "text lies in its extent")
  canvas = fresh { width = 100, height = 100 }
  canvas:text("mmmm", { 30, 80 }, 12, black, 90)
  x0, y0, x1, y1 = ink(canvas)
  ok(x0 >= 29 and x1 <= 31 + extent[2] and y1 <= 80 and y0 >= 79 - extent[1] and y1 - y0 > x1 - x0,
     "turned, it goes up from its place")
  local small, large = fresh(), fresh { scale = 3 }
  local a, b = small:extent("wide text", 11), large:extent("wide text", 11)
  ok(math.abs(a[1] - b[1]) < 4, "in a larger picture it is as wide, in units")
end

-- Tests: scales.
local function sizes()
  local canvas = fresh { scale = 2.5 }
  canvas:fill({ 10, 10, 10, 10 }, red)
  local p = canvas:pixels()
  ok(tostring(p) == "u8[75,100,3]" and at(p, 26, 26) == 0xff0000 and at(p, 51, 26) == 0xffffff,
     "units of some pixels each")
  canvas = fresh { svg = true }
  canvas:fill({ 10, 10, 10, 10 }, red)
  canvas:text("text", { 1, 1 }, 9, black)
  local text = canvas:svg()
  ok(type(text) == "string" and text:find('<svg[^>]*width="40px"') and text:find("</svg>%s*$"), "SVG")
  ok(canvas:svg() == text, "as often as it is asked for")
  fails("", "then nothing is drawn any more", canvas.fill, canvas, { 0, 0, 1, 1 }, red)
  fails("svg%(%)", "it has no pixels", canvas.pixels, canvas)
  fails("svg = true", "and pixels are no SVG", fresh().svg, fresh())
end

-- Tests: wrong calls.
local function mistakes()
  local canvas = fresh()
  fails("two points or more", "one point", canvas.line, canvas, { 1, 1 }, red, 1)
  fails("two points or more", "half a point", canvas.area, canvas, { 1, 1, 2, 2, 3 }, red)
  fails("finite", "no number", canvas.line, canvas, { 1, 1, 0 / 0, 2 }, red, 1)
  fails("finite", "an infinite one", canvas.area, canvas, { 1, 1, math.huge, 2 }, red)
  fails("eight", "many dashes", canvas.line, canvas, { 1, 1, 2, 2 }, red, 1, { 1, 1, 1, 1, 1, 1, 1, 1, 1 })
  fails(">= 0", "dashes back", canvas.line, canvas, { 1, 1, 2, 2 }, red, 1, { -1, 2 })
  fails("want 4 numbers", "a clip of three", canvas.clip, canvas, { 1, 2, 3 })
  fails("scale", "a scale of 0", c.object, "canvas", { width = 10, height = 10, scale = 0 })
  fails("32000", "too large by its scale", c.object, "canvas", { width = 30000, height = 10, scale = 2 })
  fails("no option 'colour'", "an unknown option", c.object, "canvas", { width = 9, height = 9, colour = 1 })
  fails("did you mean 'line'", "an unknown method", function() canvas:lines() end)
  canvas:line({ -1e9, -1e9, 1e9, 1e9 }, red, 1e9)
  canvas:line({ 1, 1, 2, 2 }, red, 1, {})
  ok(tostring(canvas:pixels()) == "u8[30,40,3]", "far away is no mistake")
end

return function()
  if not pcall(c.object, "canvas", { width = 1, height = 1 }) then
    print "1..0 # SKIP the plugin draw-cairo is not there"
    return
  end
  shapes()
  letters()
  sizes()
  mistakes()
  print("1.." .. n)
end
