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
  if #sizes ~= 4 then
    error(("its input %s has %d sizes (%s), and a picture has 4: a batch, channels, height and width")
          :format(self.input.name, #sizes, table.concat(sizes, "x")), 0)
  end
  local last = #sizes == 4 and (sizes[4] == 1 or sizes[4] == 3) and sizes[2] ~= 1 and sizes[2] ~= 3
  self.channels_last = last
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

-- What an input beside the picture (RT-DETR's size of the picture, DETR's mask of it) holds for a picture
-- that fills the input of that size.
local function side_input(port, size)
  local name, shape, whole = port.name, {}, port.dtype ~= "f32" and port.dtype or "f32"
  local is_mask = name:find("mask", 1, true)
  for i, side in ipairs(port.sizes) do
    shape[i] = math.type(side) == "integer" and side or i == #port.sizes and size.width or
               i == #port.sizes - 1 and size.height or 1
  end
  if is_mask then
    local t = c.tensor { shape = shape, dtype = whole }
    for i = 1, #t do t[i] = 1 end
    return t
  elseif name:find("size", 1, true) and shape[#shape] == 2 then
    return c.tensor { shape = shape, dtype = whole, data = { size.width, size.height } }
  end
  error(("the net has an input %s besides the picture, and it is not known what it holds"):format(name), 0)
end

-- Runs a picture as it was prepared for an input of that size (height, width); the list of outputs.
function Net:see(batch, size)
  local list = { batch }
  for i = 2, #self.inputs do list[i] = side_input(self.inputs[i], size) end
  return { self.model:run(list) }
end

-- Runs a batch; the outputs by index and by name.
function Net:run(batch) return self:named { self.model:run { batch } } end

-- The list of results, in which they are also found by the outputs' names now.
function Net:named(results)
  for i, port in ipairs(self.outputs) do results[port.name] = results[i] end
  return results
end

return M
