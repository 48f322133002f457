-- Times the documents' own kernels on this machine against each other: compares the gain of each optimisation step with
-- the document's.
local c = require "cnnrun"
local args = require "lib.args"
local document = require "documents.document"

local Steps = {}
Steps.__index = Steps

-- Makes the object that times the kernels of document d. `on` maps "cpu" and "gpu" to device names, or to nil if missing.
local function new(d)
  local on = {}
  for _, name in ipairs(d.devices) do
    if name:find "^opencl" then on.gpu = on.gpu or name elseif name == "cpu" then on.cpu = name end
  end
  return setmetatable({ document = d, on = on, times = {} }, Steps)
end

-- Why there is no device for "cpu" or "gpu".
local function missing(self, where)
  if #self.document.devices == 0 then return "--device none measures nothing" end
  return where == "gpu" and "no OpenCL device here" or "the processor is not among the devices"
end

-- Measures a net with the given kernels: { ms, joules (nil without a meter) }, or nil and why not. what: { name, net,
-- change = a function that is called with the loaded net before it runs }. by: { "gpu", "gemm=NAME", ... }.
function Steps:time(what, by)
  local device, key = self.on[by[1]], what[1] .. " " .. table.concat(by, " ")
  if not device then return nil, missing(self, by[1]) end
  if not self.times[key] then
    local good, result = pcall(self.document.keep, self.document, key .. " on " .. device, function()
      local net <close> = c.load(what[2], { device = device, weights = "random:1", kernels = table.move(by, 2, #by, 1, {}),
                                            no_rewrite = { "fuse" } })
      if what.change then what.change(net) end
      local t, remark = document.profile(net, self.document.options.quick)
      return { ms = t.ms_median, joules = t.energy and t.energy.joules or nil, remark = remark }
    end)
    self.times[key] = good and result or { why = args.plain(result) }
    if good then self:tell(what, by, result) end
  end
  local t = self.times[key]
  return not t.why and t or nil, t.why
end

-- Adds the rows of a measured kernel. The texts have no times of kernels, but EDP for some: what.edp, by kernel.
function Steps:tell(what, by, t)
  local d, on = self.document, self.on[by[1]]
  local name = ("%s by %s"):format(what[1], by[2]:match "=(.*)$")
  d:row { experiment = what.experiment, row = name, quantity = "ms", ours = t.ms, kind = document.measured, on = on, why = t.remark }
  if t.joules then
    d:row { experiment = what.experiment, row = name, quantity = "EDP", document = (what.edp or {})[by[2]],
            ours = t.joules * t.ms * 1e-3, kind = document.measured, on = on }
  end
end

-- Adds a row with the speed-up of kernels `to` over `from` and the document's number.
function Steps:gain(what, row, number, from, to)
  local a, why = self:time(what, from)
  local b, problem = self:time(what, to)
  self.document:row { experiment = what.experiment, row = row, quantity = "ratio", document = number,
    ours = a and b and a.ms / b.ms or nil, kind = document.measured,
    why = why or problem or a.remark or b.remark, on = a and b and (from[1] == to[1] and self.on[to[1]] or self.on[from[1]] .. ", " .. self.on[to[1]]) or nil }
end

return new
