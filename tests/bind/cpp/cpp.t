#!/bin/sh
# The C++ header against the shared library: with exceptions, with results; warnings are errors; by both compilers.
build=$(cd "${CNNRUN_BUILD:-build}" && pwd) || exit 1
root=$(cd "$(dirname "$0")/../../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -e "$build/libcnnrun.so" ] || { echo "1..0 # SKIP libcnnrun.so is not built"; exit 0; }
count=0 failed=0
include="-I$root/core/bind/cpp/include -I$root/core/include -I$build/include"
for compiler in g++ clang++; do
    for form in THROWS RESULTS; do
        link="-o $work/$form -L$build -lcnnrun -pthread -Wl,-rpath,$build"
        [ $compiler = g++ ] || link=-fsyntax-only
        # shellcheck disable=SC2086
        $compiler -std=c++17 -Wall -Wextra -Wshadow -Werror -DCNNRUN_$form $include \
            "$root/tests/bind/cpp/nets.cpp" $link 2>"$work/log"
        code=$?
        count=$((count + 1))
        [ $code = 0 ] || { failed=1; printf 'not '; sed 's/^/# /' "$work/log" >&2; }
        echo "ok $count - $compiler, $form"
    done
done
for form in THROWS RESULTS; do
    CNNRUN_PLUGIN_PATH=$build/plugins "$work/$form" "$root/scripts/nets/lenet5.lua" \
        "$root/scripts/nets/digits/three.png" 3 "$work" >"$work/tap" 2>&1
    code=$?
    sed 's/^/    /' "$work/tap"
    count=$((count + 1))
    [ $code = 0 ] || { failed=1; printf 'not '; grep '^not' "$work/tap" >&2; }
    echo "ok $count - the program, $form"
done
echo "1..$count"
exit $failed
