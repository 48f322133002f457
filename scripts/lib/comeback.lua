-- Frames of a source that may fail and return: a camera that is unplugged, a stream that drops, or,
-- with loop, a file. It is opened again after growing pauses.
--
--   local source = require("lib.comeback").open("rtsp://...", { every = 1 }, { idle = function() end, ... })
--   for frame in source:each() do ... source.feed ... end
--
-- Hooks, all optional. opened(feed): a feed was opened. ended(gap): before a feed that follows
-- another one, seconds after the last frame. away(why, pause): a failure (pause nil: the source
-- itself tries again). back(seconds). idle(): ten times a second while it waits.
local c = require "cnnrun"
local args = require "lib.args"
local M = {}

local SILENCE = 3             -- Seconds without a frame until a live source counts as failed.
local SHORTEST, LONGEST = 1, 60 -- Seconds between two attempts.

local Source = {}
Source.__index = Source

-- The time in seconds, from the system's clock.
local function seconds_now() return select(2, c.date()) end

-- Calls the hook of that name with the arguments, if it is given.
function Source:hook(name, ...)
  local hook = self.hooks[name]
  if hook then hook(...) end
end

-- Takes over an opened source and tells the hook "opened".
function Source:take(feed)
  self.feed = feed
  self.is_live = self.is_live or feed:live()
  self:hook("opened", feed)
end

---A source that can't be opened at the start is an error. loop: a file begins again when it ends.
---@param spec string
---@param choice table as c.feed takes it
---@param hooks table
---@param loop boolean?
function M.open(spec, choice, hooks, loop)
  local self = setmetatable({ spec = spec, choice = choice, hooks = hooks, loop = loop, pause = SHORTEST, took = 0,
                              frames = 0 }, Source)
  self:take(c.feed(spec, choice))
  return self
end

-- True: the source can be opened again: it gave frames, is not standard input, and is live or to be
-- repeated.
function Source:comes_back() return self.frames > 0 and self.spec ~= "-" and (self.is_live or self.loop) end

-- Tells that the source is gone, and for how long the next try waits.
function Source:tell_away(why, pause)
  self.gone = self.gone or self.last or seconds_now()
  self:hook("away", args.plain(why), pause)
end

-- Closes the source, if it is open.
function Source:close()
  if not self.feed then return end
  self.feed:apart()
  self.feed:close()
  self.feed = nil
end

-- Waits so many seconds; tells the hook "idle" ten times a second.
function Source:wait(seconds)
  for _ = 1, seconds * 10 do
    c.wait(.1)
    self:hook "idle"
  end
end

-- Closes the source and opens it again, waiting longer after each failure; why nil: a file begins
-- again.
function Source:reopen(why)
  self:close()
  while true do
    if why then
      self:tell_away(why, self.pause)
      self:wait(self.pause)
      self.pause = math.min(2 * self.pause, LONGEST)
    end
    local good, feed = pcall(c.feed, self.spec, self.choice)
    if good then
      self:hook("ended", why and math.max(0, seconds_now() - self.last) or 0)
      return self:take(feed)
    end
    why = feed
  end
end

---The next frame; nil: the source has ended and is not opened again.
function Source:next()
  while true do
    local patience = self.is_live and math.max(SILENCE, 4 * self.took) or nil
    local good, frame = pcall(self.feed.next, self.feed, patience)
    if good and frame then
      if self.gone then self:hook("back", math.max(0, seconds_now() - self.gone)) end
      self.gone, self.pause, self.last = nil, SHORTEST, seconds_now()
      self.frames, self.took = self.frames + 1, frame.took or self.took
      return frame
    elseif good and frame == false then
      if not self.gone and self.frames > 0 then
        self:tell_away(("no picture for %d s"):format(patience // 1), nil)
      end
      self:hook "idle"
    elseif not good and not self:comes_back() then
      error(frame, 0)
    elseif good and not self:comes_back() then
      return nil
    elseif good and not self.is_live and self.turned_at ~= self.frames then
      self.turned_at = self.frames -- A file is at its start; one without frames counts as failed.
      self:reopen(nil)
    else
      self:reopen(good and "it has ended" or frame)
    end
  end
end

-- An iterator over the frames, across reopenings.
function Source:each() return function() return self:next() end end

return M
