-- VGG16, configuration D (Simonyan and Zisserman 2014).
local vgg = require "lib.vgg"

return vgg("vgg16", { 2, 2, 3, 3, 3 })
