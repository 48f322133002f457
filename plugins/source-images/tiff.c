/* TIFF by libtiff: the first page; layouts of samples as Pillow knows them, others are refused. */
#include "images.h"
#include <math.h>
#include <tiffio.h>

enum { PIXELS_A_BYTE = 1 << 18, MOST_SAMPLES = 8, MAX_BLOCK = 1 << 30 };

/* A TIFF file and what its tags say. */
typedef struct reader {
    const img_bytes *file;
    toff_t at;
    TIFF *tiff;
    char text[300];
    uint16_t photometric, bits, samples, format, planar, packing, extra, orientation;
    int colours; /* samples that matter: 1, 3, or 4 of ink */
    int associated;
    const uint16_t *map[3];
} reader;

/* ---- a file in memory ---- */

/* libtiff asks for n bytes; returns how many it got. */
static tmsize_t take(thandle_t arg, void *to, tmsize_t n) {
    reader *r = arg;
    const toff_t left = r->at < r->file->n ? r->file->n - r->at : 0;
    const tmsize_t got = (toff_t)n < left ? n : (tmsize_t)left;
    memcpy(to, r->file->at + (got ? r->at : 0), (size_t)got);
    r->at += (toff_t)got;
    return got;
}

/* libtiff's function for writing, which it may not: writes 0 bytes. */
static tmsize_t give(thandle_t arg, void *from, tmsize_t n) {
    (void)arg, (void)from, (void)n;
    return 0;
}

/* libtiff moves in the file; returns the new place. */
static toff_t seek(thandle_t arg, toff_t to, int whence) {
    reader *r = arg;
    r->at = to + (whence == SEEK_CUR ? r->at : whence == SEEK_END ? r->file->n : 0);
    return r->at;
}

static toff_t length(thandle_t arg) { return ((reader *)arg)->file->n; }
static int end(thandle_t arg) { return (void)arg, 0; }

/* Keeps the text of libtiff's first error; returns 1: it is dealt with. */
static int note(TIFF *tiff, void *arg, const char *module, const char *format, va_list list) {
    reader *r = arg;
    (void)tiff, (void)module;
    if (!*r->text) vsnprintf(r->text, sizeof r->text, format, list);
    return 1;
}

/* Ignores a warning of libtiff's; returns 1: it is dealt with. */
static int ignore(TIFF *tiff, void *arg, const char *module, const char *format, va_list list) {
    (void)tiff, (void)arg, (void)module, (void)format, (void)list;
    return 1;
}

/* Fails with CNR_E_FORMAT, and libtiff's text. */
static cnr_status damaged(const reader *r, cnr_error *err) {
    return img_host->fail(err, CNR_E_FORMAT, r->file->path, "damaged TIFF: %s",
                          *r->text ? r->text : "the file ends too early");
}

/* ---- what it holds ---- */

/* 1: pixels of this kind (bits, samples, colours) are read. */
static int known(const reader *r) {
    const int grey = r->photometric <= PHOTOMETRIC_MINISBLACK;
    switch (r->bits) {
    case 1: return r->samples == 1 && (grey || r->photometric == PHOTOMETRIC_PALETTE);
    case 2:
    case 4: return r->samples == 1 && (grey || r->photometric == PHOTOMETRIC_PALETTE);
    case 8: return r->format <= SAMPLEFORMAT_INT || r->format == SAMPLEFORMAT_VOID;
    case 12: return grey && r->samples == 1;
    case 16: return r->format <= SAMPLEFORMAT_INT && r->photometric != PHOTOMETRIC_PALETTE;
    case 32: return grey && r->samples == 1;
    default: return 0;
    }
}

