"""Finding things in pictures: a net's own detector, options, kinds of pictures, errors, what the wheel lacks."""

import sys
import threading
from pathlib import Path

import numpy as np

import cnnrun
from tap import ok, raises

nets, shared = Path(sys.argv[1]), Path(sys.argv[2])
three = nets / "digits" / "three.png"

net = cnnrun.load(Path(__file__).with_name("grid.lua"), weights="random:1")
picture = np.random.default_rng(1).integers(0, 255, (120, 160, 3), np.uint8)
found = net.detect(picture, score=0.001)
ok(len(found) > 0 and all(isinstance(f, cnnrun.Found) for f in found), "a net made up finds something")
ok(all(a.score >= b.score for a, b in zip(found, found[1:])), "the best comes first")
ok(all(f.box[0] >= 0 and f.box[2] > 0 and f.box[0] + f.box[2] <= 160.01 for f in found), "boxes lie in the picture")
ok(len(net.detect(picture, score=0.999999)) == 0, "options are heeded")
ok(net.detect(picture, score=0.001) == found, "again, the same")
ok(net.detector(score=0.001, labels=["x"] * 3)(picture)[0].label == "x", "labels of one's own")
grey = net.detect(picture[:, :, 0], score=0.001)
ok(grey == net.detect(np.ascontiguousarray(picture[:, :, :1]), score=0.001), "H W is H W 1")
wrong = []
detector = net.detector(score=0.001)


def work():
    """A thread: detects and compares."""
    if detector(picture) != found or net.detect(picture, score=0.001) != found:
        wrong.append(1)


threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
ok(not wrong, "threads take turns")
net.set_weight(net.weight_names()[0], net.weight(net.weight_names()[0]) * 0.5)
ok(net.detect(picture, score=0.001) != found, "a changed net finds other things")

raises(TypeError, "an unknown option", net.detect, picture, colour=1)
raises(TypeError, "a picture of floats", net.detect, np.zeros((3, 4, 3), np.float32))
raises(ValueError, "a picture of five channels", net.detect, np.zeros((3, 4, 5), np.uint8))
e = raises(cnnrun.NotFound, "a net that is not there", cnnrun.detector, "none.onnx")
ok(e and e.where == "none.onnx", "the error has C's place")
raises(cnnrun.Error, "a picture that is not there", net.detect, "none.jpg")
e = raises(cnnrun.Error, "no detector", cnnrun.load(nets / "lenet5.lua").detect, three)
ok(e and "lua" not in e.text, "the reason comes without lines of scripts")

# ---- what the wheel lacks ----
Path("film.mp4").write_bytes(b"\0\0\0\x20ftypisom" + bytes(100))
e = raises(cnnrun.Error, "a video", cnnrun.frames, "film.mp4")
ok(e and "source-video" in str(e) and "CNNRUN_PLUGIN_PATH" in str(e), "it says which plugin lacks")
Path("x.webp").write_bytes(b"RIFF\x1a\0\0\0WEBPVP8L" + bytes(100))
e = raises(cnnrun.Error, "a picture in a rare format", lambda: list(cnnrun.frames("x.webp")))
ok(e and "cnnrun-source-images" in str(e), "it says which package has it")

yolox = shared / "onnx/yolox_nano/yolox_nano.onnx"
if yolox.exists():
    dog = shared / "images/dog.jpg"
    find = cnnrun.detector(yolox)
    seen = find(dog)
    ok(sorted(f.label for f in seen) == ["bicycle", "car", "dog"], "a dog, a bicycle and a car")
    ok([f.box for f in find(next(iter(cnnrun.frames(dog))).picture)] == [f.box for f in seen], "by its pixels, too")
    faces = cnnrun.detector(shared / "caffe/mtcnn", smallest=40)(shared / "images/mtcnn_test.jpg")
    ok(len(faces) > 3 and len(faces[0].points) == 5, "three nets of a folder find faces with five points")
else:
    print("# no detector's weights:", yolox)
