/* dropout: nothing at inference; the optional mask is all true. */
#include "ops.h"

static const cnr_attr_spec attrs[] = {
    {.name = "ratio", .type = CNR_ATTR_FLOAT, .flags = CNR_ATTR_BOUNDED, .min = 0, .max = 1,
     .default_f = 0.5, .help = "share of elements that training drops"},
    {.name = "seed", .type = CNR_ATTR_INT, .help = "of training's choice; not used at inference"}};
static const cnr_port in[] = {
    {.name = "x", .help = "anything"},
    {.name = "ratio", .flags = CNR_PORT_OPTIONAL, .help = "instead of the attribute"},
    {.name = "training_mode", .flags = CNR_PORT_OPTIONAL | CNR_PORT_CONST, .help = "false"}};
static const cnr_port out[] = {
    {.name = "y", .help = "x"},
    {.name = "mask", .flags = CNR_PORT_OPTIONAL, .help = "which elements are kept: all"}};

static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_status status = ops_want(node, 0, OPS_WHOLE, 0, CNR_MAX_RANK, err);
    if (status != CNR_OK) return status;
    const cnr_tensor *training = ops_in(node, 2);
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

static cnr_status reference(const cnr_run *run, cnr_error *err) {
    if (run->node->n_outputs > 1 && cnr_count(run->outputs[1]) > 0)
        memset(run->outputs[1]->data, 1, (size_t)cnr_count(run->outputs[1]));
    return ops_reference_copy(run, err);
}

const cnr_op ops_dropout = {
    OPS_SIZES,
    .name = "dropout",
    .summary = "Its input, unchanged, at inference.",
    .flags = CNR_OP_PASS | CNR_OP_PURE,
    OPS_ATTRS(attrs),
    OPS_PORTS(in, out),
    .infer = infer,
    .aliases_of = ops_alias_view,
    .gradient = ops_gradient_through,
    .reference = reference,
};
