#!/bin/sh
# Scripts that train (learn.lua). Ctrl-C during a training ends the script as it ends the program; a later
# error is reported once, with its line.
build=${CNNRUN_BUILD:-build}
here=$(dirname "$0")
root=$here/../../..
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
for i in 1 2 3 4; do
    n=0
    for name in zero one two three four five six seven eight nine; do
        echo "$(cd "$root" && pwd)/scripts/nets/digits/$name.png $n"
        n=$((n + 1))
    done
done >"$dir/list.txt"
mkdir "$dir/out"
"$build/cnnrun" "$here/learn.lua" "images:$dir/list.txt" "$dir/out" >"$dir/tap" 2>"$dir/err"; code=$?
grep -v '^1\.\.' "$dir/tap"
sed 's/^/# /' "$dir/err"
n=$(grep -c '^ok\|^not ok' "$dir/tap")
ok() { # status, what
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi
}
[ $code -eq 0 ] && grep -q '^1\.\.' "$dir/tap"; ok $? "the script came to its end ($code)"

cat >"$dir/long.lua" <<'EOF'
local c = require "cnnrun"
return function(args)
  local net = c.load "nets.lenet5"
  print(pcall(net.train, net, { data = args[1], epochs = 100000, batch = 10,
                                on_epoch = function(e) if e.epoch == 1 then c.note "begun" end end }))
  print "went on"
end
EOF
"$build/cnnrun" "$dir/long.lua" "images:$dir/list.txt" >"$dir/long.out" 2>"$dir/long.err" &
pid=$!
for i in $(seq 600); do grep -q begun "$dir/long.err" && break; sleep 0.1; done
kill -INT $pid
wait $pid; code=$?
[ $code -eq 130 ]; ok $? "Ctrl-C ends it with 130 ($code)"
[ ! -s "$dir/long.out" ]; ok $? "and no pcall goes on behind it"

cat >"$dir/fault.lua" <<'EOF'
local c = require "cnnrun"
return function(args)
  c.load "nets.lenet5":train { data = args[1], epochs = 2, batch = 10, on_epoch = function(e)
    return e.top7 < 1
  end }
end
EOF
"$build/cnnrun" "$dir/fault.lua" "images:$dir/list.txt" >"$dir/fault.out" 2>"$dir/fault.err"; code=$?
[ $code -eq 11 ] && grep -q 'fault.lua:4: attempt to compare nil' "$dir/fault.err"; ok $? "a mistake in on_epoch has its line"
echo "1..$n"
