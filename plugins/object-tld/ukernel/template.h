/* The source of the vector code: TLD_ISA names the instruction set, TLD_VL is the number of floats
 * in a vector. */
#include "vector.h"
#include <math.h>
#include <string.h>

/* Joins two words; PASTE expands them first. */
#define PASTE2(a, b) a##b
/* Joins two words into one name. */
#define PASTE(a, b) PASTE2(a, b)

/* ---- pictures ---- */

/* Grey of n RGB pixels: (77 R + 150 G + 29 B) / 256, rounded. */
static void grey(const uint8_t *rgb, int64_t n, uint8_t *out) {
    for (int64_t i = 0; i < n; i++) /* 0.299 R + 0.587 G + 0.114 B */
        out[i] =
            (uint8_t)((77u * rgb[3 * i] + 150u * rgb[3 * i + 1] + 29u * rgb[3 * i + 2] + 128u) >>
                      8);
}

enum { BLOCK = 32, MOST_TAPS = 64 };
typedef uint8_t pixels_of __attribute__((vector_size(BLOCK)));
typedef uint16_t words __attribute__((vector_size(2 * BLOCK)));

/* Pixels at `at` as 16-bit numbers. */
static inline words words_of(const uint8_t *at) {
    pixels_of v;
    memcpy(&v, at, sizeof v);
    return __builtin_convertvector(v, words);
}

/* Loads 16-bit numbers. */
static inline words words_at(const uint16_t *at) {
    words v;
    memcpy(&v, at, sizeof v);
    return v;
}

/* Blurs a row of w pixels by the taps, to 16-bit numbers; reads `radius` pixels beyond either
 * end. */
static void blur_across(const uint8_t *in, int32_t w, const uint16_t *taps, int32_t radius,
                        uint16_t *restrict out) {
    for (int32_t x = 0; x < w; x += BLOCK) { /* rows have padding after their end */
        words acc = taps[0] * words_of(in + x) + 128;
        for (int32_t k = 1; k <= radius; k++)
            acc += taps[k] * (words_of(in + x - k) + words_of(in + x + k));
        acc >>= 8;
        memcpy(out + x, &acc, sizeof acc);
    }
}

/* Blurs a picture by rows and columns, and subtracts 128. */
static void blur(const uint8_t *in, int64_t pitch, int32_t w, int32_t h, const uint16_t *taps,
                 int32_t radius, uint16_t *rows, uint8_t *out) {
    const int32_t n = 2 * radius + 1;
    const int64_t room = w + 64;
    const uint16_t *line[MOST_TAPS];
    for (int32_t y = -radius; y < h + radius; y++) {
        blur_across(in + y * pitch, w, taps, radius, rows + (y + radius) % n * room);
        const int32_t at = y - radius;
        if (at < 0) continue;
        for (int32_t k = 0; k < n; k++) line[k] = rows + (at + k) % n * room;
        for (int32_t x = 0; x < w; x += BLOCK) {
            words acc = taps[0] * words_at(line[radius] + x) + 128;
            for (int32_t k = 1; k <= radius; k++)
                acc += taps[k] * (words_at(line[radius - k] + x) + words_at(line[radius + k] + x));
            const pixels_of made = __builtin_convertvector(acc >> 8, pixels_of) ^ 128;
            memcpy(out + (int64_t)at * w + x, &made, (size_t)(w - x < BLOCK ? w - x : BLOCK));
        }
    }
}

/* A picture of half the size: means of 2 x 2 pixels. */
static void halve(const uint8_t *in, int64_t pitch, int32_t w, int32_t h, uint8_t *out,
                  int64_t out_pitch) {
    for (int32_t y = 0; y < h / 2; y++) {
        const uint8_t *a = in + 2 * y * pitch, *b = a + pitch;
        uint8_t *restrict to = out + y * out_pitch;
        for (int32_t x = 0; x < w / 2; x++)
            to[x] = (uint8_t)((a[2 * x] + a[2 * x + 1] + b[2 * x] + b[2 * x + 1] + 2) >> 2);
    }
}

