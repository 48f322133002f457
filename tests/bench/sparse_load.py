#!/usr/bin/env python3
"""AlexNet with fc6-8 pruned to 15%: how large its files are, what their values cost in output SNR, and how long
it takes from the file to the first result: warm, and read at 100 MB/s.

    python3 tests/bench/sparse_load.py [--rate MB] [--runs N] [--keep 0.15] [--json]

wants build/cnnrun. Weights are made up (random:1). Each form is a process that loads the file and recognises one picture, in
turns with the dense one; the least of the runs. The slow read is a copy, held to the rate, that the process then reads.
"""
import argparse, json, math, os, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("CNNRUN_BUILD", os.path.join(ROOT, "build"))
PICTURES = [os.path.join(ROOT, "scripts/nets/digits", d + ".png") for d in ("three", "eight", "five")]
# name, how fc6-8 are stored, how the convolutions are (None: dense f32)
FORMS = [("f32", "", None), ("f16", "values=f16", None), ("int8", "values=int8", "values=int8"),
         ("f16, zstd", "values=f16,code=zstd", "values=f16,code=zstd"),
         ("shared 8, zstd", "values=shared,bits=8,code=zstd", "values=shared,bits=8,code=zstd"),
         ("shared 7, zstd", "values=shared,bits=7,code=zstd", "values=shared,bits=8,code=zstd"),
         ("shared 6, zstd", "values=shared,bits=6,code=zstd", "values=shared,bits=8,code=zstd"),
         ("shared 5, zstd", "values=shared,bits=5,code=zstd", "values=shared,bits=7,code=zstd")]


def cnnrun(*words):
    """What cnnrun prints; an error ends the script."""
    done = subprocess.run([os.path.join(BUILD, "cnnrun"), *words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"cnnrun {' '.join(words)}: {done.stderr}")
    return done.stdout


def encoded(source, target, how, layers):
    """Writes the net with encoded layers."""
    cnnrun("convert", source, "-o", target, "--encode", "sparse-csr:" + how, "--layers", layers, "-q")


def make(folder, keep):
    """Path of each form; fc6-8 of all have the same zeros."""
    dense = os.path.join(folder, "dense.cnr")
    cnnrun("convert", os.path.join(ROOT, "scripts/nets/alexnet.lua"), "--weights", "random:1", "-o", dense)
    paths = {"dense": dense}
    for i, (name, fc, conv) in enumerate(FORMS):
        path, half = os.path.join(folder, f"{i}.cnr"), os.path.join(folder, "half.cnr")
        encoded(dense, half if conv else path, f"keep={keep}" + ("," + fc if fc else ""), "fc*")
        if conv:
            encoded(half, path, conv, "conv*")
        paths[name] = path
    return paths


def logits(path, picture):
    """Logarithms of all scores, about their mean: what softmax was given, but for a constant."""
    line = cnnrun("run", path, picture, "--top", "1000", "--device", "cpu", "--json")
    scores = {t["index"]: math.log(max(t["score"], 1e-38)) for t in json.loads(line)["top"]}
    mean = sum(scores.values()) / len(scores)
    return [scores[i] - mean for i in sorted(scores)]


def snr(path, reference):
    """How far the logits lie from the reference's, in decibels."""
    signal = noise = 0
    for picture in PICTURES:
        a, b = logits(reference, picture), logits(path, picture)
        signal += sum(x * x for x in a)
        noise += sum((x - y) ** 2 for x, y in zip(a, b))
    return 10 * math.log10(signal / noise) if noise else float("inf")


def first_result(path):
    """Seconds from the start to the first answer."""
    begin = time.perf_counter()
    cnnrun("run", path, PICTURES[0], "--device", "cpu", "--json")
    return time.perf_counter() - begin


def slow_result(path, rate, folder):
    """The same behind a copy at `rate` bytes a second."""
    copy, chunk = os.path.join(folder, "slow.cnr"), 1 << 18
    begin, done = time.perf_counter(), 0
    with open(path, "rb") as source, open(copy, "wb") as target:
        while data := source.read(chunk):
            target.write(data)
            done += len(data)
            time.sleep(max(0, begin + done / rate - time.perf_counter()))
    first_result(copy)
    took = time.perf_counter() - begin
    os.remove(copy)
    return took


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--rate", type=float, default=100, help="MB a second of the slow read")
    words.add_argument("--runs", type=int, default=5)
    words.add_argument("--keep", type=float, default=0.15)
    words.add_argument("--folder", help="keep the files here, and find them again")
    words.add_argument("--prepare", action="store_true", help="make the files, time nothing")
    words.add_argument("--json", action="store_true")
    args = words.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as scratch:
        folder = args.folder or scratch
        os.makedirs(folder, exist_ok=True)
        names = ["dense"] + [name for name, _, _ in FORMS]
        paths = {n: os.path.join(folder, "dense.cnr" if n == "dense" else f"{names.index(n) - 1}.cnr") for n in names}
        if args.prepare or not all(map(os.path.exists, paths.values())):
            paths = make(folder, args.keep)
        if args.prepare:
            return
        warm, slow = {n: [] for n in paths}, {n: [] for n in paths}
        for _ in range(args.runs):
            for name, path in paths.items():
                warm[name].append(first_result(path))
        for name, path in paths.items():
            slow[name].append(slow_result(path, args.rate * 1e6, scratch))
        dense = os.path.getsize(paths["dense"])
        for name, path in paths.items():
            size = os.path.getsize(path)
            row = {"form": name, "bytes": size, "of_dense": round(size / dense, 4),
                   "snr_db": None if name in ("dense", "f32") else round(snr(path, paths["f32"]), 1),
                   "s_warm": round(min(warm[name]), 3), "s_slow": round(min(slow[name]), 3),
                   "slow_less": round(1 - min(slow[name]) / min(slow["dense"]), 3)}
            if args.json:
                print(json.dumps(row), flush=True)
            else:
                print(f"{name:16} {size / 1e6:8.2f} MB {row['of_dense']:7.1%} of dense   SNR "
                      f"{'  exact' if row['snr_db'] is None else '%5.1f dB' % row['snr_db']}   first result "
                      f"{row['s_warm']:.3f} s warm, {row['s_slow']:.3f} s at {args.rate:g} MB/s ({-row['slow_less']:+.0%})",
                      flush=True)


if __name__ == "__main__":
    main()
