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

static void apply(const cnr_node *node, const float *x, const float *y, float *out, int64_t n) {
    const float t = (float)cnr_attr_float(node, "threshold");
    (void)y;
    for (int64_t i = 0; i < n; i++) {
        const float v = x[i];
        out[i] = v > t ? v - t : v < -t ? v + t : 0.0f;
    }
}

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

typedef void (*apply_fn)(const cnr_node *node, const float *x, const float *y, float *out,
                         int64_t n);

/* Applies `fn` to what the run asks for (CNR_OP_RANGES), all or a range on one axis. */
static void apply_range(const cnr_run *run, apply_fn fn) {
    const cnr_tensor *x = run->node->inputs[0], *y = cnr_own_input(run->node, 1);
    const cnr_pieces pieces = cnr_pieces_of(run);
    for (int64_t i = 0; i < pieces.n; i++) {
        const int64_t at = pieces.first + i * pieces.pitch;
        fn(run->node, (const float *)x->data + at, y ? (const float *)y->data + at : NULL,
           (float *)run->outputs[0]->data + at, pieces.length);
    }
}

static cnr_status reference(const cnr_run *run, cnr_error *err) {
    (void)err;
    apply_range(run, apply);
    return CNR_OK;
}

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

/* Importers ask for these where a model has such a node: com.example's Shrinkage of ONNX, whose
 * attribute "lambd" is our threshold; TensorFlow's and Caffe's layers of that type. */
static const char *const onnx_attrs[] = {"lambd=threshold", NULL};
const cnr_import_row template_from_onnx = {
    .size = sizeof(cnr_import_row),
    .version = 1,
    .name = "onnx com.example::Shrinkage",
    .summary = "soft_threshold",
    .format = "onnx",
    .domain = "com.example",
    .type = "Shrinkage",
    .op = "soft_threshold",
    .attrs = onnx_attrs,
};
const cnr_import_row template_from_tensorflow = {
    .size = sizeof(cnr_import_row),
    .name = "tensorflow Shrinkage",
    .summary = "soft_threshold",
    .format = "tensorflow",
    .type = "Shrinkage",
    .op = "soft_threshold",
    .attrs = onnx_attrs,
};
const cnr_import_row template_from_caffe = {
    .size = sizeof(cnr_import_row),
    .name = "caffe Shrinkage",
    .summary = "soft_threshold by its default threshold",
    .format = "caffe",
    .type = "Shrinkage",
    .op = "soft_threshold",
};

/* dx = dy where y is not 0 */
static const cnr_port grad_inputs[] = {{.name = "y", .help = "output of soft_threshold"},
                                       {.name = "dy", .help = "its gradient"}};
static const cnr_port grad_outputs[] = {{.name = "dx", .help = "gradient of x"}};

static void apply_grad(const cnr_node *node, const float *y, const float *dy, float *dx,
                       int64_t n) {
    (void)node;
    for (int64_t i = 0; i < n; i++) dx[i] = y[i] != 0.0f ? dy[i] : 0.0f;
}

/* Operands of ELEMENTWISE operators may broadcast if infer lets them; these may not, since
 * apply_range steps through both alike. */
static cnr_status infer_grad(const cnr_node *node, cnr_tensor *const *out, cnr_error *err) {
    const cnr_tensor *y = node->inputs[0], *dy = node->inputs[1];
    int same = y->rank == dy->rank && dy->dtype == y->dtype;
    for (int32_t i = 0; same && i < y->rank; i++)
        same = y->dim[i] == dy->dim[i] || y->dim[i] < 0 || dy->dim[i] < 0;
    if (!same) return template_host->fail(err, CNR_E_SHAPE, node->name, "y and dy must be alike");
    return infer(node, out, err);
}

static cnr_status reference_grad(const cnr_run *run, cnr_error *err) {
    (void)err;
    apply_range(run, apply_grad);
    return CNR_OK;
}

const cnr_op template_soft_threshold_grad = {
    CNR_OP_SIZES,
    .name = "soft_threshold_grad",
    .summary = "gradient of soft_threshold",
    .flags = CNR_OP_ELEMENTWISE | CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_PORTS(grad_inputs, grad_outputs),
    .infer = infer_grad,
    .apply_f32 = apply_grad,
    .reference = reference_grad,
};
