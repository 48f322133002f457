-- The tracker's detector as a net: variance, then ferns, over all windows, on any device or where a policy puts
-- each stage. The tracker prepares a frame before and finishes it behind.
local c = require "cnnrun"

---The tracker's detector as a net.
---@class lib.cascade
local M = {}
M.__index = M

---options: what c.load takes (device, policy ...).
---@param tracker cnnrun.Object
---@param options table
function M.new(tracker, options) return setmetatable({ tracker = tracker, options = options }, M) end

-- A net for pictures of that size: windows and points stay, posteriors are learnt and come in with each frame.
local function build(self, shape)
  local windows = self.tracker:windows()
  local points, posteriors, least = self.tracker:ferns()
  local where = c.weight { "windows", shape = windows:shape(), dtype = "i32", init = 0 }
  local grey = c.input { "grey", shape = shape, dtype = "u8" }
  local blurred = c.input { "blurred", shape = shape, dtype = "u8" }
  local learnt = c.input { "posteriors", shape = posteriors:shape() }
  local variance = c.window_variance { "variance", grey, where }
  local votes = c.random_ferns { "ferns", blurred, where, c.weight { "points", shape = points:shape(), init = 0 },
                                 learnt, variance, least = least }
  self.options.weights = "random:1" -- until they are set
  self.net = c.load(c.net { name = "cascade", outputs = { votes } }, self.options)
  self.net:set_weight("windows", windows)
  self.net:set_weight("points", points)
  self.shape = shape
end

---As tracker:track(picture).
---@param picture cnnrun.Tensor
---@return cnnrun.Tensor box
---@return number confidence
function M:track(picture)
  local grey, blurred = self.tracker:prepare(picture)
  local shape = grey:shape()
  if not self.net or shape[1] ~= self.shape[1] or shape[2] ~= self.shape[2] then build(self, shape) end
  local _, posteriors = self.tracker:ferns()
  return self.tracker:finish(self.net:run { grey, blurred, posteriors })
end

return M
