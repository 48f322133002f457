/* Shared by the normalising operators. */
#ifndef OPS_NORM_H
#define OPS_NORM_H

#include "ops_kit.h"

/* Mean and population variance of n elements, in two passes; 0 and 0 if n is 0. */
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

/* A sum of squares as devices compute it, which flush denormal numbers to 0. */
OPS_INLINE double ops_flushed(int32_t dtype, double sum) {
    return sum < (dtype == CNR_f64 ? 0x1p-1022 : 0x1p-126) ? 0 : sum;
}

/* Checks that input `port` is a vector of `n` floats (negative: any number). */
cnr_status ops_want_vector(const cnr_node *node, int32_t port, int64_t n, cnr_error *err);
/* Element i of a float vector, which may have another dtype than x; `missing` if t is NULL. */
static inline double ops_vector(const cnr_tensor *t, int64_t i, double missing) {
    return t ? ops_get(t->dtype, t->data, i) : missing;
}
/* Method parameters: *t is a vector with one element for each channel of x; *init is 1 for a port
 * named scale or var, else 0. */
cnr_status ops_channel_parameters(const cnr_node *node, int32_t port, cnr_tensor *t, cnr_init *init,
                                  cnr_error *err);
/* region hook: a range of axis 1 is that of the channel vectors; any range is that of x. */
void ops_channel_region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end,
                        int32_t port, cnr_input_range *r);
/* Method cost: six operations an output element. */
void ops_norm_cost(const cnr_node *node, cnr_cost *c);
/* Adds a constant vector of n elements of dtype, all of that value; returns it, or -1. */
cnr_value ops_grad_vector(const cnr_host *host, struct cnr_graph *graph, int32_t dtype, int64_t n,
                          double value);
/* gradient hook of operators that normalise x in `rows` rows of equal length. The parameters have
 * the shapes scale and shift (NULL: there is none), which broadcast to `wide`, x's elements. */
cnr_status ops_norm_gradient(OPS_GRADIENT_ARGS, int64_t rows, const cnr_tensor *wide,
                             const cnr_tensor *scale, const cnr_tensor *shift);
/* Method gradient of normalisations by `groups` groups of channels, with parameters for each
 * channel or group. */
cnr_status ops_channel_gradient(OPS_GRADIENT_ARGS, int64_t groups);

#endif
