#!/usr/bin/env python3
"""cnnrun's OpenCL beside PyTorch's captured CUDA graph: the zoo's nets, exported from here, in one run.

Both from an input in the host's memory to an answer in it; fp32, TF32 off, cudnn.benchmark on; medians.
Joules by the card's own counter (NVML), an image, the idle machine included. Prints a table, or --json.
Before them a product of matrices beside cuBLAS's, and how fast a kernel copies beside torch's copy.
Wants torch with CUDA; --no-torch prints ours alone."""
import argparse, ctypes, json, math, os, struct, subprocess, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
NETS = ["alexnet", "squeezenet_v1_1", "resnet18", "resnet50", "mobilenet_v2", "vgg16", "googlenet"]


def words():
    """The command's options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", action="append", help="a zoo net's name or an ONNX file; repeatable (the seven of the table)")
    parser.add_argument("--batch", action="append", type=int, help="repeatable (1)")
    parser.add_argument("--device", default="opencl:0")
    parser.add_argument("--gemm", type=int, default=4096, help="side of the matrices (4096)")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--json", action="store_true", help="a line a net and batch")
    parser.add_argument("--cnnrun", default=os.path.join(ROOT, "build", "cnnrun"))
    parser.add_argument("--work", default=os.path.join(ROOT, "build", "gpu_peers"), help="exported nets, kept")
    args = parser.parse_args()
    args.net, args.batch = args.net or NETS, args.batch or [1]
    return args


# ---- ONNX, as far as our exporter writes it ----

def fields(data):
    """(number, value) of a protobuf message: integers, bytes, or 4 and 8 raw bytes."""
    at = 0

    def varint():
        """The next whole number of the message."""
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            yield key >> 3, varint()
            continue
        size = varint() if kind == 2 else 8 if kind == 1 else 4
        yield key >> 3, data[at:at + size]
        at += size


def signed(value):
    """A 64-bit number with its sign."""
    return value - (1 << 64) if value >= 1 << 63 else value


def integers(value):
    """A repeated integer, packed or one of several."""
    if isinstance(value, int):
        return [signed(value)]
    return [signed(v) for _, v in fields(b"".join(b"\x08" + one for one in split_varints(value)))]


def split_varints(data):
    """The numbers of a packed field, each as its bytes."""
    begin = 0
    for i, byte in enumerate(data):
        if byte < 128:
            yield bytes(data[begin:i + 1])
            begin = i + 1


def tensor_of(data):
    """Name and NumPy array of an ONNX tensor."""
    import numpy as np
    dims, kind, raw, name, floats, longs = [], 1, b"", "", [], []
    for number, value in fields(data):
        if number == 1:
            dims += integers(value)
        elif number == 2:
            kind = value
        elif number == 4:
            floats.append(np.frombuffer(value, "<f4"))
        elif number == 7:
            longs += integers(value)
        elif number == 8:
            name = bytes(value).decode()
        elif number == 9:
            raw = value
    if len(raw):
        array = np.frombuffer(raw, {1: "<f4", 6: "<i4", 7: "<i8"}[kind])
    else:
        array = np.concatenate(floats) if floats else np.array(longs, "<i8")
    return name, array.reshape(dims).copy()


def attribute_of(data):
    """Name and value of an ONNX attribute."""
    name, value, longs = "", None, []
    for number, field in fields(data):
        if number == 1:
            name = bytes(field).decode()
        elif number == 2:
            value = struct.unpack("<f", field)[0]
        elif number == 3:
            value = signed(field)
        elif number == 4:
            value = bytes(field).decode()
        elif number == 5:
            value = tensor_of(field)[1]
        elif number == 8:
            longs += integers(field)
    return name, value if value is not None else longs


def shape_of(kind):
    """The sizes of a tensor's type; 1 for one that is left open."""
    tensor = dict(fields(kind))[1]
    dims = [v for number, value in fields(tensor) if number == 2 for k, v in fields(value) if k == 1]
    return tuple(int(dict(fields(dim)).get(1, 1)) for dim in dims)