/* Reads the tags; fails for a kind that is not read. */
static cnr_status look(reader *r, cnr_error *err) {
    uint16_t *kinds = NULL, *map[3];
    TIFF *t = r->tiff;
    TIFFGetFieldDefaulted(t, TIFFTAG_BITSPERSAMPLE, &r->bits);
    TIFFGetFieldDefaulted(t, TIFFTAG_SAMPLESPERPIXEL, &r->samples);
    TIFFGetFieldDefaulted(t, TIFFTAG_SAMPLEFORMAT, &r->format);
    TIFFGetFieldDefaulted(t, TIFFTAG_PLANARCONFIG, &r->planar);
    TIFFGetFieldDefaulted(t, TIFFTAG_COMPRESSION, &r->packing);
    TIFFGetFieldDefaulted(t, TIFFTAG_ORIENTATION, &r->orientation);
    TIFFGetFieldDefaulted(t, TIFFTAG_EXTRASAMPLES, &r->extra, &kinds);
    if (!TIFFGetField(t, TIFFTAG_PHOTOMETRIC, &r->photometric))
        r->photometric = PHOTOMETRIC_MINISWHITE;
    const int lab = r->photometric == PHOTOMETRIC_CIELAB && r->bits == 8;
    if (r->photometric == PHOTOMETRIC_RGB || lab) r->colours = 3;
    else if (r->photometric == PHOTOMETRIC_SEPARATED) r->colours = 4;
    else if (r->photometric <= PHOTOMETRIC_PALETTE) r->colours = 1;
    r->associated = r->colours < 4 && r->extra && kinds[0] == EXTRASAMPLE_ASSOCALPHA;
    if (r->photometric == PHOTOMETRIC_PALETTE) {
        if (r->bits > 8 || !TIFFGetField(t, TIFFTAG_COLORMAP, &map[0], &map[1], &map[2]))
            return damaged(r, err);
        for (int c = 0; c < 3; c++) r->map[c] = map[c];
    }
    if (r->photometric == PHOTOMETRIC_YCBCR) return CNR_OK; /* libtiff makes colours of it */
    if (r->colours && r->samples >= r->colours && r->samples <= MOST_SAMPLES && known(r))
        return CNR_OK;
    return img_host->fail(err, CNR_E_UNSUPPORTED, r->file->path,
                          "a TIFF of %d samples of %d bits in colour space %d, which is not read",
                          r->samples, r->bits, r->photometric);
}

/* ---- samples to levels ---- */

static uint8_t cut(double v) { return v >= 255 ? 255 : v > 0 ? (uint8_t)v : 0; }

/* Sample i of a row. Grey of more than 8 bits is cut at 255, as Pillow's convert("RGB") has it;
 * of colours the high byte counts. */
static uint8_t level(const reader *r, const uint8_t *row, int64_t i) {
    const int inverted = r->photometric == PHOTOMETRIC_MINISWHITE;
    if (r->bits < 8) {
        const unsigned most = (1u << r->bits) - 1, per = 8u / r->bits;
        const unsigned v = row[i / per] >> (8 - r->bits - (unsigned)(i % per) * r->bits) & most;
        if (r->photometric == PHOTOMETRIC_PALETTE) return (uint8_t)v;
        return (uint8_t)((inverted ? most - v : v) * 255 / most);
    }
    if (r->bits == 8) return inverted ? (uint8_t)(255 - row[i]) : row[i];
    if (r->bits == 12) {
        const uint8_t *b = row + i / 2 * 3;
        return cut(i % 2 ? (b[1] & 15) << 8 | b[2] : b[0] << 4 | b[1] >> 4);
    }
    if (r->bits == 16) {
        uint16_t v;
        memcpy(&v, row + 2 * i, sizeof v);
        if (r->colours > 1 || r->samples > 1) return (uint8_t)(v >> 8);
        return cut(r->format == SAMPLEFORMAT_INT ? (double)(int16_t)v : v);
    }
    if (r->format == SAMPLEFORMAT_IEEEFP) {
        float v;
        memcpy(&v, row + 4 * i, sizeof v);
        return cut((double)v);
    }
    int32_t v;
    memcpy(&v, row + 4 * i, sizeof v);
    return cut(r->format == SAMPLEFORMAT_INT ? v : (double)(uint32_t)v);
}

/* A colour v that was multiplied by alpha, without that; at most 255. */
static uint8_t unmultiplied(unsigned v, unsigned alpha) {
    const unsigned whole = alpha ? 255 * v / alpha : v;
    return (uint8_t)(whole > 255 ? 255 : whole);
}

/* a * b / 255 for bytes, rounded. */
static unsigned share(unsigned a, unsigned b) {
    const unsigned t = a * b + 128;
    return (t + (t >> 8)) >> 8;
}

/* CIE's L*a*b* under D50 to sRGB; a* and b* are signed bytes. */
static void from_lab(const uint8_t *s, uint8_t *to) {
    static const double white[3] = {0.9642, 1, 0.8249},
                        matrix[3][3] = {{3.1338561, -1.6168667, -0.4906146},
                                        {-0.9787684, 1.9161415, 0.0334540},
                                        {0.0719453, -0.2289914, 1.4052427}};
    const double y = (s[0] / 2.55 + 16) / 116;
    const double f[3] = {y + (int8_t)s[1] / 500.0, y, y - (int8_t)s[2] / 200.0};
    double xyz[3];
    for (int i = 0; i < 3; i++)
        xyz[i] =
            white[i] * (f[i] > 6.0 / 29 ? f[i] * f[i] * f[i] : 108.0 / 841 * (f[i] - 4.0 / 29));
    for (int c = 0; c < 3; c++) {
        double v = matrix[c][0] * xyz[0] + matrix[c][1] * xyz[1] + matrix[c][2] * xyz[2];
        v = v <= 0.0031308 ? 12.92 * v : 1.055 * pow(v, 1 / 2.4) - 0.055;
        to[c] = cut(v * 255 + 0.5);
    }
}

