/* reduce_*: sums, means, extremes, products and norms over axes. */
#include "ops_kit.h"

/* How the elements along the reduced axes become one number. */
typedef enum reduce_kind {
    REDUCE_SUM,
    REDUCE_MEAN,
    REDUCE_MAX,
    REDUCE_MIN,
    REDUCE_PROD,
    REDUCE_L1,
    REDUCE_L2,
    REDUCE_LOG_SUM,
    REDUCE_LOG_SUM_EXP,
    REDUCE_SUM_SQUARE
} reduce_kind;

static const cnr_port in[] = {{.name = "x", .help = "any shape"},
                              {.name = "axes",
                               .flags = CNR_PORT_OPTIONAL | CNR_PORT_CONST,
                               .help = "instead of the attribute"}};
static const cnr_port out[] = {{.name = "y", .help = "x with those axes reduced"}};
static const cnr_attr_spec attrs[] =
    {{.name = "axes", .type = CNR_ATTR_INTS, .alias = "axis", .help = "axes to reduce; none: all"},
     {.name = "keepdims",
      .type = CNR_ATTR_BOOL,
      .default_i = 1,
      .help = "reduced axes stay, with 1 element"},
     {.name = "noop_with_empty_axes",
      .type = CNR_ATTR_BOOL,
      .help = "without axes nothing is reduced"}};

/* Reads the reduced axes into `axes`, and their bits into *set; fails for an axis that x lacks or
 * has twice. */
static cnr_status axes_of(const cnr_node *node, kit_list *axes, uint32_t *set, cnr_error *err) {
    const int32_t rank = node->inputs[0]->rank;
    CNR_TRY(kit_ints(node, 1, "axes", axes, err));
    *set = 0;
    if (!axes->known) return CNR_OK;
    CNR_TRY(kit_axis_set(node, axes, rank, set, err));
    if (axes->n == 0 && !cnr_attr_int(node, "noop_with_empty_axes")) *set = (1u << rank) - 1;
    return CNR_OK;
}

/* Gives y the shape that stays; fails for other types. */
static cnr_status infer_as(const cnr_node *node, uint32_t dtypes, cnr_tensor *y, cnr_error *err) {
    const int keep = cnr_attr_int(node, "keepdims") != 0;
    const cnr_tensor *x = node->inputs[0];
    kit_list axes;
    uint32_t set;
    CNR_TRY(ops_want(node, 0, dtypes, 0, CNR_MAX_RANK, err));
    CNR_TRY(axes_of(node, &axes, &set, err));
    y->dtype = x->dtype;
    if (!axes.known) {
        if (!keep && (axes.n < 0 || axes.n > x->rank))
            return ops_fail(err, CNR_E_SHAPE, node, "how many axes go must be known");
        y->rank = keep ? x->rank : axes.n == 0 ? 0 : x->rank - (int32_t)axes.n;
        for (int32_t i = 0; i < y->rank; i++) y->dim[i] = CNR_DIM_UNKNOWN;
        return CNR_OK;
    }
    for (int32_t i = 0; i < x->rank; i++) {
        if (!(set >> i & 1u)) y->dim[y->rank++] = x->dim[i];
        else if (keep) y->dim[y->rank++] = 1;
    }
    return CNR_OK;
}

static void cost(const cnr_node *node, cnr_cost *c) { c->flops = ops_elements(node->inputs[0]); }

/* Method split_axes: with keepdims, all axes that are not reduced; else none. Returns how many it
 * wrote. */
static int32_t split_axes(const cnr_node *node, cnr_split_axis *split, int32_t max) {
    kit_list axes;
    uint32_t set;
    int32_t n = 0;
    if (!cnr_attr_int(node, "keepdims") || axes_of(node, &axes, &set, NULL) != CNR_OK) return 0;
    for (int32_t a = 0; axes.known && a < node->inputs[0]->rank && n < max; a++)
        if (!(set >> a & 1u)) split[n++] = (cnr_split_axis){a, 1};
    return n;
}

/* ---- reference: iterates over the kept axes, and for each over the reduced ones ---- */

/* Sizes and steps of the axes that are walked. */
typedef struct reduce_walk {
    int32_t rank;
    int64_t dim[CNR_MAX_RANK], stride[CNR_MAX_RANK], out[CNR_MAX_RANK];
    int64_t count;
} reduce_walk;

