#!/bin/sh
# Stored plans across processes, by the program alone: miss, hit, stale with the reason; several processes at
# once.
build=${CNNRUN_BUILD:-build}
root=$(cd "$(dirname "$0")/../.." && pwd)
net=$root/scripts/nets/lenet5.lua digit=$root/scripts/nets/digits/three.png
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0 failed=0
ok() { # ok STATUS NAME
    count=$((count + 1))
    if [ "$1" = 0 ]; then echo "ok $count - $2"; else
        failed=1
        echo "not ok $count - $2"
        tail -n 15 "$work/out" "$work/err" | sed 's/^/# /'
    fi
}
cnnrun() { "$build/cnnrun" "$@" >"$work/out" 2>"$work/err"; }
scores() { sed 's/"ms":[^,]*,//; s/,"cache":.*/}/' "$work/out"; }

aged=$work/aged.cnr # used in the end, when it has not changed for some seconds
cp "${net%.lua}.cnr" "$aged"
cnnrun run "$net" "$digit" --json; scores >"$work/plain"
cnnrun run "$net" "$digit" --json -v --cache "$work/cache"
grep -q 'miss: nothing is stored of this net' "$work/err"; ok $? "the first start: a miss"
[ "$(scores)" = "$(cat "$work/plain")" ]; ok $? "with the answer of a plain run"
cnnrun run "$net" "$digit" --json -v --cache "$work/cache"
grep -q 'plan: hit' "$work/err" && grep -q '"cache":"hit"}' "$work/out"; ok $? "the second: a hit, in JSON too"
[ "$(scores)" = "$(cat "$work/plain")" ]; ok $? "with the same answer"
CNNRUN_CACHE=$work/cache cnnrun warm "$net" --json
grep -q '"origin":"hit".*"prepared":0,' "$work/out"; ok $? "CNNRUN_CACHE does too; nothing is prepared"
cnnrun run "$net" "$digit" --json --weights random:7; scores >"$work/other"
cnnrun run "$net" "$digit" --json --weights random:7 -v --cache "$work/cache"
grep -q 'plan: weights-replaced: \([0-9]*\) of \1 blobs' "$work/err"; ok $? "other weights: all blobs are prepared again"
[ "$(scores)" = "$(cat "$work/other")" ]; ok $? "... with the answer of a plain run"
cnnrun run "$net" "$digit" --json --weights random:7 -v --cache "$work/cache"
grep -q 'plan: hit' "$work/err"; ok $? "... and kept"
cat >"$work/one.lua" <<'END'
local c = require "cnnrun"
return function(args)
  local net <close> = c.load(args[1])
  local w = net:weight("conv2.weight")
  for i = 1, #w do w[i] = -w[i] end
  net:set_weight("conv2.weight", w)
  net:save(args[2])
