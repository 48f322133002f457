/* Operators y = 3 x that break one thing they promise each; `sound` breaks none. */
#include "faulty.h"

static const cnr_port one[] = {{.name = "x"}}, two[] = {{.name = "x"}, {.name = "y"}};
static const cnr_port out[] = {{.name = "z"}};

/* Method infer: the output is like the input. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    if (x->dtype != CNR_f32 && x->dtype != CNR_f64)
        return faulty_host->fail(err, CNR_E_UNSUPPORTED, node->name, "input x: want f32 or f64");
    if (node->n_inputs > 1 && node->inputs[1]->dtype != x->dtype)
        return faulty_host->fail(err, CNR_E_UNSUPPORTED, node->name, "input y: want %s",
                                 cnr_dtype_name(x->dtype));
    outputs[0]->dtype = x->dtype;
    outputs[0]->rank = x->rank;
    memcpy(outputs[0]->dim, x->dim, sizeof x->dim);
    return CNR_OK;
}

/* Element i as a double. */
static double get(const cnr_tensor *t, int64_t i) {
    return t->dtype == CNR_f64 ? ((const double *)t->data)[i] : (double)((const float *)t->data)[i];
}

/* Writes element i. */
static void put(const cnr_tensor *t, int64_t i, double v) {
    if (t->dtype == CNR_f64) ((double *)t->data)[i] = v;
    else ((float *)t->data)[i] = (float)v;
}

/* 1: element i lies in the run's range. */
static int in_range(const cnr_run *run, int64_t i) {
    const cnr_tensor *y = run->outputs[0];
    if (run->range_axis < 0) return 1;
    const int64_t at = i / cnr_span(y, run->range_axis + 1, y->rank) % y->dim[run->range_axis];
    return at >= run->range_begin && at < run->range_end;
}

/* The right result. */
static cnr_status right(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0];
    (void)err;
    for (int64_t i = 0; i < cnr_count(x); i++)
        if (in_range(run, i)) put(run->outputs[0], i, 3 * get(x, i));
    return CNR_OK;
}

/* ---- references ---- */

/* Fault: computes all, not the range. */
static cnr_status whole_always(const cnr_run *run, cnr_error *err) {
    cnr_run all = *run;
    all.range_axis = -1;
    return right(&all, err);
}

/* Fault: leaves the last element. */
static cnr_status leaves_last(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *y = run->outputs[0];
    const int64_t last = cnr_count(y) - 1;
    const double was = last >= 0 ? get(y, last) : 0;
    const cnr_status status = right(run, err);
    if (last > 0) put(y, last, was);
    return status;
}

/* Reads input 1 as if it were as large as input 0. */
static cnr_status reads_past(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->node->inputs[1];
    (void)err;
    for (int64_t i = 0; i < cnr_count(x); i++)
        put(run->outputs[0], i, get(x, i) + (get(y, i) > 0 ? 0 : -0.0));
    return CNR_OK;
}

/* Each element and the one behind it: half of what region says. */
static cnr_status neighbours(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0];
    const int64_t n = cnr_count(x);
    (void)err;
    for (int64_t i = 0; i < n; i++)
        put(run->outputs[0], i, get(x, i) + (i + 1 < n ? get(x, i + 1) : 0));
    return CNR_OK;
}

/* Backwards, which is wrong in place. */
static cnr_status reversed(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0];
    const int64_t n = cnr_count(x);
    (void)err;
    for (int64_t i = 0; i < n; i++) put(run->outputs[0], i, get(x, n - 1 - i));
    return CNR_OK;
}

/* ---- other hooks ---- */

/* Method split_axes: the first axis. */
static int32_t first_axis(const cnr_node *node, cnr_split_axis *axes, int32_t max) {
    if (max < 1 || node->outputs[0]->rank < 1) return 0;
    axes[0] = (cnr_split_axis){0, 1};
    return 1;
}

/* Method region: the same range. */
static void same_range(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                       cnr_input_range *r) {
    (void)node;
    (void)port;
    *r = (cnr_input_range){axis, begin, end};
}

