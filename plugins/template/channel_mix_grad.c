/* channel_mix_grad_weight: the gradient of channel_mix's weight. */
#include "template.h"

/* dweight[o,c] = sum over n and places of dy[n,o,p] * x[n,c,p] */
static const cnr_port grad_inputs[] = {{.name = "x", .help = "N C spatial"},
                                       {.name = "dy", .help = "N O spatial"}};
static const cnr_port grad_outputs[] = {{.name = "dweight", .help = "O C"}};

/* Method infer of the weight's gradient. */
static cnr_status infer_grad(const cnr_node *node, cnr_tensor *const *out, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0], *dy = node->inputs[1];
    if (x->rank < 2 || dy->rank != x->rank || x->dtype != CNR_f32 || dy->dtype != CNR_f32)
        return template_host->fail(err, CNR_E_SHAPE, node->name, "x and dy must agree");
    for (int32_t i = 0; i < x->rank; i++)
        if (i != 1 && x->dim[i] >= 0 && dy->dim[i] >= 0 && x->dim[i] != dy->dim[i])
            return template_host->fail(err, CNR_E_SHAPE, node->name, "x and dy differ on axis %d",
                                       (int)i);
    out[0]->dtype = CNR_f32;
    out[0]->rank = 2;
    out[0]->dim[0] = dy->dim[1];
    out[0]->dim[1] = x->dim[1];
    return CNR_OK;
}

/* Method reference of the weight's gradient; returns CNR_OK. */
static cnr_status reference_grad(const cnr_run *run, cnr_error *err) {
    (void)err;
    const cnr_tensor *x = run->node->inputs[0], *dy = run->node->inputs[1];
    const float *xs = (const float *)x->data, *ds = (const float *)dy->data;
    const int64_t places = cnr_span(x, 2, x->rank);
    for (int64_t o = 0; o < dy->dim[1]; o++)
        for (int64_t c = 0; c < x->dim[1]; c++) {
            double sum = 0;
            for (int64_t n = 0; n < x->dim[0]; n++)
                for (int64_t p = 0; p < places; p++)
                    sum += (double)ds[(n * dy->dim[1] + o) * places + p] *
                           xs[(n * x->dim[1] + c) * places + p];
            ((float *)run->outputs[0]->data)[o * x->dim[1] + c] = (float)sum;
        }
    return CNR_OK;
}

const cnr_op template_channel_mix_grad_weight = {
    CNR_OP_SIZES,
    .name = "channel_mix_grad_weight",
    .summary = "gradient of channel_mix's weight",
    .flags = CNR_OP_PURE,
    CNR_OP_PORTS(grad_inputs, grad_outputs),
    .infer = infer_grad,
    .reference = reference_grad,
};
