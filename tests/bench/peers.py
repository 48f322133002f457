#!/usr/bin/env python3
"""cnnrun beside its peers on the zoo's nets or ONNX files: same weights, input and threads, answers compared, times interleaved.

Makes a Python environment with the peers (--venv), exports each net (--work), prints a table with the ratios of
our time to the best peer's, and draws them (--chart). Times are the least of many, batch 1, fp32, random weights.
What a peer can't read, or answers otherwise, is left out and told. --layers: ours beside ONNX Runtime's, by node."""
import argparse, json, math, os, shutil, subprocess, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
NETS = ["alexnet", "vgg16", "resnet18", "resnet50", "squeezenet_v1_1", "mobilenet_v1", "mobilenet_v2",
        "mobilenet_v3", "googlenet", "inception_v3", "efficientnet_b0", "shufflenet_v2", "yolov4_tiny",
        "tiny_yolo_voc"]
PEERS = ["ort", "openvino", "mnn", "ncnn"]
BATCHED = ["ort", "openvino", "throughput", "singles"]
LIMIT = 1e-3  # most that answers differ, of the largest distance from their mean


def words():
    """The command's options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", action="append", help="a zoo net's name, a file to give made-up weights, "
                        "or an ONNX file, run with its own (all of the zoo's table)")
    parser.add_argument("--threads", action="append", type=int, help="repeatable (1, 2)")
    parser.add_argument("--peers", help="which of them (%s; with --batch %s)" % (",".join(PEERS), ",".join(BATCHED)))
    parser.add_argument("--batch", type=int, default=1, help="pictures at a time, of the zoo's nets; OpenVINO also "
                        "in throughput mode, with requests of as many (throughput) and of one picture (singles)")
    parser.add_argument("--seconds", type=float, default=0.3, help="of each in a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="a line a net and number of threads")
    parser.add_argument("--layers", action="store_true", help="by layer, beside ONNX Runtime's profile")
    parser.add_argument("--prepare", action="store_true", help="environment, models and conversions only")
    parser.add_argument("--chart", help="where the ratios are drawn (peers.png in --work)")
    parser.add_argument("--cnnrun", default=os.path.join(ROOT, "build", "cnnrun"))
    parser.add_argument("--work", default=os.path.join(ROOT, "build", "peers"), help="exported nets, kept")
    parser.add_argument("--venv", default=os.path.join(ROOT, "tests", "peers", "venv"), help="'': this Python as it is")
    args = parser.parse_args()
    args.net, args.threads = args.net or NETS, args.threads or [1, 2]
    args.peers = PEERS if args.peers is None else [p for p in args.peers.split(",") if p]
    if args.batch > 1 and args.peers is PEERS:
        args.peers = BATCHED
    return args


def environment(args):
    """Goes on in the environment, which is made where there is none."""
    if not args.venv:
        return
    python, done = os.path.join(args.venv, "bin", "python"), os.path.join(args.venv, "bench-is-installed")
    if not os.path.exists(done):
        print("# making %s" % args.venv, file=sys.stderr)
        install = [python, "-m", "pip", "install", "-q"]
        subprocess.run([sys.executable, "-m", "venv", args.venv], check=True)
        subprocess.run(install + ["-r", os.path.join(HERE, "requirements.txt")], check=True)
        subprocess.run(install + ["--no-deps", "pnnx"], check=True)
        open(done, "w").close()
    if os.path.realpath(sys.prefix) != os.path.realpath(args.venv):
        os.execv(python, [python] + sys.argv)


# ---- nets ----

def ours(args, *command):
    done = subprocess.run([args.cnnrun, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError("cnnrun %s: %s" % (command[0], done.stderr.strip()[-300:]))
    return done.stdout


class Net:
    """A net as files: ONNX for the peers, .cnr for us, an input for all."""

    def __init__(self, args, given):
        """A net's files: ours, and ONNX for the peers."""
        self.name = os.path.splitext(os.path.basename(given))[0]
        source = given if os.path.exists(given) else os.path.join(ROOT, "scripts", "nets", given + ".lua")
        base = os.path.join(args.work, self.name if args.batch == 1 else "%s.%d" % (self.name, args.batch))
        self.onnx, self.cnr, self.given = base + ".onnx", base + ".cnr", base + ".npy"
        os.makedirs(args.work, exist_ok=True)
        if not os.path.exists(self.given) or os.path.getmtime(self.given) < os.path.getmtime(source):
            for end in (".onnx", ".cnr", ".mnn", ".ncnn.param", ".ncnn.bin"):
                if os.path.exists(base + end):
                    os.remove(base + end)
            if source.endswith(".onnx"):
                shutil.copyfile(source, self.onnx)
            else:
                what = [source, "--weights", "random:1"]
                ours(args, "export", *what, "-o", self.onnx, "--symbol", "batch=%d" % args.batch)
                ours(args, "convert", *what, "-o", self.cnr)
            self.make_input(args.batch)
        if source.endswith(".onnx"):
            self.cnr = self.onnx

    def make_input(self, batch):
        """Saves an input of that batch made of fixed random numbers for all sides, as .npy."""
        import numpy as np, onnx
        graph = onnx.load(self.onnx, load_external_data=False).graph
        shape = [d.dim_value or batch for d in graph.input[0].type.tensor_type.shape.dim]
        np.save(self.given, np.random.RandomState(7).rand(*shape).astype("f4"))


