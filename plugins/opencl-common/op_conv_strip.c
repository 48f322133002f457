/* conv with one filter for each channel, on devices whose work-items are loops on a processor:
 * each computes some rows of outputs as whole vectors. */
#include "op_conv.h"

#include "depthwise_strip.cl.h"

enum {
    ROOM = 4096,
    VECTOR = 16
}; /* floats of a strip's copy: it and the sums stay in a first-level cache */

/* Plan of a depthwise convolution by strips. */
typedef struct strip_state {
    const ocl_code *code;
    ocl_chain chain;
    ocl_shape shape;
    /* Rows of outputs; lines of a phase of the strides, elements of a line. */
    int64_t rows, high, wide;
    int32_t has_bias;
} strip_state;

/* Fills s with how the node is cut into strips, and returns NULL; else returns why it cannot be. */
static const char *cut(const cnr_device *device, const cnr_node *node, strip_state *s) {
    const cnr_tensor *weight = cnr_own_input(node, 1);
    ocl_shape *g = &s->shape;
    cnr_window w;
    int64_t phases = 1, reach[2];
    if (!ocl_of(device)->tune->rows) return "for processors";
    if (!weight || weight->rank < 3 || weight->dim[1] != 1 || ocl_conv_group(node) < 2)
        return "a group for each channel is wanted";
    const char *why = ocl_conv_window(node, &w);
    if (why) return why;
    ocl_shape_of(&w, node->inputs[0], node->outputs[0], ocl_conv_group(node), 0, g);
    if (!ocl_is_flat(g)) return "two spatial axes at most";
    for (int32_t i = 0; i < 2; i++) {
        const int64_t k = g->k[i + 1], step = g->stride[i + 1], apart = g->dilation[i + 1];
        phases *= apart == 1 && k < step ? k : step;
        reach[i] = (k - 1) * apart / step;
    }
    s->wide = g->out[2] + reach[1];
    const int64_t lines = (ROOM - VECTOR - reach[1]) / s->wide / phases;
    if (g->k[1] * g->k[2] > 64 || lines <= reach[0]) return "its rows or windows are too large";
    /* as many strips as it takes, all about as high */
    s->rows = cnr_div_up(g->out[1], cnr_div_up(g->out[1], lines - reach[0]));
    s->high = s->rows + reach[0];
    return NULL;
}

/* Takes depthwise convolutions that can be cut into strips. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    strip_state s;
    const char *why = cut(device, node, &s);
    return why ? cnr_refuse(out, why) : ocl_conv_take(node, out, 800);
}

/* Compiles the kernel, and keeps it with what run needs in *state; fails for want of memory, or
 * where the node is not taken. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **out, cnr_error *err) {
    static const ocl_source source = OCL_SOURCE("common/depthwise_strip.cl", depthwise_strip_cl);
    ocl_plan p;
    (void)workspace;
    strip_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    ocl_plan_unless(&p, cut(device, node, s));
    s->has_bias = cnr_own_input(node, 2) != NULL;
    ocl_plan_chain(&p, &s->chain);
    ocl_plan_window(&p, &s->shape);
    ocl_plan_options(&p, "-DROOM=%d ", ROOM);
    ocl_plan_code(&p, &source, "depthwise_strip", &s->code);
    return ocl_plan_end(&p, out);
}

/* Launches the kernel that plan compiled on the run's stream; fails if it can't be queued. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const strip_state *s = run->state;
    const cnr_node *node = run->node;
    const int64_t strip[4] = {s->rows, s->high, s->wide};
    ocl_call call;
    ocl_box box;
    ocl_box_of(run, &s->shape, &box);
    ocl_begin(&call, run->stream, s->code);
    ocl_arg_buffer(&call, &node->inputs[0]->mem);
    ocl_arg_buffer(&call, &node->inputs[1]->mem);
    ocl_arg_buffer(&call, &node->inputs[s->has_bias ? 2 : 0]->mem);
    ocl_arg_buffer(&call, &run->outputs[0]->mem);
    ocl_shape_args(&call, &s->shape, &box, 0, 0, 1, s->has_bias);
    ocl_arg_longs(&call, strip, 4);
    ocl_chain_args(&call, &s->chain, node);
    return ocl_launch(&call, cnr_div_up(box.end[3] - box.begin[3], s->rows),
                      box.end[1] - box.begin[1], box.end[0] - box.begin[0], 1, err);
}

OCL_KERNEL(ocl_conv_strip, "conv_f32_depthwise_strip", "conv", .accepts = accepts, .plan = plan,
           .run = run);
