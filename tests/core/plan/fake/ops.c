/* Made-up operators, each with one trait that planning must heed. */
#include "fake.h"
#include <cnnrun/half.h>

static const float *f32(const cnr_tensor *t) { return (const float *)t->data; }

/* Method infer: the output is like the input. */
static cnr_status like_input(const cnr_node *node, cnr_tensor *const *out, cnr_error *err) {
    (void)err;
    out[0]->dtype = node->inputs[0]->dtype;
    out[0]->rank = node->inputs[0]->rank;
    memcpy(out[0]->dim, node->inputs[0]->dim, sizeof out[0]->dim);
    return CNR_OK;
}

/* ---- f_affine: element by element; its reference keeps to ranges ---- */

static const cnr_attr_spec affine_attrs[] =
    {{.name = "a", .type = CNR_ATTR_FLOAT, .default_f = 1, .help = "factor"},
     {.name = "b", .type = CNR_ATTR_FLOAT, .help = "summand"}};
static const cnr_port one_in[] = {{.name = "x", .help = "any"}};
static const cnr_port two_in[] = {{.name = "x", .help = "any"}, {.name = "y", .help = "alike"}};
static const cnr_port many_in[] = {
    {.name = "x", .flags = CNR_PORT_VARIADIC, .min = 1, .help = "any"}};
static const cnr_port one_out[] = {{.name = "out", .help = "result"}};
static const cnr_port two_out[] = {{.name = "a", .help = "half"}, {.name = "b", .help = "half"}};

/* out = a x + b for n elements, with the node's a and b. */
static void affine_f32(const cnr_node *node, const float *x, const float *y, float *out,
                       int64_t n) {
    const float a = (float)cnr_attr_float(node, "a"), b = (float)cnr_attr_float(node, "b");
    (void)y;
    for (int64_t i = 0; i < n; i++) out[i] = a * x[i] + b;
}

/* Method reference of the affine operator. */
static cnr_status affine_reference(const cnr_run *run, cnr_error *err) {
    (void)err;
    const cnr_tensor *x = run->node->inputs[0];
    const int32_t axis = run->range_axis;
    const int64_t inner = axis < 0 ? cnr_count(x) : cnr_span(x, axis + 1, x->rank);
    const int64_t outer = axis < 0 ? 1 : cnr_span(x, 0, axis), dim = axis < 0 ? 1 : x->dim[axis];
    const int64_t begin = axis < 0 ? 0 : run->range_begin, end = axis < 0 ? 1 : run->range_end;
    for (int64_t i = 0; i < outer; i++) {
        const int64_t at = (i * dim + begin) * inner;
        affine_f32(run->node, f32(x) + at, NULL, (float *)run->outputs[0]->data + at,
                   (end - begin) * inner);
    }
    return CNR_OK;
}

/* ---- f_sum: two operands alike ---- */

/* Method infer of the sum: like input 0; CNR_E_SHAPE unless both have one shape. */
static cnr_status sum_infer(const cnr_node *node, cnr_tensor *const *out, cnr_error *err) {
    if (!cnr_same_shape(node->inputs[0], node->inputs[1]))
        return fake_host->fail(err, CNR_E_SHAPE, node->name, "want operands alike");
    return like_input(node, out, err);
}

/* out = x + y for n elements. */
static void sum_f32(const cnr_node *node, const float *x, const float *y, float *out, int64_t n) {
    (void)node;
    for (int64_t i = 0; i < n; i++) out[i] = x[i] + y[i];
}

/* Method reference of the sum of inputs 0 and 1, element by element; returns CNR_OK. */
static cnr_status sum_reference(const cnr_run *run, cnr_error *err) {
    (void)err;
    const cnr_tensor *x = run->node->inputs[0];
    sum_f32(run->node, f32(x), f32(run->node->inputs[1]), (float *)run->outputs[0]->data,
            cnr_count(x));
    return CNR_OK;
}

/* ---- f_blur: N C H W, weights by channel, each row with its neighbours ---- */

static const cnr_port blur_in[] = {{.name = "x", .help = "N C H W"},
                                   {.name = "weight", .flags = CNR_PORT_PARAMETER, .help = "C"}};

/* Method split_axes of the blur: channels and rows; returns 2, or 0 if max is below 2. */
static int32_t blur_split(const cnr_node *node, cnr_split_axis *out, int32_t max) {
    (void)node;
    if (max < 2) return 0;
    out[0] = (cnr_split_axis){1, 1};
    out[1] = (cnr_split_axis){2, 2};
    return 2;
}

/* Method region of the blur: a row more at either side. */
static void blur_region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end,
                        int32_t port, cnr_input_range *out) {
    (void)node;
    if (port != 0)
        *out = axis == 1 ? (cnr_input_range){0, begin, end} : (cnr_input_range){-1, 0, 0};
    else if (axis == 1) *out = (cnr_input_range){1, begin, end};
    else *out = (cnr_input_range){2, begin - 1, end + 1};
}

