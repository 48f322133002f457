-- Runs a net on a picture and prints each output, with tabs between: name, sizes, and along the last
-- axis the lowest and the highest values. cnnrun outputs.lua NET PICTURE [HEIGHT WIDTH]
local c = require "cnnrun"

-- For MTCNN's nets of any size and of five pieces: cut from the picture's middle row.
local function pieces(picture, count, high, wide)
  local rows, columns = table.unpack(picture:shape())
  local data = {}
  for piece = 1, count do
    local top, left = (rows - high) // 2, (columns - wide) * piece // (count + 1)
    for channel = 1, 3 do
      for y = top, top + high - 1 do
        for x = left, left + wide - 1 do
          data[#data + 1] = (picture[3 * (y * columns + x) + channel] - 127.5) / 128
        end
      end
    end
  end
  return c.tensor { shape = { 1, 3 * count, high, wide }, data = data }
end

-- The largest and smallest elements of each line.
local function extremes(t)
  local places = #t > 0 and t:shape()[#t:shape()] or 0
  local low, high = {}, {}
  for i = 1, #t do
    local place, x = (i - 1) % places + 1, t[i]
    low[place] = math.min(low[place] or x, x)
    high[place] = math.max(high[place] or x, x)
  end
  return table.concat(low, " "), table.concat(high, " ")
end

return function(args)
  local net, picture = c.load(args[1]), c.picture(args[2])
  local x
  if args[3] then
    x = pieces(picture, net:inputs()[1].sizes[2] // 3, math.tointeger(tonumber(args[3])),
               math.tointeger(tonumber(args[4])))
  else
    x = net:prepare(picture)
  end
  local outputs, answers = net:outputs(), { net:run { x } }
  for i, y in ipairs(answers) do
    local low, high = extremes(y)
    print(outputs[i].name .. "\t" .. table.concat(y:shape(), "x") .. "\t" .. low .. "\t" .. high)
  end
end
