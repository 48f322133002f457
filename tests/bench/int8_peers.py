#!/usr/bin/env python3
"""cnnrun's int8 beside ONNX Runtime's and OpenVINO's: each quantises the same float net by its own tool on the same pictures.

Times are interleaved, the least of many, batch 1. `ours` is what `cnnrun quantize` writes by default (layers that it leaves
float are counted), `float` is the net before. OpenVINO is held to VNNI (--openvino-isa). Answers are compared with each
one's own float net, as signal to noise."""
import argparse, json, os, subprocess, sys, time

import peers
from peers import ROOT, Net, Ours, Peer, geometric, ours

NETS = ["squeezenet_v1_1", "mobilenet_v1", "mobilenet_v2", "mobilenet_v3", "resnet50", "vgg16"]


def words():
    """The command's options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", action="append", help="a zoo net's name, or an ONNX file (%s)" % ", ".join(NETS))
    parser.add_argument("--threads", action="append", type=int, help="repeatable (1, 2)")
    parser.add_argument("--peers", default="ort,openvino", help="which of them")
    parser.add_argument("--data", help="a folder of pictures to calibrate with (drawn ones)")
    parser.add_argument("--limit", type=int, default=20, help="pictures to calibrate with")
    parser.add_argument("--openvino-isa", default="AVX512_CORE_VNNI", help="the most that oneDNN uses; '': all it can")
    parser.add_argument("--seconds", type=float, default=0.3, help="of each in a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="a line a net and number of threads")
    parser.add_argument("--prepare", action="store_true", help="environment and quantised files only")
    parser.add_argument("--cnnrun", default=os.path.join(ROOT, "build", "cnnrun"))
    parser.add_argument("--work", default=os.path.join(ROOT, "build", "peers"), help="exported nets, kept")
    parser.add_argument("--venv", default=os.path.join(ROOT, "tests", "peers", "venv"), help="'': this Python as it is")
    args = parser.parse_args()
    args.net, args.threads = args.net or NETS, args.threads or [1, 2]
    args.peers, args.batch = [p for p in args.peers.split(",") if p], 1
    return args


def pictures(args, net):
    """Pictures of the net's size in a folder; drawn ones without --data."""
    import numpy as np
    from PIL import Image
    _, _, high, wide = np.load(net.given).shape
    folder, draw = os.path.join(args.work, net.name + ".pictures"), np.random.RandomState(11)
    os.makedirs(folder, exist_ok=True)
    for old in os.listdir(folder):
        os.remove(os.path.join(folder, old))
    if args.data:
        names = sorted(n for n in os.listdir(args.data) if n.lower().endswith((".jpg", ".jpeg", ".png", ".bmp")))
        found = [Image.open(os.path.join(args.data, n)).convert("RGB").resize((wide, high)) for n in names[:args.limit + 1]]
    else:
        found = [Image.fromarray(draw.randint(0, 256, (high, wide, 3), "u1")) for _ in range(args.limit + 1)]
    judge = np.asarray(found.pop(), "f4").transpose(2, 0, 1)[None] / 255  # what all are timed and judged on
    net.given = os.path.join(args.work, net.name + ".judge.npy")
    np.save(net.given, judge)
    for k, picture in enumerate(found):
        picture.save(os.path.join(folder, "%03d.png" % k))
    return folder


def tensors(folder):
    """The same pictures as the peers take them, pixels between 0 and 1."""
    import numpy as np
    from PIL import Image
    return [np.asarray(Image.open(os.path.join(folder, n)), "f4").transpose(2, 0, 1)[None] / 255
            for n in sorted(os.listdir(folder))]


def by_cnnrun(args, net, folder):
    """The net quantised by cnnrun: path and report."""
    path = net.cnr[:-4] + ".int8.cnr"
    rows = ours(args, "quantize", net.cnr, "--data", folder, "--limit", str(args.limit), "-o",
                path, "--json")
    return path, json.loads(rows.splitlines()[-1])


def by_ort(args, net, given):
    """The net quantised by ONNX Runtime: path."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process
    import onnx
    path, before = net.onnx[:-5] + ".ort8.onnx", net.onnx[:-5] + ".ort.onnx"
    name = onnx.load(net.onnx, load_external_data=False).graph.input[0].name

    class Reader(CalibrationDataReader):
        left = [{name: value} for value in reversed(given)]

        def get_next(self):
            """The next batch; None: there are no more."""
            return self.left.pop() if self.left else None

    quant_pre_process(net.onnx, before)
    quantize_static(before, path, Reader(), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
    return path


def by_openvino(args, net, given):
    """The net quantised by NNCF for OpenVINO: path."""
    import nncf, openvino
    path = net.onnx[:-5] + ".nncf8.xml"
    model = openvino.Core().read_model(net.onnx)
    model.reshape(list(given[0].shape))
    openvino.save_model(nncf.quantize(model, nncf.Dataset(given), subset_size=len(given)), path, compress_to_fp16=False)
    return path


def snr(float_answers, answers):
    """Decibels of the least clear output."""
    import numpy as np
    worst = float("inf")
    for a, b in zip(float_answers, answers):
        a, b = a.astype("f8").ravel(), b.astype("f8").ravel()
        noise = ((a - b) ** 2).sum()
        worst = min(worst, 10 * np.log10((a ** 2).sum() / noise)) if noise else worst
    return round(float(worst), 1)


class Files:
    """A net in one peer's files, in the form that Ours and Peer take."""

    def __init__(self, net, path):
        """A net's files."""
        self.name, self.given, self.cnr, self.onnx = net.name, net.given, path, path