# ---- who is timed ----

class Ours:
    def __init__(self, args, net, threads):
        """The net in cnnrun."""
        self.args, self.net, self.threads, self.kib, self.each = args, net, str(threads), 0, None

    def answers(self, path):
        """Writes the outputs to path."""
        import numpy as np
        prefix = path[:-4] + "."
        ours(self.args, "--trust", os.path.join(ROOT, "tests", "peers", "outputs.lua"), self.net.cnr, prefix,
             self.net.given)
        found = []
        while os.path.exists("%s%d.npy" % (prefix, len(found) + 1)):
            found.append(np.load("%s%d.npy" % (prefix, len(found) + 1)))
            os.remove("%s%d.npy" % (prefix, len(found)))
        return found

    def time(self, seconds):
        """Median milliseconds of runs over so many seconds."""
        runs = max(1, int(seconds * 1e3 / self.each)) if self.each else 3
        batch = ["--batch", str(self.args.batch)] if self.args.batch > 1 else []
        got = json.loads(ours(self.args, "bench", self.net.cnr, "--threads", self.threads, "--runs", str(runs),
                              "--warm", "2", "--no-energy", "--json", *batch).splitlines()[0])
        self.each, self.kib = got["ms_median"], max(self.kib, got["peak_rss_bytes"] / 1024)
        return [got["ms_min"]]

    def memory(self):
        """KiB of memory."""
        return self.kib

    def close(self):
        pass


