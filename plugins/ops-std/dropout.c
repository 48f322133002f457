/* dropout: identity at inference, with an optional mask of true; in training, a random mask for
 * each step. */
#include "ops_kit.h"

static const cnr_attr_spec attrs[] =
    {{.name = "ratio",
      .type = CNR_ATTR_FLOAT,
      .flags = CNR_ATTR_BOUNDED,
      .min = 0,
      .max = 1,
      .default_f = 0.5,
      .help = "share of elements that training drops"},
     {.name = "seed",
      .type = CNR_ATTR_INT,
      .help = "seed of the random mask in training; not used at inference"}};
static const cnr_port in[] =
    {{.name = "x", .help = "anything"},
     {.name = "ratio", .flags = CNR_PORT_OPTIONAL, .help = "instead of the attribute"},
     {.name = "training_mode", .flags = CNR_PORT_OPTIONAL | CNR_PORT_CONST, .help = "false"}};
static const cnr_port out[] = {{.name = "y", .help = "x"},
                               {.name = "mask",
                                .flags = CNR_PORT_OPTIONAL,
                                .help = "true for the elements that are kept: all"}};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_status status = ops_want(node, 0, OPS_WHOLE, 0, CNR_MAX_RANK, err);
    if (status != CNR_OK) return status;
    const cnr_tensor *training = cnr_own_input(node, 2);
    if (training && training->data && cnr_count(training) == 1 &&
        ops_get_int(training->dtype, training->data, 0) != 0)
        return ops_fail(err, CNR_E_UNSUPPORTED, node, "training_mode must be false");
    ops_like(outputs[0], node->inputs[0]);
    if (node->n_outputs > 1) {
        ops_like(outputs[1], node->inputs[0]);
        outputs[1]->dtype = CNR_bool;
    }
    return CNR_OK;
}

/* Method reference of dropout: its input, unchanged, at inference. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    if (run->node->n_outputs > 1 && cnr_count(run->outputs[1]) > 0)
        memset(run->outputs[1]->data, 1, (size_t)cnr_count(run->outputs[1]));
    return ops_reference_copy(run, err);
}

/* ---- training ---- */

static const cnr_attr_spec drawn_attrs[] =
    {{.name = "ratio",
      .type = CNR_ATTR_FLOAT,
      .flags = CNR_ATTR_BOUNDED,
      .min = 0,
      .max = 1,
      .default_f = 0.5,
      .help = "share of elements that become 0"},
     {.name = "seed", .type = CNR_ATTR_INT, .help = "seed of the mask, together with the step"},
     {.name = "first",
      .type = CNR_ATTR_INT,
      .flags = CNR_ATTR_BOUNDED,
      .max = 9e15,
      .help = "index of the first element, if x is a part of a larger tensor"}};
static const cnr_port drawn_in[] = {{.name = "x", .help = "anything"},
                                    {.name = "step",
                                     .help =
                                         "number of the step, which determines the mask; rank 0"}};
static const cnr_port drawn_out[] = {
    {.name = "y", .help = "x / (1 - ratio) where it is kept, else 0"}};

/* Method infer of drawn: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status drawn_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    CNR_TRY(ops_want(node, 0, OPS_FLOATS, 0, CNR_MAX_RANK, err));
    CNR_TRY(ops_want(node, 1, OPS_FLOATS, 0, 0, err));
    ops_like(outputs[0], node->inputs[0]);
    return CNR_OK;
}

/* splitmix64's mixer: the random number of any element by its index, so threads need no shared
 * state. */