/* Method cost of the blur: 3 products an element. */
static void blur_cost(const cnr_node *node, cnr_cost *out) {
    out->macs = 3 * (uint64_t)cnr_count(node->outputs[0]);
}

/* Method reference of the blur. */
static cnr_status blur_reference(const cnr_run *run, cnr_error *err) {
    (void)err;
    const cnr_tensor *x = run->node->inputs[0];
    const int64_t c = x->dim[1], h = x->dim[2], w = x->dim[3];
    const float *in = f32(x), *weight = f32(run->node->inputs[1]);
    float *out = (float *)run->outputs[0]->data;
    for (int64_t p = 0; p < x->dim[0] * c; p++, in += h * w, out += h * w)
        for (int64_t y = 0; y < h; y++)
            for (int64_t i = 0; i < w; i++) {
                double sum = 2.0 * in[y * w + i];
                if (y > 0) sum += in[(y - 1) * w + i];
                if (y + 1 < h) sum += in[(y + 1) * w + i];
                out[y * w + i] = (float)(weight[p % c] * sum);
            }
    return CNR_OK;
}

/* ---- f_join (axis 0), f_view (flat), f_cut (halves on axis 0) ---- */

/* Method infer of the join: like input 0, with the sizes of axis 0 added. */
static cnr_status join_infer(const cnr_node *node, cnr_tensor *const *out, cnr_error *err) {
    like_input(node, out, err);
    for (int32_t i = 1; i < node->n_inputs; i++) out[0]->dim[0] += node->inputs[i]->dim[0];
    return CNR_OK;
}

/* Method aliases of the join: inputs are parts of the output. */
static int32_t join_aliases(const cnr_node *node, cnr_alias *out, int32_t max) {
    uint64_t at = 0;
    if (node->n_inputs > max) return 0;
    for (int32_t i = 0; i < node->n_inputs; i++) {
        out[i] = (cnr_alias){CNR_ALIAS_JOIN, i, 0, at};
        at += (uint64_t)cnr_count(node->inputs[i]);
    }
    return node->n_inputs;
}

/* Method reference of the join: the inputs one behind the other along axis 0; returns CNR_OK. */
static cnr_status join_reference(const cnr_run *run, cnr_error *err) {
    (void)err;
    float *out = (float *)run->outputs[0]->data;
    for (int32_t i = 0; i < run->node->n_inputs; i++) {
        const int64_t n = cnr_count(run->node->inputs[i]);
        memcpy(out, run->node->inputs[i]->data, (size_t)n * sizeof *out);
        out += n;
    }
    return CNR_OK;
}

/* Method infer of the view: one axis of all elements. */
static cnr_status view_infer(const cnr_node *node, cnr_tensor *const *out, cnr_error *err) {
    (void)err;
    out[0]->dtype = node->inputs[0]->dtype;
    out[0]->rank = 1;
    out[0]->dim[0] = cnr_count(node->inputs[0]);
    return CNR_OK;
}

/* Method aliases of the view: the input itself. */
static int32_t view_aliases(const cnr_node *node, cnr_alias *out, int32_t max) {
    (void)node;
    if (max > 0) out[0] = (cnr_alias){CNR_ALIAS_VIEW, 0, 0, 0};
    return max > 0;
}

/* Method infer of the cut: two outputs like the input, with half of axis 0 each. */
static cnr_status cut_infer(const cnr_node *node, cnr_tensor *const *out, cnr_error *err) {
    for (int32_t i = 0; i < 2; i++) {
        like_input(node, &out[i], err);
        out[i]->dim[0] /= 2;
    }
    return CNR_OK;
}

/* Method aliases of the cut: outputs are parts of the input. */
static int32_t cut_aliases(const cnr_node *node, cnr_alias *out, int32_t max) {
    if (max < 2) return 0;
    out[0] = (cnr_alias){CNR_ALIAS_VIEW, 0, 0, 0};
    out[1] = (cnr_alias){CNR_ALIAS_VIEW, 0, 1, (uint64_t)cnr_count(node->inputs[0]) / 2};
    return 2;
}

/* Method reference of the cut: the input's first half to output 0, its second to output 1. */
static cnr_status cut_reference(const cnr_run *run, cnr_error *err) {
    (void)err;
    const int64_t n = cnr_count(run->outputs[0]);
    memcpy(run->outputs[0]->data, run->node->inputs[0]->data, (size_t)n * 4);
    memcpy(run->outputs[1]->data, f32(run->node->inputs[0]) + n, (size_t)n * 4);
    return CNR_OK;
}

/* ---- f_some: the positive elements, known when it runs; f_wait: runs until it is cancelled;
 * f_fail: its device fails ---- */

/* Method reference that fails. */
static cnr_status fail_reference(const cnr_run *run, cnr_error *err) {
    return fake_host->fail(err, CNR_E_DEVICE, run->node->name, "fails");
}

/* Method infer of an output of unknown size: one axis, at most all elements. */
static cnr_status some_infer(const cnr_node *node, cnr_tensor *const *out, cnr_error *err) {
    view_infer(node, out, err);
    out[0]->flags |= CNR_TENSOR_DYNAMIC;
    return CNR_OK;
}

