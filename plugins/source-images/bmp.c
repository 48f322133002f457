/* Decodes BMP: 1 to 32 bits, palettes, run lengths and the common bit masks, without a library. */
#include "images.h"

enum { RAW = 0, RLE8 = 1, RLE4 = 2, BITFIELDS = 3, FILE_HEADER = 14, PIXELS_A_BYTE = 1 << 16 };

/* A BMP file and what its headers say. */
typedef struct bitmap {
    const img_bytes *file;
    cnr_error *err;
    size_t header, pixels; /* bytes of the second header; offset of the pixels */
    int64_t w, h;
    int top_down;
    uint32_t bits, packing, colours;
    const uint8_t *palette;
    size_t entry, known;   /* bytes of a palette entry; number of entries in the file */
    int shift[3], wide[3]; /* position of red, green and blue in a pixel, and their bits */
} bitmap;

/* The number of `bytes` bytes at `at`, lowest byte first; bytes past the file's end are 0. */
static uint32_t number(const bitmap *b, size_t at, int bytes) {
    uint32_t v = 0;
    for (int i = bytes - 1; i >= 0; i--)
        v = v << 8 | (at + (size_t)i < b->file->n ? b->file->at[at + (size_t)i] : 0u);
    return v;
}

/* Fails: the file is damaged (CNR_E_FORMAT) or of a kind that is not read. */
static cnr_status refuse(const bitmap *b, int32_t code, const char *text) {
    return img_host->fail(b->err, code, b->file->path, "%s BMP: %s",
                          code == CNR_E_FORMAT ? "damaged" : "a", text);
}

/* 1: the head of a file is a BMP's. */
int img_is_bmp(const uint8_t *head, size_t n) {
    return n >= 18 && head[0] == 'B' && head[1] == 'M' && !head[15] && !head[16] && !head[17];
}

/* ---- headers ---- */

/* Accepts the bit masks that programs write; refuses others. */
static cnr_status read_masks(bitmap *b) {
    static const struct {
        uint32_t bits, mask[3];
    } known[] = {{32, {0xff0000, 0xff00, 0xff}},
                 {32, {0xff000000, 0xff0000, 0xff00}},
                 {32, {0xff000000, 0xff00, 0xff}},
                 {32, {0xff, 0xff00, 0xff0000}},
                 {32, {0, 0, 0}},
                 {24, {0xff0000, 0xff00, 0xff}},
                 {16, {0xf800, 0x7e0, 0x1f}},
                 {16, {0x7c00, 0x3e0, 0x1f}}};
    uint32_t mask[3];
    for (int i = 0; i < 3; i++) mask[i] = number(b, FILE_HEADER + 40 + 4 * (size_t)i, 4);
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
        if (known[k].bits != b->bits || memcmp(known[k].mask, mask, sizeof mask) != 0) continue;
        for (int i = 0; i < 3 && mask[0]; i++) {
            b->shift[i] = __builtin_ctz(mask[i]);
            b->wide[i] = __builtin_popcount(mask[i]);
        }
        return CNR_OK;
    }
    return refuse(b, CNR_E_UNSUPPORTED, "its layout of bits is not known");
}

/* Sets the places of red, green and blue that a pixel has without masks. */
static void usual_masks(bitmap *b) {
    const int wide = b->bits == 16 ? 5 : 8;
    for (int i = 0; i < 3; i++) {
        b->shift[i] = (2 - i) * wide;
        b->wide[i] = wide;
    }
}

/* Finds the palette at `at`; fails where it has too many colours or is cut off. */
static cnr_status read_palette(bitmap *b, size_t at) {
    const uint32_t colours = b->colours ? b->colours : 1u << b->bits;
    if (colours > 65536) return refuse(b, CNR_E_FORMAT, "too many colours");
    if (at > b->file->n) return refuse(b, CNR_E_FORMAT, "it ends before its palette");
    b->palette = b->file->at + at;
    b->known = (b->file->n - at) / b->entry;
    if (b->known > colours) b->known = colours;
    if (b->pixels == at || !b->pixels) b->pixels = at + b->entry * colours;
    return CNR_OK;
}

