#!/bin/sh
# Runs every fuzz target: importers, sources, objects with saved state, .cnr files, Lua, attributes.
#     run.sh [SECONDS per target (3)] [TARGET...]
# Builds with clang in build-fuzz. Inputs that fail are kept in build-fuzz/found/TARGET. Those of fixed faults
# belong in tests/fuzz/cases/TARGET, which tests/fuzz/test_cases.c replays.
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
# Devices are left out: microkernels with counters take minutes to build, and no target runs a kernel.
plugins=$(ninja -C "$build" -t targets all |
    sed -n 's/^\(plugins\/\(import\|source\|ops\|sparse\|object\)-[a-z0-9-]*\.so\):.*/\1/p')
built=$(ninja -C "$build" fuzz_target $plugins) || { echo "$built" | tail -n 20 >&2; exit 1; }
shared=${CNNRUN_SHARED:-../shared}/data
failed=0
targets=${*:-$(CNNRUN_FUZZ_TARGET=list "$build/tests/fuzz/fuzz_target")}
for target in $targets; do
    found=$build/found/$target
    work=$build/corpus/$target
    mkdir -p "$found" "$work"
    seeds=
    for folder in tests/fuzz/corpus/$target tests/fuzz/cases/$target; do
        [ -d "$folder" ] && seeds="$seeds $folder"
    done
    [ "$target" = source-images ] && seeds="$seeds tests/plugins/source-images/pictures"
    [ "$target" = lua ] && seeds="$seeds scripts/nets" # the hostile ones are left out: they are slow
    # small real files of a format whose corpus is its own folder there
    real=$shared/${target#import-}
    [ "$target" != "${target#import-}" ] && [ -d "$real" ] &&
        find "$real" -type f -size -40k -exec cp -n {} "$work" \;
    log=$found/log
    if CNNRUN_FUZZ_TARGET=$target LSAN_OPTIONS=suppressions=tests/fuzz/leaks.supp ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1 \
        "$build/tests/fuzz/fuzz_target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2500 \
        -malloc_limit_mb=1500 -max_len=40000 -artifact_prefix="$found/" -verbosity=1 \
        "$work" $seeds >"$log" 2>&1
    then
        echo "ok - $target: $(sed -n 's/^Done \([0-9]*\) runs.*/\1 runs/p' "$log")"
    else
        failed=1
        echo "not ok - $target"
        grep -m3 -E 'ERROR|SUMMARY|runtime error|Test unit' "$log" | sed 's/^/#   /'
    fi
done
exit $failed
