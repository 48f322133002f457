#!/usr/bin/env python3
"""Runs models through cnnrun and ONNX Runtime on the same input and prints, for each, the largest
absolute difference over the largest absolute value, before any softmax (TAP). See README.md here."""
import argparse, os, subprocess, sys, tempfile

import numpy as np
import onnx
import onnxruntime as ort

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ort.set_default_logger_severity(3)
TYPES = {"tensor(float)": "f4", "tensor(int64)": "i8", "tensor(int32)": "i4", "tensor(uint8)": "u1",
         "tensor(double)": "f8"}
MOVES = {"Reshape", "Flatten", "Identity", "Squeeze", "Unsqueeze", "Dropout"}


def inputs_for(session, sizes, high, seed=7):
    """Noise from 0 to `high`. Sizes that the net leaves open: 320 for a picture's, else 1."""
    random = np.random.RandomState(seed)
    made = {}
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) and d > 0 else sizes.get(d, 320 if k > 1 else 1)
                 for k, d in enumerate(i.shape)]
        kind = TYPES[i.type]
        made[i.name] = (random.rand(*shape) * high if kind[0] == "f" else
                        random.randint(0, 255, shape)).astype(kind)
    return made


def peer_reads(net):
    """False for what is no ONNX, and for early ONNX without an operator set, which is exported too."""
    return net.endswith(".onnx") and len(onnx.load(net, load_external_data=False).opset_import) > 0


def before_softmax(path, out):
    """The model with each output that is a softmax's replaced by what goes into that softmax; returns
    the axes of those softmaxes, None for other outputs."""
    model = onnx.load(path)
    makers = {name: node for node in model.graph.node for name in node.output}
    sets = [o.version for o in model.opset_import if o.domain in ("", "ai.onnx")]
    axes = []
    for output in model.graph.output:
        node = makers.get(output.name)
        while node is not None and node.op_type in MOVES:
            node = makers.get(node.input[0])
        if node is None or node.op_type not in ("Softmax", "LogSoftmax"):
            axes.append(None)
            continue
        given = [a.i for a in node.attribute if a.name == "axis"]
        axes.append((given[0], False) if given else (-1, False) if max(sets) >= 13 else (1, True))
        if max(sets) < 13:
            axes[-1] = (axes[-1][0], True)
        output.CopyFrom(onnx.helper.make_tensor_value_info(node.input[0], output.type.tensor_type.elem_type,
                                                          None))
    onnx.save(model, out)
    return axes


def centred(x, axis):
    """Less the mean along a softmax's axis: what of its input is left when it is undone by a logarithm."""
    at, flat = axis
    if flat:  # before operator set 13 all axes from `at` on are one
        x = x.reshape(int(np.prod(x.shape[:at % x.ndim])), -1)
        at = 1
    return x - x.mean(axis=at, keepdims=True)


def run_ours(cnnrun, net, given, work):
    """Our outputs."""
    paths = []
    for k, value in enumerate(given.values()):
        paths.append(os.path.join(work, "in%d.npy" % k))
        np.save(paths[-1], value)
    prefix = os.path.join(work, "out")
    subprocess.run([cnnrun, "--trust", os.path.join(HERE, "outputs.lua"), net, prefix] + paths,
                   check=True, stdout=subprocess.DEVNULL)
    k = 1
    while os.path.exists("%s%d.npy" % (prefix, k)):
        yield np.load("%s%d.npy" % (prefix, k))
        k += 1


def difference(a, b):
    """The largest difference, as a part of the largest value."""
    if a.shape != b.shape:
        raise ValueError("an output is %s, ONNX Runtime gives %s" % (a.shape, b.shape))
    if not b.size:
        return 0.0
    worst = np.abs(a.astype("f8") - b).max() / (np.abs(b).max() or 1)
    return float(worst) if np.isfinite(worst) else float("inf")


def judge(args, net, work):
    """The worst difference of a net's outputs, and the largest value of ONNX Runtime's."""
    sizes = {k: int(v) for k, v in (s.split("=") for s in args.size)}
    flags = ["--weights", args.weights] if args.weights else []
    theirs, ours, read = os.path.join(work, "net.onnx"), os.path.join(work, "net.cnr"), peer_reads(net)
    if read:
        axes, ours = before_softmax(net, theirs), theirs
    else:
        for verb, file in ("export", theirs), ("convert", ours):
            subprocess.run([args.cnnrun, verb, net, "-o", file] + flags, check=True,
                           stdout=subprocess.DEVNULL, stderr=None if args.verbose else subprocess.DEVNULL)
        axes = before_softmax(theirs, theirs)
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 2
    session = ort.InferenceSession(theirs, options, providers=["CPUExecutionProvider"])
    given = inputs_for(session, sizes, 255 if read else 1)
    want = session.run(None, given)
    got = list(run_ours(args.cnnrun, ours, given, work))
    if len(got) != len(want):
        raise ValueError("%d outputs, ONNX Runtime gives %d" % (len(got), len(want)))
    worst = largest = 0.0
    for a, b, axis in zip(got, want, axes):
        largest = max(largest, float(np.abs(b).max()) if b.size else 0)
        if axis and not read:  # our net has its softmax still
            if not (a > 0).all():
                raise ValueError("the softmax is saturated")
            a, b = centred(np.log(a.astype("f8")), axis), centred(b.astype("f8"), axis)
            a = a.reshape(b.shape)
        worst = max(worst, difference(a, b))
    return worst, largest


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nets", nargs="+", help="ONNX models, or nets that are exported first")
    parser.add_argument("--cnnrun", default=os.path.join(ROOT, "build", "cnnrun"))
    parser.add_argument("--limit", type=float, default=1e-4)
    parser.add_argument("--size", action="append", default=[], help="NAME=VALUE of a dimension")
    parser.add_argument("--weights", help="for nets without: random:SEED")
    parser.add_argument("--verbose", action="store_true", help="what cnnrun says, too")
    args = parser.parse_args()
    failed = 0
    for n, net in enumerate(args.nets, 1):
        with tempfile.TemporaryDirectory() as work:
            try:
                worst, largest = judge(args, net, work)
                good = worst <= args.limit and largest > 0
                print("%sok %d - %s: %.2g (largest value %.3g)" %
                      ("" if good else "not ", n, net, worst, largest), flush=True)
            except Exception as e:  # a peer's refusal is a failure to tell of, not a reason to stop
                good = False
                print("not ok %d - %s\n# %s" % (n, net, str(e).replace("\n", "\n# ")), flush=True)
            failed += not good
    print("1..%d" % len(args.nets))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
