/* soft_threshold: y = sign(x) * max(|x| - threshold, 0), an element-wise operator with a gradient.
 * Its flags alone give it in-place, splitting, channel blocks and fusion behind other layers. */
#include "template.h"

static const cnr_attr_spec attrs[] = {
    {.name = "threshold",
     .type = CNR_ATTR_FLOAT,
     .flags = CNR_ATTR_BOUNDED,
     .min = 0,
     .max = 1e30,
     .default_f = 0.5,
     .help = "values nearer to 0 than this become 0"},
};
static const cnr_port inputs[] = {{.name = "x", .help = "any shape"}};
static const cnr_port outputs[] = {{.name = "y", .help = "shape of x"}};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *out, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    if (x->dtype != CNR_f32)
        return template_host->fail(err, CNR_E_UNSUPPORTED, node->name, "x is %s, f32 is wanted",
                                   cnr_dtype_name(x->dtype));
    out[0]->dtype = x->dtype;
    out[0]->rank = x->rank;
    memcpy(out[0]->dim, x->dim, sizeof x->dim);
    return CNR_OK;
}

/* Computes n elements of a fused epilogue: shrinks x towards 0 by the threshold; y is not used. */
static void apply(const cnr_node *node, const float *x, const float *y, float *out, int64_t n) {
    const float t = (float)cnr_attr_float(node, "threshold");
    (void)y;
    for (int64_t i = 0; i < n; i++) {
        const float v = x[i];
        out[i] = v > t ? v - t : v < -t ? v + t : 0.0f;
    }
}

/* Method expression: the OpenCL formula into text; its length, or -1. */
static int32_t expression(const cnr_node *node, char *text, size_t bytes) {
    /* The threshold as hexadecimal bits: exact, and no locale can spoil it. */
    const float t = (float)cnr_attr_float(node, "threshold");
    uint32_t bits;
    memcpy(&bits, &t, sizeof bits);
    static const char digits[] = "0123456789abcdef";
    static const char form[] = "(sign(x) * fmax(fabs(x) - as_float(0x########u), 0.0f))";
    if (bytes < sizeof form) return -1;
    memcpy(text, form, sizeof form);
    char *hole = strchr(text, '#');
    for (int i = 0; i < 8; i++) hole[i] = digits[bits >> (28 - 4 * i) & 15];
    return (int32_t)sizeof form - 1;
}

/* Method reference of soft_threshold: shrinks towards zero by a threshold; returns CNR_OK. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    (void)err;
    template_apply(run, apply);
    return CNR_OK;
}

/* Method gradient: adds nodes that compute the wanted gradients of the inputs. */
static cnr_status gradient(const cnr_host *host, struct cnr_graph *graph, const cnr_node *node,
                           const cnr_value *in, const cnr_value *out, const cnr_value *grad_out,
                           const int32_t *want, cnr_value *grad_in, cnr_error *err) {
    (void)in;
    (void)err;
    (void)node;
    if (!want[0]) return CNR_OK;
    const cnr_value from[] = {out[0], grad_out[0]};
    return host->graph_node(graph, "soft_threshold_grad", NULL, NULL, from, 2, NULL, 0, grad_in, 1);
}

const cnr_op template_soft_threshold = {
    CNR_OP_SIZES,
    .name = "soft_threshold",
    .summary = "shrinks towards zero by a threshold",
    .flags = CNR_OP_ELEMENTWISE | CNR_OP_EPILOGUE | CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(inputs, outputs),
    .infer = infer,
    .gradient = gradient,
    .apply_f32 = apply,
    .expression = expression,
    .reference = reference,
};
