/* The microkernels: a table of functions for each instruction set, selected as a whole.
 *
 * Activations are unsigned bytes, weights signed bytes; sums have 32 bits and never saturate. A
 * tile is INT8_MR rows of weights by INT8_NR columns; both operands interleave four steps of k:
 *     w: [k / 4][INT8_MR][4]      x: [k / 4][INT8_NR][4] */
#ifndef INT8_UKERNEL_H
#define INT8_UKERNEL_H

#include <stddef.h>
#include <stdint.h>

enum { INT8_MR = 8, INT8_NR = 32, INT8_DOT_ROWS = 4, INT8_DOT_STEP = 64 };

/* Requantises a sum: round((f32)(sum + offset) * scale), clamped to [low, high], plus zero. A
 * negative product is multiplied by `slope` first, which computes leaky ReLU and PReLU. Each step
 * is computed in f32 and rounded to nearest, ties to even, so results are the same on any
 * processor. */
typedef struct int8_requant {
    int32_t offset, zero;
    float scale, low, high, slope;
} int8_requant;

/* ---- channel blocks: vectorised along the outputs ---- */

enum { INT8_PANEL = 16, INT8_MOST_PIXELS = 14, INT8_MOST_PANELS = 2 };

/* A byte of x in tiles and windows. Arm's instructions multiply signed bytes, so x is stored
 * minus INT8_BLOCKED_MIDDLE there, and the offsets of sums compensate for it. */
#if defined(__aarch64__) || defined(__arm__)
typedef int8_t int8_blocked_byte;
enum { INT8_BLOCKED_MIDDLE = 128 };
#else
typedef uint8_t int8_blocked_byte;
enum { INT8_BLOCKED_MIDDLE = 0 };
#endif

/* Requantises sums of INT8_PANEL outputs: offsets, scales and slopes for each (slope NULL: 1); the
 * bounds are common. */
typedef struct int8_finish {
    const int32_t *offset;
    const float *scale, *slope;
    float low, high;
    int32_t zero;
} int8_finish;

/* One or two panels of outputs at up to INT8_MOST_PIXELS positions, `pixel` bytes apart (4, 8 or
 * 16). Step k multiplies four bytes at x + tap[k] of each position by weights
 * [k][INT8_PANEL][4]. */
typedef struct int8_tile {
    const int8_blocked_byte *x;
    const int32_t *tap;
    int64_t k4, pixels, pixel;
    const int8_t *w;
    int64_t panels, panel_bytes; /* bytes from one panel of w to the next */
    int32_t narrow;              /* no weight is -128 */
    int8_finish finish;          /* of both panels, consecutively */
    uint8_t *y;                  /* INT8_PANEL bytes for each position */
    int64_t y_panel;             /* bytes from one panel of y to the next */
} int8_tile;

/* A depthwise window over a block of 16 or 8 channels. The weights are stored in three forms:
 *     quad:           [row][quad][channel][4], the taps of a row in groups of four
 *     shifted:        the same, one column later
 *     words:          [row][column][channel], of 16 bits
 * 64 bytes of x are read from the position where each quad begins. */
typedef struct int8_window {
    const int8_blocked_byte *x;
    const int32_t *row; /* offsets of the window's rows from its first */
    int64_t rows, columns, quads;
    int64_t step, dilation; /* bytes in x between outputs, and between columns */
    const int8_t *quad, *shifted;
    const int16_t *word;
    int64_t pixels, block;
    int8_finish finish;
    uint8_t *y; /* `block` bytes for each position */
} int8_window;

/* Combines two quantised values. Zero points are those after the flip; the bounds are those of y
 * minus its zero point. Products use a_factor alone. */
typedef struct int8_pair {
    float a_factor, b_factor, low, high;
    int32_t a_zero, b_zero, zero;
    uint8_t a_flip, b_flip;
} int8_pair;

/* ---- floats times integers of 2, 4 or 8 bits ---- */

enum { INT8_PACKED_ROWS = 8, INT8_PACKED_BYTES = 64 };
/* Number of weights per row in a block. A block has INT8_PACKED_BYTES of each of INT8_PACKED_ROWS
 * rows; the lowest bits of a byte hold its first weight. */
