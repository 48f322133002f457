#!/bin/sh
# The Python package: the wheel is built of this build, unpacked, and used; no network.
build=$(cd "${CNNRUN_BUILD:-build}" && pwd) || exit 1
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
skip() { echo "1..0 # SKIP $1"; exit 0; }
[ -e "$build/libcnnrun.so.1" ] || skip "libcnnrun.so is not built"
[ -z "$(nm -D --undefined-only "$build/libcnnrun.so.1" | grep -E '__(asan|tsan|ubsan)_')" ] || skip "Python lacks the sanitiser"
for python in python3 /usr/bin/python3; do
    $python -c 'import cffi, numpy, setuptools, wheel' 2>"$work/why" && break
    python=
done
[ "$python" ] || skip "$(tail -n 1 "$work/why"): want python3-dev, python3-cffi, python3-numpy, python3-setuptools, python3-wheel"
[ -e "$($python -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ] || skip "no Python.h: want python3-dev"
export PYTHONDONTWRITEBYTECODE=1
count=0 failed=0
ok() { # ok STATUS NAME
    count=$((count + 1))
    [ "$1" = 0 ] || { failed=1; sed 's/^/# /' "$work/log" | tail -n 20 >&2; printf 'not '; }
    echo "ok $count - $2"
}
(cd "$root/core/bind/python" && CNNRUN_BUILD=$build $python setup.py -q egg_info --egg-base "$work" \
    build --build-base "$work/build" bdist_wheel -d "$work" --bdist-dir "$work/bdist") >"$work/log" 2>&1
ok $? "the wheel is built"
wheel=$(ls "$work"/cnnrun-*-cp39-abi3-*.whl 2>"$work/log")
ok $? "it is one for Python 3.9 and later"
[ "$wheel" ] && $python -m zipfile -e "$wheel" "$work/site"
echo "# $(wc -c <"$wheel") bytes"
nm -D --undefined-only "$work/site/cnnrun/_cnnrun.abi3.so" >"$work/log" && ! grep -E ' _Py(Unicode_|Object_Call|Thread)' "$work/log" >/dev/null
ok $? "the extension keeps to the stable ABI"

run() { # run NAME FILE ARGUMENT...: each line of TAP that FILE prints is a line here
    name=$1
    shift
    (cd "$work" && env -i HOME="$work" PATH="$PATH" LC_ALL=C.UTF-8 PYTHONPATH="$work/site" PYTHONDONTWRITEBYTECODE=1 $python "$@") >"$work/log" 2>&1
    code=$?
    sed 's/^/    /' "$work/log"
    [ $code = 0 ] && ! grep -q '^not ok' "$work/log"
    ok $? "$name"
}
run "nets, threads, errors, interrupts, leaks" "$root/tests/bind/python/nets.py" "$root/scripts/nets"
run "frames, tracker, plugins" "$root/tests/bind/python/frames.py" "$root/scripts/nets"
run "finding things, what the wheel lacks" "$root/tests/bind/python/detect.py" "$root/scripts/nets" "${CNNRUN_SHARED:-$root/../shared}/data"
run "pages, pruning" "$root/tests/bind/python/reports.py" "$root/scripts/nets"
run "training, evaluating, quantising" "$root/tests/bind/python/work.py" "$root/scripts/nets" "${CNNRUN_SHARED:-$root/../shared}/data/mnist"
run "the interface of ONNX Runtime" "$root/tests/bind/python/ort.py" "$root/scripts/nets"
run "examples of the chapter" "$root/tests/bind/python/chapter.py" "$root"
if $python -c 'import mypy' 2>/dev/null; then
    (cd "$root/core/bind/python" && $python -m mypy --strict --cache-dir="$work/mypy" cnnrun) >"$work/log" 2>&1
    ok $? "mypy --strict has nothing to say"
else
    count=$((count + 1))
    echo "ok $count # SKIP no mypy"
fi
echo "1..$count"
exit $failed
