#!/usr/bin/env python3
"""Pruned nets beside MNN's sparse convolutions: the same weights, the same zeros, in turns.

    python3 tests/bench/sparse_mnn.py [--net NAME] [--threads T] [--seconds S] [--json]

wants MNN, numpy and onnx (tests/bench/requirements.txt) and build/cnnrun. Weights are random; at 75 and 90% the
smallest of each convolution and dense layer become 0 (not of depthwise ones and of the first), one by one or in blocks of 4 output
channels. MNN converts with --detectSparseSpeedUp, blocks with --compressionParamsFile (SIMD_OC). Ours:
sparse (convert --encode sparse-csr), the same file with times on record (cnnrun tune), and dense. Least ms of the runs.
"""
import argparse, json, os, struct, subprocess, sys, time

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("CNNRUN_BUILD", os.path.join(ROOT, "build"))
CASES = [("dense", 0, 1), ("75%", 0.75, 1), ("90%", 0.9, 1), ("75% in blocks", 0.75, 4), ("90% in blocks", 0.9, 4)]


def call(*words):
    """What a command prints; an error ends the script."""
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: {done.stderr or done.stdout}")
    return done.stdout


def cnnrun(*words):
    """What cnnrun prints with these words."""
    return call(os.path.join(BUILD, "cnnrun"), *words)


def prune(weight, share, block):
    """The smallest become 0: of each number, or of the sum over `block` rows."""
    flat = weight.reshape(weight.shape[0], -1)
    if flat.shape[0] % block:
        return weight, False
    size = np.abs(flat).reshape(-1, block, flat.shape[1]).sum(1)
    bound = np.quantile(size, share)
    keep = np.repeat(size > bound, block, 0)
    return (flat * keep).reshape(weight.shape).astype("f4"), True


def pruned_model(source, target, share, block):
    """Writes it; names of the layers that were pruned."""
    import onnx
    from onnx import numpy_helper
    model = onnx.load(source)
    weights = {w.name: w for w in model.graph.initializer}
    layers, first = [], True
    for node in model.graph.node:
        if node.op_type not in ("Conv", "Gemm") or node.input[1] not in weights:
            continue
        if node.op_type == "Gemm" and not any(a.name == "transB" and a.i for a in node.attribute):
            continue
        group = next((a.i for a in node.attribute if a.name == "group"), 1)
        was_first, first = first, False
        if group > 1 or was_first or not share:
            continue
        proto = weights[node.input[1]]
        weight, done = prune(numpy_helper.to_array(proto), share, block)
        if done:
            proto.CopyFrom(numpy_helper.from_array(weight, proto.name))
            layers.append((node.name, node.output[0], proto.name))
    onnx.save(model, target)
    return layers


# ---- MNN ----

def field(number, data):
    """A field of a protobuf message."""
    return bytes([number << 3 | 2]) + varint(len(data)) + data


def varint(n):
    """A whole number in protobuf's form."""
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def blocks_file(path, layers, share):
    """What MNN's compression pipeline says of layers whose zeros stand in blocks of 4 output channels."""
    params = b"".join(field(1, w.encode()) for _, _, w in layers)
    params += b"".join(b"\x15" + struct.pack("<f", share) for _ in layers)
    params += b"".join(field(3, o.encode()) for _, o, _ in layers)
    params += b"".join(b"\x20\x04" for _ in layers)
    algorithm = b"\x08\x01" + field(3, b"\x08\x01" + field(3, params))
    with open(path, "wb") as out:
        out.write(field(1, b"0.0.0") + field(2, algorithm))


CONVERT = "import sys, _tools; _tools.mnnconvert(['mnnconvert'] + sys.argv[1:])"


class Mnn:
    def __init__(self, model, layers, share, block, value, threads):
        """Converts the model for MNN with sparse weights."""
        import MNN
        path = model[:-5] + ".mnn"
        words = ["-f", "ONNX", "--modelFile", model, "--MNNModel", path, "--bizCode", "cnnrun"]
        if share:
            words += ["--detectSparseSpeedUp"]
        if block > 1:
            blocks_file(model[:-5] + ".bin", layers, share)
            words += ["--compressionParamsFile", model[:-5] + ".bin"]
        self.said = call(sys.executable, "-c", CONVERT, *words)
        self.net = MNN.Interpreter(path)
        self.session = self.net.createSession({"numThread": threads, "precision": "high", "backend": "CPU"})
        self.input = self.net.getSessionInput(self.session)
        self.net.resizeTensor(self.input, value.shape)
        self.net.resizeSession(self.session)
        self.input.copyFrom(MNN.Tensor(value.shape, MNN.Halide_Type_Float, value, MNN.Tensor_DimensionType_Caffe))

    def run(self):
        """Runs the net once; returns the milliseconds it took."""
        begin = time.perf_counter()
        self.net.runSession(self.session)
        return (time.perf_counter() - begin) * 1e3