/* Writes a pixel as grey or RGB to `to`; s: the pixel's levels, alpha or ink behind. */
static void paint(const reader *r, const uint8_t *s, uint8_t *to) {
    if (r->photometric == PHOTOMETRIC_PALETTE) {
        for (int c = 0; c < 3; c++) to[c] = (uint8_t)(r->map[c][s[0]] >> 8);
    } else if (r->photometric == PHOTOMETRIC_CIELAB) {
        from_lab(s, to);
    } else if (r->colours == 4) {
        for (int c = 0; c < 3; c++) {
            const unsigned light = 255u - s[3], ink = share(s[c], light);
            to[c] = (uint8_t)(light - ink);
        }
    } else {
        for (int c = 0; c < r->colours; c++)
            to[c] = r->associated ? unmultiplied(s[c], s[r->colours]) : s[c];
    }
}

/* ---- blocks: strips and tiles, of all samples or of one ---- */

/* A strip or tile: its rectangle of the picture, and bytes of one of its rows. */
typedef struct block {
    int64_t x, y, w, h; /* its place and size in pixels of the picture */
    int64_t stride;     /* bytes of its rows */
} block;

/* One plane of a picture whose samples lie apart is kept in `planes` until all are there. */
static void lay(const reader *r, const block *b, const uint8_t *data, int plane, uint8_t *planes,
                img_picture *out) {
    const int apart = r->planar == PLANARCONFIG_SEPARATE && r->samples > 1;
    uint8_t s[MOST_SAMPLES];
    for (int64_t y = 0; y < b->h && b->y + y < out->h; y++)
        for (int64_t x = 0; x < b->w && b->x + x < out->w; x++) {
            const uint8_t *row = data + y * b->stride;
            const int64_t at = (b->y + y) * out->w + b->x + x;
            if (apart) {
                planes[at * r->samples + plane] = level(r, row, x);
                continue;
            }
            for (int k = 0; k < r->samples; k++) s[k] = level(r, row, x * r->samples + k);
            paint(r, s, out->data + at * out->c);
        }
}

/* Reads one tile (tiled) or strip of a plane into data; the bytes read, or negative. */
static tmsize_t read_block(const reader *r, const block *b, int plane, int tiled, uint8_t *data,
                           tmsize_t room) {
    const uint16_t sample = (uint16_t)plane;
    if (tiled)
        return TIFFReadEncodedTile(r->tiff,
                                   TIFFComputeTile(r->tiff, (uint32_t)b->x, (uint32_t)b->y, 0,
                                                   sample),
                                   data, room);
    return TIFFReadEncodedStrip(r->tiff, TIFFComputeStrip(r->tiff, (uint32_t)b->y, sample), data,
                                room);
}

/* Reads all blocks into *out; planes: room where colours stand apart. */
static cnr_status read_blocks(reader *r, uint8_t *data, tmsize_t room, uint8_t *planes,
                              img_picture *out, cnr_error *err) {
    const int tiled = TIFFIsTiled(r->tiff);
    const int apart = r->planar == PLANARCONFIG_SEPARATE && r->samples > 1;
    uint32_t w = (uint32_t)out->w, h = (uint32_t)out->h;
    if (tiled) {
        TIFFGetField(r->tiff, TIFFTAG_TILEWIDTH, &w);
        TIFFGetField(r->tiff, TIFFTAG_TILELENGTH, &h);
    } else {
        TIFFGetFieldDefaulted(r->tiff, TIFFTAG_ROWSPERSTRIP, &h);
        if (h > out->h) h = (uint32_t)out->h;
    }
    if (w < 1 || h < 1) return damaged(r, err);
    const int matter = r->colours + (r->associated != 0); /* others may be missing */
    const int64_t stride = tiled ? TIFFTileRowSize(r->tiff) : TIFFScanlineSize(r->tiff);
    for (int plane = 0; plane < (apart ? matter : 1); plane++)
        for (int64_t y = 0; y < out->h; y += h)
            for (int64_t x = 0; x < out->w; x += w) {
                const block b = {x, y, w, !tiled && y + h > out->h ? out->h - y : h, stride};
                memset(data, 0, (size_t)room); /* decoders of damaged data skip samples */
                if (read_block(r, &b, plane, tiled, data, room) < stride * b.h)
                    return damaged(r, err);
                lay(r, &b, data, plane, planes, out);
            }
    for (int64_t i = 0; apart && i < out->h * out->w; i++)
        paint(r, planes + i * r->samples, out->data + i * out->c);
    return CNR_OK;
}

