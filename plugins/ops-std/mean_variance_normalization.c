/* mean_variance_normalization: normalises over any set of axes by their mean and variance. */
#include "ops_norm.h"

static const cnr_attr_spec attrs[] = {{.name = "axes",
                                       .type = CNR_ATTR_INTS,
                                       .flags = CNR_ATTR_BOUNDED,
                                       .min = -CNR_MAX_RANK,
                                       .max = CNR_MAX_RANK - 1,
                                       .help = "axes to normalise over; none: all but axis 1"},
                                      {.name = "normalize_variance",
                                       .type = CNR_ATTR_BOOL,
                                       .default_i = 1,
                                       .help = "divide by the deviation"},
                                      {.name = "epsilon",
                                       .type = CNR_ATTR_FLOAT,
                                       .alias = "eps",
                                       .default_f = 1e-9,
                                       .help = "added to the deviation, against division by zero"}};
static const cnr_port in[] = {{.name = "x", .help = "any tensor"}};
static const cnr_port out[] = {{.name = "y", .help = "the same shape"}};

/* *set receives the bits of the reduced axes; fails where one is out of range. */
static cnr_status axes_of(const cnr_node *node, uint32_t *set, cnr_error *err) {
    const int32_t rank = node->inputs[0]->rank;
    int64_t n;
    const int64_t *list = cnr_attr_ints(node, "axes", &n);
    *set = n > 0 ? 0 : ((1u << rank) - 1) & ~2u;
    for (int64_t i = 0; i < n; i++) {
        const int64_t a = list[i] < 0 ? list[i] + rank : list[i];
        if (a < 0 || a >= rank)
            return ops_fail(err, CNR_E_ARG, node, "axes[%lld]: want %d to %d, got %lld",
                            (long long)i, -rank, rank - 1, (long long)list[i]);
        *set |= 1u << a;
    }
    return CNR_OK;
}

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    uint32_t set;
    CNR_TRY(ops_infer_float(node, outputs, err));
    return axes_of(node, &set, err);
}

/* Method split_axes: axes receives at most max output axes that a run may be cut along; returns
 * how many. */
static int32_t split_axes(const cnr_node *node, cnr_split_axis *axes, int32_t max) {
    uint32_t set;
    int32_t n = 0;
    if (axes_of(node, &set, NULL) != CNR_OK) return 0;
    for (int32_t i = 0; i < node->outputs[0]->rank && n < max; i++)
        if (!(set >> i & 1u)) axes[n++] = (cnr_split_axis){.axis = i, .alignment = 1};
    return n;
}

/* Advances `at` along the axes in `set`, within lo and hi; 0: it has wrapped to the start. */
static int step(int64_t *at, const int64_t *lo, const int64_t *hi, int32_t rank, uint32_t set) {
    for (int32_t i = rank - 1; i >= 0; i--) {
        if (!(set >> i & 1u)) continue;
        if (++at[i] < hi[i]) return 1;
        at[i] = lo[i];
    }
    return 0;
}

/* Element offset of the place `at`. */
static int64_t offset(const int64_t *at, const int64_t *stride, int32_t rank) {
    int64_t sum = 0;
    for (int32_t i = 0; i < rank; i++) sum += at[i] * stride[i];
    return sum;
}

OPS_INLINE void body(const cnr_run *run, uint32_t set, int32_t dtype) {
    const cnr_tensor *x = run->node->inputs[0];
    const double epsilon = cnr_attr_float(run->node, "epsilon");
    const int divide = cnr_attr_int(run->node, "normalize_variance") != 0;
    int64_t lo[CNR_MAX_RANK], hi[CNR_MAX_RANK], at[CNR_MAX_RANK], stride[CNR_MAX_RANK];
    double many = 1;
    kit_dense_strides(x, stride);
    cnr_range_of(run, lo, hi);
    for (int32_t i = 0; i < x->rank; i++) {
        if (lo[i] >= hi[i]) return;
        at[i] = lo[i];
        if (set >> i & 1u) many *= (double)x->dim[i];
    }
    do {
        double sum = 0, squares = 0;
        if (ops_cancelled(run)) return;
        do sum += ops_get(dtype, x->data, offset(at, stride, x->rank));
        while (step(at, lo, hi, x->rank, set));
        const double mean = sum / many;
        do {
            const double d = ops_get(dtype, x->data, offset(at, stride, x->rank)) - mean;
            squares += d * d;
        } while (step(at, lo, hi, x->rank, set));
        const double by = divide ? sqrt(squares / many) + epsilon : 1;
        do {
            const int64_t i = offset(at, stride, x->rank);
            ops_put(dtype, run->outputs[0]->data, i, (ops_get(dtype, x->data, i) - mean) / by);
        } while (step(at, lo, hi, x->rank, set));
    } while (step(at, lo, hi, x->rank, ~set));
}

/* Method reference of mean_variance_normalization: normalises x to mean 0 and deviation 1 over any
 * set of axes. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    uint32_t set;
    CNR_TRY(axes_of(run->node, &set, err));
    OPS_SPECIALISE(run->outputs[0]->dtype, body(run, set, dtype));
    return CNR_OK;
}

const cnr_op ops_mean_variance_normalization = {
    CNR_OP_SIZES,
    .name = "mean_variance_normalization",
    .summary = "Normalises x to mean 0 and deviation 1 over any set of axes.",
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = ops_norm_cost,
    .buffer_aliases = ops_alias_inplace,
    .split_axes = split_axes,
    .input_range = ops_region_every,
    .reference = reference,
};
