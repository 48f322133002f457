#!/bin/sh
# cnnrun train on real digits: learns, reports, is reproducible, keeps the best on Ctrl-C; check and eval
# agree about the file.
build=${CNNRUN_BUILD:-build}
data=${CNNRUN_SHARED:-../shared}/data/mnist
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
n=0
ok() { # status, what
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi
}
net=scripts/nets/lenet5.lua

"$build/cnnrun" train "$net" -o "$dir/x.cnr" 2>"$dir/err"; code=$?
[ $code -ne 0 ] && grep -q -- '--data' "$dir/err"; ok $? "without --data it says so"
"$build/cnnrun" train "$net" --data "$dir" -o "$dir/x.cnr" 2>"$dir/err"; code=$?
[ $code -ne 0 ] && [ -s "$dir/err" ] && [ ! -e "$dir/x.cnr" ]; ok $? "an empty folder is refused, nothing is written"

if [ ! -e "$data/t10k-images-idx3-ubyte.gz" ] && [ ! -e "$data/t10k-images-idx3-ubyte" ]; then
    n=$((n + 1)); echo "ok $n - training on digits # SKIP no MNIST at $data"
    echo "1..$n"; exit 0
fi
# Half of the ten thousand test digits, once: enough to learn from, and quick. As a source they have no other
# split, so that the test is the same digits, named on purpose.
spec=mnist:$data:test
train_on() { # how many digits, options
    many=$1; shift
    "$build/cnnrun" train "$net" --data "$spec" --eval "$spec" --epochs 1 --seed 3 --deterministic --limit "$many" "$@"
}
train() { train_on 5000 "$@"; }
train -o "$dir/a.cnr" --json >"$dir/a.json" 2>"$dir/err"; ok $? "one epoch over 5,000 digits"
grep -q '"epoch":1' "$dir/a.json" && grep -q '"train_accuracy":0\.' "$dir/a.json"; ok $? "an epoch is a line of JSON"
grep -q '"test":0\.9[0-9]*' "$dir/a.json"; ok $? "more than 90% are right"
"$build/cnnrun" check "$dir/a.cnr" >/dev/null 2>&1; ok $? "the file is sound"
best=$(sed -n 's/.*"test":\([0-9.]*\).*/\1/p' "$dir/a.json")
"$build/cnnrun" eval "$dir/a.cnr" --data "$spec" --json >"$dir/eval.json" 2>/dev/null
top=$(sed -n 's/.*"top1":\([0-9.]*\).*/\1/p' "$dir/eval.json")
[ -n "$best" ] && [ "$best" = "$top" ]; ok $? "eval finds the same share right ($best, $top)"

few() { train_on 600 "$@"; } # where it doesn't matter what is learned

# Adam's own settings reach it, and no other optimiser takes them for its own.
adam() { few --optimizer adam --lr 0.001 --eval '' "$@"; }
adam -o "$dir/adam.cnr" --beta1 0.5 --beta2 0.9 --epsilon 1e-3 --json >"$dir/adam.json" 2>"$dir/err"; ok $? "adam with betas and an epsilon"
grep -q '"test":null,"tested":0' "$dir/adam.json"; ok $? "and without a test, as --eval '' asks"
adam -o "$dir/usual.cnr" >/dev/null 2>&1
! cmp -s "$dir/adam.cnr" "$dir/usual.cnr"; ok $? "which make another net"
few --beta2 0.9 -o "$dir/x.cnr" 2>"$dir/err"; code=$?
[ $code -ne 0 ] && grep -q 'has no beta2' "$dir/err" && [ ! -e "$dir/x.cnr" ]; ok $? "sgd has no beta2"

# A pruned net stays sparse while it trains on.
cat >"$dir/prune.lua" <<'EOF'
local c = require "cnnrun"
return function(args)
  local net = c.load(args[1])
  if not args[2] then
    print(net:weight "ip1.weight":density() <= 0.25 and net:weight "ip2.weight":density() > 0.9)
  else
    for _, name in ipairs { "ip1.weight", "ip2.weight" } do net:set_weight(name, net:weight(name):pruned(0.25)) end
    net:save(args[2])
  end
