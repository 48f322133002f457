-- A net from the word that names it: one file, or two with a comma between (description, weights).
local c = require "cnnrun"
local M = {}

local Net = {}

function M.open(word, options)
  local path, weights = word:match("^([^,]+),(.+)$")
  local model = c.load(path or word, { weights = weights, device = options and options.device })
  local self = { model = model, inputs = model:inputs(), outputs = model:outputs() }
  self.input = self.inputs[1] or error(word .. " has no input", 0)
  self.meta = function(key) return model:meta(key) end
  local sizes = self.input.sizes
  local last = #sizes == 4 and (sizes[4] == 1 or sizes[4] == 3) and sizes[2] ~= 1 and sizes[2] ~= 3
  self.channels = sizes[#sizes == 4 and not last and 2 or 4]
  local h, w = sizes[last and 2 or 3], sizes[last and 3 or 4]
  local function usual(dim) return tonumber(self.meta("symbol." .. dim .. ".default")) end
  self.open_size = math.type(h) ~= "integer" or math.type(w) ~= "integer"
  if self.open_size then h, w = usual(h), usual(w) end
  self.size = { height = h or 0, width = w or 0 } -- 0: any, and none is usual
  return setmetatable(self, { __index = Net })
end

-- The outputs, by place and by name.
function Net:run(batch)
  local results = { self.model:run { batch } }
  for i, port in ipairs(self.outputs) do results[port.name] = results[i] end
  return results
end

-- The last dimension of the first output.
function Net:last_size()
  local sizes = self.outputs[1].sizes
  local n = sizes[#sizes]
  return math.type(n) == "integer" and n or 0
end

return M
