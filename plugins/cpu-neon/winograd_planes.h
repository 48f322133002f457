/* Winograd's method on plain tensors, for training: tiles of 6 x 6 for windows of 3 x 3 (4 x 4
 * outputs) and 5 x 5 (2 x 2 outputs). Used by winograd_planes.c, winograd_volume.c and
 * winograd_grad.c. */
#ifndef NEON_WINOGRAD_PLANES_H
#define NEON_WINOGRAD_PLANES_H

#include "support.h"

/* Components of a tile. */
#define WINO_COMPONENTS 36
/* Score of a gradient that takes less time by another kernel. */
#define NEON_LAST 100

/* Blocks of tiles: some rows of one image, or all tiles of several images. */
typedef struct neon_wino_blocks {
    int64_t side, reach; /* outputs of a tile along each axis; window size - 1 */
    int64_t images, high, wide;
    int64_t rows, bands; /* rows of tiles of a band; bands of an image */
    int64_t together;    /* images of a block; 1 unless an image is one band */
    int64_t n, tiles;    /* blocks; most tiles of one */
} neon_wino_blocks;

/* The rows of tiles of one image that a block has, and the index of their first tile in it. */
typedef struct neon_wino_band {
    int64_t image, row, rows, at;
} neon_wino_band;

/* Why a window is not computed so; NULL: it is. */
const char *neon_wino_window(const cnr_window *w);
/* Divides `images` planes of out[0] x out[1] outputs into blocks of about `tiles` tiles. */
neon_wino_blocks neon_wino_blocks_of(int64_t kernel, const int64_t *out, int64_t images,
                                     int64_t tiles);
/* Number of bands of block i. */
int64_t neon_wino_bands(const neon_wino_blocks *b, int64_t i);
/* Band k of block i. */
neon_wino_band neon_wino_band_of(const neon_wino_blocks *b, int64_t i, int64_t k);
/* Positions of a band, with `reach` more along each axis than its outputs. */
static inline int64_t neon_wino_high(const neon_wino_blocks *b, int64_t rows, int64_t reach) {
    return rows * b->side + reach;
}
/* The same along the rows. */
static inline int64_t neon_wino_wide(const neon_wino_blocks *b, int64_t reach) {
    return b->wide * b->side + reach;
}
/* Cycles of a tile's transform and of turning its positions, for a vector of channels. */
double neon_wino_transform_cycles(int64_t side);

/* Planes that are copied to blocks of vl channels. */
typedef struct neon_wino_planes {
    const float *x;
    int64_t plane, size[2]; /* floats from one channel to the next; rows and columns */
    int64_t channels;       /* vl at most; the other lanes become 0 */
    int64_t top, left;      /* row and column of the room's first position; outside are zeros */
} neon_wino_planes;
/* Copies high x wide positions to `room`. */
void neon_wino_fill(const neon_wino_planes *p, int64_t high, int64_t wide, float *room);

#endif
