-- A monitor's interfaces: the page with its switches, and the script that gets each frame.
local c = require "cnnrun"
local json = require "lib.json"
local pointed = require "lib.pointed"
local M = {}

-- ---- the page ----

-- where: "8080" or "ADDRESS:8080". read_only: the printed address is without the token that settings want.
function M.page(where, token, read_only)
  local address, port = where:match("^(.*):(%d+)$")
  if not port then address, port = "127.0.0.1", where:match("^%d+$") end
  if not port then error("--page: want PORT or ADDRESS:PORT, got " .. where, 0) end
  local page = c.object("page", { address = address:gsub("^%[(.*)%]$", "%1"), port = math.tointeger(port), token = token })
  c.note("live page: " .. (read_only and page:address():match "^[^#]*" or page:address()))
  return page
end

-- ---- switches ----

local Switches = {}
Switches.__index = Switches

M.governors = { "none", "default", "edp", "deadline", "cool", "dtw", "fixed,at=highest", "fixed,at=lowest" }
M.policies = { "none", "best", "fastest", "least_energy" }

-- A copy of the list that has `own` in it: the value from the command line is a choice, too.
local function with(list, own) -- The value from the command line is a choice, too.
  local result = { table.unpack(list) }
  for _, name in ipairs(list) do
    if name == own then own = nil end
  end
  if own then result[#result + 1] = own end
  return result
end

-- Whether a frequency can be read here, which a governor needs.
local function has_knob()
  local good, list = pcall(c.gauges)
  for _, g in ipairs(good and list or {}) do
    if g.quantity == "knob" then return true end
  end
  return false
end

-- The page's switches for a watcher: what its user may change, and what it shows.
function M.switches(watcher, options)
  local self = setmetatable({ watcher = watcher, events = {}, pending = {}, told = -1, classes = options.classes,
                              pointed = options.page and pointed.new() }, Switches)
  local placeable = watcher.net and watcher.net.model
  if options.governor or options.page and has_knob() then self.governors = with(M.governors, options.governor) end
  if options.place or placeable then self.policies = with(M.policies, options.place) end
  if options.place then self:note(self:place(options.place)) end
  if options.governor then self:note(self:govern(options.governor)) end
  return self
end

-- True: no clock can be set, so that a governor only advises.
local function is_advice()
  for _, g in ipairs(c.gauges()) do
    if g.quantity == "knob" and g.writable then return false end
  end
  return true
end

-- Ends the governor in force; returns a line about it.
function Switches:ungoverned()
  local was, governing = self.governor, self.governing
  self.governing, self.governor = nil, nil
  local r = governing and governing:stop()
  return r and ("governor %s: %d switches in %.1f s%s"):format(was, r.switches, r.seconds,
    r.off and ", turned off: " .. r.fault or r.advises and ", as advice" or "")
end

-- Ends the present governor and starts that policy; returns the text to tell.
function Switches:govern(policy)
  local ended = self:ungoverned()
  if ended then self:note(ended) end
  if policy == "none" then return "governor: none" end
  self.governing, self.governor = c.governing(policy), policy
  return ("governor: %s%s"):format(policy, is_advice() and " (advice: no knob can be set here)" or "")
end

-- The number of layers on each device, the largest first: { { device =, layers = } ... }.
local function placed_on(plan)
  local counts, list = {}, {}
  for _, parts in pairs(plan.shares) do
    for device in pairs(plan.kept and { [plan.kept] = 1 } or parts) do
      if not counts[device] then
        counts[device] = { device = device, layers = 0 }
        list[#list + 1] = counts[device]
      end
      counts[device].layers = counts[device].layers + 1
    end
  end
  table.sort(list, function(a, b)
    if a.layers ~= b.layers then return a.layers > b.layers end
    return a.device < b.device
  end)
  return list
end

-- Places the net anew by a policy; returns what to tell.
function Switches:place(policy)
  local model = self.watcher.net and self.watcher.net.model
  if not model then error("this model's nets are not placed by a policy", 0) end
  if self.feed then self.feed:apart() end
  self.key, self.policy, self.placed = nil, nil, nil
  model:unplace()
  if policy == "none" then return "policy: none" end
  self:now(("policy: %s: devices are measured, frames wait"):format(policy))
  local plan, parts = model:place { policy = policy }, {}
  self.policy, self.placed = policy, placed_on(plan)
  for i, on in ipairs(self.placed) do parts[i] = ("%s %d"):format(on.device, on.layers) end
  return ("policy: %s (layers: %s)"):format(policy, table.concat(parts, ", "))
end

-- True: the list (nil: none) has the value; else nil.
local function is_one(list, value)
  for _, name in ipairs(list or {}) do
    if name == value then return true end
  end
end

-- Each returns the message about the change; nil: the message comes later.
local setters = {
  threshold = function(self, value)
    if not self.watcher.finder.score then error("threshold: this application has none", 0) end
    if type(value) ~= "number" or not (value >= 0 and value <= 1) then error("threshold: want 0 to 1", 0) end
    self.watcher.finder.score = value
    return ("threshold: %.2f"):format(value)
  end,
  governor = function(self, value)
    if not is_one(self.governors, value) then error("governor: none of the choices", 0) end
    return self:govern(value)
  end,
  policy = function(self, value)
    if not is_one(self.policies, value) then error("policy: none of the choices", 0) end
    return self:place(value)
  end,
  classes = function(self, value) -- "person,car"; "" or false: all
    local finder = self.watcher.finder
    if not finder.only then error("classes: this application has none", 0) end
    if value ~= false and type(value) ~= "string" then error('classes: want "person,car", or false for all', 0) end
    local text = value and value:match "%S" and value or nil
    finder:only(text)
    self.classes = text
    return "classes: " .. (text or "all")
  end,
  again = function(self) -- Plays a source again that has ended.
    if not self.ended then error("again: the source has not ended", 0) end
    self.again = true
  end,
  follow = function(self, value) -- The result is reported with the next frame.
    if not self.pointed then error("the plugin object-tld is missing", 0) end
    self.pointed:ask(value)
  end,
}

-- The requests from the page, one line of JSON each.
function Switches:take(lines)
  for line in lines:gmatch("[^\n]+") do
    local good, wish = pcall(json.decode, line)
    if not good or type(wish) ~= "table" then self:note("not understood: " .. tostring(wish))
    else
      for name, value in pairs(wish) do
        local setter = setters[name] or function() error("no switch of this name", 0) end
        local done, text = pcall(setter, self, value)
        if not done then text = ("%s: %s"):format(name, (tostring(text):gsub("^" .. name .. ": ", ""))) end
        if text then self:note(text) end
      end
    end
  end
end

-- Keeps a text for the page's next answer.
function Switches:note(text) self.pending[#self.pending + 1] = text end

local remembered = 50 -- The number of events that are kept.

-- Puts `one` in front of the list and keeps at most `most`.
local function kept(list, one, most)
  table.insert(list, 1, one)
  list[most + 1] = nil
end

-- Adds a message that is shown before the next frame comes.
function Switches:now(text)
  if not self.shown then return end
  local at, shown = select(2, c.date()), self.shown
  if at > shown.at then shown.now, shown.at = shown.now + at - shown.at, at end -- No frame has come in between.
  kept(self.events, { seconds = self.shown.seconds or self.shown.now, now = self.shown.now, text = text }, remembered)
  self:send()
end

-- Sends the page the newest state, with what happened since the last time.
function Switches:send()
  local list = { n = #self.events }
  for i, event in ipairs(self.events) do list[i] = event end
  self.shown.events = list
  self.shown.classes, self.shown.threshold = self.classes, self.watcher.finder.score
  self.shown.governor, self.shown.policy, self.shown.placed = self.governor or "none", self.policy or "none", self.placed
  self.page:tell(json.encode(self.shown, 6))
end

-- away: { why =, again = seconds or false }; nil: the source works.
function Switches:away(away)
  if self.shown then self.shown.away = away end
end

-- While no frame comes, requests from the page are answered at once.
function Switches:idle(page)
  self:take(page:asked())
  for _, text in ipairs(self.pending) do self:now(text) end
  self.pending = {}
end

-- Gives a frame to the tracker of the object that was selected on the page.
function Switches:point(picture)
  local news = self.pointed and self.pointed:frame(picture)
  if news then self:note("follow: " .. news) end
end

-- What is drawn on top of the detections: the pointed-at object, and `more`.
function Switches:over(more) return self.pointed and self.pointed:over(more) or more end

-- Makes the feed run the net for pictures of that shape; returns the input's size. Applications
-- with several nets run them in the script.
function Switches:through(watcher, picture, shape, key)
  local net = watcher.net
  if not net or not net.model or #net.inputs > 1 then return nil end
  local how, size = watcher:how(shape)
  if self.key ~= key then self.feed:through(net.model, picture, how) end -- Else it is already running.
  self.key = key
  return size
end

-- The names that a class filter can have; nil: there is nothing to filter.
function Switches:all_classes()
  local finder = self.watcher.finder
  if self.names == nil then
    local names = finder.only and finder.classes and finder:classes()
    self.names = names and #names > 1 and #names <= 1000 and names or false
    if self.names then self.names.n = #self.names end
  end
  return self.names or nil
end

-- The source has ended: reported once. From now on requests are answered at once. Returns when the
-- source is to be played again; idle() is called now and then.
function Switches:stay(page, idle)
  self.ended, self.again = true, nil
  if self.shown then
    self.shown.ended = true
    self:now("the source has ended")
  else
    page:tell(json.encode({ ended = true, events = { n = 0 }, found = { n = 0 }, now = 0 }, 6))
  end
  repeat
    c.wait(.1)
    self:idle(page)
    idle()
  until self.again
  self.ended = nil
  if self.shown then self.shown.ended = nil end
end

-- Sends the state to the page, at most ten times a second.
function Switches:show(page, frame, state, found, source, events)
  for _, event in ipairs(events) do
    event.now = frame.now
    kept(self.events, event, remembered)
  end
  for _, text in ipairs(self.pending) do
    kept(self.events, { seconds = frame.seconds or frame.now, now = frame.now, text = text }, remembered)
  end
  self.pending = {}
  local shape = frame.picture:shape()
  state.found, state.source, state.frame, state.lost = found, source, frame.number, frame.lost
  state.seconds, state.width, state.height, state.app = frame.seconds, shape[2], shape[1], self.watcher.kind
  state.threshold, state.governors, state.policies = self.watcher.finder.score, self.governors, self.policies
  state.governor, state.policy, state.placed = self.governor or "none", self.policy or "none", self.placed
  state.now, state.at, state.follow = frame.now, select(2, c.date()), self.pointed and self.pointed:state()
  state.classes, state.all_classes = self.classes, self:all_classes()
  self.page, self.shown = page, state
  if frame.now - self.told < .1 then return end
  self.told = frame.now
  self:send()
end

-- Ends a governor, if there is one, and tells of it.
function Switches:stop()
  local ended = self:ungoverned()
  if ended then c.note(ended) end
end

-- ---- a script that gets each frame ----

-- The function that a script returns, itself or in a table as `on`; an error where it returns none.
function M.script(path)
  local given = c.script(path)
  local on = type(given) == "table" and given.on or given
  if type(on) ~= "function" then error("--on " .. path .. ": want a file that returns function(found, frame)", 0) end
  return on
end

-- Posts tables as JSON on a thread of its own, so that no frame waits for an address.
function M.poster(url)
  local worker, object = c.worker(), c.object("post", { url = url })
  return { post = function(_, t)
    worker:call(object, "send", json.encode(t, 7))
    if not worker:send(true) then c.note("not posted: the address answers too slowly") end
  end, close = function() worker:close() end }
end

-- The values that the script gets besides the boxes.
function M.frame(frame, state, new, gone, poster, folder)
  return { folder = folder, posts = poster ~= nil, picture = frame.picture, number = frame.number, seconds = frame.seconds or frame.now, state = state,
           new = new, gone = gone,
           save = function(path) frame.picture:save(path) end,
           tell = function(t) print(json.encode(t, 7)) end,
           post = function(t)
             if not poster then error("frame.post: --post URL is missing", 0) end
             poster:post(t)
           end }
end

return M
