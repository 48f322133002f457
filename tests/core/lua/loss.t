#!/bin/sh
# Losses that scripts build: the checks are in loss.lua; then files, by the program.
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
"$build/cnnrun" "$here/loss.lua" "images:$dir/list.txt" "$dir/out" >"$dir/tap" 2>"$dir/err"; code=$?
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
        --eval '' --json --overwrite -o "$dir/x.cnr" "$@" >"$dir/json" 2>"$dir/err"
}
last() { sed -n 's/.*"epoch":3.*"loss":\([0-9.]*\).*/\1/p' "$dir/json"; }
train; usual=$(last)
for name in mse binary focal smooth contrastive; do
    train --loss $name; code=$?
    [ $code -eq 0 ] && [ -n "$(last)" ] && [ "$(last)" != "$usual" ]; ok $? "--loss $name: $(last), by the net's own $usual"
done
sed 's/^local GAMMA = .*/local GAMMA = 0.0/' "$root/scripts/losses/focal.lua" | sed 's/ c.pow { \(.*\), c.data { GAMMA } }/ c.data { 1.0 }/' >"$dir/mine.lua"
train --loss "$dir/mine.lua"
awk "BEGIN { d = ($(last)) / ($usual) - 1; exit !(d < 1e-3 && d > -1e-3) }"
ok $? "a file: focal loss without its factor is cross-entropy ($(last))"
wrong() { # text for the file, what is told
    printf '%s\n' "$1" >"$dir/wrong.lua"
    train --loss "$dir/wrong.lua"; code=$?
    [ $code -ne 0 ] && grep -q "$2" "$dir/err"; ok $? "refused: $(head -n 1 "$dir/err" | sed "s|$dir||g")"
}
wrong 'return 7' 'wrong.lua:1: it returns a number value, want function'
wrong 'return function(' 'wrong.lua:'
wrong 'return function() while true do end end' 'wrong.lua'
wrong 'return function() return io.open "/etc/passwd" end' 'wrong.lua:1'
train --loss nosuch; code=$?
[ $code -ne 0 ] && grep -q 'nosuch: no such loss; losses known: ' "$dir/err"; ok $? "refused: $(cat "$dir/err")"
echo "1..$n"
