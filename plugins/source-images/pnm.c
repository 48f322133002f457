/* Decodes PBM, PGM, PPM (plain and raw), PFM, PAM and XV's thumbnails, without a library. */
#include "images.h"
#include <math.h>

enum { MOST_DIGITS = 10, PIXELS_A_BYTE = 8 };

/* A PNM file and what its header says. */
typedef struct pnm {
    const img_bytes *file;
    cnr_error *err;
    size_t at;
    int64_t w, h, depth; /* width and height in pixels; samples of a pixel */
    int64_t most;        /* the largest value of a sample */
    int plain, bits;     /* numbers as text; one bit a pixel, where 1 is black */
    int packed;          /* three bits of red, three of green, two of blue */
} pnm;

/* Fails with CNR_E_FORMAT: the file is damaged, and how. */
static cnr_status refuse(const pnm *p, const char *text) {
    return img_host->fail(p->err, CNR_E_FORMAT, p->file->path, "damaged PNM: %s", text);
}

/* 1: the head of a file is a PNM's. */
int img_is_pnm(const uint8_t *head, size_t n) {
    return n >= 3 && head[0] == 'P' && strchr("1234567f", head[1]) && head[1] &&
           strchr(" \t\n\v\f\r#", head[2]) && head[2];
}

static int is_space(int c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Reads a word, without comments, and the blank after it. 0: there is none. */
static size_t word(pnm *p, char *to, size_t room) {
    const img_bytes *f = p->file;
    size_t n = 0;
    for (; p->at < f->n; p->at++) {
        const int c = f->at[p->at];
        if (c == '#') {
            while (p->at < f->n && f->at[p->at] != '\n' && f->at[p->at] != '\r') p->at++;
            if (n) break;
        } else if (is_space(c)) {
            if (n) break;
        } else {
            if (n + 1 == room) return 0;
            to[n++] = (char)c;
        }
    }
    p->at += p->at < f->n;
    to[n] = 0;
    return n;
}

/* The next number of the text; -1: there is none of at most ten digits. */
static int64_t number(pnm *p) {
    char text[MOST_DIGITS + 1];
    int64_t v = 0;
    if (!word(p, text, sizeof text)) return -1;
    for (const char *c = text; *c; c++) {
        if (*c < '0' || *c > '9') return -1;
        v = v * 10 + (*c - '0');
    }
    return v;
}

/* Parses PAM's header of named numbers into p; fails where it is damaged. */
static cnr_status read_pam(pnm *p) {
    char name[64];
    while (word(p, name, sizeof name) && strcmp(name, "ENDHDR") != 0) {
        int64_t *to = strcmp(name, "WIDTH") == 0    ? &p->w
                      : strcmp(name, "HEIGHT") == 0 ? &p->h
                      : strcmp(name, "DEPTH") == 0  ? &p->depth
                      : strcmp(name, "MAXVAL") == 0 ? &p->most
                                                    : NULL;
        if (to) *to = number(p);
        else if (strcmp(name, "TUPLTYPE") != 0 || !word(p, name, sizeof name))
            return refuse(p, "its header is not understood");
    }
    if (p->depth < 1 || p->depth > 4) return refuse(p, "want 1 to 4 samples a pixel");
    return CNR_OK;
}

/* Reads the header; *scale receives the factor of floats. */
static cnr_status read_header(pnm *p, double *scale) {
    char magic[8], text[MOST_DIGITS + 1];
    cnr_status status = CNR_OK;
    word(p, magic, sizeof magic);
    if (strlen(magic) != 2) return refuse(p, "its first word is not known");
    p->depth = magic[1] == '3' || magic[1] == '6' ? 3 : 1;
    p->plain = magic[1] <= '3';
    p->bits = magic[1] == '1' || magic[1] == '4';
    p->most = 1;
    p->packed =
        magic[1] == '7' && p->at + 4 < p->file->n && memcmp(p->file->at + p->at, "332", 3) == 0;
    if (p->packed) word(p, text, sizeof text);
    if (magic[1] == '7' && !p->packed) {
        p->plain = 0;
        status = read_pam(p);
    } else {
        p->w = number(p);
        p->h = number(p);
        if (magic[1] == 'f') {
            const char *end;
            if (!word(p, text, sizeof text) || !img_host->parse_number(text, &end, scale) || *end ||
                *scale == 0 || !isfinite(*scale))
                return refuse(p, "want a scale that is not 0");
        } else if (!p->bits) {
            p->most = number(p);
        }
    }
    if (!status && (p->w < 1 || p->h < 1)) status = refuse(p, "want a width and a height");
    if (!status && (p->most < 1 || p->most > 65535))
        status = refuse(p, "want 1 to 65535 as the largest value");
    return status;
}

/* Grey of more than 8 bits is clipped at 255, as in Pillow's convert("RGB"); colours are scaled. */
static uint8_t level(const pnm *p, int64_t value) {
    if (p->depth == 1 && p->most > 255) {
        const double scaled = rint((double)value * 65535 / (double)p->most);
        return scaled > 255 ? 255 : (uint8_t)scaled;
    }
    const double scaled = rint((double)value * 255 / (double)p->most);
    return scaled > 255 ? 255 : (uint8_t)scaled;
}

/* Reads n samples in text into `to`, as bytes; fails where the file ends or has other text. */
static cnr_status read_plain(pnm *p, uint8_t *to, int64_t n) {
    const img_bytes *f = p->file;
    for (int64_t i = 0; i < n; i++) {
        int64_t v = -1;
        if (p->bits) { /* digits need no blanks between them */
            while (p->at < f->n && v < 0) {
                const int c = f->at[p->at];
                if (c == '#') {
                    while (p->at < f->n && f->at[p->at] != '\n' && f->at[p->at] != '\r') p->at++;
                    continue;
                }
                p->at++;
                if (is_space(c)) continue;
                if (c != '0' && c != '1') return refuse(p, "want 0 or 1");
                v = c == '0';
            }
        } else {
            v = number(p);
        }
        if (v < 0) return refuse(p, "the file ends too early, or has no number where one is due");
        if (v > p->most) return refuse(p, "a value is above the largest");
        to[i] = level(p, v);
    }
    return CNR_OK;
}

/* Keeps the colours of a pixel and drops further samples. */
static cnr_status read_raw(pnm *p, uint8_t *to, int64_t kept) {
    const img_bytes *f = p->file;
    const uint64_t wide = p->most > 255 ? 2 : 1;
    const uint64_t row = p->bits ? ((uint64_t)p->w + 7) / 8 : (uint64_t)(p->w * p->depth) * wide;
    if (f->n - p->at < row * (uint64_t)p->h) return refuse(p, "the file ends too early");
    for (int64_t y = 0; y < p->h; y++) {
        const uint8_t *from = f->at + p->at + (uint64_t)y * row;
        for (int64_t x = 0; x < p->w; x++)
            for (int64_t c = 0; c < kept; c++) {
                const int64_t i = x * p->depth + c;
                if (p->bits) *to++ = from[x / 8] >> (7 - x % 8) & 1 ? 0 : 255;
                else *to++ = level(p, wide == 1 ? from[i] : from[2 * i] << 8 | from[2 * i + 1]);
            }
    }
    return CNR_OK;
}

/* Reads pixels of one byte each, three bits of red and green and two of blue, into `to` as RGB. */
static cnr_status read_packed(pnm *p, uint8_t *to) {
    const img_bytes *f = p->file;
    if (f->n - p->at < (uint64_t)(p->w * p->h)) return refuse(p, "the file ends too early");
    for (int64_t i = 0; i < p->w * p->h; i++, to += 3) {
        const unsigned v = f->at[p->at + (uint64_t)i];
        to[0] = (uint8_t)((v >> 5) * 255 / 7);
        to[1] = (uint8_t)((v >> 2 & 7) * 255 / 7);
        to[2] = (uint8_t)((v & 3) * 255 / 3);
    }
    return CNR_OK;
}

/* Reads grey floats, bottom row first, into `to`; the sign of the scale is the byte order. Fails if
 * the file is too short. */
static cnr_status read_floats(pnm *p, uint8_t *to, double scale) {
    const img_bytes *f = p->file;
    if ((f->n - p->at) / 4 < (uint64_t)(p->w * p->h)) return refuse(p, "the file ends too early");
    for (int64_t y = p->h - 1; y >= 0; y--)
        for (int64_t x = 0; x < p->w; x++, p->at += 4) {
            const uint8_t *b = f->at + p->at;
            uint32_t bits = 0;
            float v;
            for (int i = 0; i < 4; i++) bits |= (uint32_t)b[i] << 8 * (scale < 0 ? i : 3 - i);
            memcpy(&v, &bits, sizeof v);
            to[y * p->w + x] = v >= 255 ? 255 : v > 0 ? (uint8_t)v : 0;
        }
    return CNR_OK;
}

/* Reads a PNM or PAM into *out as grey or RGB, with pixels for img_drop; fails with a reason. */
cnr_status img_read_pnm(const img_bytes *file, img_picture *out, cnr_error *err) {
    pnm p = {.file = file, .err = err};
    double scale = 0;
    cnr_status status = read_header(&p, &scale);
    const int64_t kept = p.depth >= 3 || p.packed ? 3 : 1;
    if (!status) status = img_make(out, p.h, p.w, kept, file, PIXELS_A_BYTE, err);
    if (status) return status;
    if (scale != 0) status = read_floats(&p, out->data, scale);
    else if (p.packed) status = read_packed(&p, out->data);
    else if (p.plain) status = read_plain(&p, out->data, p.w * p.h * kept);
    else status = read_raw(&p, out->data, kept);
    if (status) img_drop(out);
    return status;
}
