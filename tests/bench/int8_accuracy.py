#!/usr/bin/env python3
"""What 8 bits cost in accuracy: `cnnrun quantize` with its default options, and ONNX Runtime's static quantiser.

A seed draws the pictures to calibrate with; all others judge. Both tools get the same pictures: ours from files, the other
as our preprocessing made them. A detector is judged by the boxes that it keeps: overlap .5, the same class, a score that
differs by .1 at most."""
import argparse, gzip, json, os, random, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def words():
    """The command's options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", action="append", choices=sorted(NETS), help="repeatable (all)")
    parser.add_argument("--seed", type=int, default=1, help="draws the pictures")
    parser.add_argument("--calibrate", type=int, default=50, help="pictures to calibrate with")
    parser.add_argument("--option", action="append", default=[], help="a word for quantize, as --option=--equalize; repeatable")
    parser.add_argument("--peer", default="ort", choices=["ort", "none"])
    parser.add_argument("--json", action="store_true", help="a line a net")
    parser.add_argument("--data", default=os.path.join(ROOT, "..", "shared", "data"), help="the folder of models and pictures")
    parser.add_argument("--cnnrun", default=os.path.join(ROOT, "build", "cnnrun"))
    args = parser.parse_args()
    args.data, args.net = os.path.abspath(args.data), args.net or list(NETS)
    return args


def ours(args, *command):
    """What cnnrun prints; an error ends the script."""
    done = subprocess.run([args.cnnrun, *command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError("cnnrun %s: %s" % (command[0], done.stderr.strip()[-400:]))
    return done.stdout


# ---- pictures with labels, and nets ----

def imagenet(args, _):
    """Pictures and labels of the ImageNet sample."""
    folder = os.path.join(args.data, "imagenet-sample")
    rows = [line.split() for line in open(os.path.join(folder, "labels.txt")) if line.strip()]
    return [(os.path.join(folder, name), int(label)) for name, label in rows]


def cifar10(args, _):
    """Pictures and labels of CIFAR-10's test part."""
    folder = os.path.join(args.data, "cifar10-jpg", "test")
    return [(os.path.join(folder, name, file), label) for label, name in enumerate(sorted(os.listdir(folder)))
            for file in sorted(os.listdir(os.path.join(folder, name)))]


def mnist(args, work):
    """Pictures and labels of MNIST's test part, written as files."""
    from PIL import Image
    import numpy as np
    parts = []
    for name, skip in (("t10k-images-idx3-ubyte.gz", 16), ("t10k-labels-idx1-ubyte.gz", 8)):
        with gzip.open(os.path.join(args.data, "mnist", name)) as file:
            parts.append(np.frombuffer(file.read()[skip:], "u1"))
    found = []
    for i, (digit, label) in enumerate(zip(parts[0].reshape(-1, 28, 28), parts[1])):
        found.append((os.path.join(work, "%05d.png" % i), int(label)))
        Image.fromarray(digit).save(found[-1][0])
    return found


def caffe(args, folder, net, weights, *more):
    """Files and options of a Caffe net."""
    return [os.path.join(args.data, "caffe", folder, name) for name in (net, weights)] + list(more)


def squeezenet(args, _):
    """Files and options to import SqueezeNet, and its classes if they differ from the data's."""
    return caffe(args, "squeezenet_v1.1", "deploy.prototxt", "squeezenet_v1.1_fp16values.caffemodel", "--mean", "104,117,123",
                 "--channels", "bgr", "--resize", "256", "--crop", "227"), []


def mobilenet(args, _):
    """Files and options to import MobileNet, and the data's class of each of its own."""
    return [os.path.join(args.data, "tensorflow/mobilenet_v1_0.25_224/frozen_graph.pb"), "--mean", "127.5", "--std", "127.5",
            "--crop", "0.875"], [i - 1 for i in range(1001)]


def tiny_darknet(args, _):
    """Files and options to import Tiny Darknet, and the data's class of each of its own."""
    folder = os.path.join(args.data, "darknet", "tiny-darknet")
    names = [line.split()[0].strip("'") for line in open(os.path.join(args.data, "labels", "synset_words.txt"))]
    own = [line.strip() for line in open(os.path.join(folder, "imagenet.labels.list"))][:1000]
    return [os.path.join(folder, "tiny.cfg"), os.path.join(folder, "tiny.weights"), "--resize", "224", "--crop", "224"], \
        [names.index(name) for name in own]


def cifar10_quick(args, _):
    """Files and options to import Caffe's CIFAR-10 net."""
    return caffe(args, "cifar10", "cifar10_quick.prototxt", "cifar10_quick_iter_5000.caffemodel", "--channels", "rgb", "--mean",
                 os.path.join(args.data, "caffe", "cifar10", "mean.binaryproto")), []


def lenet5(args, _):
    """Files and options to import Caffe's LeNet."""
    return caffe(args, "lenet", "lenet_deploy.prototxt", "lenet_iter_10000.caffemodel", "--scale", "0.00390625"), []


def yolox(args, _):
    """Files to import YOLOX-nano."""
    return [os.path.join(args.data, "onnx", "yolox_nano", "yolox_nano.onnx")], []


NETS = {"squeezenet_v1_1": (squeezenet, imagenet), "mobilenet_0.25": (mobilenet, imagenet), "tiny-darknet": (tiny_darknet, imagenet),
        "cifar10_quick": (cifar10_quick, cifar10), "lenet5": (lenet5, mnist), "yolox_nano": (yolox, imagenet)}


def listed(work, name, rows):
    """Writes a list of pictures with labels; returns its source word."""
    path = os.path.join(work, name + ".txt")
    with open(path, "w") as file:
        file.writelines("%s %d\n" % row for row in rows)
    return "images:" + path


