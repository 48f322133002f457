#!/bin/sh
# cnnrun convert --encode sparse-csr: one layer pruned to 10%, stored compressed, run by its kernel.
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
if [ ! -x "$build/cnnrun" ]; then echo "1..0 # SKIP no $build/cnnrun"; exit 0; fi

convert() { "$build/cnnrun" convert "$net" -o "$dir/$1.cnr" --encode "$2" --layers "$3" 2>"$dir/err"; }
convert whole sparse-csr 'ip1*'; ok $? "convert --encode sparse-csr"
convert tenth sparse-csr:keep=0.1 'ip1*'; ok $? "convert --encode sparse-csr:keep=0.1"
grep -q ' 1 weights in another encoding' "$dir/err"; ok $? "one layer's weights"
"$build/cnnrun" check "$dir/tenth.cnr" >/dev/null 2>&1; ok $? "the file is sound"
a=$(wc -c <"$dir/tenth.cnr"); b=$(wc -c <scripts/nets/lenet5.cnr)
[ "$a" -lt $((b / 2)) ]; ok $? "$a bytes instead of $b"
"$build/cnnrun" show "$dir/tenth.cnr" --json | grep '"node":"ip1"' >"$dir/ip1"
grep -q '"kernel":"dense_f32_csr' "$dir/ip1"; ok $? "its own kernel runs the layer"
convert none sparse-csr:keep=0.1 'pool*'
[ $? -ne 0 ] && grep -q 'no layer named like pool\*' "$dir/err"; ok $? "a layer that no kernel reads so is refused"
# Without names each layer is asked whether it pays, and that is told.
"$build/cnnrun" convert "$net" -o "$dir/all.cnr" --encode sparse-csr --json >"$dir/all" 2>"$dir/err"
[ $? -eq 0 ] && [ "$(grep -c '"encoded":false.*"pays":"nothing"' "$dir/all")" -eq 4 ] &&
    grep -q ' 0 weights' "$dir/err"; ok $? "a dense net: no layer pays, and none is encoded"
"$build/cnnrun" convert "$net" -o "$dir/all.cnr" --encode sparse-csr:keep=0.1,values=f16,code=zstd --json \
    >"$dir/all" 2>/dev/null
grep -q '"layer":"ip1".*"kept":0.1,.*"kernel":"dense_f32_csr","pays":"bytes and time"' "$dir/all"
ok $? "a pruned layer pays in bytes and time, and its kernel is told"
work() { # kernel: millions of operations that its profile counts for ip1
    "$build/cnnrun" bench "$dir/all.cnr" --runs 50 --profile --device cpu --json --kernel ip1=$1 2>/dev/null |
        sed -n 's/.*"node":"ip1".*"kernel":"'$1'".*"ms":\([0-9.e-]*\),.*"gflops":\([0-9.e-]*\).*/\1 \2/p' |
        awk '{printf "%.2f", $1 * $2}'
}
sparse=$(work dense_f32_csr); dense=$(work dense_f32_dot)
awk "BEGIN {exit !(${sparse:-0} > 0.06 && ${sparse:-0} < 0.10 && ${dense:-0} > 0.7 && ${dense:-0} < 0.9)}"
ok $? "what is multiplied is counted: $sparse million operations sparse, $dense with the dense kernel forced"
convert none sparse-csr:keep=2 'ip1*'
[ $? -ne 0 ] && grep -q keep "$dir/err" && [ ! -e "$dir/none.cnr" ]; ok $? "a share above 1 is refused"

if [ ! -e "$data/t10k-images-idx3-ubyte.gz" ] && [ ! -e "$data/t10k-images-idx3-ubyte" ]; then
    n=$((n + 1)); echo "ok $n - accuracy # SKIP no MNIST at $data"
    echo "1..$n"; exit 0
fi
top() { # net: right answers of 10,000
    "$build/cnnrun" eval "$1" --data "mnist:$data" --batch 64 --device cpu --json 2>/dev/null |
        sed -n 's/.*"top1":\([0-9.]*\).*/\1/p' | awk '{printf "%d", $1 * 10000 + 0.5}'
}
float=$(top "$net"); whole=$(top "$dir/whole.cnr"); tenth=$(top "$dir/tenth.cnr")
[ -n "$float" ] && [ "$whole" -ge $((float - 1)) ] && [ "$whole" -le $((float + 1)) ]
ok $? "nothing pruned: $whole of 10,000 digits, dense $float"
[ "${tenth:-0}" -ge 9700 ]; ok $? "ip1 pruned to 10%, not retrained: $tenth of 10,000"
echo "1..$n"
