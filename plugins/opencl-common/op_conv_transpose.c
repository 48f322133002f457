/* conv_transpose with packed weights. */
#include "op_conv.h"

#include "conv_transpose.cl.h"

/* State of a planned node: program, geometry, epilogue and launch parameters; the packed weights
 * are in the blob. */
typedef struct transpose_state {
    const ocl_code *code;
    ocl_chain chain;
    ocl_shape shape; /* in: x's axes, out: y's */
    int64_t blocks;  /* groups of 4 output channels */
    int32_t line, has_bias;
} transpose_state;

/* Fills s; returns NULL, or why the kernel can't run this node. */
static const char *shape_of(const cnr_node *node, ocl_shape *s) {
    const cnr_tensor *x = cnr_own_input(node, 0), *weight = cnr_own_input(node, 1);
    const cnr_tensor *y = node->outputs[0];
    cnr_window w;
    if (!x || !weight || !ocl_plain(node)) return OCL_WANTS_F32;
    if (x->rank < 3 || x->rank > 2 + CNR_MAX_SPATIAL || weight->rank != x->rank)
        return "ranks differ";
    if (!ocl_weight(weight)) return "the weight changes";
    shape_transposed_window(node, x, y, weight, &w);
    ocl_shape_of(&w, x, y, ocl_conv_group(node), 0, s);
    for (int32_t i = 0; i < 3; i++) {
        const int64_t in = s->in[i];
        s->in[i] = s->out[i];
        s->out[i] = in;
        /* sums of places stay far from what an int holds */
        if (s->out[i] + s->begin[i] + s->k[i] * s->dilation[i] > 1 << 28 ||
            s->begin[i] - s->k[i] * s->dilation[i] < -(1 << 28))
            return "its axes are too large";
    }
    return NULL;
}

/* Takes f32 conv_transpose; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const cnr_tensor *y = node->outputs[0];
    ocl_shape s;
    (void)device;
    const char *why = shape_of(node, &s);
    if (why) return cnr_refuse(out, why);
    cnr_take(node, out, 500);
    out->prepared = 1 << 1;
    out->ranges = 1 << 0 | 1 << 1;
    out->epilogue = ocl_chain_accepts(node, y->rank, y->dim);
    return CNR_OK;
}

static int64_t blocks_of(const cnr_node *node) { return cnr_div_up(node->inputs[1]->dim[1], 4); }

/* Sets out->bytes to the packed weights' size. */
static cnr_status prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err) {
    const cnr_tensor *weight = node->inputs[1];
    (void)device, (void)err;
    out->bytes = (uint64_t)(weight->dim[0] * cnr_span(weight, 2, weight->rank) * blocks_of(node)) *
                 4 * sizeof(float);
    out->memory_class = OCL_BUFFER;
    return CNR_OK;
}

/* Packs the weights into blob. */
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *blob,
                          cnr_error *err) {
    const cnr_tensor *weight = node->inputs[1];
    const int64_t group = ocl_conv_group(node), each = weight->dim[1];
    const int64_t channels = weight->dim[0] / group, taps = cnr_span(weight, 2, weight->rank);
    const float *from = weight->data;
    float *to = blob;
    (void)device, (void)err;
    for (int64_t g = 0; g < group; g++)
        for (int64_t m = 0; m < blocks_of(node) * 4; m += 4)
            for (int64_t tap = 0; tap < taps; tap++)
                for (int64_t c = 0; c < channels; c++)
                    for (int64_t q = m; q < m + 4; q++)
                        *to++ = q < each ? from[((g * channels + c) * each + q) * taps + tap] : 0;
    return CNR_OK;
}

/* Compiles the kernel, and keeps it with what run needs in *state; fails for want of memory, or
 * where the node is not taken. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    static const ocl_source source = OCL_SOURCE("common/conv_transpose.cl", conv_transpose_cl);
    ocl_plan p;
    (void)workspace;
    transpose_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    if (!ocl_plan_unless(&p, shape_of(node, &s->shape))) return ocl_plan_end(&p, state);
    s->blocks = blocks_of(node);
    s->line = ocl_of(device)->tune->line;
    s->has_bias = cnr_own_input(node, 2) != NULL;
    ocl_plan_chain(&p, &s->chain);
    ocl_plan_window(&p, &s->shape);
    ocl_plan_code(&p, &source, "conv_transpose", &s->code);
    return ocl_plan_end(&p, state);
}

/* Launches the kernel that plan compiled on the run's stream (nothing for an empty range); fails if
 * it can't be queued. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const transpose_state *s = run->state;
    const cnr_node *node = run->node;
    const ocl_shape *g = &s->shape;
    int64_t lo[CNR_MAX_RANK], hi[CNR_MAX_RANK];
    cnr_range_of(run, lo, hi);
    const int64_t each = g->m / g->group, last = hi[1] - 1;
    if (lo[1] >= hi[1] || lo[0] >= hi[0]) return CNR_OK;
    const int64_t first = lo[1] / each * s->blocks + lo[1] % each / 4;
    const int64_t blocks = last / each * s->blocks + last % each / 4 + 1 - first;
    const int64_t quads = cnr_div_up(cnr_div_up(g->out[2], g->stride[2]), 4);
    const int64_t shape[16] = {g->c,      g->c / g->group, g->in[0],    g->in[1],    g->in[2],
                               g->out[0], g->out[1],       g->out[2],   g->m,        each,
                               s->blocks, g->begin[0],     g->begin[1], g->begin[2], s->has_bias};
    const int64_t range[8] = {lo[1], hi[1], quads, first, lo[0]};
    ocl_call call;
    ocl_begin(&call, run->stream, s->code);
    ocl_arg_buffer(&call, &node->inputs[0]->mem);
    ocl_arg_buffer(&call, run->blob);
    ocl_arg_buffer(&call, s->has_bias ? &node->inputs[2]->mem : &node->inputs[0]->mem);
    ocl_arg_buffer(&call, &run->outputs[0]->mem);
    ocl_arg_longs(&call, shape, 16);
    ocl_arg_longs(&call, range, 8);
    ocl_chain_args(&call, &s->chain, node);
    return ocl_launch(&call, g->out[0] * g->out[1] * quads * g->stride[2], blocks, hi[0] - lo[0],
                      s->line, err);
}

OCL_KERNEL(ocl_conv_transpose, "conv_transpose_f32", "conv_transpose", .accepts = accepts,
           .prepare_size = prepare_size, .prepare = prepare, .plan = plan, .run = run);
