#!/usr/bin/env python3
"""Draws pictures/: one small picture in the forms that JPEG and PNG come in (with Pillow).

48 x 32: red, green above blue, white; grey ones 40, 200 above 120, 255."""
import struct, zlib
from PIL import Image

W, H = 48, 32
colours = [[(220, 30, 40), (30, 200, 60)], [(40, 60, 210), (255, 255, 255)]]
greys = [[40, 200], [120, 255]]

def draw(mode, table):
    """A picture of four colours."""
    im = Image.new(mode, (W, H))
    for y in range(2):
        for x in range(2):
            im.paste(table[y][x], (x * W // 2, y * H // 2, (x + 1) * W // 2, (y + 1) * H // 2))
    return im

rgb, grey = draw("RGB", colours), draw("L", greys)
out = "pictures/"
rgb.save(out + "rgb.jpg", quality=95, subsampling=0)
rgb.save(out + "progressive.jpg", quality=95, progressive=True)
grey.save(out + "grey.jpg", quality=95)
rgb.convert("CMYK").save(out + "cmyk.jpg", quality=95)
turns = {2: Image.FLIP_LEFT_RIGHT, 3: Image.ROTATE_180, 4: Image.FLIP_TOP_BOTTOM,
         5: Image.TRANSPOSE, 6: Image.ROTATE_90, 7: Image.TRANSVERSE, 8: Image.ROTATE_270}
for n, turn in turns.items():  # stored so that orientation n makes it upright again
    exif = Image.Exif()
    exif[0x0112] = n
    rgb.transpose(turn).save(out + "exif%d.jpg" % n, quality=95, subsampling=0, exif=exif)
exif = Image.Exif()
exif[0x0112] = 6
rgb.transpose(turns[6]).save(out + "exif6.png", exif=exif)

rgb.save(out + "rgb.png")
grey.save(out + "grey.png")
rgb.convert("P", palette=Image.ADAPTIVE, colors=4).save(out + "palette.png")
draw("RGBA", [[c + (255,) for c in row] for row in colours[:1]] +
     [[colours[1][0] + (255,), (9, 9, 9, 0)]]).save(out + "alpha.png")  # clear, and read as 9, as Pillow converts
draw("LA", [[(40, 255), (200, 255)], [(120, 255), (7, 0)]]).save(out + "greyalpha.png")
clear = draw("P", [[0, 1], [2, 3]])
clear.putpalette([v for row in colours for c in row for v in c])
clear.save(out + "clear.png", transparency=3)
grey.point(lambda v: 255 if v > 150 else 0).convert("1").save(out + "bits.png")

def chunk(kind, data):
    """A chunk of PNG."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

def png(name, depth, kind, interlace, rows):
    """Writes a PNG."""
    with open(out + name, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", W, H, depth, kind, 0, 0, interlace)))
        f.write(chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))

def pixel(x, y):
    """The colour of a pixel."""
    return colours[y * 2 // H][x * 2 // W]

deep = b"".join(b"\0" + b"".join(struct.pack(">H", v * 257) for x in range(W) for v in pixel(x, y))
                for y in range(H))
png("deep.png", 16, 2, 0, deep)
passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
woven = b"".join(b"\0" + bytes(v for x in range(x0, W, dx) for v in pixel(x, y))
                 for x0, y0, dx, dy in passes for y in range(y0, H, dy))
png("interlaced.png", 8, 2, 1, woven)

# ---- what else is read; ImageMagick and libheif write none of these differently ----
rgb.save(out + "rgb.bmp")
rgb.convert("P", palette=Image.ADAPTIVE, colors=4).save(out + "palette.bmp")
grey.point(lambda v: 255 if v > 150 else 0).convert("1").save(out + "bits.bmp")

def bmp(name, header, bits, packing, palette, data, masks=b"", h=H):
    """Writes a BMP."""
    info = struct.pack("<IiiHHIIIIII", 40, W, h, 1, bits, packing, len(data), 0, 0, len(palette) // 4, 0)
    if header == 12:
        info = struct.pack("<IHHHH", 12, W, h, 1, bits)
    start = 14 + len(info) + len(masks) + len(palette)
    with open(out + name, "wb") as f:
        f.write(b"BM" + struct.pack("<IHHI", start + len(data), 0, 0, start) + info + masks + palette + data)

four = b"".join(bytes(reversed(c)) + b"\0" for row in colours for c in row)
rows = [[y * 2 // H * 2 + x * 2 // W for x in range(W)] for y in range(H)]
bmp("rle8.bmp", 40, 8, 1, four, b"".join(
    bytes([W // 2, row[0], 0, W // 2]) + bytes(row[W // 2:]) + b"\0\0" for row in reversed(rows)) + b"\0\1")
bmp("rle4.bmp", 40, 4, 2, four, b"".join(
    bytes([W // 2, row[0] * 17, W // 2, row[-1] * 17]) + b"\0\0" for row in reversed(rows)) + b"\0\1")
bmp("565.bmp", 40, 16, 3, b"", b"".join(
    struct.pack("<H", round(r * 31 / 255) << 11 | round(g * 63 / 255) << 5 | round(b * 31 / 255))
    for y in reversed(range(H)) for x in range(W) for r, g, b in [pixel(x, y)]),
    struct.pack("<III", 0xf800, 0x7e0, 0x1f))
bmp("down.bmp", 40, 24, 0, b"", b"".join(bytes(reversed(pixel(x, y))) for y in range(H) for x in range(W)), h=-H)

rgb.save(out + "rgb.ppm")
grey.save(out + "grey.pgm")
grey.point(lambda v: 255 if v > 150 else 0).convert("1").save(out + "bits.pbm")
with open(out + "plain.ppm", "w") as f:
    f.write("P3 # plain\n%d %d\n100\n" % (W, H))
    for y in range(H):
        f.write(" ".join(str(round(v * 100 / 255)) for x in range(W) for v in pixel(x, y)) + "\n")
with open(out + "rgb.pam", "wb") as f:
    f.write(b"P7\nWIDTH %d\nHEIGHT %d\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n" % (W, H))
    f.write(b"".join(bytes(pixel(x, y)) + b"\x80" for y in range(H) for x in range(W)))

with open(out + "thumbnail.p7", "wb") as f: # XV's
    f.write(b"P7 332\n#END_OF_COMMENTS\n%d %d 255\n" % (W, H))
    f.write(bytes(r >> 5 << 5 | g >> 5 << 2 | b >> 6 for y in range(H) for x in range(W) for r, g, b in [pixel(x, y)]))

def planar(name): # grey, with a plane that does not matter and is not there
    """Writes a TIFF whose colours stand apart."""
    entries = [(256, 4, W), (257, 4, H), (258, 3, 8 | 8 << 16), (259, 3, 1), (262, 3, 1), (273, 4, None), (277, 3, 2),
               (278, 4, H), (279, 4, None), (284, 3, 2), (338, 3, 0)]
    start = 8 + 2 + 12 * len(entries) + 4
    data = b"II*\0" + struct.pack("<IH", 8, len(entries))
    for tag, kind, value in entries:
        if value is None:
            data += struct.pack("<HHII", tag, kind, 2, start + (0 if tag == 273 else 8))
        else:
            data += struct.pack("<HHII", tag, kind, 2 if tag == 258 else 1, value)
    data += struct.pack("<I", 0) + struct.pack("<II", start + 16, 0) + struct.pack("<II", W * H, 0)
    with open(out + name, "wb") as f:
        f.write(data + bytes(grey.getpixel((x, y)) for y in range(H) for x in range(W)))
planar("planar.tif")

rgb.quantize(4).save(out + "rgb.gif", interlace=0)
rgb.quantize(4).save(out + "woven.gif", interlace=1)
rgb.save(out + "lzw.tif", compression="tiff_lzw")
rgb.convert("CMYK").save(out + "cmyk.tif", compression="tiff_adobe_deflate")
grey.save(out + "grey.tif", compression="packbits")
rgb.quantize(4).save(out + "palette.tif", compression="tiff_lzw")
grey.point(lambda v: 255 if v > 150 else 0).convert("1").save(out + "bits.tif", compression="group4")
rgb.save(out + "jpeg.tif", compression="jpeg", quality=95)
rgb.transpose(turns[6]).save(out + "turned.tif", compression="tiff_lzw", tiffinfo={274: 6})
rgb.save(out + "rgb.webp", lossless=True)
rgb.save(out + "lossy.webp", quality=95)
rgb.save(out + "rgb.avif", quality=95, subsampling="4:4:4")
import pillow_heif
pillow_heif.from_pillow(rgb).save(out + "rgb.heic", quality=95, chroma=444)
