#!/bin/sh
# CSV and JSON of scripts: the checks are in tables.lua; they run again in a locale with a decimal comma.
build=${CNNRUN_BUILD:-build}
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$build/cnnrun" "$here/tables.lua" "$work/a.csv" "$work/a.json" >"$work/tap" 2>"$work/log"
code=$?
grep -v '^1\.\.' "$work/tap"
sed 's/^/# /' "$work/log"
n=$(grep -c '^ok\|^not ok' "$work/tap")
n=$((n + 1))
[ $code = 0 ] && echo "ok $n - it ended well" || echo "not ok $n - exit code $code"
n=$((n + 1))
LC_ALL=de_DE.UTF-8 "$build/cnnrun" "$here/tables.lua" "$work/b.csv" "$work/b.json" >/dev/null 2>&1
if cmp -s "$work/a.csv" "$work/b.csv" && cmp -s "$work/a.json" "$work/b.json"; then
    echo "ok $n - the same in a locale with commas"
else echo "not ok $n - the same in a locale with commas"
fi
echo "1..$n"