/* Method aliases: in place. */
static int32_t alias_in_place(const cnr_node *node, cnr_alias *a, int32_t max) {
    (void)node;
    if (max < 1) return 0;
    a[0] = (cnr_alias){.kind = CNR_ALIAS_INPLACE};
    return 1;
}

/* Method aliases: a view. */
static int32_t alias_view(const cnr_node *node, cnr_alias *a, int32_t max) {
    (void)node;
    if (max < 1) return 0;
    a[0] = (cnr_alias){.kind = CNR_ALIAS_VIEW};
    return 1;
}

/* The right formula on n elements of x, into `to`. */
static void apply_right(const cnr_node *node, const float *x, const float *y, float *to,
                        int64_t n) {
    (void)node;
    (void)y;
    for (int64_t i = 0; i < n; i++) to[i] = 3 * x[i];
}

/* The last element of an odd number is forgotten, as by a loop over pairs. */
static void apply_pairs(const cnr_node *node, const float *x, const float *y, float *to,
                        int64_t n) {
    apply_right(node, x, y, to, n - n % 2);
}

/* Fault: scale and shift of another affine than the reference's. */
static int32_t shifted(const cnr_node *node, int64_t channels, float *scale, float *shift) {
    (void)node;
    for (int64_t i = 0; i < channels; i++) {
        scale[i] = 3;
        shift[i] = 0.01f;
    }
    return 1;
}

/* `times` dy. */
static cnr_status gradient_of(const cnr_host *host, struct cnr_graph *graph, const cnr_node *node,
                              cnr_value dy, double times, cnr_value *out, cnr_error *err) {
    uint8_t room[8];
    cnr_tensor t = {.size = sizeof t,
                    .dtype = node->inputs[0]->dtype,
                    .data = room,
                    .flags = CNR_TENSOR_CONST};
    put(&t, 0, times);
    t.bytes = cnr_dense_bytes(&t);
    const cnr_value pair[] = {dy, host->graph_constant(graph, NULL, &t)};
    const cnr_status status = host->graph_node(graph, "mul", NULL, NULL, pair, 2, NULL, 0, out, 1);
    return status ? host->fail(err, status, node->name, "no gradient") : CNR_OK;
}

/* A gradient of this formula. */
#define GRADIENT(name, ...) \
    static cnr_status name(const cnr_host *host, struct cnr_graph *graph, const cnr_node *node, \
                           const cnr_value *inputs, const cnr_value *outputs, \
                           const cnr_value *grad_out, const int32_t *want, cnr_value *grad_in, \
                           cnr_error *err) { \
        (void)inputs, (void)outputs, (void)host, (void)graph, (void)node, (void)err, \
            (void)grad_in; \
        if (!want[0] || grad_out[0] < 0) return CNR_OK; \
        __VA_ARGS__ \
    }
GRADIENT(gradient_right, return gradient_of(host, graph, node, grad_out[0], 3, &grad_in[0], err);)
GRADIENT(gradient_flipped,
         return gradient_of(host, graph, node, grad_out[0], -3, &grad_in[0], err);)
GRADIENT(gradient_none, return CNR_OK;)

/* ---- with a weight ---- */

static const cnr_port weighed[] = {{.name = "x"}, {.name = "w", .flags = CNR_PORT_PARAMETER}};

/* Method infer: wants a weight of two axes. */
static cnr_status infer_weighed(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_tensor *w = node->inputs[1];
    if (!w || w->dtype != CNR_f32 || w->rank != 2)
        return faulty_host->fail(err, CNR_E_UNSUPPORTED, node->name, "input w: want f32 of rank 2");
    cnr_node bare = *node;
    bare.n_inputs = 1;
    return infer(&bare, outputs, err);
}

