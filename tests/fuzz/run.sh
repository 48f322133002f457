#!/bin/sh
# Fuzzes every road (importers, sources, objects that load, .cnr, Lua, attributes).
#     run.sh [SECONDS a road (3)] [ROAD...]
# Builds with clang in build-fuzz. What is found lies in build-fuzz/found/ROAD; the fixed ones
# belong into tests/fuzz/cases/ROAD, which an ordinary test replays.
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-3}
[ $# -gt 0 ] && shift
build=${CNNRUN_FUZZ_BUILD:-build-fuzz}
if ! command -v clang >/dev/null; then
    echo "fuzzing needs clang" >&2
    exit 0
fi
cmake -S . -B "$build" -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ \
    -DCNNRUN_FUZZ=ON -DCNNRUN_SANITIZE=address,undefined >/dev/null
# No devices: microkernels take minutes to build with counters, and no road runs a kernel.
plugins=$(ninja -C "$build" -t targets all |
    sed -n 's/^\(plugins\/\(import\|source\|ops\|sparse\|object\)-[a-z0-9-]*\.so\):.*/\1/p')
built=$(ninja -C "$build" fuzz_road $plugins) || { echo "$built" | tail -n 20 >&2; exit 1; }
shared=${CNNRUN_SHARED:-../shared}/data
failed=0
roads=${*:-$(CNNRUN_FUZZ_ROAD=list "$build/tests/fuzz/fuzz_road")}
for road in $roads; do
    found=$build/found/$road
    work=$build/corpus/$road
    mkdir -p "$found" "$work"
    seeds=
    for folder in tests/fuzz/corpus/$road tests/fuzz/cases/$road; do
        [ -d "$folder" ] && seeds="$seeds $folder"
    done
    [ "$road" = source-images ] && seeds="$seeds tests/plugins/source-images/pictures"
    [ "$road" = lua ] && seeds="$seeds scripts/nets" # not the hostile ones: they take their time
    # small real files of a format whose corpus is its own folder there
    real=$shared/${road#import-}
    [ "$road" != "${road#import-}" ] && [ -d "$real" ] &&
        find "$real" -type f -size -40k -exec cp -n {} "$work" \;
    log=$found/log
    if CNNRUN_FUZZ_ROAD=$road LSAN_OPTIONS=suppressions=tests/fuzz/leaks.supp ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1 \
        "$build/tests/fuzz/fuzz_road" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2500 \
        -malloc_limit_mb=1500 -max_len=40000 -artifact_prefix="$found/" -verbosity=1 \
        "$work" $seeds >"$log" 2>&1
    then
        echo "ok - $road: $(sed -n 's/^Done \([0-9]*\) runs.*/\1 runs/p' "$log")"
    else
        failed=1
        echo "not ok - $road"
        grep -m3 -E 'ERROR|SUMMARY|runtime error|Test unit' "$log" | sed 's/^/#   /'
    fi
done
exit $failed
