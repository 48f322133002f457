/* Vectorised functions, built from one source for each instruction set (ukernel/). */
#ifndef OBJECT_TLD_VECTOR_H
#define OBJECT_TLD_VECTOR_H

#include <stdbool.h>
#include <stdint.h>

enum {
    TLD_PAD = 24,  /* border of a level, in pixels */
    TLD_SIDE = 15, /* of a patch */
    TLD_PATCH = TLD_SIDE * TLD_SIDE,
    TLD_PATCH_PITCH = 240, /* floats from one patch to the next: whole vectors, padded with zeros */
    TLD_BLOCK = 64         /* windows whose codes are computed at once */
};

/* Input of a Lucas-Kanade step: pixel (0, 0) of a level in both pictures. */
typedef struct tld_pair {
    const uint8_t *from, *to;
    int64_t pitch;
    int32_t w, h;
} tld_pair;

/* All functions that exist once for each instruction set. */
typedef struct tld_vectors {
    const char *name;
    void (*grey)(const uint8_t *rgb, int64_t n, uint8_t *out);
    /* Blurs by rows of `taps` weights with sum 256, the middle one first; writes pixels minus 128.
     * rows: scratch of 2 * radius + 1 rows of w + 64 */
    void (*blur)(const uint8_t *in, int64_t pitch, int32_t w, int32_t h, const uint16_t *taps,
                 int32_t radius, uint16_t *rows, uint8_t *out);
    void (*halve)(const uint8_t *in, int64_t pitch, int32_t w, int32_t h, uint8_t *out,
                  int64_t out_pitch);
    void (*integrate)(const uint8_t *in, int64_t pitch, int32_t w, int32_t h, uint32_t *sum,
                      uint64_t *squares);
    /* For n windows of a row, `step` apart: pass[i] is 1 if the variance is at least that. `top`,
     * `low`: rows of the integral images; scratch: 2 * (w + 1) u64 */
    int64_t (*variance)(const uint32_t *top, const uint32_t *low, const uint64_t *top2,
                        const uint64_t *low2, int32_t columns, int32_t width, int64_t area,
                        int32_t step, int32_t n, double least, uint64_t *scratch, uint8_t *pass);
    /* Splits a row of pixels into `step` rows of every step-th pixel, `pitch` apart. */
    void (*spread)(const uint8_t *row, int32_t w, int32_t step, int64_t pitch, uint8_t *out);
    /* Codes of TLD_BLOCK adjacent windows: low bytes, then high bytes. offsets: 2 * bits. */
    void (*codes)(const uint8_t *at, const int32_t *offsets, int32_t bits, uint8_t *low,
                  uint8_t *high);
    int32_t (*add)(const float *posterior, const uint8_t *low, const uint8_t *high,
                   const uint8_t *pass, float least, float *sum);
    /* out[i * n + k] = dot product of patch i (of m) and patch k (of n). */
    void (*products)(const float *a, int32_t m, const float *b, int32_t n, float *out);
    /* Moves *x, *y in `to` until the surroundings match those of (px, py) in `from`. */
    bool (*climb)(const tld_pair *pair, float px, float py, float *x, float *y);
    /* Correlation of the surroundings of two points. */
    float (*alike)(const tld_pair *pair, float px, float py, float x, float y);
} tld_vectors;

extern const tld_vectors tld_vectors_generic, tld_vectors_avx2, tld_vectors_avx512;
extern const tld_vectors *tld_v; /* the widest for this processor; CNNRUN_ISA as in cpu-neon */
/* Chooses the functions for this CPU, or as CNNRUN_CPU_ISA wishes. */
void tld_vectors_choose(void);

#endif
