/* arg_max, arg_min, top_k, cum_sum: order and cumulative sums along one axis. */
#include "ops_kit.h"

/* ---- arg_max, arg_min ---- */

static const cnr_port arg_in[] = {{.name = "x", .help = "any shape"}};
static const cnr_port arg_out[] = {{.name = "y", .help = "i64: positions along the axis"}};
static const cnr_attr_spec arg_attrs[] =
    {OPS_AXIS_ROW(0, "the axis to search along"),
     {.name = "keepdims", .type = CNR_ATTR_BOOL, .default_i = 1, .help = "the axis stays, as 1"},
     {.name = "select_last_index",
      .type = CNR_ATTR_BOOL,
      .help = "take the last of equal elements"}};

/* Method infer of arg: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status arg_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    cnr_tensor *y = outputs[0];
    int32_t axis;
    CNR_TRY(ops_want(node, 0, OPS_NUMBERS, 1, CNR_MAX_RANK, err));
    CNR_TRY(ops_axis(node, "axis", x->rank, 0, &axis, err));
    if (x->dim[axis] == 0) return ops_fail(err, CNR_E_SHAPE, node, "axis %d is empty", (int)axis);
    y->dtype = CNR_i64;
    for (int32_t a = 0; a < x->rank; a++) {
        if (a != axis) y->dim[y->rank++] = x->dim[a];
        else if (cnr_attr_int(node, "keepdims")) y->dim[y->rank++] = 1;
    }
    return CNR_OK;
}

static void in_cost(const cnr_node *node, cnr_cost *c) { c->flops = ops_elements(node->inputs[0]); }

/* -1, 0, 1: a is before, equal to, after b in rising order; NaN comes last, as in top_k. */
static int compare(elem_domain domain, const elem_run *a, const elem_run *b) {
    if (domain == ELEM_I) return (a->i[0] > b->i[0]) - (a->i[0] < b->i[0]);
    if (domain == ELEM_U) return (a->u[0] > b->u[0]) - (a->u[0] < b->u[0]);
    const double x = a->f[0], y = b->f[0];
    if (x != x || y != y) return (x != x) - (y != y);
    return (x > y) - (x < y);
}

/* Whether `more` is larger than `less`, or with `ties` equal to it. A NaN compares false on either
 * side: as in ONNX Runtime, a NaN wins only at the first position. */
static int takes_over(elem_domain domain, const elem_run *less, const elem_run *more, int ties) {
    if (domain == ELEM_I) return more->i[0] > less->i[0] || (ties && more->i[0] == less->i[0]);
    if (domain == ELEM_U) return more->u[0] > less->u[0] || (ties && more->u[0] == less->u[0]);
    return more->f[0] > less->f[0] || (ties && more->f[0] == less->f[0]);
}

/* Writes the place of each line's largest element (largest: 1) or smallest one. */
static cnr_status arg_find(const cnr_run *run, int largest, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0];
    const int last = cnr_attr_int(run->node, "select_last_index") != 0;
    const elem_domain domain = elem_domain_of(x->dtype);
    int32_t axis;
    CNR_TRY(ops_axis(run->node, "axis", x->rank, 0, &axis, err));
    const int64_t outer = cnr_span(x, 0, axis), n = x->dim[axis];
    const int64_t inner = cnr_span(x, axis + 1, x->rank);
    int64_t *y = run->outputs[0]->data;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            elem_run best, v;
            int64_t at = 0;
            elem_load(x->dtype, x->data, o * n * inner + i, 0, 1, domain, &best);
            for (int64_t k = 1; k < n; k++) {
                elem_load(x->dtype, x->data, (o * n + k) * inner + i, 0, 1, domain, &v);
                if (!takes_over(domain, largest ? &best : &v, largest ? &v : &best, last)) continue;
                at = k;
                best.u[0] = v.u[0];
            }
            y[o * inner + i] = at;
        }
    return CNR_OK;
}

/* Method reference of arg_max: index of the largest element along an axis; NaN counts only if it
 * comes first. */
static cnr_status arg_max_reference(const cnr_run *run, cnr_error *err) {
    return arg_find(run, 1, err);
}
/* Method reference of arg_min: index of the smallest element along an axis; NaN counts only if it
 * comes first. */
static cnr_status arg_min_reference(const cnr_run *run, cnr_error *err) {
    return arg_find(run, 0, err);
}

static const char *const arg_max_aliases[] = {"argmax", NULL};
static const char *const arg_min_aliases[] = {"argmin", NULL};

/* Operator NAME: the place of an extreme along an axis. */
#define ARG_OP(NAME, SUMMARY) \
    const cnr_op ops_##NAME = {CNR_OP_SIZES, \
                               .name = #NAME, \
                               .summary = SUMMARY, \
                               .aliases = NAME##_aliases, \
                               .flags = CNR_OP_PURE, \
                               CNR_OP_ATTRS(arg_attrs), \
                               CNR_OP_PORTS(arg_in, arg_out), \
                               .infer = arg_infer, \
                               .cost = in_cost, \
                               .reference = NAME##_reference}
