/* What poolings and their gradients share. */
#ifndef NEON_POOL_H
#define NEON_POOL_H

#include "support.h"

/* The window over x; NULL or why not. */
const char *neon_pool_window(const cnr_node *node, const cnr_tensor *x, cnr_window *w);
/* What the sum at output position o (three axes) is divided by. */
int64_t neon_pool_divisor(const cnr_window *w, int include, const int64_t *o);

#endif
