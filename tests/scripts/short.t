#!/bin/sh
# Experiments of a few lines, as they are shipped: how many lines of Lua they are, and that they run.
build=${CNNRUN_BUILD:-build}
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
n=0
for name in zero one two three four five six seven eight nine; do
    for k in 1 2 3 4; do echo "$root/scripts/nets/digits/$name.png $n"; done
    n=$((n + 1))
done >"$dir/list.txt"
n=0
ok() { # status, what
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; sed 's/^/# /' "$dir/log" | tail -n 3; fi
}
lines() { # file, at most: lines that are neither empty nor a comment
    count=$(grep -cv '^ *--\|^ *$' "$root/scripts/$1")
    [ "$count" -le "$2" ]; ok $? "$1: $count lines of at most $2"
}
data=images:$dir/list.txt
lines prune/ticket.lua 12
"$build/cnnrun" prune "$root/scripts/nets/lenet5.lua" ticket --data "$data" --eval '' --validation 10 -q -o "$dir/ticket.cnr" >"$dir/log" 2>&1
[ $? -eq 0 ] && [ -s "$dir/ticket.pruning/report.html" ]; ok $? "a lottery ticket, with rewinding and a report"
lines experiments/distil.lua 15
"$build/cnnrun" "$root/scripts/experiments/distil.lua" "$root/scripts/nets/lenet5.lua" "$data" "$dir/student.cnr" >"$dir/log" 2>&1
[ $? -eq 0 ] && [ -s "$dir/student.cnr" ]; ok $? "distillation: $(cat "$dir/log")"
lines optimisers/rmsprop.lua 15
"$build/cnnrun" train "$root/scripts/nets/lenet5.lua" --data "$data" --eval '' --optimizer rmsprop --lr 0.001 --epochs 1 --batch 10 -q \
    -o "$dir/o.cnr" >"$dir/log" 2>&1; ok $? "an optimiser"
lines experiments/study.lua 8
"$build/cnnrun" sweep "$root/scripts/experiments/study.lua" "$root/scripts/nets/lenet5.lua" "$data" --seeds 1..5 -q -o "$dir/sweep" >"$dir/log" 2>&1
ok $? "five seeds"
if "$build/cnnrun" plugins | grep -q draw-cairo; then [ -s "$dir/sweep/loss.png" ]; ok $? "a plot with a band"
else ok 0 "a plot with a band # SKIP no plugin draw-cairo"; fi

# The same from a script, and from C by what a script gives.
cat >"$dir/sweep.lua" <<'LUA'
local c = require "cnnrun"
local function refused(options, text)
  local good, why = pcall(c.sweep, options)
  assert(not good and tostring(why):find(text, 1, true), tostring(why))
end
return function(words)
  local how = { study = words[1], words = { words[2], words[3] }, grid = { rate = { 0.01, 0.001 }, epochs = 1 }, seeds = "1..2",
                output = words[4], jobs = 2 }
  local r = c.sweep(how)
  assert(r.points == 4 and r.done == 4 and r.failed == 0 and r.left == 0 and r.seconds > 0)
  refused(how, "has results of these points")
  how.resume = true
  assert(c.sweep(how).done == 4)
  how.grid = { "epochs=1", "nosuch" }
  refused(how, "want NAME=VALUES")
  how.grid = { rate = {} }
  refused(how, "grid.rate: want a value at least")
  how.grid = 7
  refused(how, "grid: want a table")
  refused({ output = words[4] }, "study, output: want both")
  refused({ study = words[1], output = words[4], nosuch = 1 }, "nosuch")
  refused({ study = "/etc/passwd", output = words[4] }, "may not be read")
  print "done"
end
LUA
[ "$("$build/cnnrun" "$dir/sweep.lua" "$root/scripts/experiments/study.lua" "$root/scripts/nets/lenet5.lua" "$data" "$dir/again" 2>"$dir/log")" = done ]
ok $? "c.sweep"
[ "$(wc -l <"$dir/again/results.jsonl")" -eq 4 ] && grep -q '^epochs,rate,n,' "$dir/again/summary.csv"; ok $? "its results"
echo "1..$n"
