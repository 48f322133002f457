/* The microkernels: what is built once for each instruction set, and chosen as a whole.
 *
 * A tile of a matrix product is mr rows by nr = 3 vectors of columns. Packed operands:
 *     A: panels of mr rows, each [k][mr]     (rows past the last are zeros)
 *     B: panels of nr columns, each [k][w]   (w = nr; of the last, its columns rounded up to vl) */
#ifndef NEON_UKERNEL_H
#define NEON_UKERNEL_H

#include <stddef.h>
#include <stdint.h>

/* Storage type of weights. Products are computed in f32 in any case. */
typedef enum neon_stored {
    NEON_F32,
    NEON_F16,
    NEON_BF16,
    NEON_STORED,             /* the number of those that microkernels read one by one */
    NEON_PAIRS = NEON_STORED /* bf16, of two channels side by side */
} neon_stored;

/* Consecutive columns of a packed B that come from consecutive floats of a source. */
typedef struct neon_segment {
    int64_t from; /* offset in floats from the source's base */
    int64_t n;
} neon_segment;

/* What is computed over windows: weighted sum, sum or maximum. */
typedef enum neon_window_kind {
    NEON_WINDOW_FMA,
    NEON_WINDOW_SUM,
    NEON_WINDOW_MAX
} neon_window_kind;

/* Taps of a sliding window over a padded plane, and rows of its output. */
typedef struct neon_window_rows {
    const float *base;   /* address for the first output row's first position */
    int64_t row_stride;  /* floats from one output row's base to the next */
    const int64_t *tap;  /* floats from the base to each tap */
    const float *weight; /* FMA: one for each tap */
    int64_t taps;
    float start; /* FMA: the bias; else ignored */
    float *out;
    int64_t out_stride, rows, n;
} neon_window_rows;

/* y = (x - mean - mean_rest) * factor * scale + shift + start; without scale 1, without shift 0. */
typedef struct neon_normal {
    float mean, mean_rest, factor, start;
    const float *scale, *shift;
} neon_normal;

/* Position i of n is the sum over k of weight[k * pitch + i] times position at[k * pitch + i] of
 * the source; a position is `inner` floats. pitch is a multiple of vl; entries beyond n are
 * valid. */
typedef struct neon_resample {
    int64_t n, taps, pitch, inner;
    const int32_t *at;
    const float *weight;
} neon_resample;

/* v = momentum v + g, x -= along v + down g, where g is the gradient + decay x. */
typedef struct neon_sgd {
    float momentum, decay, along, down;
} neon_sgd;
/* x -= rate mean / (sqrt(square * fill) + epsilon) */
typedef struct neon_adam {
    float beta1, rest1, beta2, rest2, decay, rate, fill, epsilon;
} neon_adam;

/* Bound applied to a result in registers. */
typedef enum neon_bound_kind {
    NEON_BOUND_NONE,
    NEON_BOUND_RELU,
    NEON_BOUND_LEAKY, /* low: the slope */
    NEON_BOUND_CLIP
} neon_bound_kind;
/* Limits of a result: relu, leaky relu, clip to low .. high, or none. */
typedef struct neon_bound {
    neon_bound_kind kind;
    float low, high;
} neon_bound;

/* A tile of output columns by vectors of output channels, blocked: y = bound(start + sum +
 * operand). */
typedef struct neon_conv_tile {
    int64_t n, vectors;  /* at most tile_columns by tile_vectors */
    int64_t tiles;       /* number of adjacent tiles, of n columns each */
    const float *x;      /* at the first column */
    int64_t x_column;    /* floats from one column to the next */
    const int64_t *run;  /* floats from x to each run of */
    int64_t runs, count; /* `count` adjacent input channels */
    const float *weight; /* weights as [runs][count][vectors][vl] */
    int64_t weight_gap;  /* floats between the weights of one run and those of the next */
    const float *bias;   /* bias as [vectors][vl] */
    int more;            /* start from y instead of the bias */
    float *y;
    int64_t y_column;
    const int64_t *low, *high; /* floats from y to each half of each vector; high -1: none */
    const float *operand;      /* laid out like y; NULL: none */
    neon_bound bound;
    int straight;       /* no half vectors, y_column is vl, and the bound is not LEAKY */
    const float *ahead; /* prefetched memory; `lines` cache lines for each run */
    int64_t ahead_lines;
} neon_conv_tile;

