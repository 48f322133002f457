#!/bin/sh
# The Android module. All of its Java compiles, against stubs of Android's classes; what needs no Android runs on the
# machine's JDK, over the JNI library of this build, laid out as in an APK. CNNRUN_ANDROID=DIR builds the module's
# own C there and runs over that (minutes).
build=$(cd "${CNNRUN_BUILD:-build}" && pwd) || exit 1
root=$(cd "$(dirname "$0")/../.." && pwd)
here=$root/tests/bind/android module=$root/core/bind/android
skip() { echo "1..0 # SKIP $1"; exit 0; }
command -v javac >/dev/null && command -v java >/dev/null || skip "no JDK: want default-jdk-headless"
[ -e "$build/libcnnrun-jni.so" ] || skip "libcnnrun-jni.so is not built"
[ -z "$(nm -D --undefined-only "$build/libcnnrun.so.1" | grep -E '__(asan|tsan|ubsan)_')" ] || skip "Java lacks the sanitiser"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0 failed=0
ok() { # ok STATUS NAME
    count=$((count + 1))
    [ "$1" = 0 ] || { failed=1; sed 's/^/# /' "$work/log" | tail -n 20 >&2; printf 'not '; }
    echo "ok $count - $2"
}
lib=$module/cnnrun/src/main/java
mkdir "$work/all" "$work/plain" "$work/native"
# shellcheck disable=SC2046
javac --release 8 -Xlint:all,-options -Werror -d "$work/all" -sourcepath "$here/stubs:$root/core/bind/java/stubs" \
    $(find "$root/core/bind/java/src" "$module" -name '*.java') >"$work/log" 2>&1
ok $? "the library and the applications compile as Java 8"
javac --release 8 -Xlint:all,-options -Werror -d "$work/plain" "$root"/core/bind/java/src/cnnrun/*.java "$lib"/cnnrun/app/*.java \
    "$here/AppTest.java" >"$work/log" 2>&1
ok $? "what lies in cnnrun.app needs no class of Android's"

# Manifests and Gradle name classes and modules that are there.
missing=$(for app in classify monitor power; do
    activity=$(sed -n 's/.*<activity android:name="\.\([A-Za-z]*\)".*/\1/p' "$module/$app/src/main/AndroidManifest.xml")
    [ -e "$work/all/cnnrun/$app/$activity.class" ] && grep -q "':$app'" "$module/settings.gradle" || echo "$app $activity"
    grep -q 'Manifest.permission.CAMERA' "$module/$app"/src/main/java/*/*/*.java && ! grep -q permission.CAMERA "$module/$app/src/main/AndroidManifest.xml" && echo "$app: CAMERA"
done)
for file in "$module"/*/src/main/AndroidManifest.xml; do
    python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$file" || missing="$missing $file"
done
echo "$missing" >"$work/log"
[ -z "$missing" ]
ok $? "manifests name activities and permissions that the sources have"

# As an APK has it: plugins are libcnnrun-plugin-*.so beside the JNI library, in one folder.
if [ -n "$CNNRUN_ANDROID" ]; then
    home=$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")
    { cmake -S "$module/cnnrun/src/main/cpp" -B "$CNNRUN_ANDROID" -G Ninja -DCNNRUN_JNI_INCLUDE="$home/include" &&
        ninja -C "$CNNRUN_ANDROID"; } >"$work/log" 2>&1
    ok $? "the module's C builds"
    cp "$CNNRUN_ANDROID"/lib*.so "$work/native"
    nm -D --defined-only "$work/native/libcnnrun-jni.so" | awk '{ print $3 }' >"$work/log"
    [ "$(cat "$work/log")" = JNI_OnLoad ]
    ok $? "libcnnrun-jni.so exports JNI_OnLoad alone"
else
    cp "$build/libcnnrun-jni.so" "$build/libcnnrun.so.1" "$work/native"
    for plugin in ops-std cpu-neon object-tld; do cp "$build/plugins/$plugin.so" "$work/native/libcnnrun-plugin-$plugin.so"; done
fi
data=$root/../shared/data picture=$work/dog.png
set --
if [ -e "$data/darknet/yolo-lite/tiny-yolov2-trial3.weights" ]; then
    cat >"$work/Half.java" <<'END'
import java.awt.image.BufferedImage;
import java.io.File;
import javax.imageio.ImageIO;

final class Half { // a picture of 224x224, so that none but the decoder is compared
    public static void main(String[] words) throws Exception {
        BufferedImage from = ImageIO.read(new File(words[0]));
        BufferedImage to = new BufferedImage(224, 224, BufferedImage.TYPE_INT_RGB);
        for (int y = 0; y < 224; y++)
            for (int x = 0; x < 224; x++)
                to.setRGB(x, y, from.getRGB(x * from.getWidth() / 224, y * from.getHeight() / 224));
        ImageIO.write(to, "png", new File(words[1]));
    }
}
END
    { java -Djava.awt.headless=true "$work/Half.java" "$data/images/dog.jpg" "$picture" &&
        "$build/cnnrun" convert "$data/darknet/yolo-lite/tiny-yolov2-trial3.cfg" "$data/darknet/yolo-lite/tiny-yolov2-trial3.weights" -o "$work/net.cnr" &&
        "$build/cnnrun" detect "$work/net.cnr" "$picture" --score 0.3 --overlap 0.45 --across 1 --device cpu --json >"$work/found"; } >"$work/log" 2>&1
    ok $? "Tiny YOLO finds things"
    set -- "$work/net.cnr" "$picture"
    python3 - "$work/found" >"$work/rows" <<'END'
import json, sys
for box in json.loads(open(sys.argv[1]).readline())["boxes"]:
    print(box["class"], box["score"], *box["box"])
END
    while read -r row; do set -- "$@" "$row"; done <"$work/rows"
else
    echo "# without ../shared/data: boxes are not compared"
fi
(cd "$work" && CNNRUN_OPENCL=none java -Xcheck:jni -Djava.awt.headless=true -Dcnnrun.library="$work/native/libcnnrun-jni.so" \
    -cp "$work/plain" cnnrun.app.AppTest "$work/native" "$root" "$work" "$@") >"$work/log" 2>&1
code=$?
sed 's/^/    /' "$work/log"
[ $code = 0 ] && ! grep -Eq '^not ok|WARNING.*JNI' "$work/log"
ok $? "pixels, classes, boxes, loads, power on the machine's JDK"
"$build/cnnrun" power "$work/power.csv" "$work/curves.svg" >"$work/log" 2>&1 && grep -q '<svg' "$work/curves.svg"
ok $? "cnnrun power draws what the power monitor records"
echo "1..$count"
exit $failed
