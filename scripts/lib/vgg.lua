-- VGG (Simonyan and Zisserman 2014): 3x3 convolutions in five groups, then three dense layers.
local c = require "cnnrun"
local blocks = require "lib.blocks"
local imagenet = require "lib.imagenet"

-- depths: the number of convolutions in each group.
return function(name, depths)
  local body = {}
  for group, depth in ipairs(depths) do
    for i = 1, depth do
      local out = math.min(32 << group, 512)
      body[#body + 1] = c.conv2d { ("conv%d_%d"):format(group, i), out = out, kernel = 3, pad = 1 }
      body[#body + 1] = c.relu {}
    end
    body[#body + 1] = c.maxpool { "pool" .. group, kernel = 2, stride = 2 }
  end
  return c.net {
    name = name, weights = name .. ".cnr", input = imagenet.caffe(224), body,
    c.dense { "fc6", out = 4096 }, c.relu {}, c.dropout { ratio = 0.5 },
    c.dense { "fc7", out = 4096 }, c.relu {}, c.dropout { ratio = 0.5 },
    c.dense { "fc8", out = 1000 }, c.softmax { "prob" },
  }
end