/* Method reference of that output. */
static cnr_status some_reference(const cnr_run *run, cnr_error *err) {
    (void)err;
    const float *in = f32(run->node->inputs[0]);
    float *out = (float *)run->outputs[0]->data;
    int64_t n = 0;
    for (int64_t i = 0, all = cnr_count(run->node->inputs[0]); i < all; i++)
        if (in[i] > 0) out[n++] = in[i];
    run->outputs[0]->dim[0] = n;
    return CNR_OK;
}

/* Method reference that waits until it is stopped. */
static cnr_status wait_reference(const cnr_run *run, cnr_error *err) {
    (void)err;
    while (!__atomic_load_n(run->stream->cancel, __ATOMIC_RELAXED)) {}
    return affine_reference(run, err);
}

/* First fields of an operator. */
#define HEAD(text) \
    .size = sizeof(cnr_op), .version = 1, .name = text, .summary = "made up", \
    .attr_spec_size = sizeof(cnr_attr_spec), .port_size = sizeof(cnr_port)
/* Ports of an operator. */
#define PORTS(in, out) \
    .n_inputs = sizeof in / sizeof in[0], .inputs = in, .n_outputs = sizeof out / sizeof out[0], \
    .outputs = out

const cnr_op fake_ops[] =
    {{HEAD("f_affine"), PORTS(one_in, one_out), .n_attrs = 2, .attrs = affine_attrs,
      .flags = CNR_OP_ELEMENTWISE | CNR_OP_EPILOGUE | CNR_OP_RANGES, .infer = like_input,
      .apply_f32 = affine_f32, .reference = affine_reference},
     {HEAD("f_sum"), PORTS(two_in, one_out), .flags = CNR_OP_ELEMENTWISE | CNR_OP_EPILOGUE,
      .infer = sum_infer, .apply_f32 = sum_f32, .reference = sum_reference},
     {HEAD("f_blur"), PORTS(blur_in, one_out), .infer = like_input, .split_axes = blur_split,
      .input_range = blur_region, .cost = blur_cost, .reference = blur_reference},
     {HEAD("f_join"), PORTS(many_in, one_out), .infer = join_infer, .buffer_aliases = join_aliases,
      .reference = join_reference},
     {HEAD("f_view"), PORTS(one_in, one_out), .infer = view_infer, .buffer_aliases = view_aliases,
      .reference = join_reference},
     {HEAD("f_cut"), PORTS(one_in, two_out), .infer = cut_infer, .buffer_aliases = cut_aliases,
      .reference = cut_reference},
     {HEAD("f_some"), PORTS(one_in, one_out), .infer = some_infer, .reference = some_reference},
     {HEAD("f_fail"), PORTS(one_in, one_out), .infer = like_input, .reference = fail_reference},
     {HEAD("f_wait"), PORTS(one_in, one_out), .n_attrs = 2, .attrs = affine_attrs,
      .infer = like_input, .reference = wait_reference}};
const int32_t fake_n_ops = sizeof fake_ops / sizeof fake_ops[0];

/* ---- an encoding that the kernels cannot read ---- */

/* Method encode_size of halves: *bytes are two for each element. */
static cnr_status halves_size(const cnr_tensor *dense, const cnr_attr *const *attrs,
                              uint64_t *bytes, cnr_error *err) {
    (void)attrs;
    (void)err;
    *bytes = (uint64_t)cnr_count(dense) * 2;
    return CNR_OK;
}

/* Method encode of halves: the numbers as f16. */
static cnr_status halves_encode(const cnr_tensor *dense, const cnr_attr *const *attrs, void *out,
                                uint64_t bytes, cnr_error *err) {
    (void)attrs;
    (void)err;
    for (uint64_t i = 0; i < bytes / 2; i++) ((uint16_t *)out)[i] = cnr_f32_to_f16(f32(dense)[i]);
    return CNR_OK;
}

/* Method check of halves: does nothing and returns CNR_OK. */
static cnr_status halves_check(const cnr_tensor *encoded, cnr_error *err) {
    (void)encoded;
    (void)err;
    return CNR_OK;
}

/* Method decode of halves: the numbers as f32. */
static cnr_status halves_decode(const cnr_tensor *encoded, void *dense, cnr_error *err) {
    (void)err;
    for (int64_t i = 0; i < cnr_count(encoded); i++)
        ((float *)dense)[i] = cnr_f16_to_f32(((const uint16_t *)encoded->data)[i]);
    return CNR_OK;
}

const cnr_encoding fake_halves = {.size = sizeof(cnr_encoding),
                                  .version = 1,
                                  .name = "f_halves",
                                  .summary = "for tests",
                                  .attr_spec_size = sizeof(cnr_attr_spec),
                                  .encode_size = halves_size,
                                  .encode = halves_encode,
                                  .check = halves_check,
                                  .decode = halves_decode};
