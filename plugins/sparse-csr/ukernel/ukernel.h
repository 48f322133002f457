/* The microkernels: what is built once for each instruction set, and chosen as a whole.
 *
 * A slice is 16 blocks of rows side by side, a lane each, stored step by step, an entry of every
 * lane a step (lanes that have no more get zeros):
 *     gap:   [step][16]          columns from a lane's entry before (the first: from column 0)
 *     value: [step][block][16]
 * so that a vector of columns is one addition, and no sum has to be taken across lanes. */
#ifndef CSR_UKERNEL_H
#define CSR_UKERNEL_H

#include <stddef.h>
#include <stdint.h>

enum { CSR_LANES = 16, CSR_WIDEST = 8 };

/* One block of rows times a matrix with adjacent columns: entry i multiplies x[offset[i] ..] by
 * value[i * block ..]; the result is clamped to [low, high]. */
typedef struct csr_tile {
    const float *x, *value, *bias; /* bias: one for each row */
    const uint32_t *offset;
    int64_t n, ld; /* entries; floats from one row of out to the next */
    float *out, low, high;
} csr_tile;

/* sum[row of the block][lane] of `steps` steps. */
typedef void (*csr_slice_fn)(const void *gap, const void *value, int64_t steps, const float *x,
                             float *sum);
typedef void (*csr_tile_fn)(const csr_tile *tile);

enum { CSR_VALUE_F32, CSR_VALUE_F16, CSR_VALUE_I8, CSR_VALUES };

/* The functions for one instruction set. */
typedef struct csr_ukernels {
    const char *name;
    int32_t vl;                           /* floats in a vector */
    int32_t widest[2];                    /* vectors of a tile: for blocks of 1 row, of 4 */
    csr_slice_fn slice[2][2][CSR_VALUES]; /* indices: blocks of 4; gaps of 2 bytes; value */
    csr_tile_fn tile[2][CSR_WIDEST];      /* indices: blocks of 4; vectors - 1 */
} csr_ukernels;

extern const csr_ukernels csr_ukernels_generic, csr_ukernels_avx2, csr_ukernels_avx512,
    csr_ukernels_neon;

#endif