end
END
cnnrun convert "$net" -o "$work/whole.cnr"
cnnrun "$work/one.lua" "$work/whole.cnr" "$work/one.cnr"
cnnrun run "$work/one.cnr" "$digit" --json; scores >"$work/other"
rm -rf "$work/layer"
cnnrun run "$work/whole.cnr" "$digit" --json --cache "$work/layer"
cnnrun run "$work/one.cnr" "$digit" --json -v --cache "$work/layer"
grep -q '"cache":"weights-replaced","cache_why":"1 of [2-9] blobs are prepared again"}' "$work/out"; ok $? "one layer changed: one blob is prepared again"
[ "$(scores)" = "$(cat "$work/other")" ]; ok $? "... with the answer of a plain run"
# A kernel that packs a constant which it could read while it runs, too.
sed 's/conv2.weight/ip1.bias/; s/w\[i\] = -w\[i\]/w[i] = w[i] + 9 * (i % 3)/; s/"conv2.weight"/"ip1.bias"/' "$work/one.lua" >"$work/bias.lua"
cnnrun "$work/bias.lua" "$work/whole.cnr" "$work/bias.cnr"
turned="--plugin-dir $build/tests/guests/packed --kernel dense=dense_f32_turned"
CNNRUN_PACKED_KEEPS_BIAS=1 && export CNNRUN_PACKED_KEEPS_BIAS
cnnrun run "$work/bias.cnr" "$digit" --json $turned; scores >"$work/other"
cnnrun run "$work/whole.cnr" "$digit" --json $turned --cache "$work/bias"
[ "$(scores)" != "$(cat "$work/other")" ]; ok $? "another bias has another answer"
cnnrun run "$work/bias.cnr" "$digit" --json $turned --cache "$work/bias"
grep -q '"cache":"weights-replaced"' "$work/out" && [ "$(scores)" = "$(cat "$work/other")" ]
ok $? "a blob is prepared again for each constant that prepare may have read"
unset CNNRUN_PACKED_KEEPS_BIAS
cnnrun warm "$net" --cache "$work/cache" --batch 3 --batch 16 -v
[ "$(grep -c 'miss: shapes changed' "$work/err")" = 2 ]; ok $? "other batches: misses that say so"
cnnrun warm "$net" --cache "$work/cache" --no-rewrite fuse -v
grep -q 'miss: .*changed' "$work/err"; ok $? "other options: a miss that says so"
cnnrun warm "$net" --cache "$work/cache" --threads 1 --no-rewrite fuse -v
grep -q 'miss: threads changed: was 0, is 1' "$work/err"; ok $? "other threads: a miss that says so"
cnnrun warm "$net" --cache "$work/cache" --threads 1
# The same plugins from elsewhere, one of them another file: as after an upgrade.
mkdir "$work/plugins" && cp "$build"/plugins/*.so "$work/plugins" && "$build/cnnrun" plugins --json \
    >"$work/list" 2>/dev/null
printf 'x' >>"$work/plugins/cpu-neon.so"
cnnrun warm "$net" --cache "$work/cache" --threads 1 --plugin-dir "$work/plugins" --plugin-order cpu-neon
grep -q 'stale: plugin cpu-neon changed' "$work/err"; ok $? "another build of a plugin: stale"
rm -rf "$work/cache"
for i in 1 2 3 4; do
    "$build/cnnrun" run "$net" "$digit" --json --cache "$work/cache" >"$work/out.$i" 2>"$work/err" &
    pids="$pids $!"
done
for pid in $pids; do wait "$pid" || failed=1; done
cat "$work"/out.* >"$work/out"
[ "$(scores | sort -u)" = "$(cat "$work/plain")" ]; ok $? "four processes at once on an empty folder"
[ "$(ls "$work/cache" | wc -l)" = 1 ]; ok $? "leave one file and nothing half-written"
cnnrun bench "$net" --runs 2 --cache "$work/cache" -v
grep -q 'plan: hit' "$work/err"; ok $? "which bench takes over"
# The state of a file is stored, and digests are not compared again as long as it is the same.
until [ $(($(date +%s) - $(stat -c %Z "$aged"))) -gt 2 ]; do sleep .2; done
cnnrun run "$aged" "$digit" --cache "$work/aged"
grep -aq " $(stat -c %i "$aged") $(stat -c %s "$aged") " "$work"/aged/*.plan; ok $? "which file the weights are mapped from"
cnnrun run "$aged" "$digit" --json --cache "$work/aged"
grep -q '"cache":"hit"}' "$work/out"; ok $? "as long as it is the same: a hit"
printf 'damaged!' | dd of="$aged" bs=1 seek=1500000 conv=notrunc 2>/dev/null
cnnrun run "$aged" "$digit" --json --cache "$work/aged"
[ $? = 4 ] && grep -q 'aged.cnr: damaged: the data of ' "$work/err"; ok $? "a file that changed is compared again"
cnnrun warm "$net"
[ $? = 1 ] && grep -q -- '--cache' "$work/err"; ok $? "warm without a folder says what it wants"
echo "1..$count"
exit $failed
