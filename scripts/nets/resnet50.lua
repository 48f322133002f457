-- ResNet-50 (He et al. 2015).
local resnet = require "lib.resnet"

return resnet("resnet50", "bottleneck", { 3, 4, 6, 3 })
