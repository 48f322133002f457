#!/bin/sh
# Java: the jar and libcnnrun-jni.so of this build on the machine's JDK.
build=$(cd "${CNNRUN_BUILD:-build}" && pwd) || exit 1
root=$(cd "$(dirname "$0")/../.." && pwd)
skip() { echo "1..0 # SKIP $1"; exit 0; }
command -v javac >/dev/null && command -v java >/dev/null || skip "no JDK: want default-jdk-headless"
[ -e "$build/libcnnrun-jni.so" ] && [ -e "$build/cnnrun.jar" ] || skip "libcnnrun-jni.so is not built"
[ -z "$(nm -D --undefined-only "$build/libcnnrun.so.1" | grep -E '__(asan|tsan|ubsan)_')" ] || skip "Java lacks the sanitiser"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0 failed=0
ok() { # ok STATUS NAME
    count=$((count + 1))
    [ "$1" = 0 ] || { failed=1; sed 's/^/# /' "$work/log" | tail -n 20 >&2; printf 'not '; }
    echo "ok $count - $2"
}
unzip -l "$build/cnnrun.jar" >"$work/log" 2>&1 && ! grep -q ' android/' "$work/log"
ok $? "no class of Android's is in the jar"
javac --release 8 -Xlint:all,-options -Werror -d "$work" -cp "$build/cnnrun.jar:$root/core/bind/java/stubs" \
    -sourcepath "$root/core/bind/java/stubs" "$root/tests/bind/java/NetsTest.java" >"$work/log" 2>&1
ok $? "a program of Java 8 compiles"
rm -rf "$work/android"
"$build/cnnrun" convert "$root/scripts/nets/lenet5.lua" -o "$work/lenet.cnr" >"$work/log" 2>&1
ok $? "a net"
"$build/cnnrun" run "$root/scripts/nets/lenet5.lua" "$root/scripts/nets/digits/three.png" --threads 1 --json >"$work/said" 2>"$work/log"
ok $? "the program's answer"
(cd "$work" && CNNRUN_OPENCL=none CNNRUN_PLUGIN_PATH=$build/plugins java -Xcheck:jni -Xms32m -Xmx32m -XX:+AlwaysPreTouch -Dcnnrun.library="$build/libcnnrun-jni.so" \
    -cp "$build/cnnrun.jar:$work" NetsTest "$root/scripts/nets" "$work" "$(head -n 1 "$work/said")") >"$work/log" 2>&1
code=$?
sed 's/^/    /' "$work/log"
[ $code = 0 ] && ! grep -Eq '^not ok|WARNING.*JNI' "$work/log"
ok $? "nets, errors, threads, 10,000 loads, CNNdroid's calls"

mkdir -p "$work/x/share/java" && cp "$build/cnnrun.jar" "$work/x/share/java"
library=$(cd "$work/x/share/java" && realpath -m "$(unzip -p cnnrun.jar cnnrun/library.txt)")
folder=$(dirname "$library")
mkdir -p "$folder" && cp "$build/libcnnrun-jni.so" "$folder" && cp "$build/libcnnrun.so.1" "$folder/.."
(cd "$work" && CNNRUN_PLUGIN_PATH=$build/plugins java -cp "$work/x/share/java/cnnrun.jar:$work" NetsTest open) >"$work/log" 2>&1
ok $? "a moved installation: the jar finds its library"

# The chapter's program, as a reader pastes it.
sed -n '/^import cnnrun.Engine/,/^```/p' "$root/core/docs/java.md" | sed '/^```/,$d' >"$work/Digit.java"
javac -cp "$build/cnnrun.jar" -d "$work" "$work/Digit.java" >"$work/log" 2>&1 &&
    CNNRUN_PLUGIN_PATH=$build/plugins java -Dcnnrun.library="$build/libcnnrun-jni.so" -cp "$build/cnnrun.jar:$work" Digit \
        "$root/scripts/nets/lenet5.lua" "$root/scripts/nets/digits/three.png" >"$work/log" 2>&1 && head -n 1 "$work/log" | grep -q '^3 1'
ok $? "the program of core/docs/java.md"
echo "1..$count"
exit $failed
