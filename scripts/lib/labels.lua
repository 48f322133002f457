-- Names of classes: those of two data sets that nets are often trained on, and files of them.
local c = require "cnnrun"
local M = {}

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

M.voc = words [[
  aeroplane, bicycle, bird, boat, bottle, bus, car, cat, chair, cow, diningtable, dog, horse,
  motorbike, person, pottedplant, sheep, sofa, train, tvmonitor
]]

-- One name a line; quotes around a line, and a WordNet id in front, go.
function M.parse(text)
  local list = {}
  for line in (text .. "\n"):gmatch("([^\n]*)\n") do
    local name = line:match("^%s*(.-)%s*$"):gsub("^'(.*)'$", "%1")
    list[#list + 1] = name:gsub("^n%d%d%d%d%d%d%d%d[%s,]+", "")
  end
  while #list > 0 and list[#list] == "" do list[#list] = nil end
  return list
end

function M.read(path)
  return M.parse(c.text(path))
end

return M
