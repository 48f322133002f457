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

/* Channels of x, its axis 1, and elements of a channel in one image. */
static inline int64_t ops_channels(const cnr_tensor *x) { return x->rank > 1 ? x->dim[1] : 1; }
static inline int64_t ops_plane(const cnr_tensor *x) {
    return x->rank > 2 ? cnr_span(x, 2, x->rank) : 1;
}

/* Attribute row of the number that is added to the variance. */
#define OPS_BATCH_EPSILON_ROW \
    { \
        .name = "epsilon", .type = CNR_ATTR_FLOAT, .flags = CNR_ATTR_BOUNDED, .alias = "eps", \
        .min = 0, .max = 1e6, .default_f = 1e-5, \
        .help = "added to the variance, against division by zero" \
    }

/* Checks that dy, input 0, has the type and shape of x, input 1, and that inputs `first` to `last`
 * have a number for each channel of x. */
cnr_status ops_want_gradient_of(const cnr_node *node, int32_t first, int32_t last, cnr_error *err);
/* Checks that input `port` is an f64 vector of n elements; a negative n: of unknown size. */
cnr_status ops_want_sums(const cnr_node *node, int32_t port, int64_t n, cnr_error *err);
/* Sums of a channel's gradient: *sum of dy, and *product of dy z with z = (x - mean) part. */
OPS_INLINE void ops_gradient_sums(const cnr_tensor *dy, const cnr_tensor *x, int32_t dtype,
                                  int64_t c, double mean, double part, double *sum,
                                  double *product) {
    const int64_t channels = ops_channels(x), inner = ops_plane(x);
    *sum = *product = 0;
    for (int64_t k = 0; k < x->dim[0]; k++)
        for (int64_t i = 0; i < inner; i++) {
            const int64_t at = (k * channels + c) * inner + i;
            const double d = ops_get(dtype, dy->data, at);
            *sum += d;
            *product += d * (ops_get(dtype, x->data, at) - mean) * part;
        }
}
/* Mean and variance of channel c over batch and spatial axes, in two passes. */
OPS_INLINE void ops_channel_moments(const cnr_tensor *x, int32_t dtype, int64_t c, double *mean,
                                    double *variance) {
    const int64_t channels = ops_channels(x), inner = ops_plane(x);
    const double n = (double)x->dim[0] * (double)inner;
    double sum = 0, squares = 0;
    for (int64_t k = 0; k < x->dim[0]; k++)
        for (int64_t i = 0; i < inner; i++)
            sum += ops_get(dtype, x->data, (k * channels + c) * inner + i);
    *mean = n > 0 ? sum / n : 0;
    for (int64_t k = 0; k < x->dim[0]; k++)
        for (int64_t i = 0; i < inner; i++) {
            const double d = ops_get(dtype, x->data, (k * channels + c) * inner + i) - *mean;
            squares += d * d;
        }
    *variance = n > 0 ? squares / n : 0;
}
/* Adds the sum over the processes of a group of an f64 vector of n elements, times `multiplier`, by
 * the operators that begin and end it; returns it, or -1. */
cnr_value ops_group_sum(kit_build *b, const char *begin, const char *end, cnr_value x, int64_t n,
                        double multiplier);

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
