#!/bin/sh
# Training of linear layers as other programs export them: products by constants and sums. Which
# constants are weights; a new head; frozen and pruned ones; group and layer normalisation on the way.
build=${CNNRUN_BUILD:-build}
root=$(cd "$(dirname "$0")/../../.." && pwd)
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
n=0
ok() { # status, what
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; sed 's/^/# /' "$dir/log" | tail -n 3; fi
}
i=0
for name in zero one two three four five six seven eight nine; do
    echo "$root/scripts/nets/digits/$name.png $i"
    i=$((i + 1))
done >"$dir/list.txt"
cat >"$dir/flat.lua" <<'LUA'
local c = require "cnnrun"
return c.net { name = "flat", input = { "data", shape = { "batch", 1, 28, 28 } }, c.conv2d { "conv", out = 8, kernel = 5, stride = 2 },
  c.group_normalization { "gn", num_groups = 2 }, c.gelu {}, c.flatten {},
  function(x) return c.gemm { "fc", x, b = c.weight { "fc.w", shape = { 20, 1152 } }, c = c.weight { "fc.b", shape = { 20 } }, transB = 1 } end,
  c.relu {},
  function(x) return c.gemm { "head", x, b = c.weight { "head.w", shape = { 20, 7 } }, c = c.weight { "head.b", shape = { 7 } } } end }
LUA
cat >"$dir/rows.lua" <<'LUA'
local c = require "cnnrun"
local function linear(name, from, to)
  return function(x)
    local y = c.matmul { name .. ".product", x, b = c.weight { name .. ".w", shape = { from, to } } }
    return c.add { name, c.weight { name .. ".b", shape = { to } }, y }
  end
end
return c.net { name = "rows", input = { "data", shape = { "batch", 1, 28, 28 } }, c.conv2d { "conv", out = 8, kernel = 7, stride = 7 },
  c.reshape { shape = { 0, 8, 16 } }, c.transpose { perm = { 0, 2, 1 } },
  function(x) return c.add { "place", x, c.weight { "table", shape = { 16, 8 } } } end,
  c.layer_normalization { "ln" }, linear("mix", 8, 16), c.gelu {}, c.reduce_mean { axes = { 1 }, keepdims = 0 }, linear("head", 16, 7) }
LUA
cat >"$dir/wide.lua" <<'LUA'
local c = require "cnnrun"
return c.net { name = "wide", input = { "data", shape = { "batch", 1, 28, 28 } }, c.conv2d { "conv", out = 4, kernel = 7, stride = 7 },
  function(x) return c.add { "columns", x, c.weight { "vector", shape = { 4 } } } end, c.flatten {},
  function(x) return c.matmul { "fc", x, b = c.weight { "fc.w", shape = { 64, 8 } } } end,
  function(x) return c.add { "sum", x, c.weight { "fc.b", shape = { 1, 8 } } } end, c.relu {},
  function(x) return c.gemm { "one", x, b = c.weight { "one.w", shape = { 8, 1 } }, c = c.weight { "one.b", shape = { 1 } } } end }
LUA
cat >"$dir/axes.lua" <<'LUA'
local c = require "cnnrun"
return c.net { name = "axes", input = { "data", shape = { "batch", 1, 28, 28 } }, c.reshape { shape = { 0, 7, 112 } },
  function(x) return c.matmul { "fc", x, b = c.weight { "fc.w", shape = { 112, 7 } } } end }
LUA
cat >"$dir/look.lua" <<'LUA'
local c = require "cnnrun"
return function(args)
  local a, b = c.load(args[1]), c.load(args[2])
  print("trainable: " .. table.concat(b:trainable(), " "))
  for _, name in ipairs(a:weights()) do
    local x, y, far = a:weight(name), b:weight(name), 0
    local same = table.concat(x:shape(), "x") == table.concat(y:shape(), "x")
    if same then for _, norm in ipairs(x:plus(y, -1):norms()) do far = math.max(far, norm) end end
    print(name, table.concat(y:shape(), "x"), same and far == 0 and "stayed" or "changed")
  end