def graph_of(path):
    """Nodes, weights and names of an ONNX file's graph."""
    with open(path, "rb") as file:
        data = memoryview(file.read())
    graph = next(value for number, value in fields(data) if number == 7)
    nodes, weights, inputs, outputs, shape = [], {}, [], [], {}
    for number, value in fields(graph):
        if number == 1:
            node = {"in": [], "out": [], "attrs": {}}
            for k, v in fields(value):
                if k in (1, 2):
                    node["in" if k == 1 else "out"].append(bytes(v).decode())
                elif k == 4:
                    node["op"] = bytes(v).decode()
                elif k == 5:
                    node["attrs"].update([attribute_of(v)])
            nodes.append(node)
        elif number == 5:
            name, array = tensor_of(value)
            weights[name] = array
        elif number in (11, 12):
            told = dict(fields(value))  # 1: its name, 2: its type
            name = bytes(told[1]).decode()
            (inputs if number == 11 else outputs).append(name)
            shape[name] = shape_of(told[2])
    return nodes, weights, [(name, shape[name]) for name in inputs if name not in weights], outputs


# ---- PyTorch ----

def padded(torch, x, pads, value=0.0):
    """x padded at both ends."""
    n = len(pads) // 2
    if all(pads[i] == pads[i + n] for i in range(n)):
        return x, tuple(pads[:n])
    flat = [p for i in reversed(range(n)) for p in (pads[i], pads[i + n])]
    return torch.nn.functional.pad(x, flat, value=value), (0,) * n


def step(torch, node, v):
    """Computes one node by PyTorch."""
    F, a, op = torch.nn.functional, node["attrs"], node["op"]
    x = [v[name] if name else None for name in node["in"]]
    if op == "Conv":
        y, pad = padded(torch, x[0], a.get("pads", [0, 0, 0, 0]))
        return F.conv2d(y, x[1], x[2] if len(x) > 2 else None, tuple(a.get("strides", (1, 1))), pad,
                        tuple(a.get("dilations", (1, 1))), a.get("group", 1))
    if op in ("MaxPool", "AveragePool"):
        pads, size, stride = a.get("pads", [0, 0, 0, 0]), tuple(a["kernel_shape"]), tuple(a.get("strides", (1, 1)))
        ceil = bool(a.get("ceil_mode", 0))
        if op == "MaxPool":
            y, pad = padded(torch, x[0], pads, -math.inf)
            return F.max_pool2d(y, size, stride, pad, ceil_mode=ceil)
        return F.avg_pool2d(x[0], size, stride, tuple(pads[:2]), ceil, bool(a.get("count_include_pad", 0)))
    if op == "Gemm":
        w = x[1] if a.get("transB", 0) else x[1].t()
        return F.linear(x[0], w, x[2] if len(x) > 2 else None)
    if op == "Clip":
        low = a.get("min", x[1] if len(x) > 1 and x[1] is not None else None)
        high = a.get("max", x[2] if len(x) > 2 and x[2] is not None else None)
        return torch.clamp(x[0], *(None if q is None else float(q) for q in (low, high)))
    if op == "LRN":
        return F.local_response_norm(x[0], a["size"], a.get("alpha", 1e-4), a.get("beta", 0.75), a.get("bias", 1.0))
    if op == "BatchNormalization":
        return F.batch_norm(x[0], x[3], x[4], x[1], x[2], eps=a.get("epsilon", 1e-5))
    if op == "Reshape":
        shape = [int(n) for n in x[1].tolist()]
        return x[0].reshape([x[0].shape[i] if n == 0 else n for i, n in enumerate(shape)])
    simple = {"Relu": F.relu, "GlobalAveragePool": lambda t: t.mean((2, 3), keepdim=True), "Sigmoid": torch.sigmoid,
              "Add": torch.add, "Mul": torch.mul, "MatMul": torch.matmul, "Identity": lambda t: t,
              "Dropout": lambda t, *rest: t, "HardSwish": F.hardswish}
    if op in simple:
        return simple[op](*x)
    if op == "Concat":
        return torch.cat(x, a["axis"])
    if op == "Flatten":
        return x[0].flatten(a.get("axis", 1))
    if op == "Softmax":
        return torch.softmax(x[0], a.get("axis", -1))
    raise RuntimeError("no %s here" % op)


def exported(torch, path, batch):
    """What runs a net that our exporter wrote, and its input's shape."""
    nodes, weights, inputs, outputs = graph_of(path)
    first, shape = inputs[0]
    # shapes and bounds stay here: asking the card for a number can't be captured
    held = {name: torch.from_numpy(w) if w.dtype.kind == "i" or w.ndim == 0 else torch.from_numpy(w).cuda()
            for name, w in weights.items()}

    def forward(x):
        """Computes the net by PyTorch."""
        v = dict(held, **{first: x})
        for node in nodes:
            v[node["out"][0]] = node["attrs"]["value"] if node["op"] == "Constant" else step(torch, node, v)
        return v[outputs[0]]

    return forward, (batch,) + shape[1:]


