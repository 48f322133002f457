#!/bin/sh
# Training for 8 bits: the operator that rounds and its gradient; quantize --epochs.
build=${CNNRUN_BUILD:-build}
root=$(cd "$(dirname "$0")/../../.." && pwd)
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
    if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; sed 's/^/# /' "$dir/err" | head -n 3; fi
}
cat >"$dir/net.lua" <<'LUA'
local c = require "cnnrun"
return c.net { name = "rounded", input = { "x", shape = { 1, 4 } }, c.dense { "ip", out = 2, bias = false },
  c.fake_quantize { step = 0.5, low = -1 }, c.softmax { "prob" } }
LUA
cat >"$dir/op.lua" <<'LUA'
local c = require "cnnrun"
local function near(a, b) for i = 1, #b do assert(math.abs(a[i] - b[i]) < 1e-6, a[i] .. " for " .. b[i]) end end
return function(words)
  local net = c.load(words[1], { weights = "random:1" })
  net:set_weight("ip.weight", c.tensor { shape = { 2, 4 }, data = { 1, 0, 0, 0, 0, 1, 0, 0 } })
  local g, _, scores = net:gradients(c.tensor { shape = { 1, 4 }, data = { 0.3, 0.7, 1, 2 } }, { 0 })
  local a, b = math.exp(0.5), math.exp(0.5)              -- 0.3 and 0.7 become 0.5
  near(scores, { a / (a + b), b / (a + b) })
  near(g["ip.weight"], { -0.15, -0.35, -0.5, -1, 0.15, 0.35, 0.5, 1 })
  g = net:gradients(c.tensor { shape = { 1, 4 }, data = { -5, 0.7, 1, 2 } }, { 0 })   -- -5 is held at -1
  near({ g["ip.weight"][1], g["ip.weight"][5] }, { 0, -5 * (1 - 1 / (1 + math.exp(1.5))) })
  print "done"
end
LUA
[ "$("$build/cnnrun" "$dir/op.lua" "$dir/net.lua" 2>"$dir/err")" = done ]; ok $? "values, and a gradient that passes within the range"

quantize() {
    "$build/cnnrun" quantize "$root/scripts/nets/lenet5.lua" --data "images:$dir/list.txt" --limit 10 --check 10 --all --json \
        -o "$dir/q.cnr" "$@" >"$dir/out" 2>"$dir/err"
}
quantize; ok $? "without training"
grep -q '"validation_before":null' "$dir/out"; ok $? "nothing is told of it"
"$build/cnnrun" train "$root/scripts/nets/lenet5.lua" --data "images:$dir/list.txt" --epochs 2 --batch 10 --eval '' -q -o "$dir/poor.cnr" \
    >"$dir/out" 2>"$dir/err"
"$build/cnnrun" quantize "$dir/poor.cnr" --data "images:$dir/list.txt" --limit 10 --check 10 --all --json --epochs 20 --lr 0.02 --batch 9 \
    -o "$dir/q.cnr" >"$dir/out" 2>"$dir/err"; ok $? "with training"
part() { sed -n "s/.*\"$1\":\([0-9.]*\).*/\1/p" "$dir/out" | tail -n 1; }
awk "BEGIN { exit !($(part best_epoch) > 0 && $(part validation_after) > $(part validation_before)) }"
ok $? "the poor net becomes better: $(part validation_before), $(part validation_after) after epoch $(part best_epoch)"
awk "BEGIN { exit !($(part top1_quantized) > $(part top1_float)) }"; ok $? "so does the net of 8 bits: $(part top1_float), $(part top1_quantized)"
"$build/cnnrun" eval "$dir/q.cnr" --data "images:$dir/list.txt" --limit 10 --json >"$dir/eval" 2>"$dir/err"
awk "BEGIN { exit !($(part pictures) == 4) }"; ok $? "both are compared on the four pictures that were not trained on"
cp "$dir/eval" "$dir/out"
good=$(part top1)
"$build/cnnrun" eval "$dir/poor.cnr" --data "images:$dir/list.txt" --limit 10 --json >"$dir/out" 2>"$dir/err"
awk "BEGIN { exit !($good > $(part top1)) }"; ok $? "the file's net is right on more: $good after $(part top1)"
cat >"$dir/lua.lua" <<'LUA'
local c = require "cnnrun"
return function(words)
  local small, r = c.load(words[1]):quantize { data = words[2], all = true, limit = 10, epochs = 1, rate = 1e-4, seed = 3 }
  assert(r.validation.after >= r.validation.before and r.best_epoch >= 0 and small:layers()[1])
  print "done"
end
LUA
[ "$("$build/cnnrun" "$dir/lua.lua" "$root/scripts/nets/lenet5.lua" "images:$dir/list.txt" 2>"$dir/err")" = done ]; ok $? "from a script"
mkdir "$dir/bare"; cp "$root"/scripts/nets/digits/*.png "$dir/bare"
! "$build/cnnrun" quantize "$root/scripts/nets/lenet5.lua" --data "$dir/bare" --all --epochs 1 -o "$dir/x.cnr" >"$dir/out" 2>"$dir/err" &&
    grep -q 'no label' "$dir/err"; ok $? "pictures without labels: $(tail -n 1 "$dir/err" | sed "s|$dir||g")"
! quantize --epochs 0 2>/dev/null; ok $? "refused: $(head -n 1 "$dir/err")"
echo "1..$n"
