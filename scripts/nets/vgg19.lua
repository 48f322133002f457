-- VGG19, configuration E (Simonyan and Zisserman 2014).
local vgg = require "lib.vgg"

return vgg("vgg19", { 2, 2, 4, 4, 4 })
