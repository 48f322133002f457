/* reverse_sequence: reverses the first elements of each sequence of a batch. */
#include "ops_kit.h"

static const cnr_port in[] = {{.name = "x", .help = "rank 2 or more"},
                              {.name = "sequence_lens", .help = "i64, one per sequence"}};
static const cnr_port out[] = {{.name = "y", .help = "the shape of x"}};
/* The row of an attribute that is axis 0 or 1. */
#define AXIS(NAME, DEFAULT, TEXT) \
    { \
        .name = NAME, .type = CNR_ATTR_INT, .flags = CNR_ATTR_BOUNDED, .min = 0, .max = 1, \
        .default_i = DEFAULT, .help = TEXT \
    }
static const cnr_attr_spec attrs[] = {AXIS("batch_axis", 1, "axis of the sequences"),
                                      AXIS("time_axis", 0, "axis along which a sequence runs")};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const int64_t batch = cnr_attr_int(node, "batch_axis");
    int64_t n;
    CNR_TRY(ops_want(node, 0, OPS_WHOLE, 2, CNR_MAX_RANK, err));
    CNR_TRY(ops_want(node, 1, OPS_INTS, 1, 1, err));
    if (batch == cnr_attr_int(node, "time_axis"))
        return ops_fail(err, CNR_E_ARG, node, "batch_axis and time_axis must differ");
    ops_like(outputs[0], node->inputs[0]);
    return kit_same(node, node->inputs[0]->dim[batch], node->inputs[1]->dim[0], &n, err);
}

/* Method reference of reverse_sequence: reverses the first elements of each sequence. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *lens = run->node->inputs[1];
    const int batch_first = cnr_attr_int(run->node, "batch_axis") == 0;
    const int64_t inner = cnr_span(x, 2, x->rank), columns = x->dim[1];
    const int64_t times = x->dim[batch_first ? 1 : 0];
    const size_t line = (size_t)inner * ops_size(x->dtype);
    for (int64_t i = 0; i < x->dim[0] * columns; i++) {
        const int64_t batch = batch_first ? i / columns : i % columns;
        const int64_t time = batch_first ? i % columns : i / columns;
        const int64_t n = elem_i64(lens, batch);
        if (n < 0 || n > times)
            return ops_fail(err, CNR_E_ARG, run->node, "a length of %lld, of at most %lld",
                            (long long)n, (long long)times);
        const int64_t from = time < n ? n - 1 - time : time;
        const int64_t source = batch_first ? batch * columns + from : from * columns + batch;
        if (line)
            memcpy((uint8_t *)run->outputs[0]->data + (size_t)i * line,
                   (const uint8_t *)x->data + (size_t)source * line, line);
    }
    return CNR_OK;
}

const cnr_op ops_reverse_sequence = {
    CNR_OP_SIZES,
    .name = "reverse_sequence",
    .summary = "Reverses the first elements of each sequence.",
    .flags = CNR_OP_PURE,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .reference = reference,
};
