#!/bin/sh
# An application can use all that the program does: devices, times, placement, evaluation, training.
build=$(cd "${CNNRUN_BUILD:-build}" && pwd) || exit 1
here=$(cd "$(dirname "$0")" && pwd)
nets=$here/../../scripts/nets
[ -f "$build/libcnnrun.a" ] || { echo "1..0 # SKIP no libcnnrun.a"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0 failed=0
ok() { # ok STATUS NAME
    count=$((count + 1))
    if [ "$1" = 0 ]; then echo "ok $count - $2"; else
        failed=1
        echo "not ok $count - $2"
        sed 's/^/# /' "$work/log" | tail -n 20
    fi
}
: >"$work/list"
for round in 1 2; do
    label=0
    for digit in zero one two three four five six seven eight nine; do
        echo "$nets/digits/$digit.png $label" >>"$work/list"
        label=$((label + 1))
    done
done
for language in c c++; do
    case $language in
    c) compiler="cc -std=c99 -Wall -Wextra -Werror" input= ;;
    *) compiler="c++ -std=c++11 -Wall -Wextra -Werror" input="-x c++" ;;
    esac
    $compiler -I"$here/../../core/include" -I"$build/include" -o "$work/study" $input "$here/study.c" \
        -x none "$build/libcnnrun.a" -lm -ldl -lpthread >"$work/log" 2>&1
    ok $? "it builds as $language"
    env "CNNRUN_PLUGIN_PATH=$build/plugins" "$work/study" "$nets/lenet5.lua" "$work/list" "$work/out.cnr" \
        >"$work/log" 2>&1
    ok $? "and runs"
    grep -q '^device cpu' "$work/log"; ok $? "devices"
    grep -q '^profile 5 runs, some steps, first on cpu' "$work/log"; ok $? "times, where it was placed"
    grep -q '^right \(19\|20\) of 20' "$work/log"; ok $? "how often it is right"
    [ "$(grep -c '^epoch [12] of 2' "$work/log")" = 2 ] && grep -q '^trained on 15, best epoch kept' "$work/log" &&
        [ -s "$work/out.cnr" ]
    ok $? "training, heard epoch by epoch"
    grep -q '^much heard' "$work/log"; ok $? "progress"
done
echo "1..$count"
exit $failed
