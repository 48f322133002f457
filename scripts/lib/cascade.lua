-- The tracker's detector as nets: variance, then ferns, over all windows; and, if asked for, the
-- comparison of patches. They run on any device, or where a policy places each stage. The tracker
-- prepares a frame before them and completes it after them.
local c = require "cnnrun"

---The tracker's detector as a net.
---@class lib.cascade
local M = {}
M.__index = M

---options: those of c.load (device, policy ...). compares: the third stage is a net, too.
---@param tracker cnnrun.Object
---@param options table
---@param compares boolean?
function M.new(tracker, options, compares)
  return setmetatable({ tracker = tracker, options = options, compares = compares }, M)
end

-- A net for pictures of that size: windows and points are fixed, the learned posteriors are an
-- input of each frame.
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
  self.options.weights = "random:1" -- Placeholders until the values are set.
  self.net = c.load(c.net { name = "cascade", outputs = { votes } }, self.options)
  self.net:set_weight("windows", windows)
  self.net:set_weight("points", points)
  self.shape = shape
end

-- Sizes are fixed; unused rows are 0.
local function comparer(self, patches, known)
  local a, b = c.input { "patches", shape = patches:shape() }, c.input { "known", shape = known:shape() }
  self.options.weights = nil
  return c.load(c.net { name = "nearest", outputs = { c.normalized_cross_correlation { a, b } } }, self.options)
end

---Works as tracker:track(picture).
---@param picture cnnrun.Tensor
---@return cnnrun.Tensor box
---@return number confidence
function M:track(picture)
  local grey, blurred = self.tracker:prepare(picture)
  local shape = grey:shape()
  if not self.net or shape[1] ~= self.shape[1] or shape[2] ~= self.shape[2] then build(self, shape) end
  local _, posteriors = self.tracker:ferns()
  local votes = self.net:run { grey, blurred, posteriors }
  if not self.compares then return self.tracker:finish(votes) end
  local patches, known = self.tracker:candidates(votes)
  self.comparer = self.comparer or comparer(self, patches, known)
  local begun = self.clock and self.clock() -- The caller gives a clock to measure with.
  local correlations = self.comparer:run { patches, known }
  self.took = begun and self.clock() - begun
  return self.tracker:compared(correlations)
end

return M