/* Sums and squares of all rectangles from the corner. */
static void integrate(const uint8_t *in, int64_t pitch, int32_t w, int32_t h, uint32_t *sum,
                      uint64_t *squares) {
    const int64_t wide = w + 1;
    memset(sum, 0, (size_t)wide * sizeof *sum);
    memset(squares, 0, (size_t)wide * sizeof *squares);
    for (int32_t y = 0; y < h; y++) {
        const uint8_t *row = in + y * pitch;
        uint32_t *restrict s = sum + (y + 1) * wide, a = 0, b = 0;
        uint64_t *restrict q = squares + (y + 1) * wide;
        s[0] = 0;
        q[0] = 0;
        for (int32_t x = 0; x < w; x++) { /* the squares of a row fit 32 bits up to 66,000 pixels */
            const uint32_t v = row[x];
            a += v;
            b += v * v;
            s[x + 1] = a;
            q[x + 1] = b;
        }
        for (int32_t x = 1; x <= w; x++) s[x] += s[x - wide];
        for (int32_t x = 1; x <= w; x++) q[x] += q[x - wide];
    }
}

/* Marks in `pass` the windows of a row whose variance is at least `least`; returns how many. */
static int64_t variance(const uint32_t *top, const uint32_t *low, const uint64_t *top2,
                        const uint64_t *low2, int32_t columns, int32_t width, int64_t area,
                        int32_t step, int32_t n, double least, uint64_t *scratch, uint8_t *pass) {
    uint64_t *restrict squares = scratch;
    uint32_t *restrict sums = (uint32_t *)(scratch + columns);
    const double bound = least * (double)area * (double)area;
    int64_t passed = 0;
    for (int32_t x = 0; x < columns; x++) squares[x] = low2[x] - top2[x];
    for (int32_t x = 0; x < columns; x++) sums[x] = low[x] - top[x];
    for (int32_t i = 0; i < n; i++) {
        const int64_t x = (int64_t)i * step;
        const double s = (double)(int64_t)(uint32_t)(sums[x + width] - sums[x]);
        const double q = (double)(int64_t)(squares[x + width] - squares[x]);
        pass[i] = q * (double)area - s * s >= bound;
    }
    for (int32_t i = 0; i < n; i++) passed += pass[i];
    return passed;
}

/* ---- ferns ---- */

/* Sorts a row by position modulo `step`: part p goes to out + p * pitch. */
static void spread(const uint8_t *row, int32_t w, int32_t step, int64_t pitch, uint8_t *out) {
    const int32_t whole = w / step;
    for (int32_t p = 0; p < step; p++) {
        uint8_t *restrict to = out + p * pitch;
        const uint8_t *from = row + p;
        switch (step) { /* constant steps become shuffles */
        case 1:
            memcpy(to, from, (size_t)whole);
            break;
/* The case of a step of n, for constant indices. */
#define STRIDE(n) \
    case n: \
        for (int32_t i = 0; i < whole; i++) to[i] = from[n * i]; \
        break;
            STRIDE(2)
            STRIDE(3)
            STRIDE(4)
            STRIDE(5)
            STRIDE(6)
            STRIDE(7)
            STRIDE(8)
#undef STRIDE
        default:
            for (int32_t i = 0; i < whole; i++) to[i] = from[(int64_t)i * step];
        }
        if (p < w - whole * step) to[whole] = from[(int64_t)whole * step];
    }
}

typedef int8_t bytes __attribute__((vector_size(TLD_BLOCK)));
typedef uint8_t codes_of __attribute__((vector_size(TLD_BLOCK)));

/* Loads bytes. */
static inline bytes load(const uint8_t *at) {
    bytes v;
    memcpy(&v, at, sizeof v);
    return v;
}

/* A true comparison is -1 in its lane: subtracts it from twice the code. */
static void codes(const uint8_t *at, const int32_t *offsets, int32_t bits, uint8_t *low,
                  uint8_t *high) {
    codes_of l = {0}, h = {0};
    const int32_t n_high = bits > 8 ? bits - 8 : 0;
    for (int32_t b = 0; b < n_high; b++)
        h = h + h - (codes_of)(load(at + offsets[2 * b]) > load(at + offsets[2 * b + 1]));
    for (int32_t b = n_high; b < bits; b++)
        l = l + l - (codes_of)(load(at + offsets[2 * b]) > load(at + offsets[2 * b + 1]));
    memcpy(low, &l, sizeof l);
    memcpy(high, &h, sizeof h);
}

