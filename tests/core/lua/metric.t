#!/bin/sh
# Metrics of one's own: functions of a script, then files, by the program.
build=${CNNRUN_BUILD:-build}
root=$(cd "$(dirname "$0")/../../.." && pwd)
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
n=0
for name in zero one two three four five six seven eight nine; do
    echo "$root/scripts/nets/digits/$name.png $n"
    n=$((n + 1))
done >"$dir/list.txt"
n=0
ok() { # status, what
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; sed 's/^/# /' "$dir/err" | head -n 3; fi
}
net=$root/scripts/nets/lenet5.lua
cat >"$dir/metric.lua" <<'LUA'
local c = require "cnnrun"
local function right(scores, labels)
  local n, classes = 0, scores:shape()[2]
  for i, label in ipairs(labels) do
    local best, at = -math.huge, 0
    for k = 1, classes do
      local s = scores[(i - 1) * classes + k]
      if s > best then best, at = s, k - 1 end
    end
    if at == label then n = n + 1 end
  end
  return n / #labels
end
local calls
local function falling() calls = calls + 1 return -calls end
local function refused(net, options, text)
  local good, why = pcall(net.train, net, options)
  assert(not good and tostring(why):find(text, 1, true), tostring(why))
end
return function(words)
  local net, spec = c.load(words[1]), words[2]
  local e = net:evaluate { data = spec, metric = { right = right, pictures = function(s) return s:shape()[1] end } }
  assert(e.metrics.right == e.top1 and e.metrics.pictures == e.n)
  assert(net:evaluate { data = spec, metric = function() return 0 / 0 end }.metrics.metric == nil)
  calls = 0
  local seen = {}
  local r = net:train { data = spec, epochs = 3, batch = 5, rate = 1e-4, validation = 5, best_by = "falling",
                        metric = { falling = falling, right = right },
                        on_epoch = function(e) seen[#seen + 1] = e.metrics.falling assert(e.metrics.right == e.top1) end }
  assert(#seen == 3 and seen[3] == -3 and r.best_epoch == 1 and r.metrics.falling == -1, "the most")
  calls = 0
  r = net:train { data = spec, epochs = 3, batch = 5, rate = 1e-4, validation = 5, test = spec, best_by = "-falling",
                  metric = { falling = falling } }
  assert(r.best_epoch == 3 and r.metrics.falling == -3 and r.test_metrics.falling == -4, "the least")
  local base = { data = spec, epochs = 1, batch = 5, validation = 5 }
  local function with(more)
    for key, value in pairs(base) do more[key] = value end
    return more
  end
  refused(net, with { metric = 7 }, "metric: want a function, a table of such or files' names")
  refused(net, with { metric = { f = 7 } }, 'metric: want a function for "f", got a number value')
  refused(net, with { metric = {} }, "the table has no function")
  refused(net, with { metric = function() return "x" end }, "the metric gave a string value, want a number")
  refused(net, with { metric = function() error "own" end }, "own")
  refused(net, with { metric = { loss = right } }, '"loss" is the name of another result')
  refused(net, with { metric = right, best_by = "f1" }, 'there is no metric "f1"; there are: metric')
  print "done"
end
LUA
[ "$("$build/cnnrun" "$dir/metric.lua" "$net" "images:$dir/list.txt" 2>"$dir/err")" = done ]; ok $? "functions of a script"

train() {
    "$build/cnnrun" train "$net" --data "images:$dir/list.txt" --epochs 2 --batch 5 --validation 5 --eval "images:$dir/list.txt" \
        --overwrite --lr 0.001 -o "$dir/x.cnr" "$@" >"$dir/out" 2>"$dir/err"
}
train --metric f1,balanced --best-by f1 --curves "$dir/c.csv" --json; ok $? "--metric of shipped files, --best-by"
grep -q '"epoch":2.*"metrics":{"f1":[0-9.]*,"balanced":[0-9.]*}' "$dir/out"; ok $? "told of each epoch"
grep -q '"best_epoch".*"metrics":{"f1":.*"test_metrics":{"f1":' "$dir/out"; ok $? "and at the end, of the test too"
head -n 1 "$dir/c.csv" | grep -q ',seconds,f1,balanced$'; ok $? "columns of the curves"
echo 'return { all = function(scores, labels) return #labels end }' >"$dir/mine.lua"
train --metric "$dir/mine.lua" && grep -q '^  all 5.0000' "$dir/out" && grep -q '^test: all 10.0000' "$dir/out"
ok $? "a table in a file"
"$build/cnnrun" eval "$root/scripts/nets/lenet5.cnr" --data "images:$dir/list.txt" --metric f1 --json >"$dir/out" 2>"$dir/err"
grep -q '"top1":1,.*"metrics":{"f1":1}' "$dir/out"; ok $? "eval: f1 is 1 where all are right"
wrong() { # text for the file, what is told
    printf '%s\n' "$1" >"$dir/wrong.lua"
    ! train --metric "$dir/wrong.lua" && grep -q "$2" "$dir/err"; ok $? "refused: $(head -n 1 "$dir/err" | sed "s|$dir||g")"
}
wrong 'return 7' 'wrong.lua:1: it returns a number value, want function(scores, labels) or a table of such'
wrong 'return function() end' 'the metric gave a nil value, want a number'
! train --metric nosuch && grep -q 'nosuch: no such metric' "$dir/err"; ok $? "refused: $(cat "$dir/err")"
! train --metric f1 --best-by f2 && grep -q 'no metric "f2"; there are: f1' "$dir/err"; ok $? "refused: $(cat "$dir/err")"
echo "1..$n"
