-- ResNet-152 (He et al. 2015).
local resnet = require "lib.resnet"

return resnet("resnet152", "bottleneck", { 3, 8, 36, 3 })
