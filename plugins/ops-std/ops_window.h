/* Shared by convolutions and poolings: a window's geometry, always with three spatial axes. */
#ifndef OPS_WINDOW_H
#define OPS_WINDOW_H

#include "ops.h"

/* Sizes N C D H W; missing leading spatial axes have size 1, so that one loop nest serves all
 * ranks. lo and hi bound the part of output 0 that a run covers, in these five axes. */
typedef struct ops_geometry {
    int64_t n, c;                   /* samples and channels of x */
    int64_t in[3], out[3], k[3];    /* extents of x, of y, of the window */
    int64_t s[3], d[3], p[3], e[3]; /* stride, dilation, padding at begin and end */
    int64_t lo[5], hi[5];
} ops_geometry;

/* From a resolved window and the run's output `y` (N C spatial). */
void ops_geometry_of(const cnr_window *w, const cnr_tensor *x, const cnr_run *run, ops_geometry *g);
/* The range of input axis 2 + i that output [begin, end) of spatial axis i reads, clipped to the
 * input. */
cnr_input_range ops_window_region(const cnr_window *w, int32_t i, int64_t begin, int64_t end);
/* [*first, *last): taps of a window along `axis`, 0 to 2, at output position o that fall inside the
 * input. */
static inline void ops_taps(const ops_geometry *g, int axis, int64_t o, int64_t *first,
                            int64_t *last) {
    const int64_t start = o * g->s[axis] - g->p[axis], d = g->d[axis], in = g->in[axis];
    *first = start >= 0 ? 0 : (-start + d - 1) / d;
    *last = start >= in ? 0 : (in - start + d - 1) / d;
    if (*last > g->k[axis]) *last = g->k[axis];
    if (*last < *first) *last = *first;
}
/* Product of three extents. */
static inline int64_t ops_volume(const int64_t *extent) {
    return extent[0] * extent[1] * extent[2];
}

/* 1: the node is a pad that adds zeros or crops; the lists receive how much, by axis. */
int ops_zero_border(const cnr_node *pad, int64_t before[CNR_MAX_RANK], int64_t after[CNR_MAX_RANK]);

/* ---- conv and its gradients (conv.c) ---- */

/* out: number of channels of the weight if a script omits the weight. */
#define OPS_CONV_ROWS \
    {.name = "kernel_shape", \
     .type = CNR_ATTR_INTS, \
     .flags = CNR_ATTR_SPATIAL | CNR_ATTR_BOUNDED, \
     .alias = "kernel", \
     .min = 0, \
     .max = 1 << 20, \
     .fill = 0, \
     .help = "extent of the window along each spatial axis; 0: the weight's"}, \
        {.name = "group", \
         .type = CNR_ATTR_INT, \
         .flags = CNR_ATTR_BOUNDED, \
         .alias = "groups", \
         .min = 1, \
         .max = 1 << 20, \
         .default_i = 1, \
         .help = "number of groups of channels; as many as channels: depthwise"}, \
        {.name = "out", \
         .type = CNR_ATTR_INT, \
         .flags = CNR_ATTR_BOUNDED, \
         .min = 0, \
         .max = 1 << 30, \
         .help = "output channels, if the weight is not given"}, \
    { \
        .name = "bias", .type = CNR_ATTR_BOOL, .default_i = 1, \
        .help = "whether a bias is created with the weight" \
    }

/* Kernel sizes: from the attribute, else from the weight's dims (-1: unknown). */
void ops_conv_kernel(const cnr_node *node, const cnr_tensor *weight, int64_t *kernel);
/* Checks weight and bias against x, and resolves the window. */
cnr_status ops_conv_check(const cnr_node *node, const cnr_tensor *x, const cnr_tensor *weight,
                          cnr_window *w, cnr_error *err);
/* Method parameters: gives *t the weight's shape: out, in/group, kernel; transposed: in, out/group,
 * kernel. */
cnr_status ops_conv_parameters(const cnr_node *node, int32_t port, int transposed, cnr_tensor *t,
                               cnr_init *init, cnr_error *err);
/* infer for the gradients, whose inputs are dy and then weight or x; dx or dw is like the missing
 * one. */
cnr_status ops_conv_grad_infer(const cnr_node *node, const cnr_tensor *x, const cnr_tensor *weight,
                               cnr_tensor *out, cnr_error *err);
/* Sets c->macs to the multiply-adds of a gradient of a convolution with this weight. */
void ops_conv_grad_cost(const cnr_node *node, const cnr_tensor *weight, cnr_cost *c);
extern const cnr_attr_spec ops_conv_attrs[];
#define OPS_CONV_N_ATTRS 8
/* Transposed convolution, which is also the gradient of a convolution's input: y[n][o][i] = sum of
 * x[n][c][j] * w[c][o][k] over the taps k with i = j * s - p + k * d. g is the geometry of that
 * convolution, whose input is our output. bias may be NULL. */
void ops_transposed(const cnr_run *run, const ops_geometry *g, int64_t group, const cnr_tensor *x,
                    const cnr_tensor *weight, const cnr_tensor *bias);

