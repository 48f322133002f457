#!/bin/sh
# Detectors of several formats on real pictures: what must be found; then the program around them.
build=${CNNRUN_BUILD:-build}
here=$(dirname "$0")
data=${CNNRUN_SHARED:-$here/../../../../shared}/data
app=$here/../../../scripts/apps
n=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

ok() { # STATUS TEXT
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; return; fi
    echo "not ok $n - $2"
    sed 's/^/# /' "$work/out" "$work/log" 2>/dev/null | head -30
}
skip() { n=$((n + 1)); echo "ok $n - $1 # SKIP $2"; }

# found MODEL PICTURE FLAGS WORDS... -- each word stands in the list
found() {
    model=$1 picture=$2 flags=$3 first=$(echo "$1" | sed 's/,.*//')
    shift 3
    what="$(basename "$first") on $(basename "$picture"): $*"
    if [ ! -e "$first" ] || [ ! -e "$picture" ]; then skip "$what" "no $first or $picture"; return; fi
    # shellcheck disable=SC2086
    "$build/cnnrun" "$app/detect.lua" "$model" "$picture" $flags >"$work/out" 2>"$work/log"
    status=$?
    for word in "$@"; do grep -q "^  $word " "$work/out" || status=1; done
    ok $status "$what"
}

# faces MODEL PICTURE AT_LEAST
faces() {
    first=${1%%,*}
    what="$(basename "$first") on $(basename "$2"): at least $3 faces"
    if [ ! -e "$first" ] || [ ! -e "$2" ]; then skip "$what" "no $first or $2"; return; fi
    "$build/cnnrun" "$app/detect.lua" "$1" "$2" >"$work/out" 2>"$work/log"
    [ $? = 0 ] && [ "$(grep -c '^  face ' "$work/out")" -ge "$3" ]
    ok $? "$what"
}

images=$data/images
xl=$data/darknet/yolo-fastest/yolo-fastest-1.1-xl
lite=$data/darknet/yolo-lite
found "$xl.cfg,$xl.weights" "$images/dog.jpg" "" dog bicycle car
found "$xl.cfg,$xl.weights" "$images/person.jpg" "" person dog horse
found "$data/onnx/yolox_nano/yolox_nano.onnx" "$images/dog.jpg" "" dog bicycle car
found "$data/onnx/yolox_nano/yolox_nano.onnx" "$images/person.jpg" "" person dog horse
found "$data/onnx/nanodet/nanodet_m.onnx" "$images/dog.jpg" "" dog bicycle car
found "$lite/coco-trial6.cfg,$lite/coco-trial6_653550.weights" "$images/dog.jpg" "" dog bicycle car
found "$lite/tiny-yolov2-trial3.cfg,$lite/tiny-yolov2-trial3.weights" "$images/person.jpg" "" person
faces "$data/onnx/ultraface/version-RFB-320.onnx" "$images/mtcnn_test2.jpg" 4
faces "$data/onnx/ultraface/version-RFB-320_without_postprocessing.onnx" "$images/ultraface_16.jpg" 9
faces "$data/caffe/ultraface/slim-320.prototxt,$data/caffe/ultraface/slim-320.caffemodel" \
    "$images/ultraface_12.jpg" 5
faces "$data/onnx/yunet/yunet_n_dynamic.onnx" "$images/mtcnn_test.jpg" 18
faces "$data/caffe/mtcnn" "$images/mtcnn_test2.jpg" 4
faces "$data/mxnet/mtcnn" "$images/mtcnn_test2.jpg" 4
mkdir "$work/native"
for i in 1 2 3; do
    "$build/cnnrun" import "$data/caffe/mtcnn/det$i.prototxt" "$data/caffe/mtcnn/det$i.caffemodel" \
        -o "$work/native/det$i.cnr" 2>/dev/null
done
if [ -e "$data/caffe/mtcnn" ]; then faces "$work/native" "$images/mtcnn_test2.jpg" 4
else skip "MTCNN in native files" "no $data/caffe/mtcnn"; fi

