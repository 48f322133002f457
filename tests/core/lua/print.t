#!/bin/sh
# print in scripts shows what is in tables.
build=${CNNRUN_BUILD:-build}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
n=0
is() { # got, wanted, what
    n=$((n + 1))
    if [ "$1" = "$2" ]; then echo "ok $n - $3"; else echo "not ok $n - $3"; echo "# $1"; fi
}
show() {
    echo "return function() print($1) end" >"$dir/p.lua"
    "$build/cnnrun" "$dir/p.lua" 2>&1
}
is "$(show '{ 1, "x", b = { 2 }, a = true }, 5, "s"')" "$(printf '{ 1, "x", a = true, b = { 2 } }\t5\ts')" 'a list, fields in order, a table within'
is "$(show '{}')" '{}' 'an empty one'
is "$(show '(function() local t = {} t.me = t return t end)()')" '{ me = { me = { me = { me = { ... } } } } }' 'one that holds itself'
is "$(show '(function() local t = {} for i = 1, 200 do t[i] = i end return t end)()' | tail -c 16)" ' 99, 100, ... }' 'a long one'
is "$(show 'setmetatable({}, { __tostring = function() return "own" end })')" own 'one that says itself how'
is "$(show 'nil, 1.5, false')" "$(printf 'nil\t1.5\tfalse')" 'what is no table, as ever'
echo 'return function() for i = 1, 1e9 do print(i) end end' >"$dir/p.lua"
said=$(timeout 60 "$build/cnnrun" "$dir/p.lua" 2>&1 >/dev/full)
is "$? $(echo "$said" | grep -c "output: can't write")" '11 1' 'on a full disk it ends, though the script would not'
echo "1..$n"
