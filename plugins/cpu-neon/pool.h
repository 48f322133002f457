/* What poolings and their gradients share. */
#ifndef NEON_POOL_H
#define NEON_POOL_H

#include "support.h"

/* The window over x; NULL or why not. */
const char *neon_pool_window(const cnr_node *node, const cnr_tensor *x, cnr_window *w);
/* What the sum at each output position is multiplied with to give the average. */
void neon_pool_scale(const neon_padded *g, int include, float *scale);
/* The window over rows [row0, row1) of a padded plane; out is the whole output plane, its rows
 * `pitch` apart, of which all are written. */
void neon_window_plane(const neon_padded *g, neon_window_kind kind, const float *padded,
                       int64_t row0, int64_t row1, float *out, int64_t pitch);

#endif
