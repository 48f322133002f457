-- losses.lua FOLDER: gradients of each shipped loss by the weights of losses_net.lua, as .npy files for losses_compare.py.
local c = require "cnnrun"

local names = { "cross_entropy", "mse", "binary", "focal", "smooth", "contrastive", "distill" }

-- Numbers of a shape, by a seed.
local function numbers(shape, seed)
  local n, data = 1, {}
  for _, size in ipairs(shape) do n = n * size end
  for i = 1, n do data[i] = ((i * 7919 + seed * 104729) % 2003) / 1001.5 - 1 end
  return c.tensor { shape = shape, data = data }
end

-- The loss of that name; nil: the operator's.
local function loss_of(name, teacher)
  if name == "cross_entropy" then return nil end -- the operator that a net has by itself
  if name ~= "distill" then return require("losses." .. name) end
  return require "losses.distill"(teacher, function(x, given)
    return c.dense(given(c.tanh { c.dense(given(x, "ip1")) }, "ip2"))
  end)
end

return function(args)
  local folder = args[1]
  local net <close> = c.load("losses_net.lua", { weights = "random:1" })
  local teacher <close> = c.load("losses_net.lua", { weights = "random:2" })
  for _, name in ipairs(net:weights()) do
    net:weight(name):save(("%s/weight.%s.npy"):format(folder, name))
    teacher:weight(name):save(("%s/teacher.%s.npy"):format(folder, name))
  end
  local x = numbers({ 6, 12 }, 1)
  x:save(folder .. "/x.npy")
  for _, name in ipairs(names) do
    local gradients, loss = net:gradients(x, { 0, 3, 4, 3, 1, 0 }, { loss = loss_of(name, teacher) })
    for weight, g in pairs(gradients) do g:save(("%s/%s.%s.npy"):format(folder, name, weight)) end
    print(name, ("%.9g"):format(loss))
  end
end
