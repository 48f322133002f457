#!/bin/sh
# The Debian package libcnnrun-java: its files, and a JDK's program that runs from the unpacked packages. They are those in
# CNNRUN_DEBS=DIR, or what tools/package.sh has made.
root=$(cd "$(dirname "$0")/../.." && pwd)
skip() { echo "1..0 # SKIP $1"; exit 0; }
debs=${CNNRUN_DEBS:-$root/build/packages/bookworm}
package() { find "$debs" -maxdepth 1 -name "$1_*.deb" | head -n 1; } # package NAME
java=$(package libcnnrun-java 2>/dev/null) library=$(package libcnnrun1 2>/dev/null)
[ -n "$java" ] && [ -n "$library" ] || skip "left out: wants packages of tools/package.sh bookworm, or CNNRUN_DEBS=DIR"
command -v dpkg-deb >/dev/null || skip "no dpkg-deb"
command -v javac >/dev/null || skip "no JDK: want default-jdk-headless"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0 failed=0
ok() { # ok STATUS NAME
    count=$((count + 1))
    [ "$1" = 0 ] || { failed=1; sed 's/^/# /' "$work/log" | tail -n 20 >&2; printf 'not '; }
    echo "ok $count - $2"
}
dpkg-deb -c "$java" | sed -n 's/^-.* \.\///p' | grep -v '^usr/share/doc/' | sort >"$work/log"
[ "$(sed 's/[^/]*-linux-gnu[^/]*/ARCH/' "$work/log" | tr '\n' ' ')" = 'usr/lib/ARCH/jni/libcnnrun-jni.so usr/share/java/cnnrun.jar ' ]
ok $? "it has the jar and the library, and else documents"
dpkg-deb -f "$java" Depends >"$work/log"
grep -q "libcnnrun1 (= $(dpkg-deb -f "$library" Version))" "$work/log" && grep -q 'libc6' "$work/log"
ok $? "it depends on its own version of libcnnrun1"
mkdir "$work/tree"
{ dpkg-deb -x "$java" "$work/tree" && dpkg-deb -x "$library" "$work/tree"; } >"$work/log" 2>&1
ok $? "the packages unpack"
sed -n '/^import cnnrun.Engine/,/^```/p' "$root/core/docs/java.md" | sed '/^```/,$d' >"$work/Digit.java"
jar=$work/tree/usr/share/java/cnnrun.jar
cd "$work" && javac -cp "$jar" -d "$work" Digit.java >"$work/log" 2>&1 &&
    env -u CNNRUN_PLUGIN_PATH CNNRUN_OPENCL=none java -cp "$jar:$work" Digit "$root/scripts/nets/lenet5.lua" "$root/scripts/nets/digits/three.png" >"$work/log" 2>&1 &&
    head -n 1 "$work/log" | grep -q '^3 1'
ok $? "a program runs: the jar finds its library, that one its plugins"
echo "1..$count"
exit $failed
