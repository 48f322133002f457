-- Records a monitor's pictures: one video, or parts of it in a folder of limited size. Pictures
-- come by a worker's batches. Failed writes (a full disk) are reported, and the monitor continues.
--
--   local recorder = require("lib.recorder").open { path = "seen.mp4", tell = function(event) end }
--   recorder:write(worker, drawn, seconds)       -- into the worker's batch
--   recorder:failed(why)                         -- the batch failed: whether by the recording
--   recorder:finish(worker)                      -- into the batch, too
--   code = recorder:ended()                      -- behind the last batch
local c = require "cnnrun"
local M = {}

local LOOK = 5                 -- Seconds between checks of the folder's size.
local SHORTEST, LONGEST = 5, 300 -- Seconds until a failed recording is tried again.
local PART, UNFINISHED = "^monitor%-%d[%d-]*%.mp4$", "^%.monitor%-%d.*%.cnnrun%-tmp$"

local Recorder = {}
Recorder.__index = Recorder

local units = { [""] = 1, K = 1 << 10, M = 1 << 20, G = 1 << 30, T = 1 << 40 }

---"500M" in bytes.
---@param flag string whose it is
---@param text string
---@return integer
function M.bytes(flag, text)
  local number, unit = text:upper():match "^(%d+%.?%d*)([KMGT]?)I?B?$"
  local bytes = number and tonumber(number) and math.floor(tonumber(number) * units[unit])
  if not bytes or bytes < 1 << 20 then error(("%s %s: want a size of 1M or more, such as 500M or 20G"):format(flag, text), 0) end
  return bytes
end

---options: path; source, from, to as c.writer takes them; segment (seconds) and limit (bytes): path
---is a folder of parts; tell(event): { segment = path } once it is complete, { removed = path }, {
---failed = why, again = seconds or nil }.
---@param options table
function M.open(options)
  local self = setmetatable({ options = options, folder = options.segment and options.path:gsub("/+$", ""),
                              pause = SHORTEST, looked = 0, pending = {} }, Recorder)
  if not self.folder then
    self.out = c.writer(options.path, { from = options.source, start = options.from, stop = options.to })
    self.path = options.path
  end
  return self
end

-- The time in seconds since 1970.
local function now() return select(2, c.date()) end

-- The folder's finished parts, the oldest first; the bytes of all, unfinished ones too; and the
-- bytes of the one that is being written.
function Recorder:parts()
  local list, sum, unfinished = {}, 0, 0
  for _, file in ipairs(c.files(self.folder)) do
    local part, temporary = file.name:match(PART), file.name:match(UNFINISHED)
    if part then list[#list + 1] = file end
    if part or temporary then sum = sum + file.bytes end
    if temporary and self.path and file.name:find(self.path:match "[^/]*$", 1, true) then unfinished = file.bytes end
  end
  table.sort(list, function(a, b)
    if a.changed ~= b.changed then return a.changed < b.changed end
    return a.name < b.name
  end)
  return list, sum, unfinished
end

-- Keeps the folder within its size. True: the part that is being written alone takes half of that.
function Recorder:prune()
  local list, sum, unfinished = self:parts()
  for _, file in ipairs(list) do
    if sum <= self.options.limit then break end
    local path = self.folder .. "/" .. file.name
    local good, why = pcall(c.remove, path)
    if good then
      sum = sum - file.bytes
      self.options.tell { removed = path }
    else
      self.options.tell { failed = why }
    end
  end
  return 2 * unfinished > self.options.limit
end

-- The name has the second in which the part begins; the previous part may not be complete yet.
function Recorder:name()
  local stem = self.folder .. "/monitor-" .. (c.date():gsub("[ :]", "-"))
  local n = stem == self.stem and self.n + 1 or 1
  -- Path of part n: "STEM.mp4", "STEM-2.mp4" and so on.
  local function path() return n > 1 and ("%s-%d.mp4"):format(stem, n) or stem .. ".mp4" end
  while c.exists(path()) do n = n + 1 end
  self.stem, self.n = stem, n
  return path()
end

-- A closed part is complete once its file is there.
function Recorder:tell_finished()
  while self.pending[1] and c.exists(self.pending[1]) do
    self.options.tell { segment = table.remove(self.pending, 1) }
  end
end

-- Ends the part that is being written, with the worker's next batch.
function Recorder:finish(worker)
  if not self.out then return end
  worker:finish(self.out)
  if self.folder then self.pending[#self.pending + 1] = self.path end
  self.out, self.path = nil, nil
end

-- Every LOOK seconds: tells of finished files and, with a limit, removes old ones; returns what prune does, else false.
function Recorder:look()
  local at = now()
  if at - self.looked < LOOK and at >= self.looked then return false end
  self.looked = at
  self:tell_finished()
  return self.options.limit and self:prune()
end

-- Begins a part for pictures from `seconds` on; none before a failed recording is to be tried
-- again.
function Recorder:begin(seconds)
  if self.due and now() < self.due then return end
  local o, good, why = self.options, nil, nil
  if o.limit then self:prune() end
  self.path, self.start = self:name(), seconds
  local sound = o.source and { from = o.source, start = seconds, stop = seconds + o.segment } or nil
  good, why = pcall(c.writer, self.path, sound)
  if good then self.out = why else self:failed(why, true) end
end

-- Writes a frame; begins a new part where the last is full.
function Recorder:write(worker, drawn, seconds)
  if self.folder then
    local full = self:look()
    if self.out and (full or seconds - self.start >= self.options.segment or seconds < self.start) then self:finish(worker) end
    if not self.out then self:begin(seconds) end
    if not self.out then return end
  elseif not self.out then
    return
  end
  local sound = self.options.source -- Then times are the source's own.
  worker:write(self.out, drawn, { time = (self.folder and not sound) and seconds - self.start or seconds })
end

---Whether an error came from the recording. If so it is reported, and parts are tried again later.
---@param why string
---@param certain boolean?
function Recorder:failed(why, certain)
  -- True: the message names the file of that path; nil or false: it doesn't.
  local function names(path) return path and why:find(path:match "[^/]*$", 1, true) end -- Long paths are shortened.
  if not certain and not names(self.path) then
    if not names(self.pending[1]) then return false end
    table.remove(self.pending, 1)
  end
  if self.out then pcall(self.out.close, self.out) end
  self.code = self.code or c.exit_code(why)
  self.out, self.path = nil, nil
  if self.folder then
    self.options.tell { failed = why, again = self.pause }
    self.due, self.pause, self.looked = now() + self.pause, math.min(2 * self.pause, LONGEST), 0
  else
    self.options.tell { failed = why }
  end
  return true
end

---Reports completed parts, and removes old ones above the limit; returns the exit code.
function Recorder:ended()
  if self.folder then
    self:tell_finished()
    if self.options.limit then self:prune() end
  end
  return self.code or 0
end

return M