# The same net from two formats finds the same.
a=$data/onnx/ultraface/version-RFB-320.onnx
b=$data/caffe/ultraface/RFB-320
if [ -e "$a" ] && [ -e "$b.prototxt" ]; then
    "$build/cnnrun" "$app/detect.lua" "$a" "$images/ultraface_6.jpg" >"$work/a" 2>"$work/log"
    "$build/cnnrun" "$app/detect.lua" "$b.prototxt,$b.caffemodel" "$images/ultraface_6.jpg" \
        >"$work/out" 2>>"$work/log"
    cmp -s "$work/a" "$work/out"
    ok $? "from ONNX and from Caffe the same boxes"
else
    skip "from ONNX and from Caffe the same boxes" "no $a or $b.prototxt"
fi

# Around it: several pictures, JSON, drawing, pictures that cannot be read.
net=$data/onnx/yunet/yunet_s_320_320.onnx
if [ ! -e "$net" ]; then
    skip "the program" "no $net"
    echo "1..$n"
    exit 0
fi
mkdir "$work/in"
cp "$images/mtcnn_test2.jpg" "$images/fish-bike.jpg" "$work/in"
"$build/cnnrun" "$app/detect.lua" "$net" "$work/in" --json >"$work/out" 2>"$work/log"
[ $? = 0 ] && [ "$(wc -l <"$work/out")" = 2 ] && grep -q '^\[2/2\]' "$work/log" &&
    python3 -c 'import json, sys
for line in open(sys.argv[1]):
    for b in json.loads(line)["boxes"]:
        x0, y0, x1, y1 = b["box"]
        assert b["label"] == "face" and 0 <= x0 < x1 <= 612 and len(b["points"]) == 5' "$work/out"
ok $? "a folder as JSON, with progress beside it"
"$build/cnnrun" "$app/detect.lua" "$net" "$work/in/*.jpg" >"$work/out" 2>"$work/log"
[ $? = 0 ] && [ "$(grep -c found "$work/out")" = 2 ]
ok $? "a pattern in quotes"
echo "no picture" >"$work/in/bad.jpg"
"$build/cnnrun" "$app/detect.lua" "$net" "$work/in" >"$work/out" 2>"$work/log"
[ $? = 4 ] && [ "$(grep -c found "$work/out")" = 2 ] && grep -q "bad.jpg" "$work/log"
ok $? "a damaged picture is told, the others are done"
"$build/cnnrun" "$app/detect.lua" "$net" "$work/none.jpg" "$work/in/bad.jpg" "$work/in/fish-bike.jpg" \
    -q >"$work/out" 2>"$work/log"
[ $? = 6 ] && [ "$(grep -c found "$work/out")" = 1 ] && grep -q "none.jpg" "$work/log" &&
    ! grep -q '^\[' "$work/log"