/* *w receives the walk over the axes in `set` (reduced: 1) or over the others (0) */
static void walk_of(const cnr_tensor *x, uint32_t set, int reduced, reduce_walk *w) {
    int64_t strides[CNR_MAX_RANK], step = 1;
    kit_dense_strides(x, strides);
    memset(w, 0, sizeof *w);
    w->count = 1;
    for (int32_t a = 0; a < x->rank; a++) {
        if ((int)(set >> a & 1u) != reduced) continue;
        w->dim[w->rank] = x->dim[a];
        w->stride[w->rank++] = strides[a];
        w->count *= x->dim[a];
    }
    if (w->rank == 0) {
        w->dim[0] = 1;
        w->stride[w->rank++] = 1;
    }
    for (int32_t a = w->rank - 1; a >= 0; step *= w->dim[a--]) w->out[a] = step;
}

/* Offsets in x and in y (*out) of step `index`. */
static int64_t offset_of(const reduce_walk *w, int64_t index, int64_t *out) {
    int64_t at = 0;
    *out = 0;
    for (int32_t a = w->rank - 1; a >= 0; a--) {
        at += index % w->dim[a] * w->stride[a];
        *out += index % w->dim[a] * w->out[a];
        index /= w->dim[a];
    }
    return at;
}

/* Takes n elements into *sum; top: the largest of all, for log_sum_exp. */
static void add_f(reduce_kind kind, double *sum, const double *x, int64_t n, double top) {
    double s = *sum;
    switch (kind) {
    case REDUCE_MAX:
        for (int64_t k = 0; k < n; k++) s = !(x[k] <= s) && s == s ? x[k] : s;
        break;
    case REDUCE_MIN:
        for (int64_t k = 0; k < n; k++) s = !(x[k] >= s) && s == s ? x[k] : s;
        break;
    case REDUCE_PROD:
        for (int64_t k = 0; k < n; k++) s *= x[k];
        break;
    case REDUCE_L1:
        for (int64_t k = 0; k < n; k++) s += fabs(x[k]);
        break;
    case REDUCE_L2:
    case REDUCE_SUM_SQUARE:
        for (int64_t k = 0; k < n; k++) s += x[k] * x[k];
        break;
    case REDUCE_LOG_SUM_EXP:
        for (int64_t k = 0; k < n; k++) s += exp(x[k] - top);
        break;
    default:
        for (int64_t k = 0; k < n; k++) s += x[k];
        break;
    }
    *sum = s;
}

/* Adds n whole numbers to *sum as the kind says. Integers wrap; squares and sums of u64 have the
 * same bits as those of i64. */
static void add_i(reduce_kind kind, int is_signed, uint64_t *sum, const int64_t *x, int64_t n) {
    uint64_t s = *sum;
    for (int64_t k = 0; k < n; k++) {
        const uint64_t v = (uint64_t)x[k];
        const int less = is_signed ? x[k] < (int64_t)s : v < s;
        switch (kind) {
        case REDUCE_MAX: s = less ? s : v; break;
        case REDUCE_MIN: s = less ? v : s; break;
        case REDUCE_PROD: s *= v; break;
        case REDUCE_L1: s += is_signed && x[k] < 0 ? 0 - v : v; break;
        case REDUCE_SUM_SQUARE: s += v * v; break;
        default: s += v; break;
        }
    }
    *sum = s;
}

/* The result of a kind from the sum s of n elements; top: their maximum, which REDUCE_LOG_SUM_EXP
 * took off. */
static double finish_f(reduce_kind kind, double s, int64_t n, double top) {
    switch (kind) {
    case REDUCE_MEAN: return s / (double)n;
    case REDUCE_L2: return sqrt(s);
    case REDUCE_LOG_SUM: return log(s);
    case REDUCE_LOG_SUM_EXP: return log(s) + top;
    default: return s;
    }
}

/* The result of a kind over no elements. */
static double empty_f(reduce_kind kind) {
    switch (kind) {
    case REDUCE_MAX: return -INFINITY;
    case REDUCE_MIN: return INFINITY;
    case REDUCE_PROD: return 1;
    default: return 0;
    }
}

/* The smallest or, with `largest`, the largest value of a whole type or bool, as its bits. */
static uint64_t extreme(int32_t dtype, int largest) {
    const unsigned bits = cnr_dtype_bits(dtype);
    if (dtype == CNR_bool) return (uint64_t)largest;
    if (elem_domain_of(dtype) == ELEM_U) return largest ? UINT64_MAX >> (64 - bits) : 0;
    const int64_t top = INT64_MAX >> (64 - bits);
    return (uint64_t)(largest ? top : -top - 1);
}

