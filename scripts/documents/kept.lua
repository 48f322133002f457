-- Keeps what is measured in FOLDER/measured.json while the documents' experiments run, so that a run that was interrupted
-- goes on where it stopped; and prints a line for each measurement. The file goes when all is done, so the next run
-- measures anew. Numbers of another machine, commit (--commit) or choice of options are not taken, nor with a clock those of
-- a run without one.
local c = require "cnnrun"
local json = require "lib.json"

local Kept = {}
Kept.__index = Kept
local M = {}

-- True if no number of a table, at any depth, is infinite or none, which JSON does not have.
local function is_finite(t)
  if type(t) == "number" then return t - t == 0 end
  if type(t) == "table" then
    for _, v in pairs(t) do
      if not is_finite(v) then return false end
    end
  end
  return true
end

-- What the numbers depend on beside their names: devices with their drivers, the commit, the clock, and options.
local function conditions(options)
  local list = { options.quick and "quick" or "whole", options.commit or "", options.data or "",
                 pcall(c.now) and "a clock" or "no clock" }
  for _, device in ipairs(c.devices()) do
    list[#list + 1] = table.concat({ device.name, device.hardware or "", device.driver or "", device.plugin or "" }, " ")
  end
  return table.concat(list, "; ")
end

-- The numbers of an interrupted run, or an empty table.
local function stored(path, made)
  if c.exists(path) ~= "file" then return {} end
  local good, t = pcall(json.read, path)
  if not (good and type(t) == "table" and t.made == made and type(t.measured) == "table") then
    c.note(path .. ": of another run, so all is measured anew")
    return {}
  end
  local n = 0
  for _ in pairs(t.measured) do n = n + 1 end
  c.note(("%s: taken from an interrupted run: %d measurements"):format(path, n))
  return t.measured
end

---Opens the store of a folder; nil: nothing is kept between runs, but each number is measured once.
---@param folder string?
---@param options table of the document's command
function M.open(folder, options)
  local path = folder and folder .. "/measured.json"
  local made = folder and conditions(options)
  return setmetatable({ path = path, made = made, quiet = not folder, measured = path and stored(path, made) or {},
                        clock = pcall(c.now), n = 0 }, Kept)
end

---The table that is stored under the name, or what measure() returns, which is stored. measure may fail: then the error
---goes on, and nothing is stored.
---@param name string
---@param measure fun(): table
function Kept:get(name, measure)
  local known = self.measured[name]
  if known then return known end
  local begun = self.clock and c.now()
  local result = measure()
  self.n = self.n + 1
  if not self.quiet then c.note(("%s%s"):format(name, begun and (": %.1f s"):format(c.now() - begun):gsub(",", ".") or "")) end
  if not is_finite(result) then return result end -- it is measured again in the next run
  self.measured[name] = result
  if self.path then json.write(self.path, { made = self.made, measured = self.measured }) end
  return result
end

---All is done: the next run measures anew.
function Kept:done()
  if self.path and c.exists(self.path) then c.remove(self.path) end
end

return M