ok $? "so is a missing one; no progress with -q"
rm "$work/in/bad.jpg"
"$build/cnnrun" "$app/detect.lua" "$net" "$work/in" --count --conf .9 --save-crops "$work/crops" -q >"$work/out" 2>"$work/log"
[ $? = 0 ] && grep -q '^  face  *3$' "$work/out" && [ "$(ls "$work/crops")" = "mtcnn_test2-1-face.png
mtcnn_test2-2-face.png
mtcnn_test2-3-face.png" ]
ok $? "counted, and what the boxes hold saved"
"$build/cnnrun" "$app/detect.lua" "$net" "$work/in/mtcnn_test2.jpg" --json --classes 0 --score .9 >"$work/out" 2>"$work/log"
[ $? = 0 ] && [ "$(grep -o '"label":"face"' "$work/out" | wc -l)" = 3 ]
ok $? "a class by its number"
if "$build/cnnrun" plugins | grep -q '^draw-cairo'; then
    "$build/cnnrun" "$app/detect.lua" "$net" "$work/in" -o "$work/drawn" --contact "$work/sheet.png" \
        >"$work/out" 2>"$work/log"
    [ $? = 0 ] && [ -s "$work/drawn/fish-bike.png" ] && [ -s "$work/drawn/mtcnn_test2.png" ] &&
        [ -s "$work/sheet.png" ]
    ok $? "drawn into a folder, and a sheet"
    for ending in jpg bmp ppm tif; do
        "$build/cnnrun" "$app/detect.lua" "$net" "$work/in/fish-bike.jpg" -o "$work/a.$ending" >"$work/out" \
            2>"$work/log" && "$build/cnnrun" "$app/detect.lua" "$net" "$work/a.$ending" >"$work/out" 2>>"$work/log"
        [ $? = 0 ] && grep -q "481 x 323" "$work/out"
        ok $? "a picture written as .$ending is one"
    done
    squeeze=$data/caffe/squeezenet_v1.1
    "$build/cnnrun" "$app/classify.lua" \
        "$squeeze/deploy.prototxt,$squeeze/squeezenet_v1.1_fp16values.caffemodel" "$images/cat.jpg" \
        --labels "$data/labels/synset_words.txt" --mean 104,117,123 --resize 256 --crop 227 \
        -o "$work/cat.png" >"$work/out" 2>"$work/log"
    [ $? = 0 ] && sed -n 2p "$work/out" | grep -q tabby && [ -s "$work/cat.png" ]
    ok $? "a classifier's label drawn"
else
    skip "drawing" "the plugin draw-cairo is not there"
fi
"$build/cnnrun" "$app/detect.lua" "$net" "$work/in/fish-bike.jpg" --output=/nonexistent/x.png \
    >"$work/out" 2>"$work/log"
[ $? != 0 ]
ok $? "a folder that is not there"
echo face >"$work/face"
# refused TEXT WORDS... -- one line that says so, the program's exit code, and nothing is written
refused() {
    text=$1 code=1
    case $text in "no such file") code=6 ;; esac
    shift
    "$build/cnnrun" "$app/detect.lua" "$@" >"$work/out" 2>"$work/log"
    [ $? = $code ] && [ ! -s "$work/out" ] && [ "$(wc -l <"$work/log")" = 1 ] && grep -q "$text" "$work/log"
    ok $? "refused: $text"
}
one=$work/in/fish-bike.jpg
refused "comes first" "$one" "$net"
refused "no such file" "$work/none.onnx" "$one"
refused "there are darknet, yolox" "$net" "$one" --family none
refused "use --family NAME" "$app/../nets/lenet5.lua" "$one"
refused "takes 320x320 only" "$net" "$one" --size 320x640
refused "several pictures need a folder" "$net" "$work/in" -o "$work/a.png"
refused "written as .png" "$net" "$one" -o "$work/a.gif"
refused "no such class; did you mean face" "$net" "$one" --labels "$work/face" --classes fcae
xl=$data/darknet/yolo-fastest/yolo-fastest-1.1-xl
if [ -e "$xl.weights" ]; then
    "$build/cnnrun" detect "$xl.cfg" "$xl.weights" "$images/dog.jpg" --classes Dog,car --threads 1 >"$work/out" 2>"$work/log"
    [ $? = 0 ] && [ "$(grep -c '^  ' "$work/out")" = 2 ] && grep -q '^  dog ' "$work/out"
    ok $? "weights behind the net, and two classes of three"
    "$build/cnnrun" classify "$xl.cfg" "$xl.weights" "$images/dog.jpg" >"$work/out" 2>"$work/log"
    [ $? = 1 ] && grep -q "is a detector (darknet): cnnrun detect" "$work/log"
    ok $? "a detector is no classifier"
else
    skip "weights behind the net" "no $xl.weights"
fi
"$build/cnnrun" "$app/detect.lua" "$app/../nets/lenet5.lua" "$one" >"$work/out" 2>"$work/log"
[ $? = 1 ] && grep -q "it is a classifier: cnnrun classify" "$work/log"
ok $? "a classifier is no detector"
for ending in pt tflite param; do
    touch "$work/net.$ending"
    "$build/cnnrun" detect "$work/net.$ending" "$one" >"$work/out" 2>"$work/log"
    [ $? = 5 ] && grep -q "which is not read: " "$work/log"
    ok $? "how .$ending is exported is told"
done
"$build/cnnrun" "$app/detect.lua" "$net" >"$work/out" 2>"$work/log"
[ $? = 1 ] && grep -q "something is missing: cnnrun detect NET" "$work/log"
ok $? "too few words"
echo "1..$n"
