#!/bin/sh
# Plugins built against headers of other days: they load and run, or the refusal says why.
build=$(cd "${CNNRUN_BUILD:-build}" && pwd) || exit 1
here=$(cd "$(dirname "$0")" && pwd)
digit=$here/../../scripts/nets/digits/three.png
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0 failed=0
ok() { # ok STATUS NAME
    count=$((count + 1))
    if [ "$1" = 0 ]; then echo "ok $count - $2"; else
        failed=1
        echo "not ok $count - $2"
        sed 's/^/# /' "$work/out" "$work/err" | tail -n 15
    fi
}
run() { "$@" >"$work/out" 2>"$work/err"; }
compile() { # compile FOLDER SOURCE NAME
    run cc -std=c11 -O2 -fPIC -shared -fvisibility=hidden -Wall -Wextra -Werror \
        -I"$here/frozen/$1" -o "$work/$3.so" "$here/frozen/$1/$2"
}
net() { # net OPERATOR: a net of it
    cat >"$work/$1.lua" <<END
local c = require "cnnrun"
return c.net { name = "frozen", input = { "x", shape = { 1, 1, 28, 28 }, scale = 1 / 255 },
  c.$1 {}, c.average_pool { kernel = 14, stride = 14 }, c.flatten {} }
END
}
major=$(sed -n 's/#define CNR_ABI_MAJOR //p' "$here/../../core/include/cnnrun/version.h.in")

compile 0.1-first old.c first; ok $? "a plugin builds by the first headers"
run "$build/cnnrun" plugins --check "$work/first.so"; code=$?
if [ "$major" = 0 ]; then
    [ $code = 0 ]; ok $? "the host of the same major loads it"
    net frozen_first_twice
    run "$build/cnnrun" run --device cpu --plugin-dir "$work/first.so" \
        "$work/frozen_first_twice.lua" "$digit"
    ok $? "and runs its operator"
else
    [ $code != 0 ] && [ $code -lt 100 ]; ok $? "the host of another major refuses it"
    cat "$work/out" "$work/err" | grep -q 'built for ABI 0\.1, this host has [0-9.]*: the major must'
    ok $? "and tells both versions"
fi
# runs_as_frozen ABI OPERATOR DEVICE: builds that day's plugin, loads it and runs what it brings.
runs_as_frozen() {
    compile "$1" now.c "now-$1"; ok $? "a plugin builds by the headers of $1"
    run "$build/cnnrun" plugins --check "$work/now-$1.so"; ok $? "it loads"
    net "$2"
    for device in cpu "$3"; do
        run "$build/cnnrun" run --json --top 4 --device "$device" --plugin-dir "$work/now-$1.so" \
            "$work/$2.lua" "$digit"
        ok $? "its operator runs on $device"
        cp "$work/out" "$work/$device"
    done
    perl -e '
        my @t = map { local @ARGV = $_; join "", <> } @ARGV;
        my @s = map { [ /"score":\s*([-0-9.e]+)/g ] } @t;
        exit 1 unless @{$s[0]} == 4 && @{$s[0]} == @{$s[1]};
        for (0 .. 3) { exit 1 if abs($s[0][$_] - $s[1][$_]) > 1e-6 }' "$work/cpu" "$work/$3"
    ok $? "with the same answer on its own device as on ours"
    run "$build/cnnrun" show --json --device "$3" --plugin-dir "$work/now-$1.so" "$work/$2.lua"
    grep -q "\"kernel\":\"$2_f32\",\"device\":\"$3\"" "$work/out"; ok $? "by its own kernel"
    run "$build/cnnrun" warm --cache "$work/cache" --device "$3" --plugin-dir "$work/now-$1.so" \
        "$work/$2.lua"
    run "$build/cnnrun" warm --json --cache "$work/cache" --device "$3" \
        --plugin-dir "$work/now-$1.so" "$work/$2.lua"
    grep -q '"origin":"hit".*"prepared":0,"taken_over":1' "$work/out"
    ok $? "whose blob is kept for the next start"
}
# ranges ABI OPERATOR: its reference knows nothing of ranges, and threads do not ask it for any.
ranges() {
    cat >"$work/wide.lua" <<END
local c = require "cnnrun"
return c.net { name = "wide", input = { "x", shape = { 1, 1, 256, 256 }, scale = 1 / 255 },
  c.max_pool { kernel = 1, stride = 1 }, c.$2 {}, c.average_pool { kernel = 64, stride = 64 }, c.flatten {} }
END
    for threads in 1 2; do
        run "$build/cnnrun" run --json --top 16 --device cpu --threads $threads \
            --plugin-dir "$work/now-$1.so" "$work/wide.lua" "$digit"
        perl -ne 'print /"score":\s*[-0-9.e]+/g' "$work/out" >"$work/wide-$threads"
    done
    [ -s "$work/wide-1" ] && cmp -s "$work/wide-1" "$work/wide-2"
    ok $? "the operator of $1, which promises no ranges, answers alike with one thread and with two"
}
runs_as_frozen 1.0 frozen_scale frozen
runs_as_frozen 1.1 frozen_shift frozen-later
ranges 1.1 frozen_shift

echo "frozen-net 3 5" >"$work/net.frozen"
run "$build/cnnrun" show --json --plugin-dir "$work/now-1.1.so" "$work/net.frozen"
grep -q '"op":"frozen_shift"' "$work/out"; ok $? "the importer of 1.1 builds a net"
cat >"$work/dense.lua" <<'END'
local c = require "cnnrun"
return c.net { name = "frozen", input = { "x", shape = { 1, 1, 28, 28 }, scale = 1 / 255 },
  c.flatten {}, c.dense { "sum", out = 3, bias = false } }
END
run "$build/cnnrun" run --json --plugin-dir "$work/now-1.1.so" --weights "$work/net.frozen" \
    "$work/dense.lua" "$digit"
perl -0ne '@s = /"score":\s*([-0-9.e]+)/g; exit !(@s == 3 && $s[0] == $s[2] && $s[0] > 0)' "$work/out"
ok $? "and sees which weights a net of ours wants"
run "$build/cnnrun" plugins --plugin-dir "$work/now-1.1.so"
grep -q frozen-meter "$work/out" && grep -q frozen-knob "$work/out"
ok $? "its meter and its knob register"

# Calibration was metadata then; now it is numbers in the host table.
compile 1.1 quantise.c quantise; ok $? "a rewrite that quantises builds by the headers of 1.1"
cat >"$work/conv.lua" <<'END'
local c = require "cnnrun"
return c.net { name = "conv", input = { "x", shape = { 1, 1, 28, 28 }, scale = 1 / 255 },
  c.conv2d { "one", out = 4, kernel = 3 }, c.relu {}, c.conv2d { "two", out = 2, kernel = 5 }, c.flatten {} }
END
echo "$digit 3" >"$work/list"
run "$build/cnnrun" quantize --json --all --no-rewrite quantize-layers --plugin-dir "$work/quantise.so" \
    --weights random:1 --layers 'o*' --data "images:$work/list" -o "$work/conv.cnr" "$work/conv.lua"
grep -q '"layer":"one".*"snr_db":[2-9][0-9]\..*"quantized":true' "$work/out" &&
    grep -q '"layers":1,' "$work/out"
ok $? "it is asked, told what values hold, and its answer is heard"
run "$build/cnnrun" show --json "$work/conv.cnr" && grep -q '"op":"quantize_linear"' "$work/out" &&
    ! grep -aq 'range\.\|quantized\.' "$work/conv.cnr"
ok $? "and what was spoken is not kept with the net"
echo "1..$count"
exit $failed
