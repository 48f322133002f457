/* conv as W18 computes it: im2col (algorithm 3.4), then a product (3.2 or 3.3), sample by sample.
 */
#include "documents.h"

/* What plan keeps for run: the codes of columns and product, the window, and channels of a
 * group. */
typedef struct conv_state {
    const ocl_code *columns, *product;
    documents_window w;
    int64_t channels, outputs, group; /* of one group */
} conv_state;

/* Why the kernels cannot do the node, or NULL; *s receives its sizes. */
static const char *unfit(const cnr_node *node, conv_state *s) {
    const cnr_tensor *x = node->inputs[0], *weight = node->inputs[1];
    cnr_window own;
    if (!ocl_plain(node)) return OCL_WANTS_F32;
    if (x->rank != 4 || ocl_host->window_resolve(node, x, weight->dim + 2, &own) ||
        !documents_window_of(&own, &s->w))
        return "two spatial axes without dilation are wanted";
    s->group = cnr_attr_int(node, "group");
    s->channels = weight->dim[1];
    s->outputs = weight->dim[0] / s->group;
    const int64_t taps = s->channels * s->w.kernel[0] * s->w.kernel[1];
    return taps > INT32_MAX / (s->w.out[0] * s->w.out[1]) ? "its columns are too many" : NULL;
}

/* Takes convolutions of f32 that the kernels can do on the device. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    conv_state s;
    return documents_answer(device, node, unfit(node, &s), out);
}

/* Finds the codes that lay windows out in columns and that multiply (`product`) */
static cnr_status plan_as(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                          void **state, const char *product, cnr_error *err) {
    ocl_plan p;
    conv_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    ocl_plan_unless(&p, unfit(node, s));
    ocl_plan_code(&p, &documents_w18_source, "im2col", &s->columns);
    ocl_plan_code(&p, &documents_w18_source, product, &s->product);
    workspace->bytes =
        (uint64_t)(s->channels * s->w.kernel[0] * s->w.kernel[1] * s->w.out[0] * s->w.out[1]) *
        sizeof(float);
    return ocl_plan_end(&p, state);
}

OCL_PLAN(plan_scalar, plan_as(device, node, workspace, state, "product_scalar", err))
OCL_PLAN(plan_dot, plan_as(device, node, workspace, state, "product_dot", err))

/* A part of a memory, from that f32 element on; not to be freed. */
static cnr_mem part(const cnr_mem *mem, int64_t element) {
    cnr_mem m = *mem;
    m.offset += (uint64_t)element * sizeof(float);
    return m;
}

/* Queues one group of one sample: its columns, then the product. */
static cnr_status run_group(const cnr_run *run, int64_t sample, int64_t group, cnr_error *err) {
    const conv_state *s = run->state;
    const cnr_node *node = run->node;
    const cnr_tensor *bias = cnr_own_input(node, 2);
    const int64_t taps = s->channels * s->w.kernel[0] * s->w.kernel[1];
    const int64_t places = s->w.out[0] * s->w.out[1], at = sample * s->group + group;
    const cnr_mem x = part(&node->inputs[0]->mem, at * s->channels * s->w.in[0] * s->w.in[1]);
    const cnr_mem weight = part(&node->inputs[1]->mem, group * s->outputs * taps);
    const cnr_mem y = part(&run->outputs[0]->mem, at * s->outputs * places);
    const cnr_mem add = bias ? part(&bias->mem, group * s->outputs) : weight;
    const documents_product p = {.left = &weight,
                                 .right = run->workspace,
                                 .bias = bias ? &add : NULL,
                                 .result = &y,
                                 .rows = s->outputs,
                                 .columns = places,
                                 .inner = taps,
                                 .right_row = places,
                                 .right_column = 1,
                                 .result_row = places,
                                 .result_column = 1,
                                 .bias_row = 1};
    CNR_TRY(documents_windows_run(run->stream, s->columns, &s->w, &x, run->workspace, s->channels,
                                  err));
    return documents_product_run(run->stream, s->product, &p, err);
}

/* Method run: queues the code over the run's range on its stream. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const conv_state *s = run->state;
    for (int64_t n = 0; n < run->node->inputs[0]->dim[0]; n++)
        for (int64_t g = 0; g < s->group; g++) CNR_TRY(run_group(run, n, g, err));
    return CNR_OK;
}

DOCUMENTS_KERNEL(documents_w18_conv_scalar, "conv_f32_w18_scalar", "conv", .accepts = accepts,
                 .plan = plan_scalar, .run = run);
DOCUMENTS_KERNEL(documents_w18_conv_dot, "conv_f32_w18_dot", "conv", .accepts = accepts,
                 .plan = plan_dot, .run = run);