/* A window over the plane of one channel block: index 0 is rows, 1 columns. */
typedef struct neon_plane {
    const float *x;
    float *y;
    int64_t block, in[2], kernel[2], stride[2], dilation[2], pad[2];
    int64_t out_wide;
    int64_t whole0, whole1;      /* columns that have all taps within the input */
    int64_t row0, row1;          /* rows to compute */
    const float *weight, *start; /* FMA: weights as [tap][block]; start: first sums as [block] */
    const float *scale;          /* SUM: a factor for each output position */
    neon_bound bound;
} neon_plane;
/* Tiles [first, first + n) of a plane, row by row; tile k of these is read or written at k * lanes
 * of a component (k * vl of m). A tile is 4x4 outputs, and 6x6 in the input and in components. */
typedef struct neon_wino_input {
    const float *x;                     /* at these lanes; positions are `step` floats apart */
    int64_t out_side;                   /* outputs of a tile along each axis: 4 or 2 */
    int64_t lanes, step, in[2], pad[2]; /* vl, or half of it on the widest vectors */
    int64_t tiles_wide, first, n;
    float *v;
    int64_t v_component; /* floats from one component to the next */
} neon_wino_input;
/* Arguments of the last transform of Winograd's method. */
typedef struct neon_wino_output {
    const float *m, *bias, *operand; /* products, bias and added operand; operand NULL: none */
    int64_t m_component;
    int64_t out_side, lanes, step, out[2];
    int64_t tiles_wide, first, n;
    float *y;
    neon_bound bound;
} neon_wino_output;

/* Tiles [first, first + n) of a grid, `wide` of them in a row, and their 36 components. Positions
 * are blocks of vl channels with room for whole tiles; vector i of component k is at v + k *
 * component + i * pitch. */
typedef struct neon_wino_grid {
    int64_t side; /* outputs of a tile along each axis: 4, or 2 for windows of 5 x 5 */
    int64_t first, n, wide;
    float *x;
    int64_t row; /* floats from one row of positions to the next */
    float *v;
    int64_t component, pitch;
    int64_t panel;     /* wino_spread: floats between panels of mr rows, with pitch mr */
    const float *bias; /* wino_give: vl numbers */
} neon_wino_grid;

/* One tap of the gradient of pooling, over rows of outputs: x, dx at the tap's element of the first
 * one, `row` floats from one row to the next. top: maxima; rest: gradients that no tap has taken
 * yet, 0 beyond the outputs; both `pitch` floats a row, whole vectors. x NULL: the average. */
typedef struct neon_pool_tap {
    const float *x, *top;
    float *rest, *dx;
    int64_t row, pitch, rows;
} neon_pool_tap;