/* ---- pooling (pool.c) ---- */

#define OPS_POOL_ROWS \
    {.name = "kernel_shape", \
     .type = CNR_ATTR_INTS, \
     .flags = CNR_ATTR_REQUIRED | CNR_ATTR_SPATIAL | CNR_ATTR_BOUNDED, \
     .alias = "kernel", \
     .min = 1, \
     .max = 1 << 20, \
     .help = "extent of the window along each spatial axis"}, \
    { \
        .name = "ceil_mode", .type = CNR_ATTR_BOOL, .alias = "ceil", \
        .help = "round the number of outputs up, so that the last window may extend over the end" \
    }

/* *w receives the pooling's window over x; fails where it does not fit. */
cnr_status ops_pool_window(const cnr_node *node, const cnr_tensor *x, cnr_window *w,
                           cnr_error *err);
/* Method infer of poolings of these types (bits): the output's spatial axes are the window's
 * places. Fails where types or ranks differ. */
cnr_status ops_pool_infer(const cnr_node *node, uint32_t dtypes, cnr_tensor *const *outputs,
                          cnr_error *err);
/* The window's geometry over x for a run. */
cnr_status ops_pool_geometry(const cnr_run *run, const cnr_tensor *x, ops_geometry *g,
                             cnr_error *err);
/* Elements of a pooling's window, at most UINT64_MAX. */
uint64_t ops_pool_taps(const cnr_node *node);
/* Method cost of poolings: an operation for each element of each window. */
void ops_pool_cost(const cnr_node *node, cnr_cost *c);
/* Method region of poolings: the rows that the windows of [begin, end) cover. */
void ops_pool_region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                     cnr_input_range *r);
/* Method workspace: bytes of an output plane of double; 0 where its size is unknown. */
uint64_t ops_plane_workspace(const cnr_node *node);

extern const cnr_attr_spec ops_max_pool_attrs[];
#define OPS_MAX_POOL_N_ATTRS 7
extern const cnr_attr_spec ops_average_pool_attrs[];
#define OPS_AVERAGE_POOL_N_ATTRS 7

/* Calls visit(index in the plane) for each tap inside x of the window at output position o. */
#define OPS_EACH_TAP(g, o, index, visit) \
    do { \
        int64_t first_[3], last_[3]; \
        for (int a_ = 0; a_ < 3; a_++) ops_taps(g, a_, (o)[a_], &first_[a_], &last_[a_]); \
        for (int64_t i_ = first_[0]; i_ < last_[0]; i_++) \
            for (int64_t j_ = first_[1]; j_ < last_[1]; j_++) \
                for (int64_t k_ = first_[2]; k_ < last_[2]; k_++) { \
                    const int64_t index = \
                        (((o)[0] * (g)->s[0] - (g)->p[0] + i_ * (g)->d[0]) * (g)->in[1] + \
                         (o)[1] * (g)->s[1] - (g)->p[1] + j_ * (g)->d[1]) * \
                            (g)->in[2] + \
                        (o)[2] * (g)->s[2] - (g)->p[2] + k_ * (g)->d[2]; \
                    visit; \
                } \
    } while (0)

/* Index of the maximum of a window, in the plane that starts at element `base`: the first of
 * equals; NaN counts as largest. -1: the window has no element. */
OPS_INLINE int64_t ops_window_max(const ops_geometry *g, int32_t dtype, const void *x, int64_t base,
                                  const int64_t *o, double *best) {
    int64_t at = -1;
    OPS_EACH_TAP(g, o, index, {
        const double v = ops_get(dtype, x, base + index);
        if (at < 0 || (!(v <= *best) && *best == *best)) {
            *best = v;
            at = index;
        }
    });
    return at;
}

/* Computes the output elements of a pooling by `of`, called for each window. */
typedef double (*ops_window_fn)(const ops_geometry *g, int32_t dtype, const void *x, int64_t base,
                                const int64_t *o, double option);
OPS_INLINE void ops_pool_body(const cnr_run *run, const ops_geometry *g, int32_t dtype,
                              ops_window_fn of, double option) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    int64_t o[3];
    for (int64_t n = g->lo[0]; n < g->hi[0]; n++)
        for (int64_t c = g->lo[1]; c < g->hi[1]; c++) {
            const int64_t from = (n * g->c + c) * ops_volume(g->in);
            const int64_t to = (n * g->c + c) * ops_volume(g->out);
            if (ops_cancelled(run)) return;
            for (o[0] = g->lo[2]; o[0] < g->hi[2]; o[0]++)
                for (o[1] = g->lo[3]; o[1] < g->hi[3]; o[1]++)
                    for (o[2] = g->lo[4]; o[2] < g->hi[4]; o[2]++)
                        ops_put(dtype, y->data, to + (o[0] * g->out[1] + o[1]) * g->out[2] + o[2],
                                of(g, dtype, x->data, from, o, option));
        }
}

/* The divisor of an average at output place o: the window's elements that lie in the input, or with
 * count_include_pad, in the padded input. */
double ops_average_divisor(const ops_geometry *g, int count_include_pad, const int64_t *o);

#endif
