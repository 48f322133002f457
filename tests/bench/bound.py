#!/usr/bin/env python3
"""Nets under a memory bound: what the process holds at most, its answers and its time.

    tests/bench/bound.py NET.onnx ... [--parts 8,20] [--cnnrun build/cnnrun] [--picture FILE] [--runs 3]

A line for each net and part: the bound is the bytes of the weights' file over the part. "above" is VmHWM less the bound less
LeNet's VmHWM, in MiB; "time" is the least run under the bound over the least without one; "answers" compares what `cnnrun run`
prints of both. A bound that is refused, since values between steps need most of it, is tried again with these on top, and as the
least that the message names. NET:FILE names the file of the
weights where it is another.
"""
import argparse
import json
import os
import re
import subprocess

ROOT = os.path.join(os.path.dirname(__file__), "../..")


def rows(words):
    """(JSON lines, what was written to stderr) of a command."""
    out = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=500)
    return [json.loads(line) for line in out.stdout.splitlines() if line.startswith("{")], out.stderr


def bench(o, net, *words):
    """(milliseconds, peak bytes) of a net; or its error."""
    lines, err = rows([o.cnnrun, "bench", net, "--runs", str(o.runs), "--no-cache", "--json", *words])
    row = next((r for r in lines if "ms_min" in r), None)
    return (row["ms_min"], row["peak_rss_bytes"]) if row else err.strip().splitlines()[-1]


def numbers(x):
    """All numbers and names of an answer, but its time."""
    if isinstance(x, dict):
        return [v for k, each in x.items() if k not in ("ms", "input") for v in numbers(each)]
    return [v for each in x for v in numbers(each)] if isinstance(x, list) else [x]


def answers(o, net, *words):
    """What `run` prints of a picture."""
    lines, err = rows([o.cnnrun, "run", net, o.picture, "--no-cache", "--json", *words])
    return [v for line in lines for v in numbers(line)] or [err.strip()[-100:]]


def differ(one, two):
    """The largest difference, relative to the largest number; text: they are no such answers."""
    floats = lambda list: [float(v) for v in list if isinstance(v, (int, float)) and v is not None]
    a, b = floats(one), floats(two)
    if len(one) != len(two) or not a:
        return "%s, %s" % (one[:3], two[:3])
    top = max(abs(v) for v in a) or 1
    return "%.0e" % (max(abs(x - y) for x, y in zip(a, b)) / top)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("nets", nargs="+")
    p.add_argument("--cnnrun", default=os.path.join(ROOT, "build/cnnrun"))
    p.add_argument("--parts", default="8,20")
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--picture", default=os.path.join(ROOT, "scripts/nets/digits/seven.png"))
    o = p.parse_args()
    small = bench(o, os.path.join(ROOT, "scripts/nets/lenet5.lua"))[1]
    print("%-22s %4s %10s %8s %6s  %s" % ("net", "/", "bound", "above", "time", "answers"))
    for word in o.nets:
        net, _, weights = word.partition(":")
        name, size = os.path.basename(net), os.path.getsize(weights or net)
        free = bench(o, net)
        if isinstance(free, str):
            print("%-22s %s" % (name, free))
            continue
        right = answers(o, net)
        for part in o.parts.split(","):
            bounds = [size // int(part)]
            for bound in bounds:
                got = bench(o, net, "--memory", str(bound))
                if isinstance(got, str):
                    print("%-22s %4s %10d %s" % (name, part, bound, got), flush=True)
                    told = re.search(r"values between steps take (\d+).*want at least (\d+)", got)
                    if told and len(bounds) == 1:
                        bounds += [max(int(told.group(1)) + bound, int(told.group(2))), int(told.group(2))]
                    continue
                print("%-22s %4s %10d %8.1f %6.2f  %s" % (name, part, bound, (got[1] - bound - small) / 1048576, got[0] / free[0],
                                                        differ(right, answers(o, net, "--memory", str(bound)))), flush=True)


if __name__ == "__main__":
    main()
