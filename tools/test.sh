#!/bin/sh
# The set-up of demo.sh with what tests take besides, then every test: the plain build; address and undefined-behaviour
# sanitisers with failing allocations; the thread sanitiser; AArch64 and ARMv7 under
# qemu; and the fuzz targets.
. "$(dirname "$0")/setup.sh"
install_packages
started=$(date +%s)
jobs=$(nproc)
[ "$jobs" -le 4 ] || jobs=4
log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT TERM

# suite NAME BUDGET_SECONDS BUILD TEST...: runs TAP programs and scripts under prove, each by the command $through.
# What took longest the last time begins first: begun last it would have the machine to itself.
through=
suite() {
    name=$1 budget=$2 dir=$3
    shift 3
    [ $# -gt 0 ] || return 0
    say "suite $name: $# programs and scripts"
    begin=$(date +%s)
    times=$dir/times-$(echo "$name" | tr ' ' -) order=save
    [ ! -s "$times" ] || order=slow,save
    # what could not be run at all is no passed suite
    { CNNRUN_BUILD=$PWD/$dir prove --exec "$through" --state "$order" --statefile "$times" -j $((jobs + 1)) --failures --directives "$@" ||
        echo "Result: exit status $?"; } |
        tee -a "$log"
    took=$(($(date +%s) - begin)) over=
    [ "$took" -le "$budget" ] || over=", OVER"
    say "suite $name took $took s of its budget of $budget s$over"
}
programs() { find "$1/tests" -type f -name 'test_*' -perm -u+x | sort; }
scripts() { find tests -name '*.t' ! -path 'tests/fuzz/*' ! -path 'tests/cross/*' | sort; }

build build ""
# What only root can do (files given away, small disks) others do as root of a namespace.
apart='unshare --user --map-root-user --map-auto --mount'
if [ "$(id -u)" != 0 ] && $apart true 2>/dev/null; then export CNNRUN_ROOT_APART=1; else unset CNNRUN_ROOT_APART; fi

suite plain 720 build $(scripts) $(programs build) # scripts take longer, mostly
if [ -n "${CNNRUN_ROOT_APART-}" ]; then
    through=$apart
    suite "as root" 60 build tests/rooms/empty.t tests/hostile/readers.t tests/hostile/files.t tests/core/cli/helper.t \
        $(for test in output path read; do echo build/tests/core/base/test_$test; done)
    through=
fi

# Left out: OpenCL's compiler, which is not ours and slow; and VGG-16 to be cancelled.
# The leak checker dies in its own search of the libraries' thread-local storage where that is on.
build build-asan "" -DCNNRUN_SANITIZE=address,undefined -DCNNRUN_HOSTILE=ON
export ASAN_OPTIONS=intercept_tls_get_addr=0
suite sanitised 500 build-asan tests/core/train/train.t tests/core/cli/cli.t tests/core/host/hostile.t \
    tests/core/graph/late.t $(programs build-asan | grep -vE '/opencl-|/test_cancel')

unset ASAN_OPTIONS

threaded="core/host/test_registry core/run/test_session core/run/test_plans plugins/cpu-neon/test_device"
threaded="$threaded guests/test_threads core/watch/test_energy core/govern/test_govern"
build build-tsan cnnrun -DCNNRUN_SANITIZE=thread
# the plugins that these tests use, of those that can be built here
plugins='cpu-neon|ops-std|int8|sparse-csr|device-sim|meter-nvml|source-images|source-mnist|source-video'
plugins=$(ninja -C build-tsan -t targets all | sed -nE "s/^(plugins\/($plugins)\.so):.*/\1/p")
build build-tsan "$plugins cnrt-fake cnrt-gauges cnrt-nvml $(echo "$threaded" | tr / .)"
suite threads 200 build-tsan $(for test in $threaded; do echo "build-tsan/tests/$test"; done) \
    tests/core/lua/feed.t

# The same sources for other processors, run by qemu. Debian's Lua for them is unpacked, not installed; where it cannot be
# had the suite skips.
# cross_build NAME ARCHITECTURE: builds what tests/cross/NAME.t runs, in build-NAME
cross_build() {
    cross=build-$1
    if [ ! -d $cross/lua ]; then
        say "fetching Lua for $1"
        (
            mkdir -p $cross/fetched && cd $cross/fetched || exit
            sudo=
            [ "$(id -u)" = 0 ] || sudo=sudo
            if ! apt-cache show liblua5.4-dev:$2 >/dev/null 2>&1; then
                $sudo dpkg --add-architecture $2 && $sudo apt-get update
            fi
            apt-get download liblua5.4-dev:$2 && dpkg -x liblua5.4-dev_*_$2.deb ../lua
        ) >"$log.cross" 2>&1 || { tail -n 5 "$log.cross" >&2; say "no Lua for $1"; }
        rm -f "$log.cross"
    fi
    [ -d $cross/lua ] || return 0
    build $cross "cnnrun cpu-neon ops-std sparse-csr int8 $3" \
        -DCMAKE_TOOLCHAIN_FILE="$PWD/tests/cross/$1.cmake" -DCNNRUN_CROSS_LUA="$PWD/$cross/lua"
}
t=plugins.cpu-neon.test
cross_build aarch64 arm64 "${t}_matrix ${t}_pool ${t}_elementwise ${t}_conv plugins.sparse-csr.test_csr plugins.int8.test_kernels"
cross_build armv7 armhf "${t}_conv plugins.sparse-csr.test_csr plugins.int8.test_kernels core.store.test_store"

# These tests run side by side, since each uses one core. Each fuzz target runs for a few seconds; for
# a long search run tests/fuzz/run.sh 600.
suite "arm and fuzz" 400 build tests/fuzz/fuzz.t tests/cross/aarch64.t tests/cross/armv7.t tests/cross/pack.t

say "everything took $(($(date +%s) - started)) s with its builds"
# what was skipped and why; then, as the last line, "N passed, N failed"
perl tests/summary.pl "$log"