ARG_OP(arg_max, "Index of the largest element along an axis; NaN counts only if it comes first.");
ARG_OP(arg_min, "Index of the smallest element along an axis; NaN counts only if it comes first.");

/* ---- top_k ---- */

static const cnr_port top_in[] = {{.name = "x", .help = "any shape"},
                                  {.name = "k",
                                   .flags = CNR_PORT_OPTIONAL | CNR_PORT_CONST,
                                   .help = "number of elements, instead of the attribute"}};
static const cnr_port top_out[] = {{.name = "values", .help = "the k of them"},
                                   {.name = "indices",
                                    .flags = CNR_PORT_OPTIONAL,
                                    .help = "i64: their indices in x"}};
static const cnr_attr_spec top_attrs[] = {{.name = "k",
                                           .type = CNR_ATTR_INT,
                                           .flags = CNR_ATTR_BOUNDED,
                                           .min = 0,
                                           .max = 1e15,
                                           .default_i = 1,
                                           .help = "number of elements"},
                                          OPS_AXIS_ROW(-1, "the axis to sort along"),
                                          {.name = "largest",
                                           .type = CNR_ATTR_BOOL,
                                           .default_i = 1,
                                           .help = "the largest elements; else the smallest"},
                                          {.name = "sorted",
                                           .type = CNR_ATTR_BOOL,
                                           .default_i = 1,
                                           .help = "no effect: results are always sorted"}};

/* Method infer of top_k: checks x and k; outputs have k elements along the axis, an unknown number
 * if k is not known yet. */
static cnr_status top_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    int32_t axis;
    int known;
    CNR_TRY(ops_want(node, 0, OPS_NUMBERS, 1, CNR_MAX_RANK, err));
    CNR_TRY(kit_want(node, 1, OPS_INTS, 0, 1, err));
    CNR_TRY(ops_axis(node, "axis", x->rank, 0, &axis, err));
    const double k = kit_scalar(node, 1, "k", &known);
    const int64_t dim = x->dim[axis];
    if (known && (k < 0 || (dim >= 0 && k > (double)dim)))
        return ops_fail(err, CNR_E_ARG, node, "%g of an axis of %lld", k, (long long)dim);
    for (int32_t i = 0; i < node->n_outputs; i++) {
        ops_like(outputs[i], x);
        outputs[i]->dim[axis] = known ? (int64_t)k : CNR_DIM_UNKNOWN;
        if (i == 1) outputs[i]->dtype = CNR_i64;
    }
    return CNR_OK;
}

/* Order of elements of a line: whether `a` comes before `b`. Of equal ones the first does. */
typedef struct top_line {
    const cnr_tensor *x;
    elem_domain domain;
    int64_t base, step;
    int largest;
} top_line;

/* 1: element a of the line comes before element b in the order asked for. */
static int before(const top_line *l, int64_t a, int64_t b) {
    elem_run x, y;
    elem_load(l->x->dtype, l->x->data, l->base + a * l->step, 0, 1, l->domain, &x);
    elem_load(l->x->dtype, l->x->data, l->base + b * l->step, 0, 1, l->domain, &y);
    const int order = compare(l->domain, &x, &y);
    return order ? (l->largest ? order > 0 : order < 0) : a < b;
}

/* Restores the heap property from `at` down. The heap holds the best k; its root is the worst of
 * them. */
static void sink(const top_line *l, int64_t *heap, int64_t n, int64_t at) {
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= n) return;
        if (child + 1 < n && before(l, heap[child], heap[child + 1])) child++;
        if (!before(l, heap[at], heap[child])) return;
        const int64_t moved = heap[at];
        heap[at] = heap[child];
        heap[child] = moved;
        at = child;
    }
}

/* heap receives the places of the first k of the line's n elements, as a heap. */
static void select_line(const top_line *l, int64_t n, int64_t *heap, int64_t k) {
    for (int64_t i = 0; i < k; i++) heap[i] = i;
    for (int64_t i = k / 2 - 1; i >= 0; i--) sink(l, heap, k, i);
    for (int64_t i = k; k > 0 && i < n; i++) {
        if (!before(l, i, heap[0])) continue;
        heap[0] = i;
        sink(l, heap, k, 0);
    }
    for (int64_t i = k - 1; i > 0; i--) {
        const int64_t moved = heap[0];
        heap[0] = heap[i];
        heap[i] = moved;
        sink(l, heap, i, 0);
    }
}

/* Method workspace of top: bytes of scratch that reference needs. */
static uint64_t top_workspace(const cnr_node *node) {
    return (uint64_t)node->outputs[0]->dim[ops_axis_of(node, node->inputs[0])] * sizeof(int64_t);
}

/* Method reference of top_k: the largest or smallest elements along an axis, in order; NaN is
 * larger than all; returns CNR_OK. */
