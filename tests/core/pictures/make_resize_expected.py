#!/usr/bin/env python3
"""Writes resize_expected.inc: checksums of Pillow's bilinear results (Pillow 12; see resize.c)."""
import zlib
from PIL import Image

def picture(h, w, c):
    """The generator that test_resize.c has too: high bytes of a 32-bit linear congruence."""
    x, out = h * 65536 + w * 16 + c, bytearray()
    for _ in range(h * w * c):
        x = (x * 1664525 + 1013904223) & 0xffffffff
        out.append(x >> 24)
    return Image.frombytes("L" if c == 1 else "RGB", (w, h), bytes(out))

sides = [1, 2, 3, 5, 8, 17, 28, 31, 64, 100, 127, 227]
cases = []
for i, h in enumerate(sides):
    for j, w in enumerate(sides):
        for k in range(3):
            oh, ow = sides[(i * 5 + j + 3 * k) % 12], sides[(j * 7 + i + 5 * k + 1) % 12]
            cases.append((h, w, 1 if (i + j + k) % 3 == 0 else 3, oh, ow))
cases += [(375, 500, 3, 256, 341), (500, 375, 3, 341, 256), (1000, 7, 1, 3, 7), (7, 3000, 3, 7, 2)]
with open("resize_expected.inc", "w") as f:
    for h, w, c, oh, ow in cases:
        out = picture(h, w, c).resize((ow, oh), Image.BILINEAR).tobytes()
        f.write("{%d, %d, %d, %d, %d, 0x%08xu},\n" % (h, w, c, oh, ow, zlib.adler32(out)))
