#!/usr/bin/env python3
"""Random ONNX nets through cnnrun and ONNX Runtime (TAP, a line a net). Each net is run at several sizes of its
inputs: on the processor at every instruction set with one to four threads, on other devices, twice with a cache,
with bounds of memory, with weights as fp16 and bf16, and with sparse weights. A refusal is counted and told;
an answer that is another is a failure. See README.md here."""
import argparse, collections, json, os, pickle, re, shutil, subprocess, sys, tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper as nh

import random_blocks
import random_onnx

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TYPES = {"f32": "f4", "f64": "f8", "f16": "f2", "i8": "i1", "u8": "u1", "i16": "i2", "u16": "u2", "i32": "i4",
         "u32": "u4", "i64": "i8", "u64": "u8", "bool": "?"}
NAMES = {np.dtype(v): k for k, v in TYPES.items()}

class Refused(Exception):
    pass


class Server:
    """serve.c in a process of its own; begun anew when it has died."""

    def __init__(self, build, isa=None):
        """Our library in a process of its own, on one instruction set."""
        self.words = [os.path.join(build, "tests", "peers", "serve"), os.path.join(build, "plugins")] + ([isa] if isa else [])
        self.process = None

    def ask(self, line, data=()):
        """Sends a line and data; returns the answer."""
        if not self.process:
            self.process = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            self.process.stdin.write(line.encode() + b"\n")
            for part in data:
                self.process.stdin.write(part)
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        answer = self.process.stdout.readline().decode(errors="replace").rstrip("\n").split("\t")
        if answer[0] not in ("ok", "error"):
            code = self.process.wait()
            self.process = None
            raise ValueError("the program ended: %d" % code)
        if answer[0] == "error":
            raise Refused(answer[1])
        return answer[1:]

    def load(self, net, device="cpu", threads=1, cache="-", memory=0, limit=0, weights="-", arithmetic="-", no_rewrite="-"):
        """Loads a net."""
        self.ask("\t".join(str(w) for w in ("load", net, device, threads, cache, memory, limit, weights, arithmetic, no_rewrite)))

    def run(self, arrays):
        """Runs arrays; returns the outputs."""
        data = []
        for a in arrays:
            a = np.require(a, requirements="C")
            words = [NAMES[a.dtype], a.ndim] + list(a.shape) + [a.nbytes]
            data += ["\t".join(str(w) for w in words).encode() + b"\n", a.tobytes()]
        outs = []
        for _ in range(int(self.ask("run\t%d" % len(arrays), data)[0])):
            w = self.process.stdout.readline().decode().rstrip("\n").split("\t")
            shape = [int(d) for d in w[2:-1]]
            outs.append(np.frombuffer(self.process.stdout.read(int(w[-1])), TYPES[w[0]]).reshape(shape))
        return outs


def peer(model, feeds):
    """Outputs of ONNX Runtime."""
    session = ort.InferenceSession(model.SerializeToString(), random_onnx.options(), providers=["CPUExecutionProvider"])
    return [session.run(None, f) for f in feeds]


def optimise(model, path):
    """Writes the net as ONNX Runtime's optimiser leaves it, with fused nodes of its own domain."""
    options = random_onnx.options()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = path
    ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def stirred(model, feeds, r, of_weights, of_inputs):
    """The same net with weights and inputs that are a little others: what rounding may do to its answers."""
    other = onnx.ModelProto()
    other.CopyFrom(model)

    def stir(a, part):
        """The array, changed by a small part."""
        return (a * (1 + part * r.choice([-1, 1], a.shape))).astype(a.dtype) if a.dtype.kind == "f" else a

    exact = {i for n in model.graph.node if n.op_type in ("Resize", "Pow", "QuantizeLinear", "DequantizeLinear", "QLinearConv",
                                                          "QLinearMatMul") for i in n.input[1:]}
    for w in other.graph.initializer:
        if w.name in exact:
            continue
        w.CopyFrom(nh.from_array(stir(nh.to_array(w), of_weights), w.name))
    return other, [{k: stir(v, of_inputs) for k, v in f.items()} for f in feeds]


