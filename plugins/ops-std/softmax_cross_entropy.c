/* softmax_cross_entropy: the mean of -log softmax(logits)[label], and its gradient. */
#include "ops_kit.h"

static const cnr_port in[] = {{.name = "logits",
                               .help = "N C, before any softmax; axes of 1 may follow"},
                              {.name = "labels", .help = "N class numbers, integers or floats"}};
static const cnr_port out[] = {{.name = "loss", .help = "a scalar: f32, or f64 for f64 logits"}};
static const cnr_port grad_in_ports[] = {{.name = "dloss", .help = "gradient of the loss"},
                                         {.name = "logits", .help = "as the loss had them"},
                                         {.name = "labels", .help = "as the loss had them"}};
static const cnr_port grad_out_ports[] = {{.name = "dlogits", .help = "gradient of the logits"}};

/* Checks logits and labels, at ports first and first + 1. */
static cnr_status check(const cnr_node *node, int32_t first, cnr_error *err) {
    CNR_TRY(ops_want(node, first, OPS_FLOATS, 2, CNR_MAX_RANK, err));
    CNR_TRY(ops_want(node, first + 1, OPS_NUMBERS, 1, 2, err));
    const cnr_tensor *logits = node->inputs[first], *labels = node->inputs[first + 1];
    for (int32_t a = 2; a < logits->rank; a++)
        if (!ops_dims_agree(logits->dim[a], 1))
            return ops_fail(err, CNR_E_SHAPE, node, "logits: want N C, and axes of 1 behind them");
    if (!ops_dims_agree(labels->dim[0], logits->dim[0]) ||
        (labels->rank == 2 && !ops_dims_agree(labels->dim[1], 1)))
        return ops_fail(err, CNR_E_SHAPE, node, "labels: want one for each row of logits");
    return CNR_OK;
}

/* Type of the loss: f64 for f64 logits, else f32. */
static int32_t loss_dtype(const cnr_tensor *logits) {
    return logits->dtype == CNR_f64 ? CNR_f64 : CNR_f32;
}

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    CNR_TRY(check(node, 0, err));
    outputs[0]->dtype = loss_dtype(node->inputs[0]);
    outputs[0]->rank = 0;
    return CNR_OK;
}

/* Method infer of grad: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status grad_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    CNR_TRY(check(node, 1, err));
    CNR_TRY(ops_want(node, 0, OPS_FLOATS, 0, 1, err));
    const cnr_tensor *d = node->inputs[0];
    if (d->rank == 1 && !ops_dims_agree(d->dim[0], 1))
        return ops_fail(err, CNR_E_SHAPE, node, "dloss: want a scalar");
    ops_like(outputs[0], node->inputs[1]);
    return CNR_OK;
}

/* Label of row n; -1: not a class index. */
static int64_t label_of(const cnr_tensor *labels, int64_t n, int64_t classes) {
    const double v = ops_get(labels->dtype, labels->data, n);
    return v >= 0 && v < (double)classes ? (int64_t)v : -1;
}

/* Logarithm of the sum of e^logit over a row, less the largest one, which *largest receives. */
static double log_sum(const cnr_tensor *logits, int64_t row, double *largest) {
    const int64_t c = logits->dim[1];
    double sum = 0;
    *largest = -INFINITY;
    for (int64_t i = 0; i < c; i++) {
        const double v = ops_get(logits->dtype, logits->data, row * c + i);
        if (v > *largest) *largest = v;
    }
    for (int64_t i = 0; i < c; i++)
        sum += exp(ops_get(logits->dtype, logits->data, row * c + i) - *largest);
    return log(sum) + *largest;
}

/* Fails: label n is no class. */
static cnr_status bad_label(const cnr_node *node, int64_t n, int64_t classes, cnr_error *err) {
    return ops_fail(err, CNR_E_ARG, node, "label %lld: want 0 to %lld", (long long)n,
                    (long long)classes - 1);
}

/* Method reference of softmax_cross_entropy: the mean loss of a classifier: -log softmax(logits) at
 * the label. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *logits = run->node->inputs[0], *labels = run->node->inputs[1];
    const int64_t rows = logits->dim[0], c = logits->dim[1];
    double sum = 0, largest;
    for (int64_t n = 0; n < rows; n++) {
        const int64_t label = label_of(labels, n, c);
        if (label < 0) return bad_label(run->node, n, c, err);
        sum += log_sum(logits, n, &largest) - ops_get(logits->dtype, logits->data, n * c + label);
    }
    ops_put(run->outputs[0]->dtype, run->outputs[0]->data, 0, rows > 0 ? sum / (double)rows : 0);
    return CNR_OK;
}

/* dloss * (softmax - 1 at the label) / N */
static cnr_status grad_reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *d = run->node->inputs[0], *logits = run->node->inputs[1];
    const cnr_tensor *labels = run->node->inputs[2];
    const int64_t rows = logits->dim[0], c = logits->dim[1];
    const double share = rows > 0 ? ops_get(d->dtype, d->data, 0) / (double)rows : 0;
    double largest;
    for (int64_t n = 0; n < rows; n++) {
        const int64_t label = label_of(labels, n, c);
        const double total = log_sum(logits, n, &largest);
        if (label < 0) return bad_label(run->node, n, c, err);
        for (int64_t i = 0; i < c; i++) {
            const double p = exp(ops_get(logits->dtype, logits->data, n * c + i) - total);
            ops_put(logits->dtype, run->outputs[0]->data, n * c + i, share * (p - (i == label)));
        }
    }
    return CNR_OK;
}

/* Method gradient: adds nodes that compute the wanted gradients of the inputs. */
static cnr_status gradient(OPS_GRADIENT_ARGS) {
    const cnr_value in_g[] = {grad_out[0], inputs[0], inputs[1]};
    (void)outputs;
    if (!want[0] || grad_out[0] < 0) return CNR_OK;
    return ops_grad_node(host, graph, node, "softmax_cross_entropy_grad", in_g, 3, NULL, 0,
                         &grad_in[0], err);
}

/* Method cost: counts the arithmetic operations of a run. */
static void cost(const cnr_node *node, cnr_cost *c) {
    const int32_t last = node->n_inputs - 2; /* logits come before labels, in either form */
    c->flops = ops_mul(ops_elements(node->inputs[last]), 5);
}

const cnr_op ops_softmax_cross_entropy = {
    CNR_OP_SIZES,
    .name = "softmax_cross_entropy",
    .summary = "The mean loss of a classifier: -log softmax(logits) at the label.",
    .flags = CNR_OP_PURE | CNR_OP_LOSS,
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = cost,
    .gradient = gradient,
    .reference = reference,
    .absorbs = "softmax",
};

const cnr_op ops_softmax_cross_entropy_grad = {
    CNR_OP_SIZES,
    .name = "softmax_cross_entropy_grad",
    .summary = "The gradient of softmax_cross_entropy's logits.",
    .flags = CNR_OP_PURE,
    CNR_OP_PORTS(grad_in_ports, grad_out_ports),
    .infer = grad_infer,
    .cost = cost,
    .reference = grad_reference,
};
