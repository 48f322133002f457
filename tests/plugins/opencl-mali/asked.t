#!/bin/sh
# Commands that do not need OpenCL do not load it: a library that ends the process when it is loaded stands
# for slow or aborting drivers.
build=$(cd "${CNNRUN_BUILD:-build}" && pwd) || exit 1
here=$(cd "$(dirname "$0")" && pwd)
nets=$here/../../../scripts/nets
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0 failed=0
ok() { # ok STATUS NAME
    count=$((count + 1))
    if [ "$1" = 0 ]; then echo "ok $count - $2"; else
        failed=1
        echo "not ok $count - $2"
        sed 's/^/# /' "$work/err" | tail -n 15
    fi
}
skip() { echo "1..0 # SKIP $1"; exit 0; }
cnnrun() { "$build/cnnrun" "$@" >"$work/out" 2>"$work/err"; }

[ -e "$build/plugins/opencl-mali.so" ] || skip "no plugin opencl-mali"
for file in /dev/mali0 /sys/module/panthor /sys/module/panfrost /dev/kgsl-3d0 /sys/module/msm; do
    [ ! -e "$file" ] || skip "a GPU that is likely better than the processor: $file"
done
cat >"$work/trap.c" <<'END'
#include <unistd.h>
__attribute__((constructor)) static void woken(void) { _exit(77); }
END
cc -shared -fPIC -o "$work/trap.so" "$work/trap.c" 2>"$work/err" || skip "no C compiler"
export CNNRUN_OPENCL="$work/trap.so"

cnnrun run --device opencl "$nets/lenet5.lua" "$nets/digits/three.png"
[ $? = 77 ]; ok $? "the trap works: an OpenCL device wakes the library"
cnnrun run --device opencll "$nets/lenet5.lua" "$nets/digits/three.png"
[ $? = 77 ]; ok $? "so does a name that nobody has, to tell which there are"
cnnrun run "$nets/lenet5.lua" "$nets/digits/three.png"; ok $? "the best device does not"
cnnrun run --device cpu "$nets/lenet5.lua" "$nets/digits/three.png"; ok $? "nor does another by name"
for again in first second; do
    cnnrun run --cache "$work/cache" "$nets/lenet5.lua" "$nets/digits/three.png"
    ok $? "nor a stored plan, the $again time"
done
cnnrun tune --cache "$work/cache" "$nets/lenet5.lua"; ok $? "nor timing"
cnnrun kernelcheck --plugin cpu-neon --op relu --cases 1 --timeout 200; ok $? "nor another plugin's kernels"
cnnrun plugins; ok $? "nor the list of plugins"
cnnrun ops conv; ok $? "nor an operator's"
echo "1..$count"
exit $failed