def opened(args, net, kind, path, threads):
    """Opens a quantised net in a process of the peer."""
    if kind == "openvino" and args.openvino_isa:
        os.environ["ONEDNN_MAX_CPU_ISA"] = args.openvino_isa
    return Peer(args, kind, Files(net, path), threads)


def clear(args, net, kind, path, threads):
    """Signal to noise of a peer's 8 bits against its own float net."""
    answers = []
    for file in (net.onnx, path):
        peer = opened(args, net, kind, file, threads)
        answers.append(peer.answers(os.path.join(args.work, net.name + ".snr.npz")))
        peer.close()
    return snr(*answers)


def measure(args, net, quantised, report, threads):
    """Times of a net in all forms."""
    who = {"ours": Ours(args, Files(net, quantised["ours"]), threads), "float": Ours(args, net, threads)}
    row = {"net": net.name, "threads": threads, "layers": report.get("quantised"), "ms": {}, "snr_db": {}, "left_out": {}}
    answers = {name: it.answers(os.path.join(args.work, net.name + ".mine.npz")) for name, it in who.items()}
    row["snr_db"]["ours"] = snr(answers["float"], answers["ours"])
    for kind in args.peers:
        try:
            if isinstance(quantised[kind], Exception):
                raise RuntimeError(str(quantised[kind])[-300:])
            row["snr_db"][kind] = clear(args, net, kind, quantised[kind], threads)
            who[kind] = opened(args, net, kind, quantised[kind], threads)
        except RuntimeError as e:
            row["left_out"][kind] = str(e)
    least = dict.fromkeys(who, float("inf"))
    for name in ("ours", "float"):
        who[name].time(0)
    for _ in range(args.rounds):
        for name, it in who.items():
            least[name] = min([least[name]] + it.time(args.seconds))
            time.sleep(0.02)
    for it in who.values():
        it.close()
    row["ms"] = {name: round(ms, 4) for name, ms in least.items()}
    best = min((ms for name, ms in least.items() if name in args.peers), default=None)
    row["ratio"] = round(least["ours"] / best, 3) if best else None
    row["gain"] = round(least["float"] / least["ours"], 3)
    return row


def table(args, rows):
    """Prints the table."""
    print("%-18s %2s %9s %9s  %s %6s %6s  %s" % ("net", "T", "float ms", "ours ms", " ".join("%9s" % p for p in args.peers), "ratio",
                                          "gain", "dB: ours, " + ", ".join(args.peers)))
    for r in rows:
        cells = " ".join("%9.3f" % r["ms"][p] if p in r["ms"] else "%9s" % "-" for p in args.peers)
        noise = ", ".join(str(r["snr_db"].get(p, "-")) for p in ["ours"] + args.peers)
        print("%-18s %2d %9.3f %9.3f  %s %6s %6.2f  %s" % (r["net"], r["threads"], r["ms"]["float"], r["ms"]["ours"], cells,
                                                   "%.2f" % r["ratio"] if r["ratio"] else "-", r["gain"], noise))
    for t in args.threads:
        ratios = [r["ratio"] for r in rows if r["threads"] == t and r["ratio"]]
        print("geometric mean of %d nets, %d thread%s: %.3f" % (len(ratios), t, "s" * (t > 1), geometric(ratios)))
    for r in rows:
        for peer, why in r["left_out"].items():
            print("# %s, %s is left out: %s" % (r["net"], peer, why))


def main():
    args = words()
    peers.environment(args)
    rows, failed = [], 0
    for name in args.net:
        try:
            net = Net(args, name)
            folder = pictures(args, net)
            path, report = by_cnnrun(args, net, folder)
            given = tensors(folder)
        except (RuntimeError, OSError) as e:
            print("%s: %s" % (name, e), file=sys.stderr)
            failed = 1
            continue
        quantised = {"ours": path}
        for kind, make in (("ort", by_ort), ("openvino", by_openvino)):
            try:
                quantised[kind] = make(args, net, given) if kind in args.peers else None
            except Exception as e:  # a tool's refusal is told, and the others go on
                quantised[kind] = e
        for threads in args.threads if not args.prepare else []:
            rows.append(measure(args, net, quantised, report, threads))
            if args.json:
                print(json.dumps(rows[-1]), flush=True)
    if rows and not args.json:
        table(args, rows)
    return failed


if __name__ == "__main__":
    sys.exit(main())
