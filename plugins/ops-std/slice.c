/* slice: every step-th element from start to end, along some axes. */
#include "move.h"

/* Attribute: a list of whole numbers. */
#define LIST(NAME, TEXT) \
    { .name = NAME, .type = CNR_ATTR_INTS, .help = TEXT }
/* An optional constant input that stands for the attribute NAME. */
#define PORT(NAME) \
    { \
        .name = NAME, .flags = CNR_PORT_OPTIONAL | CNR_PORT_CONST, \
        .help = "instead of the attribute" \
    }
static const cnr_port in[] = {{.name = "x", .help = "any shape"},
                              PORT("starts"),
                              PORT("ends"),
                              PORT("axes"),
                              PORT("steps")};
static const cnr_port out[] = {{.name = "y", .help = "the slice"}};
static const cnr_attr_spec attrs[] =
    {LIST("starts", "first element of each axis; negative ones count from the end"),
     LIST("ends", "first element that is left out; limited to the axis"),
     LIST("axes", "axes to slice; none: the first ones"),
     LIST("steps", "distance between elements, not 0; none: 1")};

/* The slice of each axis. A count < 0 is unknown (or the dimension's symbol). */
typedef struct slice_plan {
    int64_t start[CNR_MAX_RANK], step[CNR_MAX_RANK], count[CNR_MAX_RANK];
} slice_plan;

/* v limited to [low, high]. */
static int64_t clamp(int64_t v, int64_t low, int64_t high) {
    return v < low ? low : v > high ? high : v;
}

/* Fills axis a of the plan: start, step and size; `dim` negative: unknown. */
static void along_axis(slice_plan *p, int32_t a, int64_t dim, int64_t start, int64_t end,
                       int64_t step) {
    p->step[a] = step;
    if (dim < 0) { /* a slice of a whole unknown axis has its size */
        const int whole = (start == 0 && end >= INT32_MAX && step == 1) ||
                          (start == -1 && end <= -INT32_MAX && step == -1);
        p->count[a] = whole ? dim : CNR_DIM_UNKNOWN;
        return;
    }
    if (start < 0) start = start < -dim ? -1 : start + dim;
    if (end < 0) end = end < -dim ? -1 : end + dim;
    if (step > 0) {
        start = clamp(start, 0, dim);
        end = clamp(end, 0, dim);
        p->count[a] = end > start ? (end - start - 1) / step + 1 : 0;
    } else {
        start = clamp(start, -1, dim - 1);
        end = clamp(end, -1, dim - 1);
        p->count[a] = start > end ? (start - end - 1) / -step + 1 : 0;
    }
    p->start[a] = start;
}

/* Fills the plan from the node's inputs or attributes. */
static cnr_status plan_of(const cnr_node *node, slice_plan *p, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    kit_list starts, ends, axes, steps;
    uint32_t set;
    CNR_TRY(kit_ints(node, 1, "starts", &starts, err));
    CNR_TRY(kit_ints(node, 2, "ends", &ends, err));
    CNR_TRY(kit_ints(node, 3, "axes", &axes, err));
    CNR_TRY(kit_ints(node, 4, "steps", &steps, err));
    for (int32_t a = 0; a < x->rank; a++) {
        p->start[a] = 0;
        p->step[a] = 1;
        p->count[a] = axes.known ? x->dim[a] : CNR_DIM_UNKNOWN;
    }
    if (!axes.known) return CNR_OK;
    const int64_t n = axes.n > 0 ? axes.n : starts.n >= 0 ? starts.n : ends.n;
    if (n > x->rank || (starts.n >= 0 && starts.n != n) || (ends.n >= 0 && ends.n != n) ||
        (steps.given && steps.n > 0 && steps.n != n))
        return ops_fail(err, CNR_E_SHAPE, node,
                        "starts, ends, axes and steps must have as many entries, at most %d",
                        (int)x->rank);
    if (axes.n == 0)
        for (int64_t i = 0; i < n; i++) axes.at[i] = i;
    axes.n = n > 0 ? n : 0;
    CNR_TRY(kit_axis_set(node, &axes, x->rank, &set, err));
    for (int64_t i = 0; i < n; i++) {
        const int32_t a = (int32_t)(axes.at[i] < 0 ? axes.at[i] + x->rank : axes.at[i]);
        const int64_t step = steps.known && steps.n > 0 ? steps.at[i] : 1;
        if (step == 0 || step < -INT64_MAX)
            return ops_fail(err, CNR_E_ARG, node, "a step of %lld", (long long)step);
        p->count[a] = CNR_DIM_UNKNOWN;
        if (starts.known && ends.known && steps.known)
            along_axis(p, a, x->dim[a], starts.at[i], ends.at[i], step);
    }
    return CNR_OK;
}