# ---- ours ----

class Ours:
    """`cnnrun bench` runs some times and tells the least."""
    def __init__(self, model, how, threads):
        """The net in cnnrun."""
        self.words = ["bench", model, "--threads", str(threads), "--device", "cpu", "--json", *how]

    def run(self, runs):
        """Milliseconds of a run."""
        rows = [json.loads(line) for line in cnnrun(*self.words, "--runs", str(runs)).splitlines()]
        return next(r["ms_min"] for r in rows if "ms_median" in r)


def made(net, onnx_file, share):
    """Our own net with the weights of that file, and the same encoded, beside it."""
    import onnx
    from onnx import numpy_helper
    stem = onnx_file[:-5]
    dense, sparse, weights = stem + ".cnr", stem + "-sparse.cnr", stem + ".npz"
    named = [w for w in onnx.load(onnx_file).graph.initializer if not w.name.startswith("export.")]
    np.savez(weights, **{w.name: numpy_helper.to_array(w) for w in named})
    cnnrun("convert", os.path.join(ROOT, "scripts/nets", net + ".lua"), "--weights", weights, "-o", dense)
    os.remove(weights)
    if share:
        cnnrun("convert", dense, "-o", sparse, "--encode", "sparse-csr")


def measure(net, args, folder):
    """Measures one net in all forms."""
    base = os.path.join(folder, net + ".onnx")
    if not os.path.exists(base):
        cnnrun("export", os.path.join(ROOT, "scripts/nets", net + ".lua"), "--weights", "random:1", "-o", base)
    import onnx
    shape = [d.dim_value or 1 for d in onnx.load(base).graph.input[0].type.tensor_type.shape.dim]
    value = np.random.default_rng(0).standard_normal(shape).astype("f4")
    for name, share, block in CASES:
        file = os.path.join(folder, f"{net}-{int(share * 100)}-{block}.onnx")
        layers = pruned_model(base, file, share, block)
        if args.prepare or not os.path.exists(file[:-5] + ".cnr"):
            made(net, file, share)
        dense, sparse = file[:-5] + ".cnr", file[:-5] + ("-sparse.cnr" if share else ".cnr")
        record = file[:-5] + f"-record{args.threads}"
        ours = {"dense": Ours(dense, [], args.threads), "sparse": Ours(sparse, [], args.threads)}
        if share and args.tune:
            if args.prepare or not os.path.exists(record):
                cnnrun("tune", sparse, "--cache", record, "--threads", str(args.threads), "--device", "cpu")
            ours["tuned"] = Ours(sparse, ["--cache", record], args.threads)
        if args.prepare:
            continue
        mnn = Mnn(file, layers, share, block, value, args.threads)
        times = {k: [] for k in [*ours, "mnn"]}
        for _ in range(3):
            mnn.run()
        end = time.perf_counter() + args.seconds
        while not times["mnn"] or time.perf_counter() < end:
            for key, one in ours.items():
                times[key].append(one.run(args.runs))
            for _ in range(args.runs):
                times["mnn"].append(mnn.run())
        row = {"net": net, "zeros": share, "block": block, "threads": args.threads,
               **{f"ms_{k}": round(min(v), 3) for k, v in times.items()}}
        best = min(v for k, v in row.items() if k in ("ms_sparse", "ms_tuned"))
        row["mnn_over_ours"] = round(row["ms_mnn"] / best, 2)
        yield name, row


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--net", action="append", help="mobilenet_v1, squeezenet_v1_1, resnet50; repeatable")
    words.add_argument("--threads", type=int, default=1)
    words.add_argument("--seconds", type=float, default=3, help="for each case")
    words.add_argument("--runs", type=int, default=5, help="of each side a turn")
    words.add_argument("--tune", action="store_true", help="measure candidates first, and go by them")
    words.add_argument("--prepare", action="store_true", help="make the files and records, time nothing")
    words.add_argument("--folder", default=os.path.join(BUILD, "sparse-mnn"))
    words.add_argument("--json", action="store_true")
    args = words.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    for net in args.net or ["mobilenet_v1", "squeezenet_v1_1", "resnet50"]:
        for name, row in measure(net, args, args.folder):
            if args.json:
                print(json.dumps(row), flush=True)
                continue
            times = "  ".join(f"{k[3:]} {v:8.3f}" for k, v in row.items() if k.startswith("ms_"))
            print(f"{net:16} {name:14} ms  {times}   MNN over ours {row['mnn_over_ours']:.2f}", flush=True)


if __name__ == "__main__":
    main()
