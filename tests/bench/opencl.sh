#!/bin/sh
# What an OpenCL device does with the zoo's nets: what it is, times beside the processor's, launches and
# kernels of each net before and after tuning, what starts cost,
# and products of matrices beside CLBlast's (libclblast1). opencl.sh [DEVICE [NET...]]
set -e
root=$(cd "$(dirname "$0")/../.." && pwd)
cnnrun=${CNNRUN:-$root/build/cnnrun}
device=${1:-opencl:0}
[ $# -gt 0 ] && shift
nets=${*:-alexnet squeezenet_v1_1 resnet18 resnet50 mobilenet_v2 vgg16 googlenet}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CNNRUN_CACHE="$work/cache"

ms() { # ms NET DEVICE: the median of a run
    "$cnnrun" bench "$root/scripts/nets/$1.lua" --weights random:1 --device "$2" --no-energy --json \
        2>/dev/null | sed -n '1s/.*"ms_median":\([0-9.e+-]*\).*/\1/p'
}
kernels() { # kernels NET: how many steps run on the device, and of how many kinds
    "$cnnrun" show "$root/scripts/nets/$1.lua" --weights random:1 --device "$device" 2>/dev/null |
        awk -v d="$device" '{ for (i = 1; i <= NF; i++) if ($i == d) { n++; k[$(i - 1)]++ } }
             END { m = 0; for (x in k) m++; printf "%d of %d kinds", n, m }'
}
now() { date +%s%N; }
start() { # start NET DEVICE: milliseconds of planning it
    begin=$(now)
    "$cnnrun" show "$root/scripts/nets/$1.lua" --weights random:1 --device "$2" >"$work/out" 2>&1
    echo $((($(now) - begin) / 1000000))
}

"$cnnrun" devices --measure --device "$device"
echo
first=$(start squeezenet_v1_1 "$device")
second=$(start squeezenet_v1_1 "$device")
echo "start of squeezenet_v1_1: $first ms the first, $second ms the second, $(start squeezenet_v1_1 cpu) ms on cpu"
echo "(a driver's own cache counts as well: CUDA_CACHE_DISABLE=1, POCL_KERNEL_CACHE=0)"
echo
printf '%-18s %10s %10s %7s %10s   %s\n' net "$device ms" "cpu ms" ratio "tuned ms" "steps, then tuned"
for net in $nets; do
    own=$(ms "$net" "$device") cpu=$(ms "$net" cpu) steps=$(kernels "$net")
    "$cnnrun" tune "$root/scripts/nets/$net.lua" --weights random:1 --devices "$device" --no-energy \
        --cache "$CNNRUN_CACHE" >"$work/out" 2>&1 || cat "$work/out"
    tuned=$(ms "$net" "$device")
    echo "$net ${own:-0} ${cpu:-0} ${tuned:-0}" | awk -v s="$steps, then $(kernels "$net")" \
        '{ printf "%-18s %10.3f %10.3f %7.2f %10.3f   %s\n", $1, $2, $3, ($3 > 0 ? $2 / $3 : 0), $4, s }'
done

peer=$root/build/tests/bench/bench_clblast
[ -x "$peer" ] || exit 0
least() { sed -n 's/.*"ms_least":\([0-9.e+-]*\).*/\1/p' | head -n 1; }
echo
printf '%-18s %10s %10s %7s   (least ms)\n' "SGEMM M,N,K" CLBlast ours ratio
for size in 1024,1024,1024 512,512,1024; do
    theirs=$("$peer" $(echo "$size" | tr , ' ') 10 | least) || exit 0
    own=$("$cnnrun" bench --gemm "$size" --device "$device" --no-energy --runs 10 --json 2>/dev/null | least)
    echo "$size ${theirs:-0} ${own:-0}" |
        awk '{ printf "%-18s %10.3f %10.3f %7.2f\n", $1, $2, $3, ($3 > 0 ? $2 / $3 : 0) }'
done