# ---- what is right ----

def right(args, work, net, spec, class_map):
    """Share of right answers of a net."""
    more = []
    if class_map:
        path = os.path.join(work, "map.txt")
        with open(path, "w") as file:
            file.writelines("%d\n" % c for c in class_map)
        more = ["--class-map", path]
    told = json.loads(ours(args, "eval", net, "--data", spec, "--json", *more).splitlines()[-1])
    return round(told["top1"] * told["n"])


def prepared(args, work, net, spec, name):
    """Batches of prepared pictures."""
    import numpy as np
    folder = os.path.join(work, name)
    ours(args, os.path.join(ROOT, "tests", "bench", "prepared.lua"), net, spec, folder)
    return [np.load(os.path.join(folder, file)) for file in sorted(os.listdir(folder))]


def by_ort(args, work, net, calibrate, judge, labels, class_map):
    """Pictures that are right by ONNX Runtime: of the float net, and of its own tool's 8 bits."""
    import onnxruntime as ort
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process
    path = [os.path.join(work, name) for name in ("float.onnx", "ready.onnx", "ort8.onnx")]
    ours(args, "export", net, "-o", path[0])
    name = ort.InferenceSession(path[0]).get_inputs()[0].name
    given = prepared(args, work, net, calibrate, "calibrate")

    class Reader(CalibrationDataReader):
        left = [{name: x} for x in reversed(given)]

        def get_next(self):
            """The next batch; None: there are no more."""
            return self.left.pop() if self.left else None

    quant_pre_process(path[0], path[1])
    quantize_static(path[1], path[2], Reader(), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
    counts = []
    pictures = prepared(args, work, net, judge, "judge")
    for file in (path[0], path[2]):
        session, n = ort.InferenceSession(file), 0
        for x, label in zip(pictures, labels):
            answer = int(session.run(None, {name: x})[0].ravel().argmax())
            n += (class_map[answer] if class_map else answer) == label
        counts.append(n)
    return counts


# ---- boxes that are kept ----

def boxes(args, net):
    """Boxes that a detector finds in the pictures."""
    folder = os.path.join(args.data, "images")
    lines = ours(args, "detect", net, *(os.path.join(folder, name) for name in sorted(os.listdir(folder))), "--json").splitlines()
    return [json.loads(line)["boxes"] for line in lines]


def overlap(a, b):
    """Common area of two boxes by the area of both."""
    wide, high = (min(a[i + 2], b[i + 2]) - max(a[i], b[i]) for i in (0, 1))
    both = max(0, wide) * max(0, high)
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def kept(before, after):
    """Boxes of `before` that `after` has too; each of its boxes counts once."""
    n = 0
    for old, new in zip(before, after):
        left = list(new)
        for box in old:
            same = [b for b in left if b["class"] == box["class"] and abs(b["score"] - box["score"]) <= 0.1
                    and overlap(b["box"], box["box"]) >= 0.5]
            if same:
                left.remove(max(same, key=lambda b: overlap(b["box"], box["box"])))
                n += 1
    return n


# ---- a net ----

def measure(args, name, work):
    """Measures one net before and after quantising."""
    words_of, pictures_of = NETS[name]
    imported, class_map = words_of(args, work)
    net, small = os.path.join(work, "net.cnr"), os.path.join(work, "net8.cnr")
    ours(args, "import", *imported, "-o", net)
    rows = pictures_of(args, work)
    random.Random(args.seed).shuffle(rows)
    calibrate, judge = rows[:args.calibrate], rows[args.calibrate:]
    spec = listed(work, "calibrate", calibrate)
    told = json.loads(ours(args, "quantize", net, "--data", spec, "--limit", str(args.calibrate), "-o", small, "--json", "-q",
                           *args.option).splitlines()[-1])
    row = {"net": name, "seed": args.seed, "float_layers": told["float_layers"], "layers": told["layers"],
           "ms": [told["ms_float"], told["ms_quantized"]]}
    if name == "yolox_nano":
        before = boxes(args, net)
        row["boxes"] = sum(map(len, before))
        row["kept"] = kept(before, boxes(args, small))
        return row
    spec_judge = listed(work, "judge", judge)
    row["pictures"] = len(judge)
    row["float"], row["ours"] = (right(args, work, n, spec_judge, class_map) for n in (net, small))
    if args.peer == "ort":
        row["ort_float"], row["ort"] = by_ort(args, work, net, spec, spec_judge, [label for _, label in judge], class_map)
    return row


def table(row):
    """Prints a row."""
    head = "%-16s seed %d, %d of %d layers float, %.3g ms, before %.3g" % (
        row["net"], row["seed"], row["float_layers"], row["layers"], row["ms"][1], row["ms"][0])
    if "kept" in row:
        return "%s: %d of %d boxes kept (%.1f%%)" % (head, row["kept"], row["boxes"], 100 * row["kept"] / max(1, row["boxes"]))
    text = "%s: %d of %d right, before %d (%+.2f points)" % (
        head, row["ours"], row["pictures"], row["float"], 100 * (row["ours"] - row["float"]) / row["pictures"])
    if "ort" in row:
        text += "; ONNX Runtime %d, before %d" % (row["ort"], row["ort_float"])
    return text


def main():
    args, failed = words(), 0
    for name in args.net:
        with tempfile.TemporaryDirectory() as work:
            try:
                row = measure(args, name, work)
            except (RuntimeError, OSError) as e:
                print("%s: %s" % (name, e), file=sys.stderr)
                failed = 1
                continue
        print(json.dumps(row) if args.json else table(row), flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
