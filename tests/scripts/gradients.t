#!/bin/sh
# The zoo's classifiers can be trained: each weight has a gradient, and a step along it lowers the loss as
# much as the gradient predicts.
build=${CNNRUN_BUILD:-build}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cat >"$dir/test.lua" <<'EOF'
local c = require "cnnrun"
-- Two pictures of fixed numbers, as large as the net wants them.
local function batch(net)
  local shape, n, data = {}, 1, {}
  for i, size in ipairs(net:inputs()[1].sizes) do
    shape[i] = i == 1 and 2 or size
    n = n * shape[i]
  end
  for i = 1, n do data[i] = (i * 7919 % 255) / 127.5 - 1 end
  return c.tensor { shape = shape, data = data }
end
return function(names)
  for number, name in ipairs(names) do
    local net <close> = c.load("nets." .. name, { weights = "random:1" })
    local x, labels = batch(net), { 1, 2 }
    local first <close> = net:copy() -- dropout draws by the step: the first one of both
    local gradients, loss = first:gradients(x, labels)
    local missing, square = {}, 0
    for _, weight in ipairs(net:weights()) do
      local g = gradients[weight]
      if g then
        local sum = 0
        for _, norm in ipairs(#g:shape() > 0 and g:norms() or {}) do sum = sum + norm * norm end
        if not (sum >= 0 and sum < math.huge) then missing[#missing + 1] = weight end
        square = square + sum
      elseif not weight:match("mean$") and not weight:match("var$") then missing[#missing + 1] = weight
      end
    end
    -- Against the difference that a small step makes.
    local step = 2e-4 * loss / square
    for weight, g in pairs(gradients) do net:set_weight(weight, net:weight(weight):plus(g, -step)) end
    local _, after = net:gradients(x, labels)
    local ratio = (loss - after) / (step * square)
    local good = #missing == 0 and square > 0 and ratio > 0.8 and ratio < 1.2
    print(("%s %d - %s: loss %.4f, falls %.2f of what its gradients say%s"):format(
      good and "ok" or "not ok", number, name, loss, ratio,
      #missing > 0 and ", without: " .. table.concat(missing, " ") or ""))
  end
  print("1.." .. #names)
end
EOF
"$build/cnnrun" "$dir/test.lua" lenet5 cifar10_quick cifar10_full squeezenet_v1_1 mobilenet_v1 mobilenet_v2 resnet18 \
    googlenet shufflenet_v2