def apart(a, b):
    """The largest difference of two arrays where both are numbers; of integers, how many differ."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return np.inf
    if a.dtype.kind != "f":
        return float((a != b).sum())
    both = np.isfinite(a) & np.isfinite(b)
    return float(np.abs(a[both].astype("f8") - b[both]).max(initial=0))


def fault(got, want, slack, part, spreads=False):
    """What is wrong with an output; None: nothing. spreads: there may be more NaN than wanted."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return "%s %s, want %s %s" % (got.dtype, got.shape, want.dtype, want.shape)
    if want.dtype.kind != "f":
        if spreads:
            return None  # that was made of NaN
        n = int((got != want).sum())
        few = want.size * part if part > 1e-3 else 0  # steps that weights rounded to 16 bits fall over
        return "%d of %d differ" % (n, want.size) if n > few and not slack else None
    if spreads:
        want = np.where(np.isnan(got), got, want)
    where = np.isnan(got) != np.isnan(want)
    if where.any():
        return "NaN at %d places that differ of %d: %s" % (where.sum(), want.size, np.argwhere(where)[:3].tolist())
    where = (np.isinf(got) | np.isinf(want)) & ~np.isnan(want) & (got != want)
    if where.any():
        return "infinite at %d places that differ of %d" % (where.sum(), want.size)
    scale = float(np.abs(want[np.isfinite(want)]).max(initial=0))
    worst = apart(got, want)
    return "by %.3g, largest %.3g, rounding makes %.3g" % (worst, scale, slack) if worst > part * scale + 40 * slack + 1e-6 else None


def ways(args, seed, work, has_weights):
    """(name, server, options of load, how far weights may be rounded), of the net."""
    cache = os.path.join(work, "cache%d" % seed)
    for i, isa in enumerate(args.isa):
        for t in (1, 2, 3, 5):
            yield "%s/%d" % (isa, t), isa, {"threads": t}, 0
    isa = args.isa[seed % len(args.isa)]
    for name in "cache", "cache again":
        yield name, isa, {"cache": cache}, 0
    yield "memory", isa, {"memory": [1, 300, 2000, 20000][seed % 4]}, 0
    yield "memory-limit", isa, {"limit": [2000, 20000, 200000][seed % 3]}, 0
    yield "fp16", isa, {"weights": "fp16"}, 2.0 ** -11
    yield "bf16", isa, {"weights": "bf16"}, 2.0 ** -8
    yield "arithmetic fp16", isa, {"arithmetic": "fp16"}, 2.0 ** -11
    yield "arithmetic bf16", isa, {"arithmetic": "bf16"}, 2.0 ** -8
    r = np.random.RandomState(seed)
    yield "no rewrites", isa, {"no_rewrite": ",".join(w for w in args.rewrites if r.rand() < 0.5) or "-"}, 0
    yield "native file", isa, {"native": []}, 0
    if has_weights:
        yield "sparse", isa, {"native": ["--layers", "*", "--encode", "sparse-csr:keep=1,values=f32"]}, 0
        yield "sparse blocks", isa, {"native": ["--layers", "*", "--encode", "sparse-csr:keep=1,values=f32,block=4"]}, 0
    for d in args.device:
        yield d, "device", {"device": d, "threads": 1, "cache": os.path.join(work, "programs")}, 0
        yield d + " memory", "device", {"device": d, "threads": 1, "cache": os.path.join(work, "programs"), "memory": 3000}, 0


def is_undefined(model):
    """Whether ONNX leaves open what some node makes of NaN, or of a tap of weight 0 beside it, or ONNX Runtime does
    other than its own lanes, NumPy and ONNX's evaluator (plugins/README.md has our rules)."""
    for n in model.graph.node:
        attrs = {a.name: onnx.helper.get_attribute_value(a) for a in n.attribute}
        if n.op_type in ("QuantizeLinear", "DynamicQuantizeLinear", "GridSample", "LRN", "TopK", "Sign", "MaxPool",
                         "GlobalMaxPool", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceLogSumExp", "GRU", "LSTM", "RNN",
                         "Hardmax"):
            return True
        if n.op_type == "Cast" and attrs["to"] not in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE):
            return True
        if n.op_type == "Clip" and sum(1 for i in n.input if i) + len(n.attribute) < 3:
            return True  # a limit that is left out is the largest number there
        if n.op_type in ("Resize", "Upsample") and attrs.get("mode", b"nearest") != b"nearest":
            return True
    picks = {"ArgMax", "ArgMin", "Hardmax", "Where", "IsNaN", "IsInf", "Less", "Greater", "LessOrEqual", "GreaterOrEqual",
             "Equal"}
    return may_spread(model) and any(n.op_type in picks for n in model.graph.node)