end
EOF
"$build/cnnrun" "$dir/prune.lua" "$dir/a.cnr" "$dir/pruned.cnr" &&
    adam --weights "$dir/pruned.cnr" --keep-zeros 'ip1*' -o "$dir/sparse.cnr" >/dev/null 2>"$dir/err" &&
    "$build/cnnrun" "$dir/prune.lua" "$dir/sparse.cnr" | grep -q true; ok $? "zeros of the weights named stay, those of others don't"

# Ctrl-C behind a judged epoch: the best so far is written.
awaited() { # file, text: what a running command says, within five minutes (sanitisers are slow)
    for i in $(seq 3000); do grep -q "$2" "$1" 2>/dev/null && return 0; sleep 0.1; done
    return 1
}
"$build/cnnrun" train "$net" --data "$spec" --limit 600 --epochs 50000 -o "$dir/c.cnr" >"$dir/c.out" 2>/dev/null &
pid=$!
awaited "$dir/c.out" '^epoch 1/'
kill -INT $pid
wait $pid; ok $? "Ctrl-C behind an epoch ends it in order"
"$build/cnnrun" check "$dir/c.cnr" >/dev/null 2>&1; ok $? "and the best so far is written"
grep -q 'epoch [0-9]*, .*; training stopped$' "$dir/c.out"; ok $? "and both are told"

# Before one: what is there stays, or nothing is written. A checkpoint tells that it has begun.
for signal in INT TERM; do
    for there in a none; do
        rm -f "$dir/d.cnr" "$dir/d.begun"
        [ $there = none ] || cp "$dir/a.cnr" "$dir/d.cnr"
        "$build/cnnrun" train "$net" --data "mnist:$data:train" --batch 1 --lr 0.001 --epochs 50 \
            --checkpoint "$dir/d.begun" --checkpoint-every 0.1 -o "$dir/d.cnr" >"$dir/d.out" 2>"$dir/d.err" &
        pid=$!
        awaited "$dir/d.begun" .
        kill -$signal $pid
        wait $pid; code=$?
        want=130; [ $signal = INT ] || want=143
        [ $code -eq $want ]; ok $? "SIG$signal before the first is judged ends with $want ($code)"
        grep -q "before an epoch was judged: what was done is in the checkpoint $dir/d.begun" "$dir/d.err"; ok $? "and is told"
        if [ $there = a ]; then cmp -s "$dir/a.cnr" "$dir/d.cnr"; ok $? "the net that was there stays"
        else [ ! -e "$dir/d.cnr" ]; ok $? "nothing is written"; fi
    done
done

# A worse net replaces a better one only when asked.
cp "$dir/a.cnr" "$dir/e.cnr"
worse() { few --lr 0 -o "$dir/e.cnr" "$@" >"$dir/e.out" 2>"$dir/e.err"; }
worse; code=$?
[ $code -ne 0 ] && cmp -s "$dir/a.cnr" "$dir/e.cnr"; ok $? "a worse net replaces nothing ($code)"
grep -q 'stays as it was' "$dir/e.err" && grep -q 'overwrite' "$dir/e.err"; ok $? "and that is told, with the way out"
worse --overwrite && ! cmp -s "$dir/a.cnr" "$dir/e.cnr"; ok $? "but does when asked"
train -o "$dir/e.cnr" >/dev/null 2>&1 && cmp -s "$dir/a.cnr" "$dir/e.cnr"; ok $? "a better one does without, and the same seed gives the same file"
echo "letter to a friend" >"$dir/f.cnr"
few -o "$dir/f.cnr" >/dev/null 2>"$dir/f.err"; code=$?
[ $code -ne 0 ] && grep -q friend "$dir/f.cnr"; ok $? "what is no net is not replaced"
few --lr 1e3 --overwrite -o "$dir/g.cnr" >/dev/null 2>"$dir/g.err"; code=$?
[ $code -ne 0 ] && [ ! -e "$dir/g.cnr" ] && grep -q 'want a smaller rate' "$dir/g.err"
ok $? "diverging before an epoch is judged writes nothing"
echo "1..$n"
