-- Removes whole channels: the layer gives fewer of them, and the layers that read them take fewer.
--
--   local smaller = channels.kept(net, "conv1", { 1, 3, 4 })   -- a net of its own
local M = {}

-- Operators that pass channels on unchanged.
local passes = {}
for name in ([[relu relu6 leaky_relu elu selu celu clip sigmoid hard_sigmoid hard_swish tanh swish softplus
  max_pool average_pool lp_pool global_average_pool global_max_pool global_lp_pool dropout identity lrn
  lrn_within flatten pad resize upsample]]):gmatch("%S+") do passes[name] = true end
-- Operators that pass them on and have parameters for each channel.
local scales = { batch_normalization = true, scale_bias = true, prelu = true,
                 instance_normalization = true }

-- Raises an error: the layer's channels cannot be removed.
local function refuse(layer, format, ...)
  error(("%s: its channels can't be removed: "):format(layer) .. format:format(...), 0)
end

-- The elements of flattened channels: each channel covers `each` columns.
local function spread(kept, each)
  if each == 1 then return kept end
  local columns = {}
  for _, k in ipairs(kept) do
    for i = 1, each do columns[#columns + 1] = (k - 1) * each + i end
  end
  return columns
end

local Cut = {}
Cut.__index = Cut

-- Keeps of the weight only these places of an axis; weight nil: nothing.
function Cut:take(weight, axis, kept)
  if weight then self.weights[weight] = self.net:weight(weight):taken(axis, kept) end
end

-- The shape of a weight, as a list.
function Cut:shape(weight) return self.net:weight(weight):shape() end

-- Cuts what layer `l` has for each channel that is taken away; true if the layers after it see
-- these channels, too. Throws if it combines them with others.
function Cut:reader(l)
  local kept, weight = self.kept, l.weights[1]
  if passes[l.operator] and #l.weights == 0 then return true end
  if scales[l.operator] then
    for _, name in ipairs(l.weights) do
      if self:shape(name)[1] == self.all then self:take(name, 1, kept) end
    end
    return true
  end
  if l.operator == "conv" and weight then
    local shape = self:shape(weight)
    if shape[2] == self.all then
      self:take(weight, 2, kept)
      return false
    elseif shape[2] == 1 and shape[1] == self.all then -- depthwise
      for _, name in ipairs(l.weights) do self:take(name, 1, kept) end
      self.attributes[l.name] = { group = #kept, out = #kept }
      return true
    end
    refuse(self.layer, "%s takes them in groups", l.name)
  end
  if l.operator == "dense" and weight and self:shape(weight)[2] % self.all == 0 then
    self:take(weight, 2, spread(kept, self:shape(weight)[2] // self.all))
    return false
  end
  refuse(self.layer, "%s (%s) sees them together with others", l.name, l.operator)
end

-- Follows a value to all layers that read it, and cuts them.
function Cut:follow(layers, value)
  if self.outputs[value] then refuse(self.layer, "they are an output of the net") end
  for _, l in ipairs(layers) do
    for _, input in ipairs(l.inputs) do
      if input == value then
        if #l.inputs > 1 then refuse(self.layer, "%s (%s) joins them with others", l.name, l.operator) end
        if self:reader(l) then self:follow(layers, l.name) end
      end
    end
  end
end

-- The cut that leaves of a layer only the kept channels; an error where it cannot be made.
local function cut_of(net, layer, kept)
  local layers, own = net:layers(), nil
  for _, l in ipairs(layers) do
    if l.name == layer then own = l end
  end
  if not own or not own.weights[1] or (own.operator ~= "conv" and own.operator ~= "dense") then
    refuse(layer, "it is not a convolution or dense layer with weights")
  end
  local cut = setmetatable({ net = net, layer = layer, kept = kept, weights = {}, outputs = {},
                             attributes = { [layer] = { out = #kept } } }, Cut)
  local shape = cut:shape(own.weights[1])
  if own.operator == "conv" and own.inputs[1] and shape[2] == 1 and shape[1] > 1 then
    for _, l in ipairs(layers) do
      if l.name == own.inputs[1] and l.sizes[2] == shape[1] then
        refuse(layer, "it is depthwise; prune what comes before")
      end
    end
  end
  cut.all = shape[1]
  for _, output in ipairs(net:outputs()) do cut.outputs[output.name] = true end
  for _, name in ipairs(own.weights) do cut:take(name, 1, kept) end
  cut:follow(layers, layer)
  return cut
end

-- A net in which the layer has only these channels (from 1). Throws if they are combined with
-- others on their way.
---@param net cnnrun.Net
---@param layer string
---@param kept integer[]
---@return cnnrun.Net
function M.kept(net, layer, kept)
  local cut = cut_of(net, layer, kept)
  return net:resized { weights = cut.weights, attributes = cut.attributes }
end

-- The reason why none of the layer's channels can be removed; nil: they can.
---@param net cnnrun.Net
---@param layer string
---@return string?
function M.refused(net, layer)
  local good, why = pcall(cut_of, net, layer, { 1 })
  return not good and tostring(why) or nil
end

-- The layer's channels with the largest norms, in their order; at least one.
---@param norms number[]
---@param count integer
---@return integer[]
function M.largest(norms, count)
  local order, kept = {}, {}
  for i = 1, #norms do order[i] = i end
  table.sort(order, function(a, b)
    if norms[a] ~= norms[b] then return norms[a] > norms[b] end
    return a < b
  end)
  for i = 1, math.max(1, math.min(count, #norms)) do kept[i] = order[i] end
  table.sort(kept)
  return kept
end

return M
