#!/usr/bin/env python3
"""A frame's time and F at overlap .25: cnnrun track beside OpenCV's legacy TLD, on one core, frame by frame.

Wants opencv-contrib-python (a virtual environment will do). OpenCV's tracker tells no stages. With --stages
those that it is made of are run alone: what is made of a picture once (grey, blur, pyramid, integral
images), its median flow (the tracker of that name, which its TLD has inside), and for detector and learning
what TLD takes beyond the flow.

    python3 tests/bench/opencv_tld.py build/cnnrun DIR... [--stages] [--frames N] [--seed N]
"""
import argparse
import csv
import glob
import json
import os
import subprocess
import sys
import tempfile
import time

import cv2


def truth_of(folder):
    """The true boxes of a sequence."""
    boxes = []
    with open(os.path.join(folder, "gt.txt"), encoding="ascii") as lines:
        for line in lines:
            x0, y0, x1, y1 = (float(v) for v in line.split(","))
            boxes.append((x0, y0, x1 - x0, y1 - y0) if x0 == x0 else None)
    return boxes


def overlap(a, b):
    """Common area of two boxes by the area of both."""
    if not a or not b:
        return 0
    w = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    h = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    return w * h / (a[2] * a[3] + b[2] * b[3] - w * h) if w > 0 and h > 0 else 0


def score(boxes, truth):
    """Precision, recall and their mean."""
    right = sum(overlap(a, b) > 0.25 for a, b in zip(boxes, truth))
    said, seen = sum(b is not None for b in boxes), sum(t is not None for t in truth[:len(boxes)])
    return 2 * right / max(1, said + seen)


def frames_of(folder, n):
    """The first n pictures with their numbers."""
    for i, path in enumerate(sorted(glob.glob(folder + "/*.jpg"))[:n]):
        yield i, cv2.imread(path)


def opencv(tracker, folder, first, n):
    """Boxes and times by OpenCV's tracker."""
    boxes, times = [], []
    for i, frame in frames_of(folder, n):
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
    """Boxes and times by cnnrun."""
    box = ",".join(str(v) for v in first)
    run = subprocess.run([program, "--threads", "1", "track", folder, "--box", box, "--json", "--times", "--seed",
                          str(seed)], check=True, capture_output=True, text=True)
    rows = [json.loads(line) for line in run.stdout.splitlines()][:n]
    return ([tuple(r["box"]) if r["box"] else None for r in rows], sorted(r["ms"] for r in rows if "ms" in r))


def once_a_picture(folder, n):
    """The median of what is made of each picture, as the tracker needs it."""
    times = []
    for _, frame in frames_of(folder, n):
        begun = time.perf_counter()
        grey = cv2.cvtColor(frame, cv2.COLOR_BGR2GRAY)
        cv2.GaussianBlur(grey, (0, 0), 2)
        cv2.buildOpticalFlowPyramid(grey, (9, 9), 5, withDerivatives=False)
        cv2.integral2(grey)
        times.append(1000 * (time.perf_counter() - begun))
    return middle(sorted(times))


def middle(times):
    """The median of sorted times; NaN: there are none."""
    return times[len(times) // 2] if times else float("nan")


def stages(program, folder, first, n):
    """Times of the tracker's stages."""
    script = os.path.join(os.path.dirname(__file__), "../../scripts/bench/track.lua")
    with tempfile.TemporaryDirectory() as out:
        subprocess.run([program, script, "-o", out, folder, "--seeds", "1", "-q"], check=True, capture_output=True)
        with open(os.path.join(out, "times.csv"), encoding="ascii") as lines:
            row = {k: v if k in ("sequence", "size") else float(v) for k, v in next(csv.DictReader(lines)).items()}
    flow = middle(opencv(cv2.legacy.TrackerMedianFlow_create(), folder, first, n)[1])
    whole = middle(opencv(cv2.legacy.TrackerTLD_create(), folder, first, n)[1])
    rows = (("once a picture", row["view"], once_a_picture(folder, n)), ("median flow", row["flow"], flow),
            ("detector, learning", row["detector"] + row["learning"], whole - flow), ("all", row["all"], whole))
    print(f"{row['sequence']}, {row['size']}, ms     {'cnnrun':>8} {'OpenCV':>8} {'times':>6}")
    for name, mine, theirs in rows:
        print(f"  {name:22} {mine:8.3f} {theirs:8.3f} {theirs / mine:6.1f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--frames", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stages", action="store_true")
    args = parser.parse_args()
    cv2.setNumThreads(1)
    for folder in args.folders if args.stages else ():
        stages(args.program, folder, truth_of(folder)[0], args.frames)
    if args.stages:
        return
    print(f"{'sequence':16} {'who':8} {'median ms':>10} {'p95 ms':>8} {'F':>6}")
    for folder in args.folders:
        truth = truth_of(folder)
        for who, (boxes, times) in (("cnnrun", ours(args.program, folder, truth[0], args.frames, args.seed)),
                                    ("OpenCV", opencv(cv2.legacy.TrackerTLD_create(), folder, truth[0], args.frames))):
            print(f"{os.path.basename(folder.rstrip('/')):16} {who:8} {times[len(times) // 2]:10.2f} "
                  f"{times[len(times) * 95 // 100]:8.2f} {score(boxes, truth):6.3f}")


if __name__ == "__main__":
    main()
