#!/usr/bin/env python3
"""A frame's time and F at overlap .25: cnnrun track beside OpenCV's legacy TLD, on one core, frame by frame.

Wants opencv-contrib-python (a virtual environment will do). OpenCV's tracker tells no stages, so only
whole frames stand beside each other; ours by stage are in times.csv of scripts/bench/track.lua.

    python3 tests/bench/opencv_tld.py build/cnnrun DIR... [--frames N] [--seed N]
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import time

import cv2


def truth_of(folder):
    boxes = []
    with open(os.path.join(folder, "gt.txt"), encoding="ascii") as lines:
        for line in lines:
            x0, y0, x1, y1 = (float(v) for v in line.split(","))
            boxes.append((x0, y0, x1 - x0, y1 - y0) if x0 == x0 else None)
    return boxes


def overlap(a, b):
    if not a or not b:
        return 0
    w = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    h = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    return w * h / (a[2] * a[3] + b[2] * b[3] - w * h) if w > 0 and h > 0 else 0


def score(boxes, truth):
    right = sum(overlap(a, b) > 0.25 for a, b in zip(boxes, truth))
    said, seen = sum(b is not None for b in boxes), sum(t is not None for t in truth[:len(boxes)])
    return 2 * right / max(1, said + seen)


def opencv(folder, first, n):
    cv2.setNumThreads(1)
    tracker, boxes, times = cv2.legacy.TrackerTLD_create(), [], []
    for i, path in enumerate(sorted(glob.glob(folder + "/*.jpg"))[:n]):
        frame = cv2.imread(path)
        begun = time.perf_counter()
        if i == 0:
            tracker.init(frame, tuple(int(v) for v in first))
            boxes.append(first)
            continue
        try:
            found, box = tracker.update(frame)
        except cv2.error as error:
            print(f"OpenCV ended at frame {i + 1}: {error}".strip(), file=sys.stderr)
            break
        times.append(1000 * (time.perf_counter() - begun))
        boxes.append(tuple(box) if found else None)
    return boxes, sorted(times)


def ours(program, folder, first, n, seed):
    box = ",".join(str(v) for v in first)
    run = subprocess.run([program, "--threads", "1", "track", folder, "--box", box, "--json", "--times", "--seed",
                          str(seed)], check=True, capture_output=True, text=True)
    rows = [json.loads(line) for line in run.stdout.splitlines()][:n]
    return ([tuple(r["box"]) if r["box"] else None for r in rows], sorted(r["ms"] for r in rows if "ms" in r))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--frames", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    print(f"{'sequence':16} {'who':8} {'median ms':>10} {'p95 ms':>8} {'F':>6}")
    for folder in args.folders:
        truth = truth_of(folder)
        for who, (boxes, times) in (("cnnrun", ours(args.program, folder, truth[0], args.frames, args.seed)),
                                    ("OpenCV", opencv(folder, truth[0], args.frames))):
            print(f"{os.path.basename(folder.rstrip('/')):16} {who:8} {times[len(times) // 2]:10.2f} "
                  f"{times[len(times) * 95 // 100]:8.2f} {score(boxes, truth):6.3f}")


if __name__ == "__main__":
    main()
