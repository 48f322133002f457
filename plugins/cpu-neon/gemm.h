/* Matrix products from packed panels: blocking, and the division of work among threads.
 *
 *     C[m][n] = start + A[m][k] * B[k][n]
 *
 * A is packed as a whole, B block by block while it is used (or as a whole, when it is constant).
 * Each element of C is summed in the order of k whatever the division, so results do not depend on
 * the number of threads. */
#ifndef NEON_GEMM_H
#define NEON_GEMM_H

#include "support.h"

#define NEON_KC \
    (neon_uk->vl == 16 ? 512 : 256) /* of k: a block of B is KC by NEON_NC floats, part */
#define NEON_MOST_KC 512            /* of the L2 cache, which is 1 MB or more beside AVX-512 */
#define NEON_NC 240                 /* columns; a multiple of every nr */

/* Packs columns [col, col + n) and rows [k, k + kn) of B as one panel. */
typedef void (*neon_pack_fn)(const void *arg, int64_t k, int64_t kn, int64_t col, int64_t n,
                             float *panel);

/* A matrix product: sizes, operands, and what follows it. */
typedef struct neon_product {
    int64_t m, n, k;
    neon_stored a_as, b_as; /* storage type of a, and of b if it is packed */
    const void *a;          /* panels [m / mr][k][mr] */
    const void *b;          /* packed as a whole by neon_pack_b, or NULL: */
    neon_pack_fn pack;
    const void *pack_arg;
    const float *bias; /* one for each row; NULL: 0 */
    int add;           /* 1: adds to C; 0: overwrites it */
    float *c;
    int64_t ldc;
    const neon_chain *chain; /* NULL: none. C is part of output 0 of `node` */
    const cnr_node *node;
    int64_t c_first; /* and starts at this element of it */
} neon_product;

/* Blocks of C; each is a task. */
typedef struct neon_grid {
    int64_t mb, nb; /* rows and columns of a block */
    int64_t rows, columns;
} neon_grid;

/* Returns a grid of blocks for `copies` products of m x n, so that all threads have work. packed: B
 * is packed as a whole, so blocks start at its panels. */
neon_grid neon_grid_of(int64_t m, int64_t n, int64_t copies, int packed, int32_t threads);
/* Returns how many floats of scratch neon_block wants for each thread. */
int64_t neon_block_room(int64_t n, int64_t k);
/* Computes C[m0..m1)[n0..n1); n1 - n0 <= NEON_NC, and n0 is a multiple of nr if B is packed as a
 * whole. */
void neon_block(const neon_product *p, int64_t m0, int64_t m1, int64_t n0, int64_t n1, float *room);
/* Computes rows [m0, m1) of C on the stream's threads; scratch: neon_block_room for each thread. */
void neon_multiply(const neon_product *p, int64_t m0, int64_t m1, cnr_stream *stream,
                   float *scratch);

/* Returns how many floats A (m x k) takes, packed as a whole. */
int64_t neon_packed_a(int64_t m, int64_t k);
/* Packs panels first to last - 1 of A, a[i * rs + j * cs] times scale, with mr rows each. */
void neon_pack_a(const float *a, int64_t rs, int64_t cs, int64_t m, int64_t k, float scale,
                 int64_t first, int64_t last, float *out);
/* Returns how many floats B (k x n) takes, packed as a whole. */
int64_t neon_packed_b(int64_t n, int64_t k);
/* Packs panels first to last - 1 of B, with nr columns each. */
void neon_pack_b(const float *b, int64_t rs, int64_t cs, int64_t n, int64_t k, int64_t first,
                 int64_t last, float *out);
/* Packs a panel of A or B in the storage type `as`; `out` is the start of the whole. */
void neon_store_a(neon_stored as, const float *a, int64_t rs, int64_t cs, int64_t m, int64_t k,
                  int64_t panel, void *out);
/* Packs panel number `panel` of B at its place in `out`, in the given type; rs and cs are B's
 * strides in elements. */
void neon_store_b(neon_stored as, const float *b, int64_t rs, int64_t cs, int64_t n, int64_t k,
                  int64_t panel, void *out);
/* A neon_pack_fn on a strided matrix. */
typedef struct neon_strided {
    const float *b;
    int64_t rs, cs;
} neon_strided;
/* neon_pack_fn of a strided matrix (neon_strided): packs rows k to kn - 1, n columns from col on,
 * into the panel. */
void neon_pack_strided(const void *arg, int64_t k, int64_t kn, int64_t col, int64_t n,
                       float *panel);

#endif
