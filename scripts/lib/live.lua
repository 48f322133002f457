-- A monitor's outside: the page with its switches, and the script that hears of each frame.
local c = require "cnnrun"
local json = require "lib.json"
local M = {}

-- ---- the page ----

-- "8080" or "ADDRESS:8080".
function M.page(where, token)
  local address, port = where:match("^(.*):(%d+)$")
  if not port then address, port = "127.0.0.1", where:match("^%d+$") end
  if not port then error("--page: want PORT or ADDRESS:PORT, got " .. where, 0) end
  local page = c.object("page", { address = address:gsub("^%[(.*)%]$", "%1"), port = math.tointeger(port), token = token })
  c.note("live page: " .. page:address())
  return page
end

-- ---- switches ----

local Switches = {}
Switches.__index = Switches

M.governors = { "none", "default", "edp", "deadline", "cool", "dtw", "fixed,at=highest", "fixed,at=lowest" }
M.policies = { "none", "best", "fastest", "least_energy" }

local function with(list, own) -- what the command line says is a choice, too
  local result = { table.unpack(list) }
  for _, name in ipairs(list) do
    if name == own then own = nil end
  end
  if own then result[#result + 1] = own end
  return result
end

function M.switches(watcher, options)
  local self = setmetatable({ watcher = watcher, governors = with(M.governors, options.governor),
                              policies = with(M.policies, options.place), events = {}, pending = {}, told = -1 }, Switches)
  if options.place then self:place(options.place) end
  if options.governor then self:govern(options.governor) end
  return self
end

function Switches:govern(policy)
  if self.governing then self.governing:stop() end
  self.governing, self.governor = nil, nil
  if policy ~= "none" then
    self.governing, self.governor = c.governing(policy), policy
  end
end

function Switches:place(policy)
  local model = self.watcher.net and self.watcher.net.model
  if not model then error("this model's nets are not placed by a policy", 0) end
  if self.feed then self.feed:apart() end
  self.key = nil
  if policy ~= "none" then model:place { policy = policy } end
  self.policy = policy ~= "none" and policy or nil
end

local function is_one(list, value)
  for _, name in ipairs(list) do
    if name == value then return true end
  end
end

local setters = {
  threshold = function(self, value)
    if type(value) ~= "number" or not (value >= 0 and value <= 1) then error("threshold: want 0 to 1", 0) end
    self.watcher.finder.score = value
  end,
  governor = function(self, value)
    if not is_one(self.governors, value) then error("governor: none of the choices", 0) end
    self:govern(value)
  end,
  policy = function(self, value)
    if not is_one(self.policies, value) then error("policy: none of the choices", 0) end
    self:place(value)
  end,
}

-- What was asked for on the page: a line of JSON each.
function Switches:take(lines)
  for line in lines:gmatch("[^\n]+") do
    local good, wish = pcall(json.decode, line)
    for name, value in pairs(good and type(wish) == "table" and wish or {}) do
      local done, why = pcall(setters[name] or function() error("no switch of this name", 0) end, self, value)
      self:note(done and ("%s: %s"):format(name, tostring(value)) or ("%s: %s"):format(name, tostring(why)))
    end
  end
end

function Switches:note(text) self.pending[#self.pending + 1] = text end

-- Has the feed run the net for pictures of that shape; gives the input's size. Nets that are several
-- run in the script.
function Switches:through(watcher, picture, shape, key)
  if not watcher.net or not watcher.net.model then return nil end
  local how, size = watcher:how(shape)
  if self.key ~= key then self.feed:through(watcher.net.model, picture, how) end -- else it is on its way
  self.key = key
  return size
end

local function kept(list, one, most)
  table.insert(list, 1, one)
  list[most + 1] = nil
end

-- Tells the page, ten times a second at most.
function Switches:show(page, frame, state, found, source, events)
  for _, event in ipairs(events) do kept(self.events, event, 20) end
  for _, text in ipairs(self.pending) do
    kept(self.events, { seconds = frame.seconds or frame.now, text = text }, 20)
  end
  self.pending = {}
  if frame.now - self.told < .1 then return end
  self.told = frame.now
  local shape = frame.picture:shape()
  state.found, state.source, state.frame, state.lost = found, source, frame.number, frame.lost
  state.seconds, state.width, state.height, state.app = frame.seconds, shape[2], shape[1], self.watcher.kind
  state.threshold, state.governors, state.policies = self.watcher.finder.score, self.governors, self.policies
  state.governor, state.policy = self.governor or "none", self.policy or "none"
  state.now = frame.now
  local list = { n = #self.events }
  for i, event in ipairs(self.events) do list[i] = event end
  state.events = list
  page:tell(json.encode(state, 6))
end

function Switches:stop()
  if self.governing then self.governing:stop() end
  self.governing = nil
end

-- ---- a script that hears of each frame ----

function M.script(path)
  local given = c.script(path)
  local on = type(given) == "table" and given.on or given
  if type(on) ~= "function" then error("--on " .. path .. ": want a file that returns function(found, frame)", 0) end
  return on
end

-- Posts tables as JSON, on a thread of its own, so that nobody waits for an address.
function M.poster(url)
  local worker, object = c.worker(), c.object("post", { url = url })
  return { post = function(_, t)
    worker:call(object, "send", json.encode(t, 7))
    if not worker:send(true) then c.note("not posted: the address is slow") end
  end, close = function() worker:close() end }
end

-- What it sees beside the boxes.
function M.frame(frame, state, new, gone, poster)
  return { picture = frame.picture, number = frame.number, seconds = frame.seconds or frame.now, state = state,
           new = new, gone = gone,
           save = function(path) frame.picture:save(path) end,
           tell = function(t) print(json.encode(t, 7)) end,
           post = function(t)
             if not poster then error("frame.post: --post URL says where to", 0) end
             poster:post(t)
           end }
end

return M