def of_timm(name):
    """timm's net of that name with made-up weights; None: it is not installed, or has none."""
    try:
        import timm
    except ImportError:
        return None
    return timm.create_model(name, pretrained=False) if timm.is_model(name) else None


def given(torch, path):
    """What runs a net on the card, and the input's shape, of any ONNX file. The net is timm's of the file's name, else
    the torchvision net with the shortest name that begins so, both with made-up weights, else what onnx2torch makes of
    the file."""
    import onnx, torchvision
    shape = [d.dim_value or 1 for d in onnx.load(path).graph.input[0].type.tensor_type.shape.dim]
    name = os.path.splitext(os.path.basename(path))[0]
    known = [n for n in torchvision.models.list_models() if not n.startswith("quantized_") and n.startswith(name)]
    net = of_timm(name)
    if net:
        pass
    elif known:
        net = torchvision.models.get_model(min(known, key=len), weights=None,
                                           **({"weights_backbone": None} if name.startswith(("fcn", "lraspp")) else {}))
    else:
        import onnx2torch
        net = onnx2torch.convert(path)
    net = net.eval().cuda()

    def forward(x):
        y = net(x)
        y = next(iter(y.values())) if isinstance(y, dict) else y
        return y[0] if isinstance(y, (list, tuple)) else y

    return forward, tuple(shape)


class Peer:
    """A net as a captured graph, with its input and answer in pinned memory."""

    def __init__(self, torch, forward, shape):
        """forward: from a tensor on the card to another."""
        self.torch = torch
        self.host = torch.rand(shape).pin_memory()
        self.x = self.host.cuda()
        side = torch.cuda.Stream()
        with torch.no_grad(), torch.cuda.stream(side):
            for _ in range(5):
                forward(self.x)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(self.graph):
            self.y = forward(self.x)
        self.answer = torch.empty(self.y.shape).pin_memory()

    def run(self):
        """One run with its transfers."""
        self.x.copy_(self.host, non_blocking=True)
        self.graph.replay()
        self.answer.copy_(self.y, non_blocking=True)
        self.torch.cuda.synchronize()


def median_ms(run, runs):
    for _ in range(10):
        run()
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return 1e3 * sorted(times)[len(times) // 2]


class Counter:
    """The card's millijoules; None where NVML or its counter is not there."""

    def __init__(self):
        """The energy meter of the first card, if there is one."""
        self.card = None
        try:
            self.nvml, card = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
            if self.nvml.nvmlInit_v2() == 0 and self.nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(card)) == 0:
                self.card = card
        except OSError:
            pass

    def joules(self):
        """Joules so far; None: no meter."""
        value = ctypes.c_ulonglong()
        if self.card is None or self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.card, ctypes.byref(value)):
            return None
        return value.value / 1000.0

    def of(self, run, seconds=2.0):
        """Joules of one run, over some seconds."""
        begin, before, times = time.perf_counter(), self.joules(), 0
        while time.perf_counter() - begin < seconds and before is not None:
            run()
            times += 1
        return None if not times else (self.joules() - before) / times


# ---- ours, and the table ----

