#!/usr/bin/env python3
"""--adapt on nets of the zoo: runs until it is settled, the worst of those runs, and the time afterwards over the
default's and over what `tune` makes of the net. Weights are random.

    tests/bench/adapt.py [NET ...] [--cnnrun build/cnnrun] [--rounds 3] [--picture FILE]
    tests/bench/adapt.py [NET ...] --starts 20 [--busy]
    tests/bench/adapt.py --boards 20 [--from 1] [--layers 3]

A line a net. Times behind it are the least of `cnnrun bench`, the three in turns, of all rounds: what disturbs
the machine disturbs all of them. "worst" is the 95th percentile of the runs until it is settled over the default's
median; planning, packing and warming up a trial lie before its run and are told as "prepared". "in turns" is the contest's own
ratio, inside one process: where the default is decided on, the times behind it are of the same plan, and tell the noise.
"noise": the 95th percentile of as many runs by default in a process that does not adapt, over their median.

--starts N: each net learns N times from nothing; how often it decided the same. --busy: beside a process that keeps a core busy.
--boards N: on drawn boards that contention, heat and jitter disturb (scripts/boards/disturbed.lua), the EDP of what is kept over the
least EDP of all plans that scripts/bench/adapt.lua runs.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

NETS = ["lenet5", "cifar10_quick", "cifar10_full", "squeezenet_v1_1", "squeezenet_v1_0", "mobilenet_v1", "mobilenet_v2",
        "shufflenet_v2", "googlenet", "inception_bn", "resnet18", "alexnet", "resnet50", "tiny_yolo_voc"]


def lines(words):
    """The JSON lines that a command prints."""
    out = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=500)
    if out.returncode:
        sys.exit("%s: exit code %d" % (" ".join(words), out.returncode))
    return [json.loads(line) for line in out.stdout.splitlines() if line.startswith("{")]


def learn(o, net, folder):
    """Lets the net adapt in a new process, with its record in folder."""
    rows = lines([o.cnnrun, "run", net, o.picture, "--weights", "random:1", "--adapt", "--cache", folder, "--repeat", "60",
                  "--json"])
    usual = statistics.median(r["adapt"]["run_ms"] for r in rows if r["adapt"].get("trying") == "default")
    learning = [r["adapt"] for r in rows if r["adapt"]["phase"] != "settled"]
    times = sorted(a["run_ms"] for a in learning)
    end = rows[-1]["adapt"]
    same = len({r["top"][0]["index"] for r in rows if "top" in r}) <= 1
    return {"settled": end.get("runs_until_settled"), "worst": times[int(0.95 * (len(times) - 1))] / usual,
            "prepared_ms": sum(a.get("prepare_ms", 0) for a in learning), "decided": end.get("decided"),
            "turns": end.get("cost_of_default"), "kernels": len(end.get("kernels", [])), "right": same}


def noise(o, net, runs):
    """The worst of so many runs (95%) over their median, without --adapt; the first is cold."""
    rows = lines([o.cnnrun, "run", net, o.picture, "--weights", "random:1", "--repeat", str(max(runs, 3) + 1), "--json"])
    times = sorted(r["ms"] for r in rows[1:])
    return times[int(0.95 * (len(times) - 1))] / statistics.median(times)


def same_choice(o, net, name):
    """How often starts from nothing decide the same, and what."""
    spin = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if o.busy else None
    decided = {}
    try:
        for _ in range(o.starts):
            with tempfile.TemporaryDirectory() as folder:
                rows = lines([o.cnnrun, "run", net, o.picture, "--weights", "random:1", "--adapt", "--cache", folder, "--repeat", "80", "--json"])
                end = rows[-1]["adapt"]
                key = (end.get("decided"), tuple(end["kernels"]), tuple(end["devices"]))
                decided[key] = decided.get(key, 0) + 1
    finally:
        if spin:
            spin.kill()
    most = max(decided, key=decided.get)
    print("%-16s %d of %d the same: %s%s" % (name, decided[most], o.starts, most[0], " (%d kernels)" % len(most[1]) if most[1] else ""), flush=True)


def boards(o):
    """How far adapting ends above the best placement, on simulated boards."""
    above = []
    for seed in range(o.first, o.first + o.boards):
        row = lines([o.cnnrun, "--board", "disturbed,seed=%d,dry" % seed, os.path.join(o.root, "scripts/bench/adapt.lua"), "--json",
                     "--seed", str(seed), "--layers", str(o.layers), "--warm", "0.05"])[0]
        above.append(row["above"])
        print("board %-4d %d units, %4d plans: default %.3f, best alone %.3f, kept %.3f of the optimum's EDP after %s runs: %s" % (
            seed, row["units"], row["plans"], row["default"] / row["optimum"], row["alone"] / row["optimum"], 1 + row["above"],
            row.get("runs"), row.get("decided")), flush=True)
    print("%d boards: kept over the optimum, mean %+.2f%%, median %+.2f%%, worst %+.2f%%" % (
        len(above), 100 * statistics.mean(above), 100 * statistics.median(above), 100 * max(above)))


def bench(o, net, *words):
    """The time of a run, in milliseconds."""
    rows = lines([o.cnnrun, "bench", net, "--weights", "random:1", "--runs", "20", "--json", *words])
    return next(r["ms_min"] for r in rows if "ms_min" in r)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("nets", nargs="*")
    p.add_argument("--cnnrun", default="build/cnnrun")
    p.add_argument("--rounds", type=int, default=3)
    root = os.path.join(os.path.dirname(__file__), "../..")
    p.add_argument("--starts", type=int)
    p.add_argument("--busy", action="store_true")
    p.add_argument("--boards", type=int)
    p.add_argument("--from", type=int, default=1, dest="first")
    p.add_argument("--layers", type=int, default=3)
    p.add_argument("--picture", default=os.path.join(root, "scripts/nets/digits/seven.png"))
    o = p.parse_args()
    o.root = root
    if o.boards:
        return boards(o)
    if o.starts:
        for name in o.nets or NETS:
            same_choice(o, os.path.join(root, "scripts/nets", name + ".lua"), name)
        return None
    print("%-16s %7s %6s %6s %9s %8s %12s %9s  %s" % ("net", "settled", "worst", "noise", "prepared", "in turns", "over default", "over tune", "decided"))
    for name in o.nets or NETS:
        net = os.path.join(root, "scripts/nets", name + ".lua")
        with tempfile.TemporaryDirectory() as folder:
            adapted, tuned = os.path.join(folder, "adapt"), os.path.join(folder, "tune")
            told = learn(o, net, adapted)
            lines([o.cnnrun, "tune", net, "--weights", "random:1", "--cache", tuned, "--no-energy", "--json"])
            ways = [(), ("--cache", adapted, "--adapt"), ("--cache", tuned)]
            least = [min(t) for t in zip(*[[bench(o, net, *w) for w in ways] for _ in range(o.rounds)])]
            print("%-16s %7s %5.2fx %5.2fx %6.0f ms %8.3f %12.3f %9.3f  %s%s%s" % (
                name, told["settled"], told["worst"], noise(o, net, told["settled"] or 60), told["prepared_ms"], told["turns"], least[1] / least[0], least[1] / least[2],
                told["decided"], " (%d)" % told["kernels"] if told["kernels"] else "", "" if told["right"] else "  WRONG"),
                flush=True)
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder, exist_ok=True)
    return None


if __name__ == "__main__":
    main()
