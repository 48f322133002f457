#!/bin/sh
# Whether the parts of a divided layer run at once: cpu and opencl:0 (PoCL) alone and sharing a layer, each with
# a core of its own. split.sh [TIMES [OPTIONS of scripts/bench/split.lua]]; without options scalar products of
# matrices are forced on both, so that neither is far the faster, then each device's fastest vectors.
set -e
root=$(cd "$(dirname "$0")/../.." && pwd)
cnnrun=${CNNRUN:-$root/build/cnnrun}
times=${1:-3}
[ $# -gt 0 ] && shift
# PoCL's one worker stays on the first core (it makes vectors of no loop), all else on the second
export POCL_MAX_PTHREAD_COUNT=1 POCL_AFFINITY=1 POCL_WORK_GROUP_METHOD=loops

divide() { # divide OPTIONS
    for i in $(seq "$times"); do
        taskset -c 1 "$cnnrun" --threads 1 "$root/scripts/bench/split.lua" --rounds 8 "$@"
    done
}

[ $# -gt 0 ] && { divide "$@"; exit; }
# A convolution with a window of one is a product of matrices and nothing else.
divide --window 1 --kernel cpu=reference --kernel opencl:0=mali_conv_f32_plain
divide --kernel cpu=conv_f32_gemm --kernel opencl:0=mali_conv_f32_panel0 --maps 256
