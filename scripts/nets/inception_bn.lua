-- Inception-BN (Ioffe and Szegedy 2015) for ImageNet's 1000 classes.
local c = require "cnnrun"
local blocks = require "lib.blocks"
local imagenet = require "lib.imagenet"
local inception = require "lib.inception_bn"

return c.net {
  name = "inception_bn", weights = "inception_bn.cnr", input = imagenet.input(224),
  inception.stem(64, 64, 192),
  inception.keep("3a", 64, 64, 64, 64, 96, c.avgpool, 32),
  inception.keep("3b", 64, 64, 96, 64, 96, c.avgpool, 64),
  inception.halve("3c", 128, 160, 64, 96, 1),
  inception.keep("4a", 224, 64, 96, 96, 128, c.avgpool, 128),
  inception.tail(192, 1),
  blocks.classifier(1000),
}
