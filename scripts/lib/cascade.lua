-- The tracker's detector as nets: variance, then ferns, over all windows; and, if asked for, the
-- comparison of patches. They run on any device, or where a policy places each stage. The tracker
-- prepares a frame before them and completes it after them.
local c = require "cnnrun"

---The tracker's detector as a net.
---@class lib.cascade
local M = {}
M.__index = M

---The tracker's stages as nets of the engine. options: those of c.load (device, policy ...).
---compares: the third stage is a net, too. @param tracker cnnrun.Object @param options table @param
---compares boolean?
---@param tracker cnnrun.Object
---@param options table
---@param compares boolean?
function M.new(tracker, options, compares)
  return setmetatable({ tracker = tracker, options = options, compares = compares }, M)
end

-- Loads a net for pictures of that size: windows and points are fixed, the learned posteriors are
-- an input of each frame.
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

-- Loads the net that compares patches with known ones; both sizes are fixed, and unused rows are 0.
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

-- ---- stages by themselves, to be timed ----

-- Milliseconds of a run of the net by operator, as a table.
local function steps(net)
  local by = {}
  for _, row in ipairs(net:profile { runs = 50, warm = 5 }) do
    by[row.operator] = (by[row.operator] or 0) + row.ms
  end
  return by
end

-- A weight of t's shape and type, all 0.
local function weight(name, t) return c.weight { name, shape = t:shape(), dtype = t:dtype(), init = 0 } end

-- One stage as a net of its own on that device; the tensors in `given`, by name, are those of a
-- real frame and become its weights.
local function stage(output, given, device)
  local net = c.load(c.net { name = "stage", outputs = { output } }, { device = device, weights = "random:1" })
  for name, t in pairs(given) do net:set_weight(name, t) end
  return net
end

---Milliseconds of variance and of ferns on the device, for the first frame.
---@param picture cnnrun.Tensor
---@param box number[] x, y, width, height
---@param device string
---@param options table of the tracker
---@return number variance
---@return number ferns
function M.alone(picture, box, device, options)
  local tracker = c.object("tld", options)
  tracker:init(picture, box)
  local grey, blurred = tracker:prepare(picture)
  local windows = tracker:windows()
  local points, posteriors, least = tracker:ferns()
  local where = weight("windows", windows)
  local one = stage(c.window_variance { c.input { "grey", shape = grey:shape(), dtype = "u8" }, where },
                    { windows = windows }, device)
  local gate = one:run { grey }
  local two = stage(c.random_ferns { weight("blurred", blurred), where, weight("points", points),
                                     c.input { "posteriors", shape = posteriors:shape() }, weight("gate", gate),
                                     least = least },
                    { windows = windows, points = points, blurred = blurred, gate = gate }, device)
  return steps(one).window_variance, steps(two).random_ferns
end

---Milliseconds of comparing m patches with n, and with the transfer of the patches.
---@param device string
---@param m integer
---@param n integer
---@return number compare
---@return number with_transfer
function M.patches(device, m, n)
  local a = c.input { "a", shape = { m, 225 } }
  local b = c.input { "b", shape = { n, 225 } }
  local net = c.load(c.net { name = "nearest", outputs = { c.normalized_cross_correlation { a, b } } }, { device = device })
  return steps(net).normalized_cross_correlation, net:time(30).ms_median
end

return M
