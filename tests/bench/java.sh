#!/bin/sh
# A call of Java over the same call of C, for a direct buffer of 227x227x3 floats and a net that averages it:
# medians of whole calls in microseconds, in turns. java.sh [TIMES [CALLS]]
set -e
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${CNNRUN_BUILD:-$root/build}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc -O2 -I"$root/core/include" -I"$build/include" "$root/tests/bench/java/call.c" -o "$work/call" \
    -L"$build" -lcnnrun -Wl,-rpath,"$build"
javac -cp "$build/cnnrun.jar" -d "$work" "$root/tests/bench/java/Call.java"
cat >"$work/mean.lua" <<'END'
local c = require "cnnrun"
return c.net { name = "mean", input = { "data", shape = { "batch", 3, 227, 227 } }, c.global_average_pool { "mean" } }
END
export CNNRUN_PLUGIN_PATH="$build/plugins" CNNRUN_OPENCL=none
echo "   C: net session   Java: net net,new-output session"
for _ in $(seq "${1:-5}"); do
    of_c=$("$work/call" "$work/mean.lua" "${2:-2000}")
    of_java=$(java -Dcnnrun.library="$build/libcnnrun-jni.so" -cp "$build/cnnrun.jar:$work" Call "$work/mean.lua" "${2:-2000}")
    # shellcheck disable=SC2086
    printf '%10s %7s %11s %14s %7s\n' $of_c $of_java
done
