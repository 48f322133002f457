-- Boxes that move, cross, blink and go: each keeps its number.
local tracks = require "lib.tracks"
local n = 0
-- Prints one numbered TAP line: ok if `good`, else not ok.
local function ok(good, text)
  n = n + 1
  print((good and "ok " or "not ok ") .. n .. " - " .. text)
end
-- A box.
local function box(class, x, y, w, h)
  return { class = class, score = .9, x0 = x, y0 = y, x1 = x + w, y1 = y + h }
end

return function()
  local t, came, went, ids = tracks.new(), 0, 0, {}
  for i = 0, 299 do -- ten seconds: a person walks by, one stands, a dog of the same place
    local found = { box(0, 400, 100, 60, 160), box(16, 405, 110, 60, 140) }
    if i < 200 then found[3] = box(0, 2 * i, 50 + i % 3, 50, 120) end
    if i % 20 == 7 then table.remove(found, 1) end -- the detector blinks
    local new, gone = t:step(found, i / 30)
    came, went = came + #new, went + #gone
    for _, b in ipairs(found) do
      if b.id then ids[b.id] = (ids[b.id] or 0) + 1 end
    end
  end
  ok(came == 3, "three came, and that is three events: " .. came)
  ok(went == 1, "one went: " .. went)
  ok(ids[1] > 250 and ids[2] > 250 and ids[3] > 180, "each kept its number all the while")
  local u, seen = tracks.new(), {}
  for i = 0, 99 do -- two of a class pass each other, at different heights
    local found = { box(0, 5 * i, 100, 60, 100), box(0, 495 - 5 * i, 150, 60, 100) }
    u:step(found, i / 30)
    if i == 10 then seen[1], seen[2] = found[1].id, found[2].id end
    if i == 99 then
      ok(found[1].id == seen[1] and found[2].id == seen[2] and seen[1] ~= seen[2], "two that pass are not exchanged")
    end
  end
  local v, new = tracks.new(), 0
  for i = 0, 20 do new = new + #v:step(i % 4 == 0 and { box(2, i * 40, 0, 20, 20) } or {}, i / 30) end
  ok(new == 0, "what blinks here and there never counts")
  print("1.." .. n)
end
