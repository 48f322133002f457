/* lrn: local response normalisation across channels. */
#include "support.h"

#include "lrn.cl.h"

typedef struct lrn_state {
    const ocl_code *code;
    ocl_chain chain;
    int64_t n, channels, inner, size;
    double scale, beta, bias;
    int32_t line;
} lrn_state;

static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    if (!cnr_own_input(node, 0) || !ocl_plain(node)) return cnr_refuse(out, OCL_WANTS_F32);
    if (node->inputs[0]->rank < 2) return cnr_refuse(out, "channels are wanted");
    cnr_take(node, out, 500);
    out->epilogue = ocl_chain_accepts(node, node->inputs[0]->rank, node->outputs[0]->dim);
    out->ranges = 1 << 0 | 1 << 1;
    return CNR_OK;
}

static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    static const ocl_source source = OCL_SOURCE("common/lrn.cl", lrn_cl);
    char head[OCL_HEAD_BYTES];
    const cnr_tensor *x = node->inputs[0];
    (void)workspace;
    lrn_state *s = cnr_state(ocl_host, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    s->n = x->dim[0];
    s->channels = x->dim[1];
    s->inner = cnr_span(x, 2, x->rank);
    s->size = cnr_attr_int(node, "size");
    s->scale = cnr_attr_float(node, "alpha") / (double)s->size;
    s->beta = cnr_attr_float(node, "beta");
    s->bias = cnr_attr_float(node, "bias");
    s->line = ocl_of(device)->tune->line;
    cnr_status status = ocl_chain_plan(node, &s->chain, head, err);
    if (status == CNR_OK) {
        /* of a base below 0 pow makes NaN, and so do roots */
        const char *options = s->beta == 0.75 ? "-DTHREE_QUARTERS" : "";
        status = ocl_code_get(device, &source, head, options, "lrn", &s->code, err);
    }
    if (status == CNR_OK) *state = s;
    else ocl_host->free(s);
    return status;
}

static cnr_status run(const cnr_run *run, cnr_error *err) {
    const lrn_state *s = run->state;
    int64_t begin[2] = {0, 0}, end[2] = {s->n, s->channels};
    if (run->range_axis >= 0) {
        begin[run->range_axis] = run->range_begin;
        end[run->range_axis] = run->range_end;
    }
    const cl_int shape[8] = {(cl_int)s->inner, (cl_int)s->channels, (cl_int)((s->size - 1) / 2),
                             (cl_int)(s->size / 2), (cl_int)begin[1], (cl_int)begin[0]};
    const union {
        cl_float f[4];
        cl_int i[4];
    } factors = {{(cl_float)s->scale, (cl_float)s->beta, (cl_float)s->bias, 0}};
    ocl_call call;
    ocl_begin(&call, run->stream, s->code);
    ocl_arg_buffer(&call, &run->node->inputs[0]->mem);
    ocl_arg_buffer(&call, &run->outputs[0]->mem);
    ocl_arg_ints(&call, shape, 8);
    ocl_arg_ints(&call, factors.i, 4);
    ocl_chain_args(&call, &s->chain, run->node);
    return ocl_launch(&call, s->inner, end[1] - begin[1], end[0] - begin[0], s->line, err);
}

const cnr_kernel ocl_lrn = {
    .size = sizeof(cnr_kernel), .version = 1, .name = "lrn_f32", .op = "lrn", .accepts = accepts,
    .plan = plan, .unplan = ocl_free_state, .run = run};