static inline uint64_t mix(uint64_t z) {
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Two elements use one 64-bit random number. */
OPS_INLINE void drawn_body(const cnr_run *run, int32_t dtype) {
    const cnr_node *node = run->node;
    const double ratio = cnr_attr_float(node, "ratio"), scale = ratio < 1 ? 1 / (1 - ratio) : 0;
    const cnr_tensor *number = node->inputs[1];
    const uint64_t step = (uint64_t)fmin(fabs(ops_get(number->dtype, number->data, 0)), 1e15);
    const uint64_t key = mix((uint64_t)cnr_attr_int(node, "seed") + mix(step + 1));
    const uint64_t first = (uint64_t)cnr_attr_int(node, "first");
    /* elements with random numbers below it are dropped */
    const uint64_t least = (uint64_t)(ratio * 4294967296.0);
    const void *x = node->inputs[0]->data;
    void *y = run->outputs[0]->data;
    const cnr_pieces runs = cnr_pieces_of(run);
    for (int64_t r = 0; r < runs.n; r++)
        for (int64_t i = 0; i < runs.length; i++) {
            const int64_t at = runs.first + r * runs.pitch + i;
            const uint64_t whole_at = first + (uint64_t)at;
            const uint64_t two = mix(key + UINT64_C(0x9e3779b97f4a7c15) * (whole_at >> 1));
            const uint64_t drawn = whole_at & 1 ? two >> 32 : two & 0xffffffffu;
            ops_put(dtype, y, at, drawn < least ? 0 : ops_get(dtype, x, at) * scale);
        }
}

OPS_REFERENCE(drawn_reference, drawn_body, outputs[0])

/* Method gradient: the gradient, multiplied by the same mask; nothing where it isn't wanted. */
static cnr_status drawn_gradient(OPS_GRADIENT_ARGS) {
    (void)outputs;
    if (!want[0] || grad_out[0] < 0) return CNR_OK;
    const cnr_value in[] = {grad_out[0], inputs[1]};
    return ops_grad_node(host, graph, node, "dropout_drawn", in, 2, node->attrs, node->n_attrs,
                         &grad_in[0], err);
}

/* Method training: replaces the node by one that drops at random by the training's seed. */
static cnr_status training(const cnr_host *host, struct cnr_graph *graph, const cnr_node *node,
                           const cnr_value *inputs, const cnr_training *t, cnr_value *outputs,
                           cnr_error *err) {
    int known = 0;
    const double ratio = kit_scalar(node, 1, "ratio", &known);
    if (!known || !(ratio >= 0 && ratio <= 1))
        return ops_fail(err, CNR_E_UNSUPPORTED, node, "ratio: want a constant from 0 to 1");
    const cnr_tensor *x = node->inputs[0];
    const int64_t each = x->rank > 0 && x->dim[0] > 0 ? cnr_count(x) / x->dim[0] : 0;
    const int64_t first = CNR_HAS(t, first) && each > 0 ? t->first * each : 0;
    const cnr_attr list[] =
        {kit_attr_float("ratio", ratio),
         kit_attr_int("seed", (int64_t)((t->seed ^ (uint64_t)cnr_attr_int(node, "seed")) >> 1)),
         kit_attr_int("first", first)};
    const cnr_attr *const attrs_of[] = {&list[0], &list[1], &list[2]};
    const cnr_value in[] = {inputs[0], t->step};
    return ops_grad_node(host, graph, node, "dropout_drawn", in, 2, attrs_of, 3, &outputs[0], err);
}

const cnr_op ops_dropout = {
    CNR_OP_SIZES,
    .name = "dropout",
    .summary = "Its input, unchanged, at inference.",
    .flags = CNR_OP_PASS | CNR_OP_PURE,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .buffer_aliases = ops_alias_view,
    .gradient = ops_gradient_through,
    .reference = reference,
    .training = training,
};

const cnr_op ops_dropout_drawn = {
    CNR_OP_SIZES,
    .name = "dropout_drawn",
    .summary = "Dropout in training: sets elements to 0 by a random mask of the step.",
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(drawn_attrs),
    CNR_OP_PORTS(drawn_in, drawn_out),
    .infer = drawn_infer,
    .cost = kit_cost_flops,
    .buffer_aliases = ops_alias_inplace,
    .split_axes = ops_split_all,
    .input_range = ops_region_first,
    .gradient = drawn_gradient,
    .reference = drawn_reference,
};
