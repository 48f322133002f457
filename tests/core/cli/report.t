#!/bin/sh
# Plots of measurements: eval -o report.html, bench --profile -o chart.png.
build=$(cd "${CNNRUN_BUILD:-build}" && pwd) || exit 1
root=$(cd "$(dirname "$0")/../../.." && pwd)
net=$root/scripts/nets/lenet5.lua
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0
ok() { # ok STATUS NAME
    count=$((count + 1))
    [ "$1" = 0 ] || { sed 's/^/# /' "$work/log" | tail -n 20 >&2; printf 'not '; }
    echo "ok $count - $2"
}
cnnrun() { "$build/cnnrun" "$@" --threads 1 >"$work/out" 2>"$work/log"; }
drawn() { # drawn NAME: the last command's page or picture has them; without draw-cairo that is skipped
    if [ -e "$build/plugins/draw-cairo.so" ]; then return 0; fi
    count=$((count + 1))
    echo "ok $count - $1 # SKIP no draw-cairo"
    return 1
}
digit=0
for name in zero one two three four five six seven eight nine; do
    echo "$root/scripts/nets/digits/$name.png $(((digit + (digit == 7)) % 10))" # the seven is said to be an eight
    digit=$((digit + 1))
done >"$work/<list>.txt"
cnnrun eval "$net" --data "images:$work/<list>.txt" --json -o "$work/report.html" && grep -q '"top1":0.9,' "$work/out"
ok $? "eval tells as ever, and writes a page"
# The bounds are the roots q of (part - q)^2 = z^2 q (1 - q) / n with z = 1.959964.
within() { # within KEY WANT: the number of the last command's JSON
    got=$(sed -n "s/.*\"$1\":\([0-9.e-]*\).*/\1/p" "$work/out")
    [ -n "$got" ] && awk "BEGIN { d = $got - $2; exit !(d < 1e-5 && d > -1e-5) }"
}
within top1_low 0.595850 && within top1_high 0.982124
ok $? "9 of 10: Wilson's interval"
cnnrun eval "$net" --data "images:$work/<list>.txt"
grep -q '^top-1     90.00%  (9; 95% interval 59.6% to 98.2%)$' "$work/out"
ok $? "the text has it too"
awk '{ print $1, NR - 1 }' "$work/<list>.txt" >"$work/all.txt"
cnnrun eval "$net" --data "images:$work/all.txt" --json
within top1_low 0.722467 && within top1_high 1
ok $? "10 of 10: up to 1"
awk '{ print $1, NR % 10 }' "$work/<list>.txt" >"$work/none.txt"
cnnrun eval "$net" --data "images:$work/none.txt" --json
within top1_low 0 && within top1_high 0.277533
ok $? "0 of 10: from 0"
page=$work/report.html
grep -q '<td style="background:rgba(214,39,40,0.40)">1</td>' "$page" && grep -q '<tr><th>8</th>' "$page"
ok $? "its confusion matrix has the mistake"
grep -q 'expected calibration error, 10 bins) is 0\.[0-9]*' "$page"
ok $? "its calibration error is told"
grep -q '7, not 8' "$page" && grep -q '1 of 10 answers are wrong' "$page"
ok $? "the mistake is there by name"
grep -q '&lt;list&gt;' "$page" && ! grep -q '<list>' "$page"
ok $? "what the user wrote is escaped"
! grep -Eo '(src|href)="[^"]{0,40}' "$page" | grep -v '="data:' >"$work/log"
ok $? "nothing is loaded from elsewhere"
if drawn "pictures"; then
    [ "$(grep -c '<img src="data:image/svg' "$page")" = 2 ]
    ok $? "the curve and the picture are in the page"
fi
cnnrun eval "$net" --data "images:$work/<list>.txt" -o "$work/report.txt"
[ $? = 1 ] && grep -q 'ends with .html' "$work/log"
ok $? "a name of another kind is refused"
cnnrun eval "$net" --data "images:$work/<list>.txt" -o "$work/none/report.html"
[ $? != 0 ] && grep -q 'none/report.html' "$work/log"
ok $? "so is a folder that is not there"
cat >"$work/rows.lua" <<'END'
local c = require "cnnrun"
return function(args)
  local e = c.load("nets.lenet5"):evaluate { data = args[1], rows = true }
  for _, r in ipairs(e.rows) do
    if r.answer ~= r.label then print(r.index, r.label, r.answer, r.share > r.label_share) end
  end
  assert(#e.rows == 10 and not c.load("nets.lenet5"):evaluate { data = args[1] }.rows)
end
END
"$build/cnnrun" "$work/rows.lua" "images:$work/<list>.txt" >"$work/out" 2>"$work/log" && [ "$(tr '\t' ' ' <"$work/out")" = "8 8 7 true" ]
ok $? "scripts have a row a picture, where they wish"
cnnrun bench "$net" --runs 2 -o "$work/chart.png"
[ $? = 1 ] && grep -q 'want --profile' "$work/log"
ok $? "bench draws steps only"
cnnrun bench "$net" --runs 2 --profile -o "$work/chart.jpg"
[ $? = 1 ] && grep -q 'ends with .png or .svg' "$work/log"
ok $? "as .png or .svg"
if drawn "charts"; then
    cnnrun bench "$net" --runs 2 --profile -o "$work/chart.svg" && grep -q '^ *2  *conv' "$work/out" && grep -q '<svg' "$work/chart.svg"
    ok $? "a chart beside the table"
    cnnrun bench "$net" --runs 2 --profile -o "$work/chart.png" && [ "$(head -c 4 "$work/chart.png" | tail -c 3)" = PNG ]
    ok $? "and as pixels"
else
    cnnrun bench "$net" --runs 2 --profile -o "$work/chart.svg"
    [ $? = 1 ] && grep -q 'draw-cairo' "$work/log"
    ok $? "without the plugin it says which one lacks"
fi
echo "1..$count"
