#!/bin/sh
# Plugins built against older and newer headers: they load and run, or the refusal says why.
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
compile() { # compile FLAGS SOURCE NAME
    run cc -std=c11 -O2 -fPIC -shared -fvisibility=hidden -Wall -Wextra -Werror $1 -o "$work/$3.so" "$here/$2"
}
net() { # net OPERATOR: a net of it
    cat >"$work/$1.lua" <<END
local c = require "cnnrun"
return c.net { name = "frozen", input = { "x", shape = { 1, 1, 28, 28 }, scale = 1 / 255 },
  c.$1 {}, c.average_pool { kernel = 14, stride = 14 }, c.flatten {} }
END
}
here_is() { # here_is NAME: this host's CNR_ABI_NAME
    sed -n "s/#define CNR_ABI_$1 //p" "$here/../../core/include/cnnrun/version.h.in"
}
ours="$(here_is MAJOR).$(here_is MINOR)"

# Older majors.
for day in 0.1-first 1.1; do
    compile "-I$here/frozen/$day" "frozen/$day/old.c" "old-$day"; ok $? "a plugin builds by the headers of $day"
    run "$build/cnnrun" plugins --check "$work/old-$day.so"; code=$?
    [ $code != 0 ] && [ $code -lt 100 ]; ok $? "this host refuses it"
    cat "$work/out" "$work/err" | grep -q "built for ABI ${day%-first}, this host has $ours: build it again"
    ok $? "and tells both versions, and what to do"
done

# A later minor: longer structs, and a version that this host does not have.
mkdir -p "$work/later/cnnrun"
cp "$here"/../../core/include/cnnrun/*.h "$build/include/cnnrun/version.h" "$work/later/cnnrun/"
sed -i "s/#define CNR_ABI_MINOR .*/#define CNR_ABI_MINOR $(($(here_is MINOR) + 1))/" "$work/later/cnnrun/version.h"
for name in op kernel device_class importer meter knob plugin; do
    sed -i "s/^} cnr_$name;/    void *later[4];\n} cnr_$name;/" "$work"/later/cnnrun/*.h
done
run sh -c "cat $work/later/cnnrun/*.h | grep -c 'void .later'"
[ "$(cat "$work/out")" = 7 ]; ok $? "headers of a later minor are made"
compile "-I$work/later" frozen/now.c too-new; ok $? "a plugin builds by them"
run "$build/cnnrun" plugins --check "$work/too-new.so"; code=$?
[ $code != 0 ] && [ $code -lt 100 ] && cat "$work/out" "$work/err" | grep -q "wants ABI .*, this host has $ours.*CNR_ABI_WANTED"
ok $? "a host of an earlier minor refuses it, and says what to do"
compile "-I$work/later -DCNR_ABI_WANTED=CNR_ABI_VERSION($(here_is MAJOR),$(here_is MINOR))" frozen/now.c later
ok $? "it builds for this host, too"

compile "-I$here/../../core/include -I$build/include" frozen/now.c now; ok $? "and by this tree's headers"
runs() { # runs NAME: loads the plugin and runs what it brings
    plugin=$work/$1.so
    run "$build/cnnrun" plugins --check "$plugin"; ok $? "$1: it loads"
    net frozen_shift
    for device in cpu frozen; do
        run "$build/cnnrun" run --json --top 4 --device "$device" --plugin-dir "$plugin" "$work/frozen_shift.lua" "$digit"
        ok $? "its operator runs on $device"
        cp "$work/out" "$work/$device"
    done
    perl -e '
        my @t = map { local @ARGV = $_; join "", <> } @ARGV;
        my @s = map { [ /"score":\s*([-0-9.e]+)/g ] } @t;
        exit 1 unless @{$s[0]} == 4 && @{$s[0]} == @{$s[1]};
        for (0 .. 3) { exit 1 if abs($s[0][$_] - $s[1][$_]) > 1e-6 }' "$work/cpu" "$work/frozen"
    ok $? "with the same answer on its own device as on ours"
    run "$build/cnnrun" show --json --device frozen --plugin-dir "$plugin" "$work/frozen_shift.lua"
    grep -q '"kernel":"frozen_shift_f32","device":"frozen"' "$work/out"; ok $? "by its own kernel"
    cache=$work/cache-$1
    run "$build/cnnrun" warm --cache "$cache" --device frozen --plugin-dir "$plugin" "$work/frozen_shift.lua"
    run "$build/cnnrun" warm --json --cache "$cache" --device frozen --plugin-dir "$plugin" "$work/frozen_shift.lua"
    grep -q '"origin":"hit".*"prepared":0,"taken_over":1' "$work/out"
    ok $? "whose blob is kept for the next start"
    run "$build/cnnrun" plugins --plugin-dir "$plugin"
    grep -q frozen-meter "$work/out" && grep -q frozen-knob "$work/out"
    ok $? "its meter and its knob register"
}
runs later
runs now

# A reference that promises no ranges is not asked for any.
cat >"$work/wide.lua" <<END
local c = require "cnnrun"
return c.net { name = "wide", input = { "x", shape = { 1, 1, 256, 256 }, scale = 1 / 255 },
  c.max_pool { kernel = 1, stride = 1 }, c.frozen_shift {}, c.average_pool { kernel = 64, stride = 64 }, c.flatten {} }
END
for threads in 1 2; do
    run "$build/cnnrun" run --json --top 16 --device cpu --threads $threads --plugin-dir "$work/now.so" "$work/wide.lua" "$digit"
    perl -ne 'print /"score":\s*[-0-9.e]+/g' "$work/out" >"$work/wide-$threads"
done
[ -s "$work/wide-1" ] && cmp -s "$work/wide-1" "$work/wide-2"
ok $? "an operator that promises no ranges answers alike with one thread and with two"

echo "frozen-net 3 5" >"$work/net.frozen"
run "$build/cnnrun" show --json --plugin-dir "$work/now.so" "$work/net.frozen"
grep -q '"op":"frozen_shift"' "$work/out"; ok $? "the importer builds a net"
cat >"$work/dense.lua" <<'END'
local c = require "cnnrun"
return c.net { name = "frozen", input = { "x", shape = { 1, 1, 28, 28 }, scale = 1 / 255 },
  c.flatten {}, c.dense { "sum", out = 3, bias = false } }
END
run "$build/cnnrun" run --json --plugin-dir "$work/now.so" --weights "$work/net.frozen" "$work/dense.lua" "$digit"
perl -0ne '@s = /"score":\s*([-0-9.e]+)/g; exit !(@s == 3 && $s[0] == $s[2] && $s[0] > 0)' "$work/out"
ok $? "and sees which weights a net of ours wants"
echo "1..$count"
exit $failed
