-- Follows an object that somebody selects in a running picture: a tracker is started with its box.
local c = require "cnnrun"
local follow = require "lib.follow"

---An object that was selected in a running picture.
---@class lib.pointed
local M = {}

local Pointed = {}
Pointed.__index = Pointed

---Nil if there is no tracker.
---@return table?
function M.new()
  if not pcall(c.object, "tld") then return nil end
  return setmetatable({}, Pointed)
end

---A box { x, y, width, height } in pixels, to track from the next frame on; false: stop tracking.
---@param wish number[]|false
function Pointed:ask(wish)
  if wish ~= false then
    for i = 1, 4 do
      local v = type(wish) == "table" and wish[i]
      if type(v) ~= "number" or v ~= v or math.abs(v) > 1e6 then
        error("want [x, y, width, height], or false for nothing", 0)
      end
    end
    if #wish ~= 4 then error("want [x, y, width, height], four numbers", 0) end
  end
  self.wish = wish
end

---Tracks one frame. Returns a message if the object was lost, is back, or could not be tracked;
---else nil.
---@param picture cnnrun.Tensor
---@return string?
function Pointed:frame(picture)
  local wish = self.wish
  self.wish, self.now = nil, nil
  if wish == false then
    self.run = nil
    return "nothing any more"
  end
  if wish then self.run = follow.start(c.object("tld"), wish) end
  if not self.run then return nil end
  local good, r = pcall(self.run.frame, self.run, picture)
  if not good then
    self.run = nil
    return (tostring(r):gsub("^[^\n:]+%.lua:%d+: ", ""))
  end
  local was = self.there
  self.now, self.there = r, r.box ~= nil
  if wish then return "begun" end
  if was ~= self.there then return self.there and "found again" or "lost" end
end

---The state for a page: false, or { box =, confidence = }, or { lost = true, confidence = 0 }.
function Pointed:state()
  local r = self.now
  if not r then return false end
  if not r.box then return { lost = true, confidence = 0 } end
  local box = {}
  for i, v in ipairs(r.box) do box[i] = math.floor(v * 10 + .5) / 10 end
  return { box = box, confidence = math.floor(r.confidence * 1000 + .5) / 1000 }
end

---Draws it, in the form of draw.frame's `more`; calls `under` first.
function Pointed:over(under)
  local r = self.now
  if not r then return under end
  return function(canvas, width, height, m)
    if under then under(canvas, width, height, m) end
    local ink, text = { 1, 1, 1 }, "lost"
    if r.box then
      text = ("%d%%"):format((r.confidence * 100 + .5) // 1)
      canvas:outline(r.box, { 0, 0, 0, .5 }, m.line + 2, m.line)
      canvas:outline(r.box, ink, m.line, m.line)
    end
    local size = m.text * .8
    local extent = canvas:extent(text, size)
    local w, h = extent[1] + size, extent[2] + .3 * size
    local x = r.box and math.max(0, math.min(width - w, r.box[1])) or width - w
    local y = r.box and math.max(0, math.min(height - h, r.box[2] - h)) or 0
    canvas:fill({ x, y, w, h }, { .05, .06, .08, .75 })
    canvas:text(text, { x + size / 2, y + .15 * size }, size, ink)
  end
end

return M