/* Decodes all strips or tiles of the page into *out, as grey or RGB; fails where one is damaged. */
static cnr_status decode(reader *r, img_picture *out, cnr_error *err) {
    const tmsize_t room = TIFFIsTiled(r->tiff) ? TIFFTileSize(r->tiff) : TIFFStripSize(r->tiff);
    const int apart = r->planar == PLANARCONFIG_SEPARATE && r->samples > 1;
    if (room <= 0 || room > MAX_BLOCK) return damaged(r, err);
    uint8_t *data = img_host->alloc((size_t)room + 4);
    uint8_t *planes = apart ? img_host->alloc((size_t)(out->h * out->w * r->samples)) : NULL;
    cnr_status status = data && (planes || !apart)
                            ? read_blocks(r, data, room, planes, out, err)
                            : img_host->fail(err, CNR_E_MEMORY, r->file->path, "out of memory");
    img_host->free(planes);
    img_host->free(data);
    return status;
}

/* Luminance and colour differences, whatever they are packed by: libtiff's own conversion. */
static cnr_status convert(reader *r, img_picture *out, cnr_error *err) {
    const size_t n = (size_t)(out->h * out->w);
    uint32_t *pixels = img_host->alloc(n * sizeof *pixels);
    if (!pixels) return img_host->fail(err, CNR_E_MEMORY, r->file->path, "out of memory");
    const int good = TIFFReadRGBAImageOriented(r->tiff, (uint32_t)out->w, (uint32_t)out->h, pixels,
                                               r->orientation, 1);
    for (size_t i = 0; good && i < n; i++) {
        out->data[3 * i] = (uint8_t)TIFFGetR(pixels[i]);
        out->data[3 * i + 1] = (uint8_t)TIFFGetG(pixels[i]);
        out->data[3 * i + 2] = (uint8_t)TIFFGetB(pixels[i]);
    }
    img_host->free(pixels);
    return good ? CNR_OK : damaged(r, err);
}

/* Reads the first page into *out, turned upright; fails where its kind is unknown or it is
 * damaged. */
static cnr_status read_page(reader *r, img_picture *out, cnr_error *err) {
    uint32_t w = 0, h = 0;
    TIFFGetField(r->tiff, TIFFTAG_IMAGEWIDTH, &w);
    TIFFGetField(r->tiff, TIFFTAG_IMAGELENGTH, &h);
    cnr_status status = look(r, err);
    const int grey = r->colours == 1 && r->photometric != PHOTOMETRIC_PALETTE;
    if (!status) status = img_make(out, h, w, grey ? 1 : 3, r->file, PIXELS_A_BYTE, err);
    if (status) return status;
    status = r->photometric == PHOTOMETRIC_YCBCR ? convert(r, out, err) : decode(r, out, err);
    if (!status) status = img_orient(out, r->orientation, r->file->path, err);
    if (status) img_drop(out);
    return status;
}

/* Reads the first page of a TIFF into *out. */
cnr_status img_read_tiff(const img_bytes *file, img_picture *out, cnr_error *err) {
    reader *r = img_host->alloc(sizeof *r);
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    cnr_status status = CNR_OK;
    if (r) {
        memset(r, 0, sizeof *r);
        r->file = file;
    }
    if (r && options) {
        TIFFOpenOptionsSetMaxSingleMemAlloc(options, MAX_BLOCK);
        TIFFOpenOptionsSetErrorHandlerExtR(options, note, r);
        TIFFOpenOptionsSetWarningHandlerExtR(options, ignore, r);
        r->tiff = TIFFClientOpenExt(file->path, "rm", r, take, give, seek, end, length, NULL, NULL,
                                    options);
        status = r->tiff ? read_page(r, out, err) : damaged(r, err);
        if (r->tiff) TIFFClose(r->tiff);
    } else {
        status = img_host->fail(err, CNR_E_MEMORY, file->path, "out of memory");
    }
    if (options) TIFFOpenOptionsFree(options);
    img_host->free(r);
    return status;
}