end
LUA
cat >"$dir/half.lua" <<'LUA'
local few = { epochs = 1, rate = 0.0001, batch = 5 }
return require "lib.prune".schedule { layers = { ["*"] = 0.5 }, rates = { 0.5 }, scan = false, train = few, finish = few }
LUA
data="--data images:$dir/list.txt"
has() { # what the line says, what is tested
    grep -q "$1" "$dir/log"; ok $? "$net: $2"
}
linear() { # net, shape of the new head's weight
    net=$1
    "$build/cnnrun" export "$dir/$net.lua" --weights random:1 -o "$dir/$net.onnx" >"$dir/log" 2>&1; ok $? "$net: to ONNX"
    "$build/cnnrun" train "$dir/$net.onnx" $data --head 10 --freeze 'conv*' --eval '' --validation 0 --batch 5 --epochs 8 --lr 0.01 \
        -o "$dir/$net.cnr" >"$dir/log" 2>&1; ok $? "$net: is trained with a new head"
    awk '/^epoch/ { sub(",", "", $4); if (!n++) first = $4; last = $4 } END { exit !(n && last < first) }' "$dir/log"; ok $? "$net: the loss falls"
    "$build/cnnrun" "$dir/look.lua" "$dir/$net.onnx" "$dir/$net.cnr" >"$dir/log" 2>&1
    has "head.w.$2.changed" "the head has ten classes"
    has "head.b.10.changed" "and so has its bias"
    has "conv.weight.*stayed" "frozen weights stay"
}
linear flat 20x10
has 'fc.w.20x1152.changed' "products by constants are trained"
has 'fc.b.20.changed' "and what their nodes add"
linear rows 16x10
has 'mix.w.8x16.changed' "products of several axes are trained"
has 'mix.b.16.changed' "and what is added behind them"
has 'table.16x8.stayed' "but not what is added to something else"
grep trainable "$dir/log" | grep -qv table; ok $? "rows: which net:trainable() tells"
"$build/cnnrun" prune "$dir/rows.cnr" "$dir/half.lua" $data --eval '' --validation 5 --no-scan -q -o "$dir/p.cnr" >"$dir/log" 2>&1; ok $? "is pruned"
"$build/cnnrun" "$dir/look.lua" "$dir/rows.cnr" "$dir/p.cnr" >"$dir/log" 2>&1
has 'mix.w.8x16.changed' "its products are pruned"
has 'table.16x8.stayed' "its table is not"
"$build/cnnrun" export "$dir/wide.lua" --weights random:1 -o "$dir/wide.onnx" >"$dir/log" 2>&1
"$build/cnnrun" "$dir/look.lua" "$dir/wide.onnx" "$dir/wide.onnx" >"$dir/log" 2>&1
net=wide
grep trainable "$dir/log" | grep -q 'fc.b.*one.w.*one.b'; ok $? "wide: biases of one output and of the shape 1xN are trained"
grep trainable "$dir/log" | grep -qv vector; ok $? "wide: a vector along a convolution's width is no bias"
sed -i '/"one"/d; s/c.relu {},/}/' "$dir/wide.lua"
"$build/cnnrun" train "$dir/wide.lua" $data --head 10 --eval '' --validation 0 --batch 5 --epochs 1 --lr 0 -o "$dir/wide.cnr" \
    >"$dir/log" 2>&1; ok $? "wide: a head with a bias of 1xN"
cat >"$dir/zero.lua" <<'LUA'
return function(args)
  local b = require "cnnrun".load(args[1]):weight("fc.b")
  print(table.concat(b:shape(), "x"), b:norms()[1])
end
LUA
"$build/cnnrun" "$dir/zero.lua" "$dir/wide.cnr" >"$dir/log" 2>&1
has '^1x10.0.0' "which begins at 0"
"$build/cnnrun" train "$dir/axes.lua" $data --head 10 --epochs 1 -o "$dir/axes.cnr" >"$dir/log" 2>&1
[ $? -ne 0 ] && grep -q "axes: can't have a new head because its scores lie along axis 1" "$dir/log"; ok $? "axes: refused"
"$build/cnnrun" quantize "$dir/flat.cnr" $data --limit 5 --all -q -o "$dir/q.cnr" >"$dir/log" 2>&1; ok $? "is quantised"
echo "1..$n"
