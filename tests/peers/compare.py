#!/usr/bin/env python3
"""Runs models through cnnrun and ONNX Runtime on the same input and prints, for each, the largest
absolute difference over the largest absolute value (TAP). See README.md here."""
import argparse, os, subprocess, sys, tempfile

import numpy as np
import onnxruntime as ort

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ort.set_default_logger_severity(3)
TYPES = {"tensor(float)": "f4", "tensor(int64)": "i8", "tensor(int32)": "i4", "tensor(uint8)": "u1",
         "tensor(double)": "f8"}


def inputs_for(session, sizes, seed):
    """Noise in a picture's range, 0 to 255."""
    random = np.random.RandomState(seed)
    made = {}
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) and d > 0 else sizes.get(d, 1) for d in i.shape]
        kind = TYPES[i.type]
        made[i.name] = (random.rand(*shape) * 255 if kind[0] == "f" else
                        random.randint(0, 255, shape)).astype(kind)
    return made


def peer_reads(net):
    """False for what is no ONNX, and for early ONNX without an operator set, which is exported too."""
    if not net.endswith(".onnx"):
        return False
    try:
        ort.InferenceSession(net, providers=["CPUExecutionProvider"])
        return True
    except ort.capi.onnxruntime_pybind11_state.Fail as e:
        if "Missing opset" in str(e):
            return False
        raise


def compare(cnnrun, ours, theirs, sizes, work, seed=7):
    """ours: a net for cnnrun; theirs: an ONNX file. Returns the worst relative difference."""
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 2
    session = ort.InferenceSession(theirs, options, providers=["CPUExecutionProvider"])
    given = inputs_for(session, sizes, seed)
    paths = []
    for k, (name, value) in enumerate(given.items()):
        paths.append(os.path.join(work, "in%d.npy" % k))
        np.save(paths[-1], value)
    want = session.run(None, given)
    prefix = os.path.join(work, "out")
    subprocess.run([cnnrun, "--trust", os.path.join(HERE, "outputs.lua"), ours, prefix] + paths,
                   check=True, stdout=subprocess.DEVNULL)
    worst = 0.0
    for k, b in enumerate(want):
        a = np.load("%s%d.npy" % (prefix, k + 1))
        if a.shape != b.shape:
            raise ValueError("output %d is %s, ONNX Runtime gives %s" % (k, a.shape, b.shape))
        scale = np.abs(b).max() if b.size else 0
        worst = max(worst, float(np.abs(a.astype("f8") - b).max() / (scale or 1)) if b.size else 0)
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nets", nargs="+", help="ONNX models, or nets that are exported first")
    parser.add_argument("--cnnrun", default=os.path.join(ROOT, "build", "cnnrun"))
    parser.add_argument("--limit", type=float, default=1e-4)
    parser.add_argument("--size", action="append", default=[], help="NAME=VALUE of a dimension")
    parser.add_argument("--weights", help="for nets without: random:SEED")
    args = parser.parse_args()
    sizes = {k: int(v) for k, v in (s.split("=") for s in args.size)}
    flags = ["--weights", args.weights] if args.weights else []
    failed = 0
    for n, net in enumerate(args.nets, 1):
        with tempfile.TemporaryDirectory() as work:
            try:
                theirs, ours = net, net
                if not peer_reads(net):
                    theirs, ours = os.path.join(work, "net.onnx"), os.path.join(work, "net.cnr")
                    subprocess.run([args.cnnrun, "export", net, "-o", theirs] + flags, check=True)
                    subprocess.run([args.cnnrun, "convert", net, "-o", ours] + flags, check=True,
                                   stdout=subprocess.DEVNULL)
                worst = compare(args.cnnrun, ours, theirs, sizes, work)
                good = worst <= args.limit
                print("%sok %d - %s: %.2g" % ("" if good else "not ", n, net, worst), flush=True)
            except Exception as e:  # a peer's refusal is a failure to tell of, not a reason to stop
                good = False
                print("not ok %d - %s\n# %s" % (n, net, str(e).replace("\n", "\n# ")), flush=True)
            failed += not good
    print("1..%d" % len(args.nets))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
