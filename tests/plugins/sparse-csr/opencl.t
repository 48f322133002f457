#!/bin/sh
# Sparse weights of all forms on OpenCL devices of both classes: the scores are the processor's.
build=${CNNRUN_BUILD:-build}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
n=0
ok() { # status, what
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi
}
if [ ! -x "$build/cnnrun" ]; then echo "1..0 # SKIP no $build/cnnrun"; exit 0; fi
digit=scripts/nets/digits/three.png
scores() { # net, device: the ten of them, a line each
    "$build/cnnrun" run "$1" "$digit" --device "$2" --top 10 --json 2>"$dir/err" |
        grep -o '"label":"[0-9]","score":[0-9.e-]*' | sort
}
if ! "$build/cnnrun" run scripts/nets/lenet5.lua "$digit" --device opencl:0 >/dev/null 2>&1; then
    echo "1..0 # SKIP no OpenCL device"; exit 0
fi
cat >"$dir/net.lua" <<'LUA'
local c = require "cnnrun"
return c.net { name = "two", labels = { "0", "1", "2", "3", "4", "5", "6", "7", "8", "9" },
  input = { "data", shape = { "batch", 1, 28, 28 }, channels = "gray", scale = 1 / 255 },
  c.dense { "ip1", out = 500 }, c.relu {}, c.dense { "ip2", out = 10 } }
LUA
for form in block=1 block=4 block=4,values=f16 values=int8 values=shared; do
    "$build/cnnrun" convert "$dir/net.lua" --weights random:3 -o "$dir/x.cnr" \
        --encode "sparse-csr:keep=0.2,$form" >/dev/null 2>&1
    scores "$dir/x.cnr" cpu >"$dir/cpu"
    for class in opencl-mali opencl-desktop; do
        CNNRUN_OPENCL_CLASS=$class; export CNNRUN_OPENCL_CLASS
        scores "$dir/x.cnr" opencl:0 >"$dir/device"
        "$build/cnnrun" show "$dir/x.cnr" --device opencl:0 --json >"$dir/plan" 2>/dev/null
        [ "$(grep -c 'dense_f32_csr' "$dir/plan")" -eq 2 ] && [ "$(wc -l <"$dir/device")" -eq 10 ] &&
            paste -d: "$dir/cpu" "$dir/device" | awk -F: '{ d = $3 - $6; if (d > 1e-4 || d < -1e-4 || $2 != $5) exit 1 }'
        ok $? "$form on $class: both dense layers sparse, ten scores"
        unset CNNRUN_OPENCL_CLASS
    done
done
"$build/cnnrun" convert "$dir/net.lua" --weights random:3 -o "$dir/x.cnr" \
    --encode sparse-csr:keep=0.2,code=zstd >/dev/null 2>&1
scores "$dir/x.cnr" cpu >"$dir/cpu"; scores "$dir/x.cnr" opencl:0 >"$dir/device"
[ "$(wc -l <"$dir/device")" -eq 10 ] &&
    paste -d: "$dir/cpu" "$dir/device" | awk -F: '{ d = $3 - $6; if (d > 1e-4 || d < -1e-4 || $2 != $5) exit 1 }'
ok $? "what is compressed further is decoded for the device"
# Convolutions: 1x1, windows over edges, strides, groups; dilation.
cat >"$dir/net.lua" <<'LUA'
local c = require "cnnrun"
return c.net { name = "convs", labels = { "0", "1", "2", "3", "4", "5", "6", "7", "8", "9" },
  input = { "data", shape = { "batch", 1, 28, 28 }, channels = "gray", scale = 1 / 255 },
  c.conv2d { "a", out = 16, kernel = 5, pad = 2 }, c.relu {}, c.conv2d { "b", out = 32, kernel = 1 }, c.relu {},
  c.conv2d { "c", out = 32, kernel = 3, stride = 2, pad = 1, group = 2 },
  c.conv2d { "d", out = 8, kernel = 3, stride = 3, pad = 1, dilation = 2 }, c.dense { "e", out = 10 } }
LUA
for form in block=1 block=4,values=f16; do
    "$build/cnnrun" convert "$dir/net.lua" --weights random:3 -o "$dir/x.cnr" \
        --encode "sparse-csr:keep=0.1,$form" --layers '[a-e]' >/dev/null 2>&1
    scores "$dir/x.cnr" cpu >"$dir/cpu"
    for class in opencl-mali opencl-desktop; do
        CNNRUN_OPENCL_CLASS=$class; export CNNRUN_OPENCL_CLASS
        scores "$dir/x.cnr" opencl:0 >"$dir/device"
        "$build/cnnrun" show "$dir/x.cnr" --device opencl:0 --json >"$dir/plan" 2>/dev/null
        [ "$(grep -c 'conv_f32_csr' "$dir/plan")" -eq 4 ] && [ "$(wc -l <"$dir/device")" -eq 10 ] &&
            paste -d: "$dir/cpu" "$dir/device" | awk -F: '{ d = $3 - $6; if (d > 1e-4 || d < -1e-4 || $2 != $5) exit 1 }'
        ok $? "$form on $class: four convolutions sparse, ten scores"
        unset CNNRUN_OPENCL_CLASS
    done
done
echo "1..$n"
