-- ResNet-34 (He et al. 2015).
local resnet = require "lib.resnet"

return resnet("resnet34", "basic", { 3, 4, 6, 3 })