/* The result over no elements, in a whole type. */
static uint64_t empty_i(reduce_kind kind, int32_t dtype) {
    if (kind == REDUCE_MAX) return extreme(dtype, 0);
    if (kind == REDUCE_MIN) return extreme(dtype, 1);
    return kind == REDUCE_PROD;
}

/* Runs BODY for each run along the innermost reduced axis. */
#define EACH_RUN(BODY) \
    for (int64_t line_ = 0; line_ < lines; line_++) { \
        int64_t none_; \
        const int64_t at_ = base + offset_of(&outer, line_, &none_); \
        for (int64_t k_ = 0; k_ < length; k_ += ELEM_RUN) { \
            const int64_t n = length - k_ < ELEM_RUN ? length - k_ : ELEM_RUN; \
            elem_load(x->dtype, x->data, at_ + k_ * step, step, n, domain, &values); \
            BODY; \
        } \
    }

/* Reduces one line of elements and writes element `to` of y. */
static void reduce_one(reduce_kind kind, const cnr_tensor *x, const reduce_walk *reduced,
                       int64_t base, const cnr_tensor *y, int64_t to, elem_domain domain) {
    reduce_walk outer = *reduced;
    const int32_t last = --outer.rank;
    const int64_t length = reduced->dim[last], step = reduced->stride[last];
    const int64_t lines = length ? reduced->count / length : 0;
    elem_run values;
    if (domain == ELEM_F) {
        double top = 0, sum = empty_f(kind);
        if (kind == REDUCE_LOG_SUM_EXP) { /* subtract the maximum from the exponents */
            top = -INFINITY;
            EACH_RUN(add_f(REDUCE_MAX, &top, values.f, n, 0));
            if (isinf(top)) top = top > 0 ? top : 0;
            if (isinf(top)) {
                elem_set_f64(y, to, top);
                return;
            }
        }
        EACH_RUN(add_f(kind, &sum, values.f, n, top));
        elem_set_f64(y, to, finish_f(kind, sum, reduced->count, top));
        return;
    }
    uint64_t sum = empty_i(kind, x->dtype);
    EACH_RUN(add_i(kind, domain == ELEM_I, &sum, values.i, n));
    elem_set_i64(y, to, (int64_t)sum);
}

/* Reduces the run's part of the output; fails where the axes do. */
static cnr_status reduce(const cnr_run *run, reduce_kind kind, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    const int exact = kind != REDUCE_MEAN && kind != REDUCE_L2 && kind != REDUCE_LOG_SUM &&
                      kind != REDUCE_LOG_SUM_EXP;
    elem_domain domain = elem_domain_of(x->dtype);
    reduce_walk kept, reduced;
    kit_list axes;
    uint32_t set;
    CNR_TRY(axes_of(run->node, &axes, &set, err));
    if (run->range_axis < 0 && axes.n == 0 && set == 0 && x->rank > 0 &&
        cnr_attr_int(run->node, "noop_with_empty_axes") && kind <= REDUCE_PROD)
        return ops_reference_copy(run, err);
    walk_of(x, set, 0, &kept);
    walk_of(x, set, 1, &reduced);
    if (!exact) domain = ELEM_F;
    int64_t from = 0, to = 0; /* split axes are kept axes, with the same index in x and y */
    for (int32_t a = 0, k = 0; run->range_axis >= 0 && a < x->rank; a++) {
        if (set >> a & 1u) continue;
        if (a == run->range_axis) {
            from = run->range_begin * kept.stride[k];
            to = run->range_begin * kept.out[k];
            kept.dim[k] = run->range_end - run->range_begin;
        }
        k++;
    }
    kept.count = 1;
    for (int32_t k = 0; k < kept.rank; k++) kept.count *= kept.dim[k];
    for (int64_t i = 0; i < kept.count; i++) {
        int64_t out_at;
        const int64_t at = offset_of(&kept, i, &out_at);
        reduce_one(kind, x, &reduced, from + at, y, to + out_at, domain);
    }
    return CNR_OK;
}

/* ---- gradients: broadcast over the reduced axes ---- */

