#!/bin/sh
# Sequences with ground truth and their measures: the checks are in sequence.lua.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/none" "$work/hostile"
printf '10,20,40,60\n12,20,42,60\nNaN,NaN,NaN,NaN\n14,20,44,60\n' >"$work/gt.txt"
"${CNNRUN_BUILD:-build}/cnnrun" "$(dirname "$0")/sequence.lua" "$work"
