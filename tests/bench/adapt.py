#!/usr/bin/env python3
"""--adapt on nets of the zoo: runs until it is settled, the worst of those runs, and the time afterwards over the
default's and over what `tune` makes of the net. Weights are random.

    tests/bench/adapt.py [NET ...] [--cnnrun build/cnnrun] [--rounds 3] [--picture FILE]

A line a net. Times behind it are the least of `cnnrun bench`, the three in turns, of all rounds: what disturbs
the machine disturbs all of them. "worst" is the 95th percentile of the runs until it is settled over the default's
median; planning, packing and warming up a trial lie before its run and are told as "prepared". "in turns" is the contest's own
ratio, inside one process: where the default is decided on, the times behind it are of the same plan, and tell the noise.
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
    out = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=500)
    if out.returncode:
        sys.exit("%s: exit code %d" % (" ".join(words), out.returncode))
    return [json.loads(line) for line in out.stdout.splitlines() if line.startswith("{")]


def learn(o, net, folder):
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


def bench(o, net, *words):
    rows = lines([o.cnnrun, "bench", net, "--weights", "random:1", "--runs", "20", "--json", *words])
    return next(r["ms_min"] for r in rows if "ms_min" in r)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("nets", nargs="*")
    p.add_argument("--cnnrun", default="build/cnnrun")
    p.add_argument("--rounds", type=int, default=3)
    root = os.path.join(os.path.dirname(__file__), "../..")
    p.add_argument("--picture", default=os.path.join(root, "scripts/nets/digits/seven.png"))
    o = p.parse_args()
    print("%-16s %7s %6s %9s %8s %12s %9s  %s" % ("net", "settled", "worst", "prepared", "in turns", "over default", "over tune", "decided"))
    for name in o.nets or NETS:
        net = os.path.join(root, "scripts/nets", name + ".lua")
        with tempfile.TemporaryDirectory() as folder:
            adapted, tuned = os.path.join(folder, "adapt"), os.path.join(folder, "tune")
            told = learn(o, net, adapted)
            lines([o.cnnrun, "tune", net, "--weights", "random:1", "--cache", tuned, "--no-energy", "--json"])
            ways = [(), ("--cache", adapted, "--adapt"), ("--cache", tuned)]
            least = [min(t) for t in zip(*[[bench(o, net, *w) for w in ways] for _ in range(o.rounds)])]
            print("%-16s %7s %5.2fx %6.0f ms %8.3f %12.3f %9.3f  %s%s%s" % (
                name, told["settled"], told["worst"], told["prepared_ms"], told["turns"], least[1] / least[0], least[1] / least[2],
                told["decided"], " (%d)" % told["kernels"] if told["kernels"] else "", "" if told["right"] else "  WRONG"),
                flush=True)
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder, exist_ok=True)


if __name__ == "__main__":
    main()
