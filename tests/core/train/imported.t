#!/bin/sh
# Imported nets in train, prune and quantize: Caffe, MXNet, Darknet, an ONNX file with open sizes, TensorFlow.
build=${CNNRUN_BUILD:-build}
shared=${CNNRUN_SHARED:-../shared}/data
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
cat >"$dir/half.lua" <<'LUA'
local few = { epochs = 1, rate = 0.0001, batch = 5 }
return require "lib.prune".schedule { layers = { ["*"] = 0.5 }, rates = { 0.5 }, scan = false, train = few, finish = few }
LUA
data="--data images:$dir/list.txt"
imported() { # name, what becomes of it, words of import
    net=$1 steps=$2
    shift 2
    if [ ! -e "$1" ]; then
        n=$((n + 1)); echo "ok $n - $net # SKIP no $1"
        return
    fi
    "$build/cnnrun" import "$@" -o "$dir/$net.cnr" >"$dir/log" 2>&1; ok $? "$net is imported"
    for step in $steps; do
        case $step in
        train) "$build/cnnrun" train "$dir/$net.cnr" $data --eval '' --validation 0 --batch 5 --epochs 1 --lr 0.0001 -q -o "$dir/$net.t.cnr" ;;
        prune) "$build/cnnrun" prune "$dir/$net.cnr" "$dir/half.lua" $data --eval '' --validation 5 --no-scan -q -o "$dir/$net.p.cnr" ;;
        quantize) "$build/cnnrun" quantize "$dir/$net.cnr" $data --limit 5 -q -o "$dir/$net.q.cnr" ;;
        esac >"$dir/log" 2>&1
        ok $? "$net: $step"
    done
}
cat >"$dir/open.lua" <<'LUA'
local c = require "cnnrun"
return c.net { name = "open", input = { "data", shape = { "batch", 1, "height", "width" } }, c.conv2d { "conv1", out = 8, kernel = 5 },
  c.relu {}, c.global_average_pool {}, c.flatten {}, c.dense { "ip", out = 10 }, c.softmax {} }
LUA
"$build/cnnrun" export "$dir/open.lua" --weights random:1 -o "$dir/open.onnx" >"$dir/log" 2>&1; ok $? "an ONNX file with open sizes"
imported open "train prune quantize" "$dir/open.onnx" --resize 28x28
# A criterion of gradients wants a batch of the sizes that the preprocessing gives.
cat >"$dir/toward.lua" <<'LUA'
local few = { epochs = 1, rate = 0.0001, batch = 5 }
return require "lib.prune".schedule { keep = 0.5, rates = { 0.5 }, scan = false, saliency = { batches = 1, batch = 5 },
  criterion = function(weight, gradient) return weight:times(gradient) end, train = few, finish = few }
LUA
"$build/cnnrun" prune "$dir/open.cnr" "$dir/toward.lua" $data --eval '' --validation 5 -q -o "$dir/open.g.cnr" >"$dir/log" 2>&1
ok $? "open: prune by gradients"
"$build/cnnrun" train "$dir/open.cnr" --head 3 $data --eval '' --batch 5 --epochs 1 -q -o "$dir/open.h.cnr" >"$dir/log" 2>&1
grep -q '\.png: the picture has label [3-9], and the net tells 3 classes apart' "$dir/log"; ok $? "a label that the net has no class for is told with the picture"
imported caffe "train prune quantize" "$shared/caffe/lenet/lenet_deploy.prototxt" "$shared/caffe/lenet/lenet_iter_10000.caffemodel"
imported mxnet "train prune quantize" "$shared/mxnet/lenet/lenet-symbol.json" "$shared/mxnet/lenet/lenet-0001.params" --option shape=1,28,28
imported darknet "train prune quantize" "$shared/darknet/tiny-darknet/tiny.cfg" "$shared/darknet/tiny-darknet/tiny.weights"
imported tensorflow "train prune quantize" "$shared/tensorflow/mnist/lenet5_mnist_frozen.pb" --resize 28x28
echo "1..$n"