/* *grad_in receives g spread over the input's shape, times scale. */
static cnr_status spread(const cnr_host *host, struct cnr_graph *graph, const cnr_node *node,
                         cnr_value g, double scale, cnr_value *grad_in, cnr_error *err) {
    kit_build b = {host, graph, CNR_OK};
    const cnr_tensor *x = node->inputs[0];
    cnr_tensor kept = *x;
    kit_list axes;
    uint32_t set;
    CNR_TRY(axes_of(node, &axes, &set, err));
    for (int32_t a = 0; a < x->rank; a++)
        if (set >> a & 1u) kept.dim[a] = 1;
    if (scale != 1) g = kit_node2(&b, "mul", g, kit_constant(&b, x->dtype, scale));
    const cnr_attr shape = kit_attr_ints("shape", x->dim, x->rank);
    g = kit_reshape(&b, g, &kept);
    *grad_in = kit_node(&b, "expand", &g, 1, &shape, 1);
    return kit_built(&b, node, err);
}

/* Method gradient of reduce_sum: adds nodes that compute the wanted gradients of the inputs. */
static cnr_status reduce_sum_gradient(OPS_GRADIENT_ARGS) {
    (void)inputs, (void)outputs;
    if (!want[0] || grad_out[0] < 0) return CNR_OK;
    return spread(host, graph, node, grad_out[0], 1, &grad_in[0], err);
}

/* Method gradient of reduce_mean: adds nodes that compute the wanted gradients of the inputs. */
static cnr_status reduce_mean_gradient(OPS_GRADIENT_ARGS) {
    (void)inputs, (void)outputs;
    const uint64_t n = ops_elements(node->inputs[0]), kept = ops_elements(node->outputs[0]);
    if (!want[0] || grad_out[0] < 0 || n == 0) return CNR_OK;
    return spread(host, graph, node, grad_out[0], (double)kept / (double)n, &grad_in[0], err);
}

/* Calls ROW for each reduction. */
#define REDUCTIONS(ROW) \
    ROW(reduce_sum, REDUCE_SUM, OPS_NUMBERS, "The sum over axes.", reduce_sum_gradient) \
    ROW(reduce_mean, REDUCE_MEAN, OPS_NUMBERS, "The mean over axes.", reduce_mean_gradient) \
    ROW(reduce_max, REDUCE_MAX, OPS_WHOLE, "The largest value over axes; NaN where one is NaN.", \
        NULL) \
    ROW(reduce_min, REDUCE_MIN, OPS_WHOLE, "The smallest value over axes; NaN where one is NaN.", \
        NULL) \
    ROW(reduce_prod, REDUCE_PROD, OPS_NUMBERS, "The product over axes.", NULL) \
    ROW(reduce_l1, REDUCE_L1, OPS_NUMBERS, "The sum of magnitudes over axes.", NULL) \
    ROW(reduce_l2, REDUCE_L2, OPS_NUMBERS, "The root of the sum of squares over axes.", NULL) \
    ROW(reduce_log_sum, REDUCE_LOG_SUM, OPS_NUMBERS, "The logarithm of the sum over axes.", NULL) \
    ROW(reduce_log_sum_exp, REDUCE_LOG_SUM_EXP, OPS_NUMBERS, \
        "The logarithm of the sum of exponentials over axes.", NULL) \
    ROW(reduce_sum_square, REDUCE_SUM_SQUARE, OPS_NUMBERS, "The sum of squares over axes.", NULL)

/* Defines operator NAME with its hooks. */
#define ROW(NAME, KIND, DTYPES, SUMMARY, GRADIENT) \
    static cnr_status NAME##_infer(const cnr_node *node, cnr_tensor *const *outputs, \
                                   cnr_error *err) { \
        return infer_as(node, DTYPES, outputs[0], err); \
    } \
    static cnr_status NAME##_reference(const cnr_run *run, cnr_error *err) { \
        return reduce(run, KIND, err); \
    } \
    const cnr_op ops_##NAME = {CNR_OP_SIZES, \
                               .name = #NAME, \
                               .summary = SUMMARY, \
                               CNR_OP_ATTRS(attrs), \
                               .flags = CNR_OP_PURE | CNR_OP_RANGES, \
                               CNR_OP_PORTS(in, out), \
                               .infer = NAME##_infer, \
                               .cost = cost, \
                               .split_axes = split_axes, \
                               .input_range = ops_region_first, \
                               .gradient = GRADIENT, \
                               .reference = NAME##_reference};
REDUCTIONS(ROW)
