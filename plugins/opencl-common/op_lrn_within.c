/* lrn_within: local response normalisation round each pixel of a channel. */
#include "support.h"

#include "lrn_within.cl.h"

typedef struct within_state {
    const ocl_code *code;
    ocl_chain chain;
    int64_t high, wide, size, count, each; /* each: elements of a sample */
    double scale, beta, bias;
    int32_t line;
} within_state;

static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const cnr_tensor *x = cnr_own_input(node, 0);
    (void)device;
    if (!x || !ocl_plain(node)) return cnr_refuse(out, OCL_WANTS_F32);
    if (x->rank != 4) return cnr_refuse(out, "two spatial axes are wanted");
    cnr_take(node, out, 500);
    out->epilogue = ocl_chain_accepts(node, x->rank, x->dim);
    out->ranges = 1 << 0;
    return CNR_OK;
}

static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    static const ocl_source source = OCL_SOURCE("common/lrn_within.cl", lrn_within_cl);
    char head[OCL_HEAD_BYTES];
    const cnr_tensor *x = node->inputs[0];
    (void)workspace;
    within_state *s = cnr_state(ocl_host, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    s->high = x->dim[2];
    s->wide = x->dim[3];
    s->count = cnr_count(x);
    s->each = cnr_span(x, 1, x->rank);
    s->size = cnr_attr_int(node, "size");
    s->scale = cnr_attr_float(node, "alpha") / (double)(s->size * s->size);
    s->beta = cnr_attr_float(node, "beta");
    s->bias = cnr_attr_float(node, "bias");
    s->line = ocl_of(device)->tune->line;
    const char *options = s->beta == 0.75 ? "-DTHREE_QUARTERS" : "";
    cnr_status status = ocl_chain_plan(node, &s->chain, head, err);
    if (status == CNR_OK)
        status = ocl_code_get(device, &source, head, options, "lrn_within", &s->code, err);
    if (status == CNR_OK) *state = s;
    else ocl_host->free(s);
    return status;
}

static cnr_status run(const cnr_run *run, cnr_error *err) {
    const within_state *s = run->state;
    const int64_t shape[4] = {s->high, s->wide, s->size / 2};
    const int64_t range[2] = {run->range_axis < 0 ? 0 : run->range_begin * s->each,
                              run->range_axis < 0 ? s->count : run->range_end * s->each};
    const union {
        cl_float f[4];
        cl_int i[4];
    } factors = {{(cl_float)s->scale, (cl_float)s->beta, (cl_float)s->bias, 0}};
    ocl_call call;
    ocl_begin(&call, run->stream, s->code);
    ocl_arg_buffer(&call, &run->node->inputs[0]->mem);
    ocl_arg_buffer(&call, &run->outputs[0]->mem);
    ocl_arg_longs(&call, shape, 4);
    ocl_arg_longs(&call, range, 2);
    ocl_arg_ints(&call, factors.i, 4);
    ocl_chain_args(&call, &s->chain, run->node);
    return ocl_launch(&call, range[1] - range[0], 1, 1, s->line, err);
}

const cnr_kernel ocl_lrn_within = {
    .size = sizeof(cnr_kernel), .version = 1, .name = "lrn_within_f32", .op = "lrn_within",
    .accepts = accepts, .plan = plan, .unplan = ocl_free_state, .run = run};
