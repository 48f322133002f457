-- Inception-BN for all of ImageNet's 21,841 classes, with wider first layers.
local c = require "cnnrun"
local blocks = require "lib.blocks"
local imagenet = require "lib.imagenet"
local inception = require "lib.inception_bn"

return c.net {
  name = "inception_full", weights = "inception_full.cnr", input = imagenet.input(224),
  inception.stem(96, 128, 288),
  inception.keep("3a", 96, 96, 96, 96, 144, c.avgpool, 48),
  inception.keep("3b", 96, 96, 144, 96, 144, c.avgpool, 96),
  inception.halve("3c", 192, 240, 96, 144, 0),
  inception.keep("4a", 224, 64, 96, 96, 128, c.avgpool, 128),
  inception.tail(96, 0),
  blocks.classifier(21841),
}
