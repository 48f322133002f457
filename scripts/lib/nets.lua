-- Opens a net from the word that names it: one file, or several separated by commas (description,
-- weights); or an open net.
local c = require "cnnrun"
local M = {}

local Net = {}

-- Options for c.load: a copy of the program's (options.load), and those of scripts, device and
-- import.
local function loading(options)
  local load = {}
  for key, value in pairs(options.load or {}) do load[key] = value end
  load.device, load.import = options.device or load.device, options.option or load.import
  return load
end

-- A net by path, or one that was loaded.
function M.open(word, options)
  options = options or {}
  local model = word
  if type(word) == "string" then model = c.load(word, loading(options)) end
  local self = { model = model, inputs = model:inputs(), outputs = model:outputs() }
  self.input = self.inputs[1] or error(tostring(word) .. " has no input", 0)
  self.meta = function(key) return model:meta(key) end
  local sizes = self.input.sizes
  local last = #sizes == 4 and (sizes[4] == 1 or sizes[4] == 3) and sizes[2] ~= 1 and sizes[2] ~= 3
  self.channels = sizes[#sizes == 4 and not last and 2 or 4]
  local h, w = sizes[last and 2 or 3], sizes[last and 3 or 4]
  -- The usual size of a named dimension, as the file tells it, or nil.
  local function usual(dim) return tonumber(self.meta("symbol." .. dim .. ".default")) end
  self.open_size = math.type(h) ~= "integer" or math.type(w) ~= "integer"
  if self.open_size then h, w = usual(h), usual(w) end
  self.size = { height = h or 0, width = w or 0 } -- 0: any size, without a usual one.
  return setmetatable(self, { __index = Net })
end

-- Height and width for a picture of that shape, in whole steps, if the net leaves them open. The
-- picture keeps its aspect ratio and its shorter side gets the net's size (height and width may
-- differ). Panoramas get at most twice the net's area. `longest`: the longer side instead, for nets
-- without a size of their own.
function M.size_for(net, height, width, longest)
  local own, step, ratio = net.size, tonumber(net.meta "onnx.stride") or 32, nil
  if not longest and own.width == 0 then longest = 640 end
  if longest then ratio = longest / math.max(height, width)
  else
    ratio = math.min(math.max(own.height / height, own.width / width),
                     math.sqrt(2 * own.height * own.width / (height * width)))
  end
  -- A side times the ratio, in whole steps.
  local function side(n) return math.max(1, math.ceil(n * ratio / step - 1e-6)) * step end
  return side(height), side(width)
end

-- Runs a batch; the outputs by index and by name.
function Net:run(batch) return self:named { self.model:run { batch } } end

-- The list of results, in which they are also found by the outputs' names now.
function Net:named(results)
  for i, port in ipairs(self.outputs) do results[port.name] = results[i] end
  return results
end

return M
