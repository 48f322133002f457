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

bench() { # bench NET DEVICE: the median of a run, and the host's part of it until all is queued
    "$cnnrun" bench "$root/scripts/nets/$1.lua" --weights random:1 --device "$2" --no-energy --json \
        2>/dev/null | sed -n '1s/.*"ms_median":\([0-9.e+-]*\),\("enqueue_ms":\([0-9.e+-]*\)\)\{0,1\}.*/\1 \3/p'
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

least() { # least NET DEVICE: of seven starts
    for i in 1 2 3 4 5 6 7; do start "$1" "$2"; done | sort -n | head -n 1
}

"$cnnrun" devices --measure --device "$device"
"$cnnrun" devices --measure --device "$device" --json | sed -n \
    's/.*"read_gbs":\([0-9.e+-]*\),"copy_gbs":\([0-9.e+-]*\),.*/\1 \2/p' |
    awk '{ printf "    copy, of what is read  %.1f%%\n", 100 * $2 / $1 }'
echo
first=$(CUDA_CACHE_PATH="$work/driver" POCL_CACHE_DIR="$work/driver" start squeezenet_v1_1 "$device")
second=$(least squeezenet_v1_1 "$device") cpu=$(least squeezenet_v1_1 cpu)
echo "first start of squeezenet_v1_1, all caches empty: $first ms; later ones: $second ms, $((second - cpu)) ms more than on cpu"
echo
printf '%-18s %10s %10s %7s %10s %10s   %s\n' net "$device ms" "cpu ms" ratio "tuned ms" "queued ms" "steps, then tuned"
for net in $nets; do
    set -- $(bench "$net" "$device")
    own=$1 cpu=$(bench "$net" cpu) steps=$(kernels "$net")
    "$cnnrun" tune "$root/scripts/nets/$net.lua" --weights random:1 --devices "$device" --no-energy \
        --cache "$CNNRUN_CACHE" >"$work/out" 2>&1 || cat "$work/out"
    set -- $(bench "$net" "$device")
    echo "$net ${own:-0} ${cpu:-0} ${1:-0} ${2:-0}" | awk -v s="$steps, then $(kernels "$net")" \
        '{ printf "%-18s %10.3f %10.3f %7.2f %10.3f %10.3f   %s\n", $1, $2, $3, ($3 > 0 ? $2 / $3 : 0), $4, $5, s }'
done

peer=$root/build/tests/bench/bench_clblast
[ -x "$peer" ] || exit 0
least() { sed -n 's/.*"ms_\(least\|min\)":\([0-9.e+-]*\).*/\2/p' | head -n 1; }
echo
printf '%-18s %10s %10s %7s   (least ms)\n' "SGEMM M,N,K" CLBlast ours ratio
for size in 1024,1024,1024 512,512,1024; do
    theirs=$("$peer" $(echo "$size" | tr , ' ') 10 | least) || exit 0
    own=$("$cnnrun" bench --gemm "$size" --device "$device" --no-energy --runs 10 --json 2>/dev/null | least)
    echo "$size ${theirs:-0} ${own:-0}" |
        awk '{ printf "%-18s %10.3f %10.3f %7.2f\n", $1, $2, $3, ($3 > 0 ? $2 / $3 : 0) }'
done
