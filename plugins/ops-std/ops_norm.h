/* What the normalising operators share. */
#ifndef OPS_NORM_H
#define OPS_NORM_H

#include "ops_kit.h"

/* Mean and variance (of the population) of n elements, in two passes. Of nothing: 0 and 0. */
OPS_INLINE void ops_moments(int32_t dtype, const void *x, int64_t first, int64_t n, double *mean,
                            double *variance) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) sum += ops_get(dtype, x, first + i);
    *mean = n > 0 ? sum / (double)n : 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = ops_get(dtype, x, first + i) - *mean;
        squares += d * d;
    }
    *variance = n > 0 ? squares / (double)n : 0;
}

/* A sum of squares as devices have it, which flush to 0 what their floats hold only as a denormal
 * number. */
OPS_INLINE double ops_flushed(int32_t dtype, double sum) {
    return sum < (dtype == CNR_f64 ? 0x1p-1022 : 0x1p-126) ? 0 : sum;
}

/* Input `port` is a vector of floats with `n` elements (negative: any). */
cnr_status ops_want_vector(const cnr_node *node, int32_t port, int64_t n, cnr_error *err);
/* Element i of a float vector that may be of another dtype than x; `missing` without one. */
static inline double ops_vector(const cnr_tensor *t, int64_t i, double missing) {
    return t ? ops_get(t->dtype, t->data, i) : missing;
}
/* parameters hook: a vector of x's channels, 1 for a port named scale or var, else 0. */
cnr_status ops_channel_parameters(const cnr_node *node, int32_t port, cnr_tensor *t, cnr_init *init,
                                  cnr_error *err);
/* region hook: vectors of channels follow axis 1, x follows every axis. */
void ops_channel_region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end,
                        int32_t port, cnr_input_range *r);
void ops_norm_cost(const cnr_node *node, cnr_cost *c);
/* A constant vector of n elements. */
cnr_value ops_grad_vector(const cnr_host *host, struct cnr_graph *graph, int32_t dtype, int64_t n,
                          double value);

#endif
