/* pad: adds elements around a tensor; negative pads crop. */
#include "move.h"
#include "ops_window.h"

static const char *const modes[] = {"constant", "reflect", "edge", "wrap", NULL};
enum { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP };

/* The row of an optional input NAME with further flags. */
#define PORT(NAME, FLAG, TEXT) \
    { .name = NAME, .flags = CNR_PORT_OPTIONAL | (FLAG), .help = TEXT }
static const cnr_port in[] =
    {{.name = "x", .help = "any shape"},
     PORT("pads", CNR_PORT_CONST, "instead of the attribute"),
     PORT("value", 0, "value of the border in constant mode, instead of the attribute"),
     PORT("axes", CNR_PORT_CONST, "axes that pads apply to; none: all")};
static const cnr_port out[] = {{.name = "y", .help = "x with its border"}};
static const cnr_attr_spec attrs[] =
    {{.name = "pads",
      .type = CNR_ATTR_INTS,
      .alias = "paddings",
      .help = "elements added before each axis, then after each; negative: removed"},
     {.name = "mode",
      .type = CNR_ATTR_ENUM,
      .default_s = "constant",
      .choices = modes,
      .help = "content of the border: a value, the mirrored inside, the edge, the other side"},
     {.name = "value", .type = CNR_ATTR_FLOAT, .help = "value of the border in constant mode"}};

/* Padding of each axis; known 0: the pads are not constant yet. */
typedef struct pad_plan {
    int known, mode;
    int64_t before[CNR_MAX_RANK], after[CNR_MAX_RANK];
} pad_plan;

/* *p receives the node's mode and padding; fails where a pad is out of range. */
static cnr_status plan_of(const cnr_node *node, pad_plan *p, cnr_error *err) {
    const int32_t rank = node->inputs[0]->rank;
    kit_list pads, axes;
    uint32_t set;
    memset(p, 0, sizeof *p);
    p->mode = (int)cnr_attr_find(node, "mode")->i;
    CNR_TRY(kit_ints(node, 1, "pads", &pads, err));
    CNR_TRY(kit_ints(node, 3, NULL, &axes, err));
    p->known = pads.known && axes.known;
    if (!axes.given) {
        axes.n = rank;
        for (int32_t a = 0; a < rank; a++) axes.at[a] = a;
    }
    if (pads.n >= 0 && axes.n >= 0 && pads.n != 2 * axes.n)
        return ops_fail(err, CNR_E_SHAPE, node, "%lld pads for %lld axes", (long long)pads.n,
                        (long long)axes.n);
    if (!p->known) return CNR_OK;
    CNR_TRY(kit_axis_set(node, &axes, rank, &set, err));
    for (int64_t i = 0; i < axes.n; i++) {
        const int32_t a = (int32_t)(axes.at[i] < 0 ? axes.at[i] + rank : axes.at[i]);
        p->before[a] = pads.at[i];
        p->after[a] = pads.at[i + axes.n];
        if (p->before[a] > OPS_MAX_DIM || p->before[a] < -OPS_MAX_DIM ||
            p->after[a] > OPS_MAX_DIM || p->after[a] < -OPS_MAX_DIM)
            return ops_fail(err, CNR_E_LIMIT, node, "a pad is too large");
    }
    return CNR_OK;
}

int ops_zero_border(const cnr_node *pad, int64_t before[CNR_MAX_RANK],
                    int64_t after[CNR_MAX_RANK]) {
    cnr_error err = CNR_ERROR_INIT;
    pad_plan p;
    int known;
    if (!kit_is(pad, "pad") || plan_of(pad, &p, &err) || !p.known || p.mode != PAD_CONSTANT)
        return 0;
    if (kit_scalar(pad, 2, "value", &known) != 0 || !known) return 0;
    memcpy(before, p.before, sizeof p.before);
    memcpy(after, p.after, sizeof p.after);
    return 1;
}

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    pad_plan p;
    CNR_TRY(ops_want(node, 0, OPS_WHOLE, 0, CNR_MAX_RANK, err));
    CNR_TRY(kit_want(node, 2, 1u << x->dtype, 0, 1, err));
    const cnr_tensor *value = cnr_own_input(node, 2);
    if (value && value->rank == 1 && value->dim[0] > 1)
        return ops_fail(err, CNR_E_SHAPE, node, "input value: want 1 number, got %lld",
                        (long long)value->dim[0]);
    CNR_TRY(plan_of(node, &p, err));
    ops_like(outputs[0], x);
    for (int32_t a = 0; a < x->rank; a++) {
        int64_t *dim = &outputs[0]->dim[a];
        if (!p.known) *dim = CNR_DIM_UNKNOWN;
        if (*dim < 0) {
            if (p.known && (p.before[a] || p.after[a])) *dim = CNR_DIM_UNKNOWN;
            continue;
        }
        *dim += p.before[a] + p.after[a];
        if (*dim < 0)
            return ops_fail(err, CNR_E_SHAPE, node, "more is taken off axis %d than it has", a);
        if (x->dim[a] == 0 && *dim > 0 && p.mode != PAD_CONSTANT)
            return ops_fail(err, CNR_E_SHAPE, node, "axis %d has nothing to fill a border from",
                            (int)a);
    }
    return CNR_OK;
}