class Peer:
    def __init__(self, args, kind, net, threads):
        """The net in a process of the peer."""
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads), CUDA_VISIBLE_DEVICES="")
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "peer_worker.py"), kind, net.onnx, net.given, str(threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
        self.hear()

    def hear(self):
        """The worker's next answer; an error where it ended."""
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("ended with status %s" % self.process.wait())
        said = json.loads(line)
        if "error" in said:
            raise RuntimeError(said["error"])
        return said

    def ask(self, line):
        """Asks the worker one line."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.hear()

    def answers(self, path):
        """Writes the outputs to path; returns them."""
        import numpy as np
        self.ask("answers " + path)
        with np.load(path) as kept:
            found = [kept["arr_%d" % k] for k in range(len(kept.files))]
        os.remove(path)
        return found

    def time(self, seconds):
        """Median milliseconds of runs over so many seconds."""
        return self.ask("time %g" % seconds)["ms"]

    def memory(self):
        """KiB of memory."""
        return self.ask("memory")["kib"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def differ(mine, theirs):
    """Why these are not the same answers; None: they are. Theirs may be of the first picture alone."""
    import numpy as np
    mine = [a[:1] if b.shape[0] == 1 else a for a, b in zip(mine, theirs)] if len(mine) == len(theirs) else mine
    if len(mine) != len(theirs):
        return "%d outputs, not %d" % (len(theirs), len(mine))
    for a, b in zip(mine, theirs):
        if a.size != b.size:
            return "an output of %d numbers, not %d" % (b.size, a.size)
        a, b = a.astype("f8").ravel(), b.astype("f8").ravel()
        worst = np.abs(a - b).max() / (np.abs(a - a.mean()).max() or 1)
        if not worst <= LIMIT:
            return "answers differ by %.2g" % worst
    return None


def measure(args, net, threads):
    """Times of a net by all peers, after their answers agree."""
    mine = Ours(args, net, threads)
    answers = mine.answers(os.path.join(args.work, net.name + ".mine.npz"))
    row = {"net": net.name, "threads": threads, "ours_ms": None, "peers": {}, "best_peer": None, "ratio": None,
           "memory_mib": {}, "left_out": {}}
    running = {}
    for kind in args.peers:
        try:
            peer = Peer(args, kind, net, threads)
            why = differ(answers, peer.answers(os.path.join(args.work, "%s.%s.npz" % (net.name, kind))))
            if why:
                peer.close()
                raise RuntimeError(why)
            running[kind] = peer
        except RuntimeError as e:
            row["left_out"][kind] = str(e)
    if args.prepare:
        args.rounds = 0
    mine.time(0) if args.rounds else None
    all_of = {"ours": mine, **running}
    least = dict.fromkeys(all_of, math.inf)
    for _ in range(args.rounds):
        for name, who in all_of.items():
            least[name] = min([least[name]] + who.time(args.seconds))
            time.sleep(0.02)  # a pool that still spins goes to sleep
    if args.rounds:
        row["memory_mib"] = {name: round(who.memory() / 1024, 1) for name, who in all_of.items()}
        row["ours_ms"] = round(least.pop("ours"), 4)
        row["peers"] = {name: round(ms, 4) for name, ms in least.items()}
    if row["peers"]:
        row["best_peer"] = min(row["peers"], key=row["peers"].get)
        row["ratio"] = round(row["ours_ms"] / row["peers"][row["best_peer"]], 4)
    for peer in running.values():
        peer.close()
    return row


# ---- by layer ----

class Nodes:
    """Which node of the exported net one of ONNX Runtime's was made of."""

    def __init__(self, net):
        """Reads the nodes of a net."""
        import onnx
        self.graph = onnx.load(net.onnx, load_external_data=False).graph
        self.makers = {o: n for n in self.graph.node for o in n.output}
        self.named = {n.name: n for n in self.graph.node}

    def origin(self, event, taken):
        """What was fused is named by its last node: back from there to the nearest of its kind that is none's."""
        name, op = event["name"], event["args"].get("op_name", "?").replace("Fused", "")
        for end in ("_kernel_time", "_nchwc"):  # and what was moved into its layout by its output
            name = name[:-len(end)] if name.endswith(end) else name
        node = self.named.get(name) or self.makers.get(name)
        near, seen = [node] if node else [], set()
        while near:
            node = near.pop(0)
            if node.op_type == op and node.name not in taken:
                return node.name
            for maker in (self.makers.get(i) for i in node.input):
                if maker and maker.name not in seen and len(seen) < 8:
                    seen.add(maker.name)
                    near.append(maker)
        return name


def theirs(args, net, threads, nodes):
    """Least ms of each node in one of ONNX Runtime's profiles."""
    from peer_worker import OnnxRuntime
    import numpy as np
    peer = OnnxRuntime(net.onnx, np.load(net.given), threads, os.path.join(args.work, net.name))
    for _ in range(12):
        peer.run()
    path = peer.session.end_profiling()
    with open(path) as file:
        events = [e for e in json.load(file) if e.get("cat") == "Node" and e["name"].endswith("_kernel_time")]
    os.remove(path)
    known, least = {}, {}
    for event in events:
        if event["name"] not in known:
            taken = {name for name, _ in known.values()}
            known[event["name"]] = nodes.origin(event, taken), event["args"].get("op_name", "?")
        key = known[event["name"]]
        least[key] = min(least.get(key, math.inf), event["dur"] / 1e3)
    return least


def layers(args, net, threads):
    """Rows of both profiles: {node, op, ours_ms, ort_ms}; a node that only one side runs has a None."""
    nodes, rows = Nodes(net), {}
    for _ in range(args.rounds):
        said = ours(args, "bench", net.cnr, "--threads", str(threads), "--profile", "--runs", "10", "--no-energy",
                    "--json")
        for step in map(json.loads, said.splitlines()):
            if "step" in step:
                row = rows.setdefault(step["node"], {"op": step["op"], "ours_ms": math.inf, "ort_ms": None})
                row["ours_ms"] = min(row["ours_ms"], step["ms_min"])
        for (name, op), ms in theirs(args, net, threads, nodes).items():
            row = rows.setdefault(name, {"op": op, "ours_ms": None, "ort_ms": None})
            row["ort_ms"] = min(row["ort_ms"] or math.inf, ms)
    return [{"net": net.name, "threads": threads, "node": name, **row,
             "ratio": row["ours_ms"] / row["ort_ms"] if row["ours_ms"] and row["ort_ms"] else None}
            for name, row in rows.items()]


# ---- what is told ----

def geometric(values):
    """Geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def table(args, rows):
    """Prints the table of nets."""
    print("%-18s %2s %9s  %s  %-8s %6s" % ("net", "T", "ours ms", "  ".join("%9s" % p for p in args.peers), "best", "ratio"))
    for r in rows:
        cells = "  ".join("%9.3f" % r["peers"][p] if p in r["peers"] else "%9s" % "-" for p in args.peers)
        print("%-18s %2d %9.3f  %s  %-8s %6s" % (r["net"], r["threads"], r["ours_ms"], cells, r["best_peer"] or "-",
                                                 "%.2f" % r["ratio"] if r["ratio"] else "-"))
    for t in args.threads:
        ratios = [r["ratio"] for r in rows if r["threads"] == t and r["ratio"]]
        print("geometric mean of %d nets, %d thread%s: %.3f" % (len(ratios), t, "s" * (t > 1), geometric(ratios)))
    for r in rows:
        for peer, why in r["left_out"].items():
            print("# %s, %s is left out: %s" % (r["net"], peer, why))


def layer_table(rows):
    """Prints the table of layers."""
    print("%-16s %2s %-26s %-18s %9s %9s %6s" % ("net", "T", "node", "op", "ours ms", "ort ms", "ratio"))
    shown = lambda x: "%.4f" % x if x is not None else "-"
    for r in rows:
        print("%-16s %2d %-26s %-18s %9s %9s %6s" % (r["net"], r["threads"], r["node"], r["op"], shown(r["ours_ms"]),
                                                     shown(r["ort_ms"]), "%.2f" % r["ratio"] if r["ratio"] else "-"))


def chart(args, rows):
    """Draws the chart."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plot
    names = list(dict.fromkeys(r["net"] for r in rows))
    figure, axes = plot.subplots(figsize=(2 + len(names) * 0.7, 4.5))
    for k, t in enumerate(args.threads):
        of = {r["net"]: r["ratio"] or 0 for r in rows if r["threads"] == t}
        width = 0.8 / len(args.threads)
        axes.bar([i + k * width for i in range(len(names))], [of.get(n, 0) for n in names], width, label="%d threads" % t)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xticks([i + 0.2 for i in range(len(names))], names, rotation=40, ha="right")
    axes.set_ylabel("our time / the best peer's")
    axes.legend()
    figure.tight_layout()
    figure.savefig(args.chart or os.path.join(args.work, "peers.png"))


def main():
    args = words()
    environment(args)
    sys.path.insert(0, HERE)
    rows, failed = [], 0
    for given in args.net:
        for t in args.threads:
            try:
                net = Net(args, given)
                found = layers(args, net, t) if args.layers else [measure(args, net, t)]
            except (RuntimeError, OSError) as e:
                print("%s: %s" % (given, e), file=sys.stderr)
                failed = 1
                break
            rows += found
            for row in found if args.json else []:
                print(json.dumps(row), flush=True)
    if not args.json and not args.prepare and rows:
        layer_table(rows) if args.layers else table(args, rows)
    if rows and not args.layers and not args.prepare:
        chart(args, rows)
    return failed


if __name__ == "__main__":
    sys.exit(main())
