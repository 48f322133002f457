"""Pictures one behind the other, the tracker, the list of plugins."""

import sys
import tempfile
from pathlib import Path

import numpy as np

import cnnrun
from tap import ok, raises

digits = Path(sys.argv[1]) / "digits"

rows = {row["name"]: row for row in cnnrun.plugins() if row["refused"] is None}
ok(rows["cpu-neon"]["version"] and Path(rows["cpu-neon"]["file"]).exists(), "plugins have names, versions, files")

seen = [(picture.shape, picture.dtype, Path(name).name) for picture, seconds, name in cnnrun.frames(digits)]
ok(len(seen) == 10 and seen[0] == ((84, 84, 1), np.uint8, "eight.png"), "a folder's pictures in order")
with cnnrun.frames(digits) as frames:
    first = next(frames)
    ok(first.seconds is None and next(frames).name != first.name, "one after the other")
ok(next(frames, None) is None, "a closed one has no more")
raises(cnnrun.Error, "a source that is not there", cnnrun.frames, "/nowhere.mp4")

# A textured square that moves by two pixels a frame over noise.
rng = np.random.default_rng(1)
ground = rng.integers(90, 130, (120, 160, 3), np.uint8)
thing = rng.integers(0, 255, (8, 8, 3), np.uint8).repeat(4, 0).repeat(4, 1)


def picture(i):
    """Picture i, in which the thing has moved by 2 i pixels."""
    out = ground.copy()
    out[40:72, 30 + 2 * i:62 + 2 * i] = thing
    return out


tracker = cnnrun.tracker(seed=1)
tracker.init(picture(0), (30, 40, 32, 32))
found = [tracker.track(picture(i)) for i in range(1, 11)]
box, confidence = found[-1]
ok(box is not None and abs(box[0] - 50) < 4 and abs(box[1] - 40) < 4, "the tracker follows a square")
ok(0 < confidence <= 1, "with a confidence")
raises(cnnrun.Error, "a box of three numbers", tracker.init, picture(0), (1, 2, 3))
raises(cnnrun.Error, "an unknown option", cnnrun.tracker, colour=1)

with tempfile.TemporaryDirectory() as folder:
    for i in range(6):
        Path(folder, f"{i:02}.ppm").write_bytes(b"P6 160 120 255\n" + picture(i).tobytes())
    Path(folder, "03.ppm").write_bytes(b"nothing")
    good, errors = 0, 0
    frames = cnnrun.frames(folder)
    while True:
        try:
            next(frames)
            good += 1
        except StopIteration:
            break
        except cnnrun.Error:
            errors += 1
    ok((good, errors) == (5, 1), "a picture that cannot be read is an error, and passed over")
    Path(folder, "03.ppm").unlink()
    boxes = list(cnnrun.track(folder, (30, 40, 32, 32), seed=1))
    ok(len(boxes) == 4 and all(len(b) == 3 for b in boxes), "track goes through a source")
    ok(boxes[0][1] is not None and abs(boxes[0][1][0] - 32) < 4, "and finds the box")

for round in range(300):
    for _ in cnnrun.frames(digits / "three.png"):
        pass
    if round == 100:
        before = int(Path("/proc/self/statm").read_text().split()[1])
ok(int(Path("/proc/self/statm").read_text().split()[1]) - before < 500, "nothing piles up")