/* Reads the headers; fails on a damaged or unread kind. */
static cnr_status read_header(bitmap *b) {
    size_t masks = 0;
    b->header = number(b, FILE_HEADER, 4);
    b->pixels = number(b, 10, 4);
    if (b->file->n < FILE_HEADER + b->header)
        return refuse(b, CNR_E_FORMAT, "it ends in its header");
    const size_t at = FILE_HEADER;
    if (b->header == 12) {
        b->w = number(b, at + 4, 2);
        b->h = number(b, at + 6, 2);
        b->bits = number(b, at + 10, 2);
        b->entry = 3;
    } else if (b->header == 40 || b->header == 52 || b->header == 56 || b->header == 64 ||
               b->header == 108 || b->header == 124) {
        b->w = (int32_t)number(b, at + 4, 4);
        b->h = (int32_t)number(b, at + 8, 4);
        b->top_down = b->h < 0;
        if (b->top_down) b->h = -b->h;
        b->bits = number(b, at + 14, 2);
        b->packing = number(b, at + 16, 4);
        b->colours = number(b, at + 32, 4);
        b->entry = 4;
    } else {
        return refuse(b, CNR_E_UNSUPPORTED, "its kind of header is not known");
    }
    const int depth = b->bits == 1 || b->bits == 4 || b->bits == 8 || b->bits == 16 ||
                      b->bits == 24 || b->bits == 32;
    if (!depth) return refuse(b, CNR_E_UNSUPPORTED, "want 1, 4, 8, 16, 24 or 32 bits a pixel");
    if (b->packing > BITFIELDS || (b->packing == RLE8 && b->bits != 8) ||
        (b->packing == RLE4 && b->bits != 4))
        return refuse(b, CNR_E_UNSUPPORTED, "its packing is not known");
    usual_masks(b);
    if (b->packing == BITFIELDS) {
        const cnr_status status = read_masks(b);
        if (status) return status;
        masks = b->header < 52 ? 12 : 0;
    }
    if (b->bits <= 8) return read_palette(b, at + b->header + masks);
    if (!b->pixels) b->pixels = at + b->header + masks;
    return CNR_OK;
}

/* ---- pixels ---- */

/* to: colour `index` of the palette as red, green, blue; black where it has none. */
static void colour(const bitmap *b, uint32_t index, uint8_t *to) {
    const uint8_t *entry = b->palette + index * b->entry; /* blue, green, red */
    for (int c = 0; c < 3; c++) to[c] = index < b->known ? entry[2 - c] : 0;
}

/* Converts a row of pixels to red, green, blue. */
static void unpack(const bitmap *b, const uint8_t *row, uint8_t *to) {
    for (int64_t x = 0; x < b->w; x++, to += 3) {
        if (b->bits <= 8) {
            const int64_t bit = x * b->bits;
            const int down = 8 - (int)(bit % 8) - (int)b->bits;
            colour(b, row[bit / 8] >> down & ((1u << b->bits) - 1), to);
            continue;
        }
        uint32_t pixel = 0;
        const int bytes = (int)b->bits / 8;
        for (int i = bytes - 1; i >= 0; i--) pixel = pixel << 8 | row[x * bytes + i];
        for (int c = 0; c < 3; c++) {
            const uint32_t most = (1u << b->wide[c]) - 1;
            to[c] = (uint8_t)((pixel >> b->shift[c] & most) * 255 / most);
        }
    }
}

/* Row y of the picture, from the top, where the file may begin at the bottom. */
static uint8_t *row_at(const bitmap *b, const img_picture *p, int64_t y) {
    return p->data + (b->top_down ? y : b->h - 1 - y) * b->w * 3;
}

