#!/bin/sh
# Plots of scripts: plot.lua checks the drawings; here another program reads the SVG, if there is one.
build=${CNNRUN_BUILD:-build}
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$build/cnnrun" --output "$work/out" "$here/plot.lua" >"$work/tap" 2>"$work/log"
code=$?
grep -v '^1\.\.' "$work/tap"
sed 's/^/# /' "$work/log"
n=$(grep -c '^ok\|^not ok' "$work/tap")
n=$((n + 1))
[ $code = 0 ] && echo "ok $n - it ended well" || echo "not ok $n - exit code $code"
n=$((n + 1))
if [ -e "$work/out/lines.svg" ] && command -v python3 >/dev/null; then
    python3 -c 'import sys, xml.dom.minidom as x; x.parse(sys.argv[1])' "$work/out/lines.svg" 2>"$work/log" &&
        echo "ok $n - the SVG is well-formed" || echo "not ok $n - the SVG is well-formed: $(tail -1 "$work/log")"
else echo "ok $n # SKIP no SVG, or no python3 to read it"
fi
echo "1..$n"
