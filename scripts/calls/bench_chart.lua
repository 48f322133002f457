-- Bars of the time of each step, for the program (cnnrun/lab.h): text is JSON with `output` (.png, .svg),
-- title, and rows: node, kernel, device, ms.
local draw = require "lib.draw"
local json = require "lib.json"
local plot = require "lib.plot"

local MOST = 60

-- The steps in order. If there are too many, the longest ones, and the sum of the others.
local function chosen(rows)
  local sorted, kept, list, rest, left_out = {}, {}, {}, 0, 0
  for i, r in ipairs(rows) do sorted[i] = { r.ms, i } end
  table.sort(sorted, function(a, b)
    if a[1] ~= b[1] then return a[1] > b[1] end
    return a[2] < b[2]
  end)
  for k = 1, math.min(MOST, #sorted) do kept[sorted[k][2]] = true end
  for i, r in ipairs(rows) do
    if kept[i] then list[#list + 1] = r
    else rest, left_out = rest + r.ms, left_out + 1 end
  end
  return list, rest, left_out
end

return function(text)
  local about = json.decode(text)
  local able, why = draw.available()
  if not able then error(why, 0) end
  local list, rest, left_out = chosen(about.rows)
  local devices, n, bars = {}, 0, {}
  for _, r in ipairs(list) do
    n = n + (devices[r.device] and 0 or 1)
    devices[r.device] = true
  end
  for i, r in ipairs(list) do
    bars[i] = { ("%s  %s%s"):format(r.node, r.kernel, n > 1 and "  " .. r.device or ""), r.ms }
  end
  if left_out > 0 then bars[#bars + 1] = { ("%d shorter steps"):format(left_out), rest } end
  plot.bars(bars, { horizontal = true, x = "ms", title = about.title, width = 900 }):save(about.output)
end
