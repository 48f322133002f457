-- ResNet-101 (He et al. 2015).
local resnet = require "lib.resnet"

return resnet("resnet101", "bottleneck", { 3, 4, 23, 3 })
