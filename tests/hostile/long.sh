#!/bin/sh
# The long way of the tests that CI runs at small counts, counts as arguments:
#     tests/hostile/long.sh [WHAT=COUNT ...]
# Without arguments: all, at the counts below. Needs a build (CNNRUN_BUILD, ./build); the models of
# ../shared are missed where they are not there. Takes hours; each line says what it tries.
set -u
cd "$(dirname "$0")/../.."
export CNNRUN_BUILD=${CNNRUN_BUILD:-$PWD/build}
failed=0

try() { # TEST, what it does
    test=$1
    shift
    [ -e "$test" ] || { echo "skipped: $* ($test is not there)"; return; }
    echo "# $*"
    nice prove -v --exec '' "$test" || failed=1
}

one() {
    what=${1%%=*} count=${1#*=}
    case $what in
    signals) # over six commands, of each signal
        CNNRUN_MOMENTS=$(((count + 5) / 6)) \
            try tests/hostile/moments.t "SIGKILL and SIGINT at $count moments each"
        ;;
    writers)
        CNNRUN_WRITERS=$count try tests/hostile/files.t "files; two that tune, $count times"
        ;;
    memory) # allocations of each command that fail, once and from then on; 0: all of them
        CNNRUN_SWEEP=$count try tests/hostile/sweep.t "allocations that fail in each command: $count"
        ;;
    kept) # of each: damaged plans, forged ones (ten times as many single bytes), records of times, compiled programs
        CNNRUN_KEPT=$count \
            try "$CNNRUN_BUILD/tests/hostile/test_kept" "$count of each kind of kept file"
        ;;
    plugins) try tests/core/host/hostile.t "hostile plugins" ;; # all that there are
    lua) try "$CNNRUN_BUILD/tests/core/lua/test_hostile" "hostile scripts" ;;
    attributes)
        CNNRUN_ATTRIBUTES=$count \
            try "$CNNRUN_BUILD/tests/hostile/test_attributes" "$count nodes with hostile attributes"
        ;;
    models) # of about sixty
        CNNRUN_DAMAGED=$(((count + 59) / 60)) CNNRUN_PICTURES=1 \
            try "$CNNRUN_BUILD/tests/hostile/test_damaged" "about $count damaged models, run"
        ;;
    pictures)
        CNNRUN_PICTURES=$count CNNRUN_DAMAGED=1 CNNRUN_DAMAGED_MODEL=none \
            try "$CNNRUN_BUILD/tests/hostile/test_damaged" "$count damaged pictures"
        ;;
    *)
        echo "no such thing: $what" >&2
        exit 1
        ;;
    esac
}

[ $# -gt 0 ] || set -- signals=300 writers=10 lua=100 attributes=8000 models=4000 pictures=1000 kept=1000 plugins=60 memory=0
for word; do
    case $word in
    *=[0-9]*) one "$word" ;;
    *)
        sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
        exit 1
        ;;
    esac
done
exit $failed