/* start and step of a slice along each axis of its input, with 1; 0: they are not known. */
int move_slice(const cnr_node *node, int64_t *start, int64_t *step) {
    slice_plan p;
    if (!kit_known(node->inputs[0]) || plan_of(node, &p, NULL) != CNR_OK) return 0;
    for (int32_t a = 0; a < node->inputs[0]->rank; a++) {
        if (p.count[a] < 0) return 0;
        start[a] = p.start[a];
        step[a] = p.step[a];
    }
    return 1;
}

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    slice_plan p;
    CNR_TRY(ops_want(node, 0, OPS_WHOLE, 0, CNR_MAX_RANK, err));
    CNR_TRY(plan_of(node, &p, err));
    ops_like(outputs[0], node->inputs[0]);
    memcpy(outputs[0]->dim, p.count, sizeof p.count[0] * (size_t)outputs[0]->rank);
    return CNR_OK;
}

/* The slice is a view if only one axis is cut, with step 1, and all axes before it have size 1. */
static int32_t aliases_of(const cnr_node *node, cnr_alias *alias, int32_t max) {
    const cnr_tensor *x = node->inputs[0], *y = node->outputs[0];
    slice_plan p;
    int64_t strides[CNR_MAX_RANK], offset = 0;
    int outer = 0;
    if (max < 1 || !kit_known(x) || plan_of(node, &p, NULL) != CNR_OK) return 0;
    kit_dense_strides(x, strides);
    for (int32_t a = 0; a < x->rank; a++) {
        if (p.step[a] != 1 && y->dim[a] > 1) return 0;
        if (y->dim[a] != x->dim[a] && outer) return 0;
        if (y->dim[a] > 1) outer = 1;
        offset += p.start[a] * strides[a];
    }
    if (cnr_count(y) <= 0) return 0;
    alias[0] = (cnr_alias){CNR_ALIAS_VIEW, 0, 0, (uint64_t)offset};
    return 1;
}

/* Method reference of slice: every step-th element from start to end along some axes. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    const size_t size = ops_size(y->dtype);
    int64_t from[CNR_MAX_RANK], to[CNR_MAX_RANK];
    move_map m = {.rank = 0};
    slice_plan p;
    CNR_TRY(plan_of(run->node, &p, err));
    if (cnr_count(y) == 0) return CNR_OK;
    kit_dense_strides(x, from);
    kit_dense_strides(y, to);
    for (int32_t a = 0; a < y->rank; a++) {
        m.in_at += p.start[a] * from[a];
        move_axis(&m, y->dim[a], y->dim[a] > 1 ? p.step[a] * from[a] : 0, to[a]);
    }
    if ((const uint8_t *)x->data + (size_t)m.in_at * size == y->data) return CNR_OK; /* a view */
    move_copy(size, x->data, y->data, &m);
    return CNR_OK;
}

/* Elements outside the slice get gradient 0. */
static cnr_status gradient(OPS_GRADIENT_ARGS) {
    kit_build b = {host, graph, CNR_OK};
    const cnr_tensor *x = node->inputs[0];
    int64_t pads[2 * CNR_MAX_RANK];
    slice_plan p;
    (void)inputs, (void)outputs;
    if (!want[0] || grad_out[0] < 0) return CNR_OK;
    CNR_TRY(plan_of(node, &p, err));
    for (int32_t a = 0; a < x->rank; a++) {
        if (p.step[a] != 1)
            return ops_fail(err, CNR_E_UNSUPPORTED, node, "no gradient of a slice with steps");
        pads[a] = p.start[a];
        pads[a + x->rank] = x->dim[a] - p.start[a] - p.count[a];
    }
    const cnr_attr list = kit_attr_ints("pads", pads, 2 * x->rank);
    grad_in[0] = kit_node(&b, "pad", &grad_out[0], 1, &list, 1);
    return kit_built(&b, node, err);
}

const cnr_op ops_slice = {
    CNR_OP_SIZES,
    .name = "slice",
    .summary = "Every step-th element from start to end along some axes.",
    .flags = CNR_OP_PURE,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .buffer_aliases = aliases_of,
    .gradient = gradient,
    .reference = reference,
};
