#!/bin/sh
# Training of imported nets: a new head, frozen layers, open sizes, constants behind nodes; and the reasons
# why a net can't be trained.
build=${CNNRUN_BUILD:-build}
shared=${CNNRUN_SHARED:-../shared}
root=$(cd "$(dirname "$0")/../../.." && pwd)
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
n=0
ok() { # status, what
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi
}
i=0
for name in zero one two three four five six seven eight nine; do
    echo "$root/scripts/nets/digits/$name.png $i"
    i=$((i + 1))
done >"$dir/list.txt"
train() {
    "$build/cnnrun" train "$@" --data "images:$dir/list.txt" --batch 5 --validation 0 --eval '' --overwrite -q -o "$dir/x.cnr" \
        >"$dir/out" 2>"$dir/err"
}
net() { # name, what stands behind the input's shape, layers
    printf 'local c = require "cnnrun"\nreturn c.net { name = "%s", input = { "data", shape = %s }, %s }\n' "$1" "$2" "$3" >"$dir/$1.lua"
}
cat >"$dir/same.lua" <<'LUA'
local c = require "cnnrun"
return function(args)
  local a, b = c.load(args[1]), c.load(args[2])
  for i = 3, #args do
    local x, y = a:weight(args[i]), b:weight(args[i])
    local far = 0
    if table.concat(x:shape(), "x") == table.concat(y:shape(), "x") then
      for _, norm in ipairs(x:plus(y, -1):norms()) do far = math.max(far, norm) end
    end
    print(args[i], table.concat(y:shape(), "x"), far == 0)
  end
end
LUA
same() { "$build/cnnrun" "$dir/same.lua" scripts/nets/lenet5.lua "$dir/x.cnr" "$@"; }

# A new head: the last layer begins anew, what is frozen stays, the rest is trained on.
train scripts/nets/lenet5.lua --weights scripts/nets/lenet5.cnr --head 12 --freeze 'conv*' --epochs 12 --lr 0.003; ok $? "a new head"
same conv1.weight conv2.bias ip1.weight ip2.weight >"$dir/look"
grep -q 'ip2.weight.12x500' "$dir/look"; ok $? "has as many classes as were asked for"
[ "$(grep -c 'conv.*true' "$dir/look")" -eq 2 ]; ok $? "frozen weights stay"
grep -q 'ip1.weight.500x800.false' "$dir/look"; ok $? "others are trained on"
[ "$("$build/cnnrun" run "$dir/x.cnr" --top 1 scripts/nets/digits/seven.png | awk 'NR == 2 { print $1 }')" = 7 ]; ok $? "and it has learned"
train scripts/nets/lenet5.lua --weights scripts/nets/lenet5.cnr --head 12 --freeze '*' --epochs 1 --lr 0.003; ok $? "a new head trains, whatever is frozen"
same ip1.weight ip1.bias >"$dir/look"
[ "$(grep -c true "$dir/look")" -eq 2 ]; ok $? "and nothing else does"
net bare '{ "batch", 1, 28, 28 }' 'c.flatten {}, c.softmax {}'
train "$dir/bare.lua" --head 3
[ $? -ne 0 ] && grep -q "bare: can't have a new head because its scores are not" "$dir/err"; ok $? "one without weights can't have one"

# A folder of classes, one of them without pictures.
for class in a c; do mkdir -p "$dir/classes/$class"; cp "$root/scripts/nets/digits/one.png" "$dir/classes/$class"; done
mkdir "$dir/classes/b"
"$build/cnnrun" eval scripts/nets/lenet5.lua --data "$dir/classes" >"$dir/out" 2>"$dir/err"
grep -q "classes/b: has no pictures, so it is no class" "$dir/err"; ok $? "a class without pictures is told"

# What a net leaves open its preprocessing says; scores may have sides of 1.
net open '{ "batch", 3, "height", "width" }, resize = "24x24"' \
    'c.conv2d { "conv", out = 10, kernel = 7, stride = 3 }, c.global_average_pool {}, c.softmax { axis = 1 }'
train "$dir/open.lua" --epochs 1; ok $? "open sizes are those of the preprocessing, scores of [n,10,1,1]"
net wide '{ "batch", 3, "height", "width" }' 'c.conv2d { "conv", out = 10, kernel = 7, stride = 3 }, c.global_average_pool {}'
train "$dir/wide.lua" --epochs 1
[ $? -ne 0 ] && grep -q "data: can't be trained because its input.*--resize" "$dir/err"; ok $? "which nobody says: $(cat "$dir/err")"
train "$dir/wide.lua" --epochs 1 --resize 24x24; ok $? "or the command line's"

# Constants that nodes turn, as frozen graphs have them, are folded first.
net turned '{ "batch", 1, 28, 28 }' \
    'c.flatten {}, function(x) return c.dense { x, weight = c.transpose { c.weight { "w", shape = { 784, 10 } }, perm = { 1, 0 } } } end'
train "$dir/turned.lua" --epochs 1; ok $? "weights behind a node that turns them"

# Why one can't be.
wrong() { # net, what is told
    train "$dir/$1.lua" --epochs 1
    [ $? -ne 0 ] && grep -q "$2" "$dir/err"; ok $? "refused: $(tr '\n' ' ' <"$dir/err")"
}
net one '{ 1, 1, 28, 28 }' 'c.dense { "ip", out = 12 }, function(x) return c.reshape { x, shape = { 1, 12 } } end'
wrong one "can't be trained in batches of 5 (the net is written for 1) because: "
net hard '{ "batch", 1, 28, 28 }' 'c.dense { "ip", out = 10 }, c.hardmax { "h" }'
wrong hard "can't be trained because h (hardmax) has no gradient"
wrong bare "can't be trained because it has no f32 weights"

lenet=$shared/data/tensorflow/mnist/lenet5_mnist_frozen.pb
if [ -e "$lenet" ] && [ -e "$build/plugins/import-tensorflow.so" ]; then
    train "$lenet" --resize 28x28 --epochs 1; ok $? "a frozen graph of TensorFlow's"
else n=$((n + 1)); echo "ok $n - a frozen graph # SKIP no $lenet, or import-tensorflow was not built"; fi
lenet=$shared/data/mxnet/lenet/lenet-symbol.json
if [ -e "$lenet" ] && [ -e "$build/plugins/import-mxnet.so" ]; then
    train "$lenet" --option shape=1,28,28 --epochs 1 --head 10 --freeze '*conv*'; ok $? "a net of MXNet's, with a new head"
else n=$((n + 1)); echo "ok $n - a net of MXNet's # SKIP no $lenet, or import-mxnet was not built"; fi
echo "1..$n"