/* The source index of element i of a padded axis; -1: the constant. */
static int64_t source_of(int mode, int64_t i, int64_t dim) {
    if (i >= 0 && i < dim) return i;
    if (mode == PAD_CONSTANT) return -1;
    if (mode == PAD_EDGE) return i < 0 ? 0 : dim - 1;
    const int64_t period = mode == PAD_WRAP ? dim : dim > 1 ? 2 * (dim - 1) : 1;
    i %= period;
    if (i < 0) i += period;
    return i < dim ? i : period - i;
}

/* Fills y with the constant input 2, or 0. */
static void fill(const cnr_node *node, const cnr_tensor *y) {
    const cnr_tensor *value = cnr_own_input(node, 2);
    const int64_t count = cnr_count(y);
    const elem_domain domain = elem_domain_of(y->dtype);
    elem_run run;
    const double given = cnr_attr_float(node, "value");
    const int has = value && cnr_count(value) > 0;
    if (has) elem_load(value->dtype, value->data, 0, 0, ELEM_RUN, domain, &run);
    else elem_load(CNR_f64, &given, 0, 0, ELEM_RUN, domain, &run);
    for (int64_t at = 0; at < count; at += ELEM_RUN)
        elem_store(y->dtype, y->data, at, count - at < ELEM_RUN ? count - at : ELEM_RUN, domain,
                   &run);
}

/* Copies a line along the last axis: the inside at once, borders element by element. */
static void pad_line(const pad_plan *p, const cnr_tensor *x, const cnr_tensor *y, int64_t from,
                     int64_t to, size_t size) {
    const int32_t last = x->rank - 1;
    const int64_t dim = x->dim[last], before = p->before[last], n = y->dim[last];
    const uint8_t *source = (const uint8_t *)x->data + (size_t)from * size;
    uint8_t *target = (uint8_t *)y->data + (size_t)to * size;
    const int64_t begin = before > 0 ? before : 0;
    const int64_t end = before + dim < n ? before + dim : n;
    if (end > begin)
        memcpy(target + (size_t)begin * size, source + (size_t)(begin - before) * size,
               (size_t)(end - begin) * size);
    for (int64_t i = 0; i < n && p->mode != PAD_CONSTANT; i++) {
        if (i == begin && end > begin) i = end;
        if (i >= n) break;
        const int64_t at = source_of(p->mode, i - before, dim);
        memcpy(target + (size_t)i * size, source + (size_t)at * size, size);
    }
}

/* Method reference of pad: x with a border. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    const size_t size = ops_size(y->dtype);
    int64_t from[CNR_MAX_RANK], to[CNR_MAX_RANK], index[CNR_MAX_RANK] = {0};
    pad_plan p;
    CNR_TRY(plan_of(run->node, &p, err));
    if (cnr_count(y) == 0) return CNR_OK;
    if (p.mode == PAD_CONSTANT) fill(run->node, y);
    if (x->rank == 0 || cnr_count(x) == 0) {
        if (x->rank == 0) memcpy(y->data, x->data, size);
        return CNR_OK;
    }
    kit_dense_strides(x, from);
    kit_dense_strides(y, to);
    for (;;) {
        int64_t source = 0, target = 0;
        int inside = 1;
        for (int32_t a = 0; a < x->rank - 1; a++) {
            const int64_t at = source_of(p.mode, index[a] - p.before[a], x->dim[a]);
            if (at < 0) inside = 0;
            source += at * from[a];
            target += index[a] * to[a];
        }
        if (inside) pad_line(&p, x, y, source, target, size);
        int32_t a = x->rank - 2;
        for (; a >= 0 && ++index[a] == y->dim[a]; a--) index[a] = 0;
        if (a < 0) return CNR_OK;
    }
}

/* The gradient of a constant border: crops by negated pads. */
static cnr_status gradient(OPS_GRADIENT_ARGS) {
    kit_build b = {host, graph, CNR_OK};
    const int32_t rank = node->inputs[0]->rank;
    int64_t pads[2 * CNR_MAX_RANK];
    pad_plan p;
    (void)inputs, (void)outputs;
    if (grad_out[0] < 0) return CNR_OK;
    CNR_TRY(plan_of(node, &p, err));
    if (p.mode != PAD_CONSTANT)
        return ops_fail(err, CNR_E_UNSUPPORTED, node, "only constant padding has a gradient");
    for (int32_t a = 0; a < rank; a++) {
        pads[a] = -p.before[a];
        pads[a + rank] = -p.after[a];
    }
    const cnr_attr list = kit_attr_ints("pads", pads, 2 * rank);
    const cnr_value dx = kit_node(&b, "pad", &grad_out[0], 1, &list, 1);
    if (want[0]) grad_in[0] = dx;
    /* the constant's gradient is that of all elements less that of the inside */
    if (node->n_inputs > 2 && want[2] && cnr_count(node->inputs[2]) == 1) {
        const cnr_value border = kit_node2(&b, "sub", kit_node1(&b, "reduce_sum", grad_out[0]),
                                           kit_node1(&b, "reduce_sum", dx));
        grad_in[2] = kit_reshape(&b, border, node->inputs[2]);
    }
    return kit_built(&b, node, err);
}

const cnr_op ops_pad = {
    CNR_OP_SIZES,         .name = "pad",        .summary = "x with a border.",
    .flags = CNR_OP_PURE, CNR_OP_ATTRS(attrs),  CNR_OP_PORTS(in, out),
    .infer = infer,       .gradient = gradient, .reference = reference,
};