/* All functions that exist once for each instruction set. */
typedef struct neon_ukernels {
    const char *name; /* name of the instruction set, such as "avx512" */
    int32_t vl, mr, nr;
    int32_t dot_m, dot_n;
    int32_t block; /* block size in channels, at most */
    int32_t tile_columns, tile_vectors;

    void (*conv_tile)(const neon_conv_tile *tile);
    /* The same where each float of x and of the weights stands for a pair of adjacent channels in
     * bf16, the first in the lower half; sums are floats. Then conversion of n floats, a multiple
     * of 8, to pairs. NULL: only on processors that multiply bf16. */
    void (*conv_pairs)(const neon_conv_tile *tile);
    void (*to_pairs)(const float *from, int64_t n, float *to);
    /* out = x * scale[channel] + shift[channel] at n positions; NULL means 1 or 0; out may be x */
    void (*affine_block)(const float *x, const float *scale, const float *shift, int64_t block,
                         int64_t n, float *out);
    void (*plane)(neon_window_kind kind, const neon_plane *job);
    /* y[block] = scale * the sum, or the maximum, of n positions */
    void (*whole_plane)(neon_window_kind kind, const float *x, int64_t block, int64_t n,
                        float scale, float *y);
    /* Only the sum, to sum[tile][vector][column][vl]; the tile has a bias and no y. */
    void (*conv_sum)(const neon_conv_tile *tile, float *sum);
    void (*wino_input)(const neon_wino_input *job);
    void (*wino_output)(const neon_wino_output *job);
    /* The components of n <= vl filters of 9, `step` floats apart, one vector each: (out_side +
     * 2)^2. */
    void (*wino_weights)(int64_t out_side, const float *w, int64_t step, int64_t n, float *u,
                         int64_t component);

    /* The same for stored halves of n input channels, w[channel][9][vectors][vl], to
     * u[component][channel][...]. */
    void (*wino_halves)(int64_t out_side, neon_stored as, const uint16_t *w, int64_t n,
                        int64_t vectors, float *u, int64_t component);

    /* Transforms on planes, for training (wino_planes.h): of the input (B), of a gradient (A), of
     * sums back to positions (A^T), of n <= vl filters (G), and of their gradient's sums (G^T).
     * Filters are `lane` floats apart. */
    void (*wino_take)(const neon_wino_grid *grid);
    void (*wino_spread)(const neon_wino_grid *grid);
    void (*wino_give)(const neon_wino_grid *grid);
    void (*wino_filter)(int64_t side, const float *w, int64_t lane, int64_t n, int turned, float *u,
                        int64_t component);
    void (*wino_slope)(int64_t side, const float *s, int64_t component, int64_t n, float *dw,
                       int64_t lane);

    /* c[m][n] = bias (NULL: 0), or c if `add`, + the product of a panel of A (rows m <= mr) and one
     * of B (n <= nr). */
    void (*sgemm)(int64_t k, const float *a, const float *b, float *c, int64_t ldc, int64_t m,
                  int64_t n, const float *bias, int add);
    /* c[i][j] = (add ? c : bias ? bias[j] : 0) + sum over k of a[i][k] * b[j][k]; m <= dot_m, n <=
     * dot_n. One function for each storage type of b; rows of halves are padded with zeros to a
     * multiple of vl. */
    void (*sdot[NEON_STORED])(int64_t k, const float *a, int64_t lda, const void *b, int64_t ldb,
                              float *c, int64_t ldc, int64_t m, int64_t n, const float *bias,
                              int add);
    /* Converts n floats to halves, rounding to nearest, and back. NULL for NEON_F32. */
    void (*narrow[NEON_STORED])(const float *from, uint16_t *to, int64_t n);
    void (*widen[NEON_STORED])(const uint16_t *from, float *to, int64_t n);
    /* Packs a panel of B for rows (channel, tap) [k0, k1) of an im2col matrix: row k comes from
     * base + (k / taps) * plane + tap[k % taps]. May read vl floats beyond each segment if that is
     * before `end`, and write vl beyond the panel. */
    void (*pack_taps)(float *panel, int64_t width, int64_t k0, int64_t k1, const float *base,
                      const float *end, int64_t plane, const int64_t *tap, int64_t taps,
                      const neon_segment *segment, int64_t segments);
    /* Packs a panel of B from a row-major matrix; columns beyond n become 0. */
    void (*pack_rows)(float *panel, int64_t width, int64_t n, int64_t k, const float *b,
                      int64_t ldb);
    /* Packs a panel of A from mr rows of k floats, rs apart: panel[j][i] = scale * a[i * rs +
     * j]. */
    void (*pack_columns)(float *panel, int64_t k, const float *a, int64_t rs, float scale);
    /* May read vl floats beyond the last position of each row. */
    void (*window)(neon_window_kind kind, const neon_window_rows *job);

    /* Windows of 2 by 2 with stride 2: out[i] from [2 i] and [2 i + 1] of top and bottom. MAX or
     * SUM. */
    void (*pairs)(neon_window_kind kind, const float *top, const float *bottom, float *out,
                  int64_t n);

    void (*pool_tap)(const neon_pool_tap *tap);
    /* out[i] = x[i * stride]; reads no element beyond the last of these. */
    void (*strided)(const float *x, int64_t stride, float *out, int64_t n);

    void (*relu)(float *x, int64_t n);
    void (*leaky_relu)(float *x, float slope, int64_t n);
    /* The same with slope[channel], at n positions of `block` channels; out may be x. */
    void (*prelu_block)(const float *x, const float *slope, int64_t block, int64_t n, float *out);
    void (*clip)(float *x, float low, float high, int64_t n);
    void (*add)(float *x, const float *y, int64_t n);
    void (*mul)(float *x, const float *y, int64_t n);
    void (*divide)(float *x, const float *y, int64_t n);
    /* out = x * scale + shift */
    void (*affine)(const float *x, float scale, float shift, float *out, int64_t n);
    float (*max)(const float *x, int64_t n);
    float (*sum)(const float *x, int64_t n);
    /* out = exp(x - shift); returns the sum */
    float (*exp_sum)(const float *x, float shift, float *out, int64_t n);
    void (*sigmoid)(const float *x, float *out, int64_t n);
    void (*swish)(const float *x, float alpha, float *out, int64_t n); /* x * sigmoid(alpha x) */
    void (*hard_sigmoid)(float *x, float alpha, float beta, int64_t n);
    void (*hard_swish)(float *x, int64_t n);
    /* acc += x * x; and out = x / (bias + scale * acc)^beta */
    void (*add_squares)(const float *x, float *acc, int64_t n);
    void (*lrn)(const float *x, const float *acc, float scale, float bias, float beta, float *out,
                int64_t n);
    void (*tanh)(const float *x, float *out, int64_t n);
    void (*erf)(const float *x, float *out, int64_t n);
    void (*gelu)(const float *x, float *out, int64_t n); /* by the error function */
    void (*gelu_tanh)(const float *x, float *out, int64_t n);
    /* A step of a recurrent layer for n units: the gates are consecutive, n each, in ONNX's order.
     * lstm_cell: updates c and h; peepholes (of input, output, forget gate; NULL: none) read c.
     * gru_reset: out = reset gate * h. gru_cell: updates h; from_h NULL: the new gate is complete,
     * else reset gate * from_h is added to it. */
    void (*lstm_cell)(const float *gates, const float *peepholes, float *c, float *h, int64_t n);
    void (*gru_reset)(const float *gates, const float *h, float *out, int64_t n);
    void (*gru_cell)(const float *gates, const float *from_h, float *h, int64_t n);
    /* to[j * to_step + i] = from[i * from_step + j] of 4-byte elements, i < rows, j < columns. */
    void (*turn)(const float *from, int64_t from_step, float *to, int64_t to_step, int64_t rows,
                 int64_t columns);
    void (*resample)(const neon_resample *by, const float *x, float *out);
    void (*add_scaled)(float *x, const float *y, float scale, int64_t n); /* x += scale y */
    /* Mean and population variance of n > 0 elements; then y from x, which may be the same
     * memory. */
    void (*moments)(const float *x, int64_t n, double *mean, double *variance);
    void (*normalise)(const neon_normal *by, const float *x, float *out, int64_t n);
    /* In double, because much cancels: the sum of (x - mean_x) (y - mean_y); and out = a x + b
     * (y - mean) + c, where out must be neither x nor y. */
    double (*centred)(const float *x, double mean_x, const float *y, double mean_y, int64_t n);
    void (*blend)(const float *x, double a, const float *y, double mean, double b, double c,
                  float *out, int64_t n);
    /* Optimiser steps, in place; arrays must not overlap. */
    void (*sgd)(float *x, float *velocity, const float *gradient, const neon_sgd *by, int64_t n);
    void (*adam)(float *x, float *mean, float *square, const float *gradient, const neon_adam *by,
                 int64_t n);
    /* Peak speed of a core: 2 * NEON_PEAK * vl floating-point operations a round, in registers; and
     * n floats (a multiple of 16 vl) read once. The results have no meaning. */
    float (*peak)(int64_t rounds, float by);
    float (*read)(const float *x, int64_t n);
} neon_ukernels;
enum { NEON_PEAK = 12 };

extern const neon_ukernels neon_ukernels_generic, neon_ukernels_neon, neon_ukernels_avx2,
    neon_ukernels_avx512;

#endif