static inline int64_t int8_packed_block(int64_t bits) { return INT8_PACKED_BYTES * 8 / bits; }
/* Blocks of packed numbers that n numbers take. */
static inline int64_t int8_packed_blocks(int64_t n, int64_t bits) {
    return (n + int8_packed_block(bits) - 1) / int8_packed_block(bits);
}
/* Bytes that packed_order writes for n numbers. */
static inline int64_t int8_packed_x_bytes(int64_t n, int64_t bits) {
    return INT8_PACKED_BYTES + int8_packed_blocks(n, bits) * int8_packed_block(bits) * 4;
}

/* All functions that exist once for each instruction set. */
typedef struct int8_ukernels {
    const char *name;
    /* Writes x times `scale` in the form and order that packed_dot reads; out is aligned to a cache
     * line. */
    void (*packed_order)(const float *x, int64_t n, int32_t bits, float scale, void *out);
    /* sums[r] = x times row r of the consecutive blocks w. */
    void (*packed_dot)(const uint8_t *w, int64_t blocks, int32_t bits, const void *x, float *sums);
    /* sums[row][column] over k4 groups of four. */
    void (*gemm)(int64_t k4, const int8_t *w, const uint8_t *x, int32_t *sums);
    /* sums[r] = x times row r of w, for INT8_DOT_ROWS rows `stride` apart; n % INT8_DOT_STEP ==
     * 0. */
    void (*dot)(int64_t n, const uint8_t *x, const int8_t *w, int64_t stride, int32_t *sums);
    /* Interleaves four rows of INT8_NR bytes. */
    void (*interleave)(const uint8_t *const rows[4], uint8_t *out);
    void (*requantize)(const int32_t *sums, int64_t n, const int8_requant *how, uint8_t *out);
    /* round(x / scale), clamped to [low, high], plus zero; NaN gives a stored 0. */
    void (*quantize)(const float *x, int64_t n, float scale, float low, float high, int32_t zero,
                     uint8_t *out);
    /* (x - zero) * scale; is_signed: x holds signed bytes. */
    void (*dequantize)(const uint8_t *x, int64_t n, int32_t is_signed, int32_t zero, float scale,
                       float *out);
    /* out = max(out, x); flip 0x80 for signed bytes, else 0. */
    void (*max)(uint8_t *out, const uint8_t *x, int64_t n, uint8_t flip);
    /* out[i] = maximum of x[i * stride + k * dilation], k < window */
    void (*max_along)(const uint8_t *x, int64_t n, int64_t window, int64_t stride, int64_t dilation,
                      uint8_t flip, uint8_t *out);
    /* The same for positions of `block` bytes (16 or 8); stride and dilation are in bytes. */
    void (*max_blocks)(const uint8_t *x, int64_t n, int64_t window, int64_t stride,
                       int64_t dilation, int64_t block, uint8_t flip, uint8_t *out);
    void (*tile)(const int8_tile *t);
    void (*window)(const int8_window *t);
    void (*add)(const uint8_t *a, const uint8_t *b, int64_t n, const int8_pair *how, uint8_t *y);
    void (*mul)(const uint8_t *a, const uint8_t *b, int64_t n, const int8_pair *how, uint8_t *y);
    /* Multiplies n positions of `block` bytes (16, 8 or 1) by the same bytes b. */
    void (*scale)(const uint8_t *a, int64_t n, int64_t block, const uint8_t *b,
                  const int8_pair *how, uint8_t *y);
    void (*table)(const uint8_t *x, int64_t n, const uint8_t *t, uint8_t *y);
    /* The sum of n positions of `block` bytes, times a_factor. */
    void (*mean)(const uint8_t *x, int64_t n, int64_t block, const int8_pair *how, uint8_t *y);
} int8_ukernels;

extern const int8_ukernels int8_ukernels_generic, int8_ukernels_avx2, int8_ukernels_avx512vnni,
    int8_ukernels_neon, int8_ukernels_dotprod, int8_ukernels_i8mm;

#endif
