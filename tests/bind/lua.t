#!/bin/sh
# require "cnnrun" in a stock Lua 5.4: the API, and a thousand nets under the address sanitiser.
build=$(cd "${CNNRUN_BUILD:-build}" && pwd) || exit 1
root=$(cd "$(dirname "$0")/../.." && pwd)
here=$root/tests/bind/lua
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
skip() { echo "1..0 # SKIP $1"; exit 0; }
[ -e "$build/libcnnrun.so.1" ] || skip "libcnnrun.so is not built"
command -v lua5.4 >/dev/null || skip "no lua5.4"
export LUA_PATH="$root/core/bind/lua/?.lua" CNNRUN_LIBRARY="$build/libcnnrun.so.1"
count=0 failed=0
ok() { # ok STATUS NAME
    count=$((count + 1))
    [ "$1" = 0 ] || { failed=1; sed 's/^/# /' "$work/log" | tail -n 20 >&2; printf 'not '; }
    echo "ok $count - $2"
}
sanitised=$(nm -D --undefined-only "$build/libcnnrun.so.1" | grep -Eo '__(asan|tsan|ubsan)_' | head -n 1)
if [ ! "$sanitised" ]; then
    for digit in 0 1 2 3; do
        set -- zero one two three
        shift $digit
        echo "$root/scripts/nets/digits/$1.png $digit"
    done >"$work/digits.txt"
    lua5.4 "$here/nets.lua" "$root/scripts" "$work/digits.txt" >"$work/log" 2>&1 && ! grep -q '^not ok' "$work/log"
    code=$?
    sed 's/^/    /' "$work/log"
    ok $code "nets.lua"

    mkdir -p "$work/x/lib" "$work/x/share/lua/5.4"
    cp "$root/core/bind/lua/cnnrun.lua" "$work/x/share/lua/5.4"
    ln -s "$build/libcnnrun.so.1" "$work/x/lib"
    (cd / && unset CNNRUN_LIBRARY && LUA_PATH="$work/x/share/lua/5.4/?.lua" lua5.4 -e 'print(#require("cnnrun").plugins())') >"$work/log" 2>&1
    ok $? "an installed module finds the library beside it"
    (CNNRUN_LIBRARY=/nowhere.so; lua5.4 -e 'require "cnnrun"') 2>&1 | grep -q 'nowhere.so.*CNNRUN_LIBRARY'
    ok $? "an error says where it was looked for"
fi
case $sanitised in __tsan_) echo "1..$count"; exit $failed ;; esac
archive=$(find /usr/lib /usr/local/lib -name liblua5.4.a | head -n 1)
if [ "$archive" ] && cc -g -fsanitize=address -Wl,-E -I/usr/include/lua5.4 "$here/host.c" "$archive" -lm -ldl -o "$work/host" 2>"$work/log"; then
    CNNRUN_OPENCL=none "$work/host" "$here/leaks.lua" 500 >"$work/log" 2>&1
    ok $? "2 x 1,000 nets loaded, run and dropped: nothing leaks"
else echo "# no liblua5.4.a, or no address sanitiser: leaks are not looked for"
fi
echo "1..$count"
exit $failed