static cnr_status top_reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *values = run->outputs[0];
    const cnr_tensor *indices = run->node->n_outputs > 1 ? run->outputs[1] : NULL;
    const int32_t axis = ops_axis_of(run->node, run->node->inputs[0]);
    const int64_t outer = cnr_span(x, 0, axis), inner = cnr_span(x, axis + 1, x->rank);
    const int64_t n = x->dim[axis], k = values->dim[axis];
    const size_t size = ops_size(x->dtype);
    int64_t *heap = run->workspace_data;
    (void)err;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            const top_line l = {x, elem_domain_of(x->dtype), o * n * inner + i, inner,
                                cnr_attr_int(run->node, "largest") != 0};
            select_line(&l, n, heap, k);
            for (int64_t j = 0; j < k; j++) {
                const int64_t to = (o * k + j) * inner + i, from = l.base + heap[j] * inner;
                memcpy((uint8_t *)values->data + (size_t)to * size,
                       (const uint8_t *)x->data + (size_t)from * size, size);
                if (indices && indices->data) ((int64_t *)indices->data)[to] = heap[j];
            }
        }
    return CNR_OK;
}

const cnr_op ops_top_k = {
    CNR_OP_SIZES,
    .name = "top_k",
    .summary = "The largest or smallest elements along an axis, in order; NaN is larger than all.",
    .flags = CNR_OP_PURE,
    CNR_OP_ATTRS(top_attrs),
    CNR_OP_PORTS(top_in, top_out),
    .infer = top_infer,
    .cost = in_cost,
    .reference = top_reference,
    .reference_workspace = top_workspace,
};

/* ---- cum_sum ---- */

static const cnr_port cum_in[] = {{.name = "x", .help = "any shape"},
                                  {.name = "axis",
                                   .flags = CNR_PORT_OPTIONAL | CNR_PORT_CONST,
                                   .help = "instead of the attribute"}};
static const cnr_port cum_out[] = {{.name = "y", .help = "the shape of x"}};
static const cnr_attr_spec cum_attrs[] =
    {OPS_AXIS_ROW(0, "the axis to sum along"),
     {.name = "exclusive", .type = CNR_ATTR_BOOL, .help = "the sum leaves out the element itself"},
     {.name = "reverse", .type = CNR_ATTR_BOOL, .help = "from the end"}};

/* *axis receives the constant input axis, from 0; 0 where it is not known yet. */
static cnr_status cum_axis(const cnr_node *node, int32_t *axis, cnr_error *err) {
    int known;
    const double given = kit_scalar(node, 1, "axis", &known);
    *axis = 0;
    if (!known) return CNR_OK;
    if (!(fabs(given) <= CNR_MAX_RANK)) return ops_fail(err, CNR_E_ARG, node, "axis %g", given);
    return kit_axis(node, (int64_t)given, node->inputs[0]->rank, axis, err);
}

/* Method infer of cum: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status cum_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    int32_t axis;
    CNR_TRY(ops_want(node, 0, OPS_NUMBERS, 1, CNR_MAX_RANK, err));
    CNR_TRY(kit_want(node, 1, OPS_INTS, 0, 1, err));
    CNR_TRY(cum_axis(node, &axis, err));
    ops_like(outputs[0], node->inputs[0]);
    return CNR_OK;
}

/* Method reference of cum_sum: cumulative sum along an axis. */
static cnr_status cum_reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    const int exclusive = cnr_attr_int(run->node, "exclusive") != 0;
    const int reverse = cnr_attr_int(run->node, "reverse") != 0;
    const int is_float = ops_is_float(x->dtype);
    int32_t axis;
    CNR_TRY(cum_axis(run->node, &axis, err));
    const int64_t outer = cnr_span(x, 0, axis), n = x->dim[axis];
    const int64_t inner = cnr_span(x, axis + 1, x->rank);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            double sum = 0;
            uint64_t whole = 0;
            for (int64_t k = 0; k < n; k++) {
                const int64_t at = (o * n + (reverse ? n - 1 - k : k)) * inner + i;
                const double v = is_float ? elem_f64(x, at) : 0;
                const uint64_t w = is_float ? 0 : (uint64_t)elem_i64(x, at);
                const double shown = exclusive ? sum : sum + v;
                const uint64_t shown_whole = exclusive ? whole : whole + w;
                sum += v;
                whole += w;
                if (is_float) elem_set_f64(y, at, shown);
                else elem_set_i64(y, at, (int64_t)shown_whole);
            }
        }
    return CNR_OK;
}

const cnr_op ops_cum_sum = {
    CNR_OP_SIZES,         .name = "cum_sum",       .summary = "Cumulative sum along an axis.",
    .flags = CNR_OP_PURE, CNR_OP_ATTRS(cum_attrs), CNR_OP_PORTS(cum_in, cum_out),
    .infer = cum_infer,   .cost = in_cost,         .reference = cum_reference,
};