/* Adds posteriors of codes to the sums of TLD_BLOCK windows; returns how many of those that pass
 * may still reach `wanted`. */
static int32_t add(const float *posterior, const uint8_t *low, const uint8_t *high,
                   const uint8_t *pass, float least, float *restrict sum) {
    int32_t alive = 0;
    for (int32_t i = 0; i < TLD_BLOCK; i++) sum[i] += posterior[(uint32_t)high[i] << 8 | low[i]];
    for (int32_t i = 0; i < TLD_BLOCK; i++) alive += (sum[i] > least) & pass[i];
    return alive;
}

/* ---- patches ---- */

typedef float floats __attribute__((vector_size(4 * TLD_VL)));

/* Loads floats. */
static inline floats load_floats(const float *at) {
    floats v;
    memcpy(&v, at, sizeof v);
    return v;
}

/* Sum of all lanes, the first first. */
static inline float total(floats v) {
    float sum = 0;
    for (int32_t i = 0; i < TLD_VL; i++) sum += v[i];
    return sum;
}

/* Four rows of b with one of a: each is loaded once. */
static void products(const float *a, int32_t m, const float *b, int32_t n, float *out) {
    for (int32_t k = 0; k < n; k += 4)
        for (int32_t i = 0; i < m; i++) {
            const int32_t some = n - k < 4 ? n - k : 4;
            const float *x = a + (int64_t)i * TLD_PATCH_PITCH;
            const float *y[4];
            floats s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
            for (int32_t j = 0; j < 4; j++)
                y[j] = b + (int64_t)(k + (j < some ? j : 0)) * TLD_PATCH_PITCH;
            for (int32_t c = 0; c < TLD_PATCH_PITCH; c += TLD_VL) {
                const floats v = load_floats(x + c);
                s0 += v * load_floats(y[0] + c);
                s1 += v * load_floats(y[1] + c);
                s2 += v * load_floats(y[2] + c);
                s3 += v * load_floats(y[3] + c);
            }
            const float sums[4] = {total(s0), total(s1), total(s2), total(s3)};
            memcpy(out + (int64_t)i * n + k, sums, (size_t)some * sizeof *sums);
        }
}

/* ---- Lucas-Kanade ---- */

enum { LANES = 16, HALF = 4, WIN = 2 * HALF + 1, STEPS = 20, ROOM = LANES + 8 };

/* A row at fractional positions; surplus lanes are read but do not count. */
typedef float lanes __attribute__((vector_size(4 * LANES)));
typedef uint8_t octets __attribute__((vector_size(LANES)));

/* Pixels at p as floats. */
static inline lanes pixels_at(const uint8_t *p) {
    octets v;
    memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, lanes);
}

