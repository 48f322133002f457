#!/bin/sh
# The same set-up as demo.sh, then every test: the plain build, clang's warnings, address and
# undefined-behaviour sanitisers with failing allocations, and the thread sanitiser.
. "$(dirname "$0")/setup.sh"
install_packages
started=$(date +%s)
build build
build build-asan -DCNNRUN_SANITIZE=address,undefined -DCNNRUN_HOSTILE=ON
build build-tsan -DCNNRUN_SANITIZE=thread
build build-clang -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DCNNRUN_FUZZ=ON

failed=0
# suite NAME BUDGET_SECONDS BUILD TEST...: runs TAP programs and scripts under prove.
suite() {
    name=$1 budget=$2 dir=$3
    shift 3
    [ $# -gt 0 ] || return 0
    say "suite $name"
    begin=$(date +%s)
    CNNRUN_BUILD=$PWD/$dir prove --exec '' --failures --directives "$@" || failed=1
    took=$(($(date +%s) - begin))
    say "suite $name took $took s of its budget of $budget s"
}
programs() { find "$1/tests" -type f -name 'test_*' -perm -u+x | sort; }
scripts() { find tests -name venv -prune -o -name '*.t' -print | sort; }

suite plain 500 build $(programs build) $(scripts)
suite sanitised 400 build-asan $(programs build-asan)
suite threads 120 build-tsan $(programs build-tsan | grep -E 'session|thread|registry' || true)
say "all suites took $(($(date +%s) - started)) s with their builds"
exit $failed
