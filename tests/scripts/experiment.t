#!/bin/sh
# Experiments: the checks are in experiment.lua; here it is run, and its exit code is checked.
build=${CNNRUN_BUILD:-build}
here=$(dirname "$0")
data=${CNNRUN_SHARED:-$here/../../../shared}/data/mnist
if [ ! -e "$data/t10k-images-idx3-ubyte.gz" ]; then
    echo "1..0 # SKIP no digits: $data"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$build/cnnrun" "$here/experiment.lua" "$here/../../scripts/nets/lenet5.lua" "mnist:$data" \
    "$work/out.npy" "$work/out.png" >"$work/tap" 2>"$work/log"
code=$?
grep -v '^1\.\.' "$work/tap"
n=$(grep -c '^ok\|^not ok' "$work/tap")
sed 's/^/# /' "$work/log"
n=$((n + 1))
[ $code = 3 ] && echo "ok $n - its number is the exit code" || echo "not ok $n - exit code $code, want 3"
n=$((n + 1))
printf 'return function() local x = nil; x.y = 1 end\n' >"$work/fault.lua"
"$build/cnnrun" "$work/fault.lua" >/dev/null 2>"$work/log"
code=$?
if [ $code = 11 ] && grep -q "fault.lua:1" "$work/log"; then echo "ok $n - a fault has its line"
else
    echo "not ok $n - a fault has its line ($code)"
    sed 's/^/# /' "$work/log"
fi
n=$((n + 1))
printf 'return function() return require("cnnrun").now() > 0 and 0 or 1 end\n' >"$work/trusted.lua"
"$build/cnnrun" --trust "$work/trusted.lua" >/dev/null 2>"$work/log" && echo "ok $n - --trust gives the clock" ||
    echo "not ok $n - --trust gives the clock: $(cat "$work/log")"
echo "1..$n"
