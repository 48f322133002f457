/* Shared by poolings and their gradients. */
#ifndef NEON_POOL_H
#define NEON_POOL_H

#include "support.h"

/* Reads the window over x; returns NULL, or why it is refused. */
const char *neon_pool_window(const cnr_node *node, const cnr_tensor *x, cnr_window *w);
/* scale[i]: the factor of the sum at output position i that gives the average; include: padding
 * counts. */
void neon_pool_scale(const neon_padded *g, int include, float *scale);
/* Applies the window to rows [row0, row1) of a padded plane; out is the whole output plane with
 * rows `pitch` apart. */
void neon_window_plane(const neon_padded *g, neon_window_kind kind, const float *padded,
                       int64_t row0, int64_t row1, float *out, int64_t pitch);

#endif