/* Reads all pixels of an uncompressed file into p, as RGB; fails if the file is too short. */
static cnr_status read_rows(const bitmap *b, const img_picture *p) {
    const uint64_t stride = ((uint64_t)b->w * b->bits + 31) / 32 * 4;
    /* padding of the last row may be missing */
    const uint64_t used = ((uint64_t)b->w * b->bits + 7) / 8;
    if (b->pixels > b->file->n ||
        (uint64_t)(b->file->n - b->pixels) < stride * (uint64_t)(b->h - 1) + used)
        return refuse(b, CNR_E_FORMAT, "the file ends too early");
    const uint8_t *row = b->file->at + b->pixels;
    for (int64_t y = 0; y < b->h; y++) unpack(b, row + (uint64_t)y * stride, row_at(b, p, y));
    return CNR_OK;
}

/* ---- run lengths: pixels are consecutive; codes end rows ---- */

/* Where the reading of run-lengths stands: place in the file, pixels done, column, and pixels in
 * all. */
typedef struct runs {
    const bitmap *b;
    const img_picture *p;
    size_t at;         /* position in the file */
    int64_t n, x, all; /* pixels written, column, pixels in total */
} runs;

/* Writes the colour `index` up to `times` times. */
static void put(runs *r, uint32_t index, int64_t times) {
    for (; times > 0 && r->n < r->all; times--, r->n++)
        colour(r->b, index, row_at(r->b, r->p, r->n / r->b->w) + r->n % r->b->w * 3);
}

/* Writes `count` colours that stand one by one in the file. */
static void literal(runs *r, uint32_t count) {
    const img_bytes *f = r->b->file;
    const int four = r->b->bits == 4;
    const size_t bytes = four ? (count + 1) / 2 : count;
    for (uint32_t i = 0; i < count; i++) {
        const size_t at = r->at + (four ? i / 2 : i);
        if (at >= f->n) break;
        put(r, four ? (i % 2 ? f->at[at] & 15 : f->at[at] >> 4) : f->at[at], 1);
    }
    r->x += count;
    r->at += bytes;
    r->at += r->at % 2; /* aligned to words */
}

/* Reads all pixels of a run-length file into p, as RGB; fails if the file ends before. */
static cnr_status read_runs(const bitmap *b, const img_picture *p) {
    runs r = {b, p, b->pixels, 0, 0, b->w * b->h};
    const img_bytes *f = b->file;
    while (r.n < r.all && r.at + 2 <= f->n) {
        const uint32_t count = f->at[r.at], code = f->at[r.at + 1];
        r.at += 2;
        if (count) {
            int64_t fit = b->w - r.x;
            fit = fit < 0 ? 0 : fit < count ? fit : count;
            for (int64_t i = 0; i < fit; i++)
                put(&r, b->bits == 4 ? (i % 2 ? code & 15 : code >> 4) : code, 1);
            r.x += fit;
        } else if (code == 0) {
            put(&r, 0, (b->w - r.n % b->w) % b->w);
            r.x = 0;
        } else if (code == 1) {
            break;
        } else if (code == 2) {
            if (r.at + 2 > f->n) break;
            put(&r, 0, f->at[r.at] + f->at[r.at + 1] * b->w);
            r.x = r.n % b->w;
            r.at += 2;
        } else {
            literal(&r, code);
        }
    }
    return r.n < r.all ? refuse(b, CNR_E_FORMAT, "the file ends too early") : CNR_OK;
}

/* Reads a BMP into *out, as red, green, blue. */
cnr_status img_read_bmp(const img_bytes *file, img_picture *out, cnr_error *err) {
    bitmap b = {.file = file, .err = err};
    cnr_status status = read_header(&b);
    if (!status) status = img_make(out, b.h, b.w, 3, file, PIXELS_A_BYTE, err);
    if (status) return status;
    status = b.packing == RLE8 || b.packing == RLE4 ? read_runs(&b, out) : read_rows(&b, out);
    if (status) img_drop(out);
    return status;
}