/* Loads lanes of floats. */
static inline lanes lanes_at(const float *p) {
    lanes v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Sum of all lanes, in a fixed order. */
static inline float all_of(lanes v) {
    float part[4] = {0};
    for (int32_t i = 0; i < LANES; i++) part[i % 4] += v[i];
    return part[0] + part[1] + part[2] + part[3];
}

/* Consecutive rows that start at (x, y). */
typedef struct sampler {
    const uint8_t *p;
    int64_t pitch;
    float fx, fy;
    lanes above;
} sampler;

/* Begins to sample rows at a position between pixels; next_row then gives the first. */
static inline sampler sample_from(const uint8_t *at, int64_t pitch, float x, float y) {
    const int32_t ix = (int32_t)floorf(x), iy = (int32_t)floorf(y);
    sampler s = {at + iy * pitch + ix, pitch, x - (float)ix, y - (float)iy, {0}};
    const lanes v = pixels_at(s.p);
    s.above = v + s.fx * (pixels_at(s.p + 1) - v);
    return s;
}

/* Moves one row down and returns it, interpolated. */
static inline lanes next_row(sampler *s) {
    s->p += s->pitch;
    const lanes v = pixels_at(s->p), below = v + s->fx * (pixels_at(s->p + 1) - v);
    const lanes row = s->above + s->fy * (below - s->above);
    s->above = below;
    return row;
}

/* True if a point is in the picture, or near it. */
static inline bool inside(const tld_pair *p, float x, float y) {
    return x > -HALF && y > -HALF && x < (float)(p->w + HALF) && y < (float)(p->h + HALF);
}

static const float counts[LANES] = {1, 1, 1, 1, 1, 1, 1, 1, 1};

/* Moves *x, *y to where the surroundings of px, py are found. False: they are not. */
static bool climb(const tld_pair *pair, float px, float py, float *x, float *y) {
    float around[WIN + 2][ROOM] = {{0}};
    lanes middle[WIN], gx[WIN], gy[WIN], xx = {0}, xy = {0}, yy = {0};
    const lanes in = lanes_at(counts);
    if (!inside(pair, px, py)) return false;
    sampler from = sample_from(pair->from, pair->pitch, px - HALF - 1, py - HALF - 1);
    for (int32_t r = 0; r < WIN + 2; r++) {
        const lanes row = next_row(&from);
        memcpy(around[r], &row, sizeof row);
    }
    for (int32_t r = 0; r < WIN; r++) {
        middle[r] = lanes_at(around[r + 1] + 1);
        gx[r] = 0.5f * in * (lanes_at(around[r + 1] + 2) - lanes_at(around[r + 1]));
        gy[r] = 0.5f * in * (lanes_at(around[r + 2] + 1) - lanes_at(around[r] + 1));
        xx += gx[r] * gx[r];
        xy += gx[r] * gy[r];
        yy += gy[r] * gy[r];
    }
    const float a = all_of(xx), b = all_of(xy), c = all_of(yy), det = a * c - b * b;
    /* the smaller eigenvalue, with OpenCV's default threshold: untextured surroundings can't be
     * tracked */
    if (0.5f * (a + c - sqrtf((a - c) * (a - c) + 4 * b * b)) < 0.05f * WIN * WIN || det <= 0)
        return false;
    for (int32_t step = 0; step < STEPS; step++) {
        lanes ex = {0}, ey = {0};
        if (!inside(pair, *x, *y)) return false;
        sampler to = sample_from(pair->to, pair->pitch, *x - HALF, *y - HALF);
        for (int32_t r = 0; r < WIN; r++) {
            const lanes d = middle[r] - next_row(&to);
            ex += d * gx[r];
            ey += d * gy[r];
        }
        const float u = all_of(ex), v = all_of(ey);
        const float dx = (c * u - b * v) / det, dy = (a * v - b * u) / det;
        *x += dx;
        *y += dy;
        if (dx * dx + dy * dy < 0.03f * 0.03f) break;
    }
    return inside(pair, *x, *y);
}

/* Correlation of the surroundings, 10 x 10 pixels, of two points of a pair of pictures: -1 to 1. */
static float alike(const tld_pair *pair, float px, float py, float x, float y) {
    enum { SIDE = 10 };
    static const float ten[LANES] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    lanes sa = {0}, sb = {0}, aa = {0}, bb = {0}, ab = {0};
    const lanes in = lanes_at(ten);
    if (!inside(pair, px, py) || !inside(pair, x, y)) return -1;
    sampler from = sample_from(pair->from, pair->pitch, px - 4.5f, py - 4.5f);
    sampler to = sample_from(pair->to, pair->pitch, x - 4.5f, y - 4.5f);
    for (int32_t r = 0; r < SIDE; r++) {
        const lanes a = in * next_row(&from), b = in * next_row(&to);
        sa += a;
        sb += b;
        aa += a * a;
        bb += b * b;
        ab += a * b;
    }
    const float n = SIDE * SIDE, ma = all_of(sa), mb = all_of(sb);
    const float va = n * all_of(aa) - ma * ma, vb = n * all_of(bb) - mb * mb;
    return va > 0 && vb > 0 ? (n * all_of(ab) - ma * mb) / sqrtf(va * vb) : 0;
}

/* A word as text. */
#define TEXT2(x) #x
/* A word as text; it is expanded first. */
#define TEXT(x) TEXT2(x)
const tld_vectors PASTE(tld_vectors_, TLD_ISA) = {TEXT(TLD_ISA), grey,     blur,   halve,
                                                  integrate,     variance, spread, codes,
                                                  add,           products, climb,  alike};
