#!/usr/bin/env python3
"""Runs Caffe's and Darknet's models through cnnrun and OpenCV's DNN module on the same pictures' input and
prints, for each, the largest absolute difference over the largest absolute value, before the softmax
(TAP). See README.md here."""
import argparse, os, re, subprocess, sys, tempfile

import cv2
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DATA = os.path.join(os.environ.get("CNNRUN_SHARED", os.path.join(ROOT, "..", "shared")), "data")

# definition, weights, picture, mean (BGR), scale, swap to RGB, size
MODELS = {
    "squeezenet_v1.1": ("caffe/squeezenet_v1.1/deploy.prototxt",
                        "caffe/squeezenet_v1.1/squeezenet_v1.1_fp16values.caffemodel",
                        "images/cat.jpg", (104, 117, 123), 1, False, 227),
    "squeezenet_v1.0": ("caffe/squeezenet_v1.0_deepcompression/deploy.prototxt",
                        "caffe/squeezenet_v1.0_deepcompression/squeezenet_v1.0_decompressed.caffemodel",
                        "images/cat.jpg", (104, 117, 123), 1, False, 227),
    "cifar10_quick": ("caffe/cifar10/cifar10_quick.prototxt",
                      "caffe/cifar10/cifar10_quick_iter_5000.caffemodel",
                      "images/horses.jpg", (114, 123, 125), 1, True, 32),
    "cifar10_full": ("caffe/cifar10/cifar10_full.prototxt",
                     "caffe/cifar10/cifar10_full_iter_70000.caffemodel",
                     "images/horses.jpg", (114, 123, 125), 1, True, 32),
    "lenet": ("caffe/lenet/lenet_deploy.prototxt", "caffe/lenet/lenet_iter_10000.caffemodel",
              "images/cat_gray.jpg", (0,), 1 / 256, False, 28),
    "tiny-darknet": ("darknet/tiny-darknet/tiny.cfg", "darknet/tiny-darknet/tiny.weights",
                     "images/dog.jpg", (0, 0, 0), 1 / 255, True, 224),
}


def without_softmax(text, darknet):
    """The definition less its softmax (the last section or layer of that type, and what follows it)."""
    if darknet:
        return re.split(r"(?m)^\[softmax\]", text)[0]
    starts = [m.start() for m in re.finditer(r"(?m)^layers?\s*\{", text)] + [len(text)]
    layers = [text[a:b] for a, b in zip(starts, starts[1:])]
    return text[:starts[0]] + "".join(l for l in layers if not re.search(r'type:\s*"?Softmax', l, re.I))


def judge(cnnrun, model, work):
    """Compares our answers with OpenCV's."""
    definition, weights, picture, mean, scale, swap, size = MODELS[model]
    darknet = definition.endswith(".cfg")
    cut = os.path.join(work, "cut" + os.path.splitext(definition)[1])
    with open(os.path.join(DATA, definition)) as f, open(cut, "w") as out:
        out.write(without_softmax(f.read(), darknet))
    weights, picture = os.path.join(DATA, weights), os.path.join(DATA, picture)
    pixels = cv2.imread(picture, cv2.IMREAD_COLOR if len(mean) == 3 else cv2.IMREAD_GRAYSCALE)
    blob = cv2.dnn.blobFromImage(pixels, scale, (size, size), mean, swapRB=swap)
    np.save(os.path.join(work, "in.npy"), blob)
    net = (cv2.dnn.readNetFromDarknet if darknet else cv2.dnn.readNetFromCaffe)(cut, weights)
    net.setInput(blob)
    want = net.forward()
    ours = os.path.join(work, "net.cnr")
    subprocess.run([cnnrun, "import", cut, weights, "-o", ours], check=True, stderr=subprocess.DEVNULL)
    subprocess.run([cnnrun, "--trust", os.path.join(HERE, "outputs.lua"), ours,
                    os.path.join(work, "out"), os.path.join(work, "in.npy")], check=True)
    got = np.load(os.path.join(work, "out1.npy")).reshape(want.shape)
    return float(np.abs(got.astype("f8") - want).max() / np.abs(want).max()), float(np.abs(want).max())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=sorted(MODELS), help="of: " + " ".join(MODELS))
    parser.add_argument("--cnnrun", default=os.path.join(ROOT, "build", "cnnrun"))
    parser.add_argument("--limit", type=float, default=1e-5)
    args = parser.parse_args()
    failed = 0
    for n, model in enumerate(args.models, 1):
        with tempfile.TemporaryDirectory() as work:
            try:
                worst, largest = judge(args.cnnrun, model, work)
                # Darknet adds batch normalisation's epsilon behind the root, OpenCV before it.
                good = worst <= args.limit * (10 if MODELS[model][0].endswith(".cfg") else 1)
                print("%sok %d - %s: %.2g (largest value %.3g)" %
                      ("" if good else "not ", n, model, worst, largest), flush=True)
            except Exception as e:  # a peer's refusal is a failure to tell of, not a reason to stop
                good = False
                print("not ok %d - %s\n# %s" % (n, model, str(e).replace("\n", "\n# ")), flush=True)
            failed += not good
    print("1..%d" % len(args.models))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