/* A weight of so many axes, begun in that way. */
static cnr_status weight_of(cnr_tensor *out, int32_t rank, cnr_init *init, int32_t kind) {
    out->dtype = CNR_f32;
    out->rank = rank;
    for (int32_t i = 0; i < rank; i++) out->dim[i] = 2;
    *init = (cnr_init){.kind = kind, .fan_in = 2};
    return CNR_OK;
}
/* Method parameters with this beginning. */
#define PARAMETERS(name, rank, kind) \
    static cnr_status name(const cnr_node *node, int32_t port, cnr_tensor *out, cnr_init *init, \
                           cnr_error *err) { \
        (void)node, (void)port, (void)err; \
        return weight_of(out, rank, init, kind); \
    }
PARAMETERS(parameters_right, 2, CNR_INIT_HE)
PARAMETERS(parameters_deep, 3, CNR_INIT_HE)
PARAMETERS(parameters_zero, 2, CNR_INIT_ZERO)
PARAMETERS(parameters_odd, 2, 7)

/* Method cost: nothing. */
static void cost_nothing(const cnr_node *node, cnr_cost *out) { (void)node, (void)out; }

/* An operator with this reference. */
#define OPERATOR(name_, ports, reference_, ...) \
    { \
        .size = sizeof(cnr_op), .version = 1, .name = "faulty_op_" #name_, .summary = "faulty", \
        .attr_spec_size = sizeof(cnr_attr_spec), .port_size = sizeof(cnr_port), \
        .n_inputs = sizeof(ports) / sizeof(ports)[0], .n_outputs = 1, .inputs = ports, \
        .outputs = out, .infer = infer, .reference = reference_, __VA_ARGS__ \
    }
/* An operator with a weight. */
#define WEIGHED(name_, parameters_, ...) \
    { \
        .size = sizeof(cnr_op), .version = 1, .name = "faulty_op_" #name_, .summary = "faulty", \
        .attr_spec_size = sizeof(cnr_attr_spec), .port_size = sizeof(cnr_port), .n_inputs = 2, \
        .n_outputs = 1, .inputs = weighed, .outputs = out, .infer = infer_weighed, \
        .reference = right, .flags = CNR_OP_PURE, .parameters = parameters_, __VA_ARGS__ \
    }
#define EACH CNR_OP_ELEMENTWISE | CNR_OP_PURE
static const cnr_op ops[] = {
    OPERATOR(sound, one, right, .flags = EACH | CNR_OP_RANGES, .apply_f32 = apply_right,
             .gradient = gradient_right),
    OPERATOR(whole, one, whole_always, .flags = EACH | CNR_OP_RANGES),
    OPERATOR(unwritten, one, leaves_last, .flags = CNR_OP_PURE),
    OPERATOR(past, two, reads_past, .flags = CNR_OP_PURE),
    OPERATOR(region, one, neighbours, .flags = CNR_OP_PURE, .split_axes = first_axis,
             .input_range = same_range),
    OPERATOR(in_place, one, reversed, .flags = CNR_OP_PURE, .buffer_aliases = alias_in_place),
    OPERATOR(view, one, right, .flags = CNR_OP_PURE, .buffer_aliases = alias_view),
    OPERATOR(apply, one, right, .flags = EACH, .apply_f32 = apply_pairs),
    OPERATOR(affine, one, right, .flags = EACH, .channel_affine = shifted),
    OPERATOR(pass, one, right, .flags = CNR_OP_PURE | CNR_OP_PASS),
    OPERATOR(flipped, one, right, .flags = EACH, .gradient = gradient_flipped),
    OPERATOR(no_gradient, one, right, .flags = EACH, .gradient = gradient_none),
    WEIGHED(deep, parameters_deep, ),
    WEIGHED(zero, parameters_zero, ),
    WEIGHED(odd, parameters_odd, ),
    WEIGHED(free, parameters_right, .cost = cost_nothing),
};

cnr_status faulty_add_ops(struct cnr_registrar *registrar) {
    cnr_status status = CNR_OK;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0] && !status; i++)
        status = faulty_host->add(registrar, CNR_KIND_OPERATOR, &ops[i]);
    return status;
}
