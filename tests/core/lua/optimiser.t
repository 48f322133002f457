#!/bin/sh
# Optimisers that scripts build: the checks are in optimiser.lua; then files, by the program.
build=${CNNRUN_BUILD:-build}
here=$(dirname "$0")
root=$(cd "$here/../../.." && pwd)
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
n=0
for name in zero one two three four five six seven eight nine; do
    echo "$root/scripts/nets/digits/$name.png $n"
    n=$((n + 1))
done >"$dir/list.txt"
mkdir "$dir/out"
"$build/cnnrun" "$here/optimiser.lua" "images:$dir/list.txt" "$dir/out" >"$dir/tap" 2>"$dir/err"; code=$?
grep -v '^1\.\.' "$dir/tap"
sed 's/^/# /' "$dir/err"
n=$(grep -c '^ok\|^not ok' "$dir/tap")
ok() { # status, what
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi
}
[ $code -eq 0 ] && grep -q '^1\.\.' "$dir/tap"; ok $? "the script came to its end ($code)"

train() {
    "$build/cnnrun" train "$root/scripts/nets/lenet5.lua" --data "images:$dir/list.txt" --epochs 3 --batch 10 --validation 0 \
        --eval '' --json --overwrite --lr 0.001 -o "$dir/x.cnr" "$@" >"$dir/json" 2>"$dir/err"
}
last() { sed -n 's/.*"epoch":3.*"loss":\([0-9.e-]*\).*/\1/p' "$dir/json"; }
train; usual=$(last)
for how in '--optimizer adamw' '--optimizer rmsprop' '--clip 0.1' '--layer-rates conv*=0' '--freeze conv*'; do
    train $how; code=$?
    [ $code -eq 0 ] && [ -n "$(last)" ] && [ "$(last)" != "$usual" ]; ok $? "$how: $(last), as usual $usual"
done
train --average 0.9; ok $? "--average"
train --accumulate 2; ok $? "--accumulate"
train --optimizer adamw; shipped=$(last)
sed 's/"optimisers.filled"/"filled"/' "$root/scripts/optimisers/adamw.lua" >"$dir/mine.lua"
cp "$root/scripts/optimisers/filled.lua" "$dir"
train --optimizer "$dir/mine.lua"; [ "$(last)" = "$shipped" ]; ok $? "a copy of a shipped file does the same"
wrong() { # text for the file, what is told
    printf '%s\n' "$1" >"$dir/wrong.lua"
    train --optimizer "$dir/wrong.lua"; code=$?
    [ $code -ne 0 ] && grep -q "$2" "$dir/err"; ok $? "refused: $(head -n 1 "$dir/err" | sed "s|$dir||g")"
}
wrong 'return 7' 'wrong.lua:1: it returns a number value, want function(weight, gradient, state, how)'
wrong 'return function() while true do end end' 'wrong.lua'
train --optimizer nosuch; code=$?
[ $code -ne 0 ] && grep -q 'nosuch: no such optimiser; optimisers known: ' "$dir/err"; ok $? "refused: $(cat "$dir/err")"
echo "1..$n"
