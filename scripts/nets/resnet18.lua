-- ResNet-18 (He et al. 2015).
local resnet = require "lib.resnet"

return resnet("resnet18", "basic", { 2, 2, 2, 2 })