def ours(args, *command):
    """What cnnrun prints; an error ends the script."""
    done = subprocess.run([args.cnnrun, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError("cnnrun %s: %s" % (command[0], done.stderr.strip()[-300:]))
    return done.stdout


def measure(args, torch, counter, name, batch):
    """Measures a net by cnnrun and PyTorch."""
    file = name.endswith(".onnx")
    source = name if file else os.path.join(ROOT, "scripts", "nets", name + ".lua")
    weights = [] if file else ["--weights", "random:1"]
    lines = ours(args, "bench", source, *weights, "--device", args.device, "--json", "--batch", str(batch), "--runs",
                 str(args.runs), "--warm", "10")
    bench = json.loads(lines.splitlines()[0])
    row = {"net": os.path.basename(name), "batch": batch, "ms": bench["ms_median"], "enqueue_ms": bench.get("enqueue_ms"),
           "joules": bench.get("joules")}
    if not torch:
        return row
    onnx = source if file else os.path.join(args.work, "%s-%d.onnx" % (name, batch))
    os.makedirs(args.work, exist_ok=True)
    if not os.path.exists(onnx):
        ours(args, "export", source, *weights, "-o", onnx, "--symbol", "batch=%d" % batch)
    try:
        peer = Peer(torch, *(given(torch, onnx) if file else exported(torch, onnx, batch)))
    except Exception as error:  # ours is told, and why there is no peer
        row["left_out"] = str(error)[:200]
        return row
    row["torch_ms"] = median_ms(peer.run, args.runs)
    row["torch_joules"] = counter.of(peer.run)
    row["ratio"] = row["ms"] / row["torch_ms"]
    return row


def torch_ms(torch, work, runs=20):
    """Of one call among many that are queued at once."""
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(runs):
        work()
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - begin) / runs


def pieces(args, torch):
    """Rows of (what, ours, torch's, unit): a product of matrices, and copies within the card's memory."""
    size = args.gemm
    # by the step's own time: the whole counts moving three matrices between host and card, too
    product = ["bench", os.path.join(ROOT, "scripts", "bench", "product.lua"), "--weights", "random:1", "--device",
               args.device, "--no-energy", "--runs", "10", "--profile", "--json"]
    lines = ours(args, *product, *(w for s in "mnk" for w in ("--symbol", "%s=%d" % (s, size))))
    steps = [json.loads(line) for line in lines.splitlines() if '"step"' in line]
    gemm, copy = max(step["gflops"] for step in steps if step["op"] == "gemm"), None
    for line in ours(args, "devices", "--measure", "--device", args.device, "--json").splitlines():
        copy = json.loads(line).get("copy_gbs")
    theirs = [None, None]
    if torch:
        a, b = torch.rand(size, size, device="cuda"), torch.rand(size, size, device="cuda")
        out, x = torch.empty_like(a), torch.rand(1 << 25, device="cuda")
        y = torch.empty_like(x)
        theirs = [2e-6 * size ** 3 / torch_ms(torch, lambda: torch.mm(a, b, out=out)),
                  2e-6 * x.numel() * 4 / torch_ms(torch, lambda: y.copy_(x))]
    return [("sgemm %d" % size, gemm, theirs[0], "GFLOP/s"), ("copy 128 MiB", copy, theirs[1], "GB/s")]


def main():
    args, torch = words(), None
    if not args.no_torch:
        try:
            import torch
        except ImportError:
            print("# no torch here: ours alone", file=sys.stderr)
        if torch and not torch.cuda.is_available():
            print("# torch finds no CUDA: ours alone", file=sys.stderr)
            torch = None
    if torch:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
    counter, form = Counter(), "%-18s %5s %9s %9s %9s %7s %9s %9s"
    for what, own, theirs, unit in pieces(args, torch):
        row = {"what": what, "ours": own, "torch": theirs, "unit": unit}
        share = "" if not theirs or own is None else ", %.1f%% of torch's %.0f" % (100 * own / theirs, theirs)
        print(json.dumps(row) if args.json else
              "%-14s %s %s%s" % (what, "-" if own is None else "%.0f" % own, unit, share), flush=True)
    if not args.json:
        print(form % ("net", "batch", "ours ms", "queued ms", "torch ms", "ratio", "ours J", "torch J"))
    for batch in args.batch:
        ratios = []
        for name in args.net:
            try:
                row = measure(args, torch, counter, name, batch)
            except Exception as error:
                print("# %s, batch %d: %s" % (name, batch, str(error)[:300]), flush=True)
                continue
            if row.get("ratio"):
                ratios.append(row["ratio"])
            show = lambda key, digits: "-" if row.get(key) is None else "%.*f" % (digits, row[key])
            print(json.dumps(row) if args.json else
                  form % (row["net"], batch, show("ms", 3), show("enqueue_ms", 3), show("torch_ms", 3), show("ratio", 2),
                          show("joules", 4), show("torch_joules", 4)), flush=True)
            if not args.json and row.get("left_out"):
                print("# %s has no peer: %s" % (row["net"], row["left_out"]), flush=True)
        if ratios and not args.json:
            print("geometric mean, batch %d: %.2f" % (batch, math.exp(sum(map(math.log, ratios)) / len(ratios))))


if __name__ == "__main__":
    main()
