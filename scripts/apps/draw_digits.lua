-- Draws ten handwritten-looking digits: cnnrun draw_digits FOLDER
-- Each is a few pen strokes (cubic curves) in white on black, placed as MNIST's digits: in the
-- middle 20 of 28 parts. Those in scripts/nets/digits were drawn by this script.
local c = require "cnnrun"
local args = require "lib.args"

-- Strokes in a square from 0 to 1, y down: start, then curves (two handles and an end) or, with a
-- single point, lines.
local glyphs = {
  zero  = {{{.62,.08}, {{.30,-.06},{.12,.42},{.20,.68}}, {{.28,1.05},{.66,1.00},{.76,.62}}, {{.84,.30},{.78,.06},{.55,.07}}}},
  one   = {{{.40,.22}, {{.58,.04}}, {{.46,.96}}}},
  two   = {{{.18,.28}, {{.22,-.02},{.80,-.04},{.74,.30}}, {{.70,.52},{.40,.72},{.16,.92}}, {{.40,.86},{.60,.94},{.86,.88}}}},
  three = {{{.20,.14}, {{.45,-.04},{.84,.06},{.72,.30}}, {{.65,.44},{.52,.47},{.40,.47}}, {{.66,.44},{.88,.60},{.76,.80}}, {{.64,1.02},{.30,.99},{.15,.86}}}},
  four  = {{{.32,.06}, {{.28,.24},{.22,.40},{.18,.54}}, {{.40,.56},{.62,.54},{.86,.50}}}, {{.70,.22}, {{.66,.50},{.62,.74},{.60,.97}}}},
  five  = {{{.30,.10}, {{.27,.26},{.26,.34},{.23,.46}}, {{.48,.34},{.82,.46},{.74,.72}}, {{.66,.99},{.34,1.00},{.16,.88}}}, {{.30,.10}, {{.46,.10},{.62,.09},{.80,.06}}}},
  six   = {{{.66,.05}, {{.42,.18},{.22,.46},{.23,.72}}, {{.26,1.02},{.70,1.02},{.74,.74}}, {{.76,.50},{.40,.46},{.25,.70}}}},
  seven = {{{.16,.14}, {{.40,.10},{.60,.12},{.82,.10}}, {{.70,.38},{.52,.60},{.44,.97}}}},
  eight = {{{.70,.16}, {{.56,-.04},{.24,.04},{.28,.26}}, {{.33,.46},{.76,.52},{.72,.78}}, {{.68,1.02},{.26,1.00},{.27,.76}}, {{.30,.52},{.66,.44},{.70,.16}}}},
  nine  = {{{.74,.26}, {{.68,.00},{.28,.00},{.26,.28}}, {{.26,.56},{.66,.54},{.74,.26}}, {{.74,.52},{.68,.76},{.60,.97}}}},
}

-- Each picture has its own pen, size and slant.
local pictures = {
  zero  = { side = 112, pen = .105, slant = .06 }, one   = { side = 112, pen = .115, slant = .10 },
  two   = { side = 84,  pen = .095, slant = .02 }, three = { side = 112, pen = .110, slant = .00 },
  four  = { side = 140, pen = .095, slant = .05 }, five  = { side = 112, pen = .105, slant = .04 },
  six   = { side = 56,  pen = .110, slant = .02 }, seven = { side = 112, pen = .100, slant = .05 },
  eight = { side = 84,  pen = .100, slant = .06 }, nine  = { side = 28,  pen = .110, slant = .03 },
}

-- The strokes as short straight pieces, slanted, in pixels.
local function pieces(glyph, side, slant)
  local list = {}
  -- Pixel of a point of the unit square, after slant and margin.
  local function place(x, y)
    return (4 + 20 * (.5 + (x - .5) * .9 + slant * (.5 - y) * 2)) / 28 * side,
           (4 + 20 * y) / 28 * side
  end
  for _, stroke in ipairs(glyph) do
    local x0, y0 = stroke[1][1], stroke[1][2]
    for i = 2, #stroke do
      local curve, steps = stroke[i], #stroke[i] == 1 and 1 or 16
      local e = curve[#curve]
      local a, b = curve[1], curve[2] or e
      local px, py = place(x0, y0)
      for s = 1, steps do
        local t = s / steps
        local u = 1 - t
        local x, y = e[1], e[2]
        if steps > 1 then
          x = u*u*u*x0 + 3*u*u*t*a[1] + 3*u*t*t*b[1] + t*t*t*e[1]
          y = u*u*u*y0 + 3*u*u*t*a[2] + 3*u*t*t*b[2] + t*t*t*e[2]
        end
        local qx, qy = place(x, y)
        list[#list + 1] = { px, py, qx - px, qy - py }
        px, py = qx, qy
      end
      x0, y0 = e[1], e[2]
    end
  end
  return list
end

-- The squared distance of (x, y) from the nearest piece.
local function distance2(list, x, y)
  local best = math.huge
  for i = 1, #list do
    local p = list[i]
    local dx, dy = x - p[1], y - p[2]
    local length = p[3]*p[3] + p[4]*p[4]
    local t = length > 0 and (dx*p[3] + dy*p[4]) / length or 0
    t = t < 0 and 0 or t > 1 and 1 or t
    dx, dy = dx - t*p[3], dy - t*p[4]
    local d = dx*dx + dy*dy
    if d < best then best = d end
  end
  return best
end

-- The picture of that name as a tensor u8 [side,side,1] of ink, 0 to 255.
local function draw(name)
  local how = pictures[name]
  local side, radius = how.side, how.pen * how.side * 20 / 28 / 2
  local soft = math.max(.5, side / 28 * .35) -- The soft edge of the ink.
  local list = pieces(glyphs[name], side, how.slant)
  local picture = c.tensor { shape = { side, side, 1 }, dtype = "u8" }
  for y = 0, side - 1 do
    for x = 0, side - 1 do
      local d = math.sqrt(distance2(list, x + .5, y + .5))
      local ink = (radius + soft - d) / (2 * soft)
      ink = ink < 0 and 0 or ink > 1 and 1 or ink
      picture[y * side + x + 1] = math.floor(ink * 255 + .5)
    end
  end
  return picture
end

return args.application({ operands = "FOLDER", least = 1, most = 1, without = "it draws, no net runs",
                          example = "cnnrun draw_digits digits",
                          about = "Draws the digits that scripts/nets/digits holds, into a folder." }, function(options)
  for name in pairs(glyphs) do
    draw(name):save(options[1] .. "/" .. name .. ".png")
  end
end)
