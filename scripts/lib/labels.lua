-- Names of classes: those of common data sets, and files of names.
local c = require "cnnrun"
local M = {}

-- The words of a text, parted by commas or lines.
local function words(text)
  local list = {}
  for word in text:gmatch("[^,\n]+") do
    local name = word:match("^%s*(.-)%s*$")
    if name ~= "" then list[#list + 1] = name end
  end
  return list
end

M.coco = words [[
  person, bicycle, car, motorcycle, airplane, bus, train, truck, boat, traffic light, fire hydrant,
  stop sign, parking meter, bench, bird, cat, dog, horse, sheep, cow, elephant, bear, zebra, giraffe,
  backpack, umbrella, handbag, tie, suitcase, frisbee, skis, snowboard, sports ball, kite,
  baseball bat, baseball glove, skateboard, surfboard, tennis racket, bottle, wine glass, cup, fork,
  knife, spoon, bowl, banana, apple, sandwich, orange, broccoli, carrot, hot dog, pizza, donut, cake,
  chair, couch, potted plant, bed, dining table, toilet, tv, laptop, mouse, remote, keyboard,
  cell phone, microwave, oven, toaster, sink, refrigerator, book, clock, vase, scissors, teddy bear,
  hair drier, toothbrush
]]

-- COCO's own numbers, 1 to 90, of which ten have no name: for 90 classes from 1 on, for 91 from 0 on.
function M.coco_numbers(n)
  local list, next_name = {}, 1
  local missing = { [12] = true, [26] = true, [29] = true, [30] = true, [45] = true, [66] = true, [68] = true,
                    [69] = true, [71] = true, [83] = true }
  for number = 1, 90 do
    local at = number + n - 90
    if not missing[number] then list[at], next_name = M.coco[next_name], next_name + 1 end
  end
  return list
end

M.voc = words [[
  aeroplane, bicycle, bird, boat, bottle, bus, car, cat, chair, cow, diningtable, dog, horse,
  motorbike, person, pottedplant, sheep, sofa, train, tvmonitor
]]

M.voc_places = { "background", table.unpack(M.voc) } -- Names of regions, not of objects.

-- Cityscapes.
M.streets = words [[
  road, sidewalk, building, wall, fence, pole, traffic light, traffic sign, vegetation, terrain, sky, person, rider,
  car, truck, bus, train, motorcycle, bicycle
]]

-- One name on each line. Quotes around a line and a leading WordNet id are removed.
function M.parse(text)
  local list = {}
  for line in (text .. "\n"):gmatch("([^\n]*)\n") do
    local name = line:match("^%s*(.-)%s*$"):gsub("^'(.*)'$", "%1")
    list[#list + 1] = name:gsub("^n%d%d%d%d%d%d%d%d[%s,]+", "")
  end
  while #list > 0 and list[#list] == "" do list[#list] = nil end
  return list
end

-- The number of letters to change, add or take away between two texts.
local function distance(a, b)
  local row = {}
  for j = 0, #b do row[j] = j end
  for i = 1, #a do
    local corner = row[0]
    row[0] = i
    for j = 1, #b do
      local same = a:byte(i) == b:byte(j) and 0 or 1
      corner, row[j] = row[j], math.min(row[j] + 1, row[j - 1] + 1, corner + same)
    end
  end
  return row[#b]
end

-- The bytes of a name in lower case, sorted, as text of numbers with spaces between: equal for
-- names of the same letters.
local function letters(name)
  local list = { name:lower():byte(1, -1) }
  table.sort(list)
  return table.concat(list, " ")
end

---The name that is most similar; nil: none is similar enough.
function M.nearest(name, list)
  local best, least
  for _, other in ipairs(list) do
    local d = distance(name:lower(), other:lower())
    if d == 2 and #name == #other and letters(name) == letters(other) then d = 1 end -- Two letters were swapped.
    if not least or d < least then best, least = other, d end
  end
  return least and least <= math.max(1, #name // 3) and best or nil
end

---A set of the classes that a text names, "person,car" or "0,2": names in lower case, and numbers.
---Names that are not in `all` (nil: unknown) are an error.
function M.wanted(text, all)
  local set = { names = {}, numbers = {} }
  for word in text:gmatch "[^,]+" do
    local name = word:match "^%s*(.-)%s*$"
    local number, known = math.tointeger(tonumber(name)), not all
    for _, other in ipairs(all or {}) do known = known or other:lower() == name:lower() end
    if number and not (all and known) then
      if number < 0 or all and number >= #all then
        error(("--classes %s: classes are 0 to %s"):format(name, all and #all - 1 or "..."), 0)
      end
      set.numbers[number] = true
    elseif known then set.names[name:lower()] = true
    else
      local near = M.nearest(name, all)
      error(("--classes %s: this net has no such class%s"):format(name, near and "; did you mean " .. near .. "?" or
        ": it has " .. table.concat(all, ", ", 1, math.min(8, #all)) .. (#all > 8 and " ..." or "")), 0)
    end
  end
  return set
end

---The boxes of the classes in `set` (nil: all); label(class) returns the name of a class.
function M.filter(list, set, label)
  if not set then return list end
  local kept = {}
  for _, b in ipairs(list) do
    if set.numbers[b.class] or set.names[label(b.class):lower()] then kept[#kept + 1] = b end
  end
  return kept
end

-- The labels in a file, as M.parse has them.
function M.read(path)
  local text = c.text(path)
  if text:find("\0", 1, true) then error(path .. ": is no text: want a name on each line", 0) end
  return M.parse(text)
end

return M
