#!/bin/sh
# Every kernel of a device on the nodes of the zoo's nets, and of all ONNX files in the folders named: a line a net.
# Takes minutes a net and core. nets.sh DEVICE [FOLDER...]   $CNNRUN: the program; $JOBS: nets at once (1);
# $LIMIT: seconds a net (3600); $OUT: a folder for what is said of each (none)
root=$(cd "$(dirname "$0")/../.." && pwd)
export CNNRUN="${CNNRUN:-$root/build/cnnrun}" LIMIT="${LIMIT:-3600}" DEVICE="${1:?want a device: nets.sh cpu}"
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OUT="${OUT:-$work}"
mkdir -p "$OUT"
cat >"$work/one" <<'END'
name=$(basename "$1" | sed 's/\.[a-z]*$//') begin=$(date +%s)
timeout "$LIMIT" "$CNNRUN" kernelcheck --net "$1" --device "$DEVICE" -q >"$OUT/$name.txt" 2>&1
code=$?
echo "$name: exit code $code, $(($(date +%s) - begin)) s: $(tail -n 1 "$OUT/$name.txt")"
grep '^not ok' "$OUT/$name.txt"
exit $((code != 0))
END
for folder in "$root/scripts/nets" "$@"; do
    for net in "$folder"/*.lua "$folder"/*.onnx; do
        [ -e "$net" ] && echo "$net"
    done
done | xargs -P "${JOBS:-1}" -n 1 sh "$work/one"