def may_spread(model):
    """Whether a convolution may be Winograd's, which makes more NaN of one (CNR_KERNEL_SPREADS_NAN)."""
    weights = {w.name: list(w.dims) for w in model.graph.initializer}
    return any(n.op_type == "Conv" and weights.get(n.input[1], [])[2:] == [3, 3] for n in model.graph.node)


def poison(feeds, r):
    """NaN and infinities at a few places of inputs."""
    out = []
    for f in feeds:
        g = {k: v.copy() for k, v in f.items()}
        for v in g.values():
            if v.dtype == np.float32 and v.size:
                for what in ([np.nan], [np.inf], [-np.inf], [np.nan, np.inf])[r.randint(4)]:
                    v.flat[r.randint(v.size)] = what
        out.append(g)
    return out


def apart_from_us(f):
    """What f() gives, made in a process of its own, which ONNX Runtime may end; None: it did."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        try:
            with os.fdopen(theirs, "wb") as out:
                pickle.dump(f(), out)
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as got:
        data = got.read()
    os.waitpid(child, 0)
    try:
        return pickle.loads(data)
    except (EOFError, pickle.UnpicklingError):
        return None


class Judge:
    def __init__(self, args, work):
        """Servers for each instruction set."""
        self.args, self.work = args, work
        self.servers = {isa: Server(args.build, isa) for isa in args.isa}
        self.servers["device"] = Server(args.build)
        self.counts = collections.Counter()
        self.refusals = collections.Counter()

    def convert(self, net, words):
        """Converts a net; returns the file."""
        out = "%s.%d.cnr" % (net, len(words) and 1 + ("block" in words[-1]))
        got = subprocess.run([os.path.join(self.args.build, "cnnrun"), "convert", net, "-o", out] + words, capture_output=True,
                             text=True)
        if got.returncode < 0:
            raise ValueError("convert ended by signal %d" % -got.returncode)
        if got.returncode:
            raise Refused("convert: " + got.stderr.strip().replace("\n", " "))
        return out

    def one_way(self, net, way, sets, names, half, spreads):
        """Runs all sets of inputs in one way and compares."""
        name, server, options, rounded = way
        options = dict(options)
        server = self.servers[server]
        if "native" in options:
            net = self.convert(net, options.pop("native"))
        server.load(net, **options)
        for k, (feed, want, slack, what) in enumerate(sets):
            self.counts["runs"] += 1
            got = server.run([feed[n] for n in names])
            part = max(half, {0: 3e-5, 2.0 ** -11: 4e-3, 2.0 ** -8: 3e-2}[rounded])
            for i, (a, b) in enumerate(zip(got, want)):
                wrong = fault(a, b, slack[rounded][i], part, spreads and "NaN" in what)
                if wrong:
                    raise ValueError("%s, %s %d, output %d: %s" % (name, what, k, i, wrong))

    def sets_of(self, model, feeds, r):
        """(inputs, outputs, what rounding makes of each output, by how weights are rounded; a word)."""
        groups = [("size", feeds)]
        if self.args.nan and not is_undefined(model):
            groups.append(("NaN fed, size", poison(feeds, r)))
        sets = []
        for what, fed in groups:
            want = peer(model, fed)
            slack = {}
            for part in (0, 2.0 ** -11, 2.0 ** -8):
                others = [peer(*stirred(model, fed, r, max(part, 2e-6), 2e-6)) for _ in range(5)]
                slack[part] = [[max(apart(o[k][i], w) for o in others) for i, w in enumerate(want[k])] for k in range(len(fed))]
            sets += [(f, want[k], {p: s[k] for p, s in slack.items()}, what) for k, f in enumerate(fed)]
        return sets

    def draw(self, seed):
        """Draws a net, and writes it with inputs and outputs."""
        drawn = (random_blocks if self.args.blocks else random_onnx).draw(seed)
        if not drawn:
            return None
        model, feeds, ops = drawn
        path = os.path.join(self.work, "net%d.onnx" % seed)
        if self.args.optimised:
            optimise(model, path)
        else:
            onnx.save(model, path)
        sets = self.sets_of(model, feeds, np.random.RandomState(seed))
        half = any(a.i == onnx.TensorProto.FLOAT16 for n in model.graph.node for a in n.attribute if n.op_type == "Cast")
        return [i.name for i in model.graph.input], sets, ops, 5e-3 if half else 0, may_spread(model)

    def judge(self, seed):
        """Judges one drawn net: its outcome (None: none was drawn), operators and differences."""
        drawn = apart_from_us(lambda: self.draw(seed))
        if not drawn:
            return None, [], []
        names, sets, ops, half, spreads = drawn
        self.counts["poisoned"] += any("NaN" in s[3] for s in sets)
        net = os.path.join(self.work, "net%d.onnx" % seed)
        wrong = []
        has_weights = bool({"Conv", "Gemm", "MatMul"} & set(ops))
        for way in ways(self.args, seed, self.work, has_weights):
            if self.args.way and not any(w in way[0] for w in self.args.way):
                continue
            try:
                self.counts["ways"] += 1
                self.one_way(net, way, sets, names, half, spreads)
            except Refused as e:
                self.counts["refused"] += 1
                self.refusals[str(e)[:300] if self.args.verbose else re.sub(r"\d+", "N", str(e).split(": ", 1)[-1])[:110]] += 1
            except ValueError as e:
                wrong.append(str(e))
        shutil.rmtree(os.path.join(self.work, "cache%d" % seed), ignore_errors=True)
        if not wrong and not self.args.keep:
            for f in os.listdir(self.work):
                if f.startswith("net%d.onnx" % seed):
                    os.remove(os.path.join(self.work, f))
        return len(ops), wrong, ops


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--nets", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0, help="of the first net")
    parser.add_argument("--blocks", action="store_true", help="nets of blocks, as people write them, instead of single operators")
    parser.add_argument("--optimised", action="store_true", help="give cnnrun the nets as ONNX Runtime's optimiser saves them")
    parser.add_argument("--isa", action="append", default=[], help="instruction sets (avx512, avx2, generic)")
    parser.add_argument("--device", action="append", default=[], help="other devices, such as opencl:0 (repeatable)")
    parser.add_argument("--way", action="append", default=[], help="only ways with this word in their name")
    parser.add_argument("--nan", action="store_true", help="feed NaN and infinities, too")
    parser.add_argument("--work", help="folder for the nets; those that differ stay there")
    parser.add_argument("--keep", action="store_true", help="all nets stay")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    listed = subprocess.run([os.path.join(args.build, "cnnrun"), "plugins", "--json"], capture_output=True, text=True, check=True).stdout
    args.rewrites = [w for line in listed.splitlines() for w in json.loads(line)["provides"].get("rewrite", [])]
    args.isa = args.isa or ["avx512", "avx2", "generic"]
    work = args.work or tempfile.mkdtemp()
    os.makedirs(os.path.join(work, "programs"), mode=0o700, exist_ok=True)
    judge = Judge(args, work)
    failed = drawn = 0
    kinds = collections.Counter()
    for seed in range(args.seed, args.seed + args.nets):
        n, wrong, ops = judge.judge(seed)
        if n is None:
            print("ok %d # skip ONNX Runtime refuses it as a whole" % (seed - args.seed + 1))
            continue
        drawn += 1
        kinds.update(set(ops))
        print("%sok %d - net %d: %d nodes" % ("not " if wrong else "", seed - args.seed + 1, seed, n), flush=True)
        for w in wrong:
            print("#   " + w)
        if wrong:
            print("#   " + " ".join(ops), flush=True)
        failed += bool(wrong)
    print("1..%d" % args.nets)
    for why, n in judge.refusals.most_common(40):
        print("# refused %d times: %s" % (n, why))
    print("# %d nets of %d operators (%d fed NaN), %d ways, %d runs, %d refused, %d nets different" %
          (drawn, len(kinds), judge.counts["poisoned"], judge.counts["ways"], judge.counts["runs"], judge.counts["refused"],
           failed))
    if not args.work and not failed:
        shutil.rmtree(work)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
