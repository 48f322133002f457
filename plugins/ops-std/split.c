/* split: cuts an axis into several outputs. */
#include "move.h"

static const cnr_port in[] = {{.name = "x", .help = "rank 1 or more"},
                              {.name = "split",
                               .flags = CNR_PORT_OPTIONAL | CNR_PORT_CONST,
                               .help = "length of each output, instead of the attribute"}};
static const cnr_port out[] = {
    {.name = "y", .flags = CNR_PORT_VARIADIC, .min = 1, .help = "the parts in their order"}};
static const cnr_attr_spec attrs[] =
    {OPS_AXIS_ROW(0, "the axis that is divided"),
     {.name = "split", .type = CNR_ATTR_INTS, .help = "length of each output; none: equal parts"},
     {.name = "num_outputs",
      .type = CNR_ATTR_INT,
      .flags = CNR_ATTR_BOUNDED,
      .min = 0,
      .max = 1 << 20,
      .help = "number of equal parts; the last one may be shorter"}};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    const int64_t parts = node->n_outputs, wanted = cnr_attr_int(node, "num_outputs");
    int32_t axis;
    kit_list sizes;
    int64_t sum = 0;
    CNR_TRY(ops_want(node, 0, OPS_WHOLE, 1, CNR_MAX_RANK, err));
    CNR_TRY(ops_axis(node, "axis", x->rank, 0, &axis, err));
    CNR_TRY(kit_ints(node, 1, "split", &sizes, err));
    const int64_t dim = x->dim[axis], each = dim < 0 ? dim : (dim + parts - 1) / parts;
    if (wanted > 0 && wanted != parts)
        return ops_fail(err, CNR_E_ARG, node, "num_outputs is %lld, but there are %lld",
                        (long long)wanted, (long long)parts);
    if (sizes.n > 0 && sizes.n != parts)
        return ops_fail(err, CNR_E_ARG, node, "%lld lengths for %lld outputs", (long long)sizes.n,
                        (long long)parts);
    for (int64_t i = 0; i < parts; i++) {
        int64_t part = dim < 0 ? CNR_DIM_UNKNOWN : i * each + each <= dim ? each : dim - i * each;
        if (part < 0 && dim >= 0) part = 0;
        if (dim < 0 && parts == 1) part = dim;
        if (sizes.n > 0) part = sizes.known ? sizes.at[i] : CNR_DIM_UNKNOWN;
        if (sizes.n > 0 && sizes.known && (part < 0 || part > OPS_MAX_DIM))
            return ops_fail(err, CNR_E_ARG, node, "%lld is no length", (long long)part);
        if (!sizes.known) part = CNR_DIM_UNKNOWN;
        sum = part < 0 || sum < 0 ? -1 : sum + part;
        ops_like(outputs[i], x);
        outputs[i]->dim[axis] = part;
    }
    if (sum >= 0 && dim >= 0 && sum != dim)
        return ops_fail(err, CNR_E_SHAPE, node, "the parts are %lld long, the axis %lld",
                        (long long)sum, (long long)dim);
    return CNR_OK;
}

/* Method aliases: each output is a part of the input, where they lie in one piece. */
static int32_t aliases_of(const cnr_node *node, cnr_alias *alias, int32_t max) {
    const int32_t axis = ops_axis_of(node, node->inputs[0]);
    uint64_t offset = 0;
    int32_t n = 0;
    for (int32_t a = 0; a < axis; a++)
        if (node->inputs[0]->dim[a] != 1) return 0;
    for (int32_t i = 0; i < node->n_outputs && n < max; i++) {
        alias[n++] = (cnr_alias){CNR_ALIAS_VIEW, 0, i, offset};
        offset += ops_elements(node->outputs[i]);
    }
    return n;
}

/* Method reference of split: divides an axis into several outputs; returns CNR_OK. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0];
    const int32_t axis = ops_axis_of(run->node, run->node->inputs[0]);
    const size_t size = ops_size(x->dtype);
    const int64_t outer = cnr_span(x, 0, axis), inner = cnr_span(x, axis + 1, x->rank);
    int64_t at = 0;
    (void)err;
    for (int32_t i = 0; i < run->node->n_outputs; i++) {
        const cnr_tensor *y = run->outputs[i];
        const int64_t line = y->dim[axis] * inner;
        move_map m = {.in_at = at};
        move_axis(&m, outer, x->dim[axis] * inner, line);
        move_axis(&m, line, 1, 1);
        if ((const uint8_t *)x->data + (size_t)at * size != y->data)
            move_copy(size, x->data, y->data, &m);
        at += line;
    }
    return CNR_OK;
}

/* Method gradient: adds nodes that compute the wanted gradients of the inputs. */
static cnr_status gradient(OPS_GRADIENT_ARGS) {
    kit_build b = {host, graph, CNR_OK};
    cnr_value parts[64];
    (void)inputs, (void)outputs;
    if (!want[0]) return CNR_OK;
    if (node->n_outputs > 64)
        return ops_fail(err, CNR_E_LIMIT, node, "no gradient of more than 64 parts");
    for (int32_t i = 0; i < node->n_outputs; i++)
        parts[i] = grad_out[i] >= 0 ? grad_out[i] : kit_filled(&b, node->outputs[i], 0);
    const cnr_attr axis = kit_attr_int("axis", ops_axis_of(node, node->inputs[0]));
    grad_in[0] = kit_node(&b, "concat", parts, node->n_outputs, &axis, 1);
    return kit_built(&b, node, err);
}

const cnr_op ops_split = {
    CNR_OP_SIZES,
    .name = "split",
    .summary = "Divides an axis into several outputs.",
    .flags = CNR_OP_PURE,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .buffer_aliases = aliases_of,
    .gradient = gradient,
    .reference = reference,
};
