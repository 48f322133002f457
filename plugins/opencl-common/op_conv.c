/* conv with weights packed in a buffer or an image, with one filter for each channel, or with
 * weights as stored. */
#include "op_conv.h"

#include "conv_packed.cl.h"
#include "conv_plain.cl.h"
#include "depthwise.cl.h"

/* Plan of a convolution. */
typedef struct conv_state {
    const ocl_code *code;
    ocl_chain chain;
    ocl_shape shape;
    int64_t blocks; /* groups of 4 output channels */
    int32_t line, has_bias;
} conv_state;

const char *ocl_conv_window(const cnr_node *node, cnr_window *w) {
    const cnr_tensor *x = cnr_own_input(node, 0), *weight = cnr_own_input(node, 1);
    if (!x || !weight || !ocl_plain(node)) return OCL_WANTS_F32;
    if (x->rank < 3 || weight->rank != x->rank) return "ranks differ";
    return ocl_host->window_resolve(node, x, weight->dim + 2, w);
}

cnr_status ocl_conv_take(const cnr_node *node, cnr_accept *out, int32_t score) {
    cnr_window w;
    const char *why = score > 0 ? ocl_conv_window(node, &w) : "this device is better without";
    if (why) return cnr_refuse(out, why);
    out->epilogue = ocl_chain_accepts(node, node->inputs[0]->rank, node->outputs[0]->dim);
    out->ranges = 1 << 0 | 1 << 1 | 1 << 2;
    return cnr_take(node, out, score);
}

/* Accepts the node for a kernel whose weight prepare packs. */
static cnr_status take_packed(const cnr_node *node, cnr_accept *out, int32_t score) {
    if (!ocl_weight(cnr_own_input(node, 1))) return cnr_refuse(out, "the weight changes");
    out->prepared = 1 << 1;
    return ocl_conv_take(node, out, score);
}

/* ---- packed weights: [group][block of 4][channel in][tap][4] ---- */

/* Blocks of 4 output channels in a group. */
static int64_t blocks_of(const cnr_node *node) {
    return cnr_div_up(node->inputs[1]->dim[0] / ocl_conv_group(node), 4);
}

/* Takes convolutions with packed weights in a buffer. */
static cnr_status accepts_buffer(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    return take_packed(node, out, ocl_of(device)->tune->conv_buffer);
}

/* Takes convolutions with packed weights in an image; for others out->why says why. */
static cnr_status accepts_image(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const ocl_device *d = ocl_of(device);
    if (d->n_memory <= OCL_IMAGE) return cnr_refuse(out, "the device has no images");
    take_packed(node, out, d->tune->conv_image);
    if (out->score > 0 &&
        (ocl_conv_terms(node) > d->memory[OCL_IMAGE].max_width ||
         blocks_of(node) * ocl_conv_group(node) > d->memory[OCL_IMAGE].max_height))
        return cnr_refuse(out, "the weights do not fit an image");
    return CNR_OK;
}

/* Sets out to the size of the packed weights; as an image: width and height in pixels of four
 * floats. */
static cnr_status size_of_weights(const cnr_node *node, int32_t memory_class, cnr_space *out) {
    out->width = ocl_conv_terms(node);
    out->height = blocks_of(node) * ocl_conv_group(node);
    out->bytes = (uint64_t)out->width * (uint64_t)out->height * 4 * sizeof(float);
    out->memory_class = memory_class;
    if (memory_class == OCL_BUFFER) out->width = out->height = 0;
    return CNR_OK;
}

/* Size of the packed weights in a buffer. */
static cnr_status buffer_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                              cnr_error *err) {
    (void)device, (void)err;
    return size_of_weights(node, OCL_BUFFER, out);
}

/* Size of the packed weights in an image. */
static cnr_status image_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                             cnr_error *err) {
    (void)device, (void)err;
    return size_of_weights(node, OCL_IMAGE, out);
}

/* Packs the weights into blob by 4 output channels, padded with zeros. */
static cnr_status pack(const cnr_device *device, const cnr_node *node, void *blob, cnr_error *err) {
    const cnr_tensor *weight = node->inputs[1];
    const int64_t group = ocl_conv_group(node), each = weight->dim[0] / group,
                  k = ocl_conv_terms(node);
    const float *from = weight->data;
    float *to = blob;
    (void)device, (void)err;
    for (int64_t g = 0; g < group; g++)
        for (int64_t b = 0; b < blocks_of(node); b++)
            for (int64_t i = 0; i < k; i++)
                for (int64_t q = 0; q < 4; q++)
                    *to++ = 4 * b + q < each ? from[(g * each + 4 * b + q) * k + i] : 0.0f;
    return CNR_OK;
}

/* ---- planning and running ---- */

/* Plans with further build options beside the window's; options NULL: the kernel gets the window as
 * arguments when it runs. flat: as ocl_shape_of's; how: type of the products. *out receives the
 * state. */
static cnr_status plan_with(const cnr_device *device, const cnr_node *node,
                            const ocl_source *source, const char *kernel, const char *options,
                            int flat, int how, void **out, cnr_error *err) {
    cnr_window w;
    ocl_plan p;
    const char *why = ocl_conv_window(node, &w);
    if (why) return ocl_host->fail(err, CNR_E_SHAPE, node->name, "%s", why);
    conv_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    ocl_shape_of(&w, node->inputs[0], node->outputs[0], ocl_conv_group(node), flat, &s->shape);
    s->blocks = blocks_of(node);
    s->line = ocl_of(device)->tune->line;
    s->has_bias = cnr_own_input(node, 2) != NULL;
    if (options) ocl_plan_window(&p, &s->shape);
    if (options) ocl_plan_options(&p, "%s", options);
    ocl_plan_chain(&p, &s->chain);
    ocl_plan_terms(&p, how);
    ocl_plan_code(&p, source, kernel, &s->code);
    return ocl_plan_end(&p, out);
}

/* Sets the arguments that all kernels have: bias (or any buffer), and sizes. */
static void common_args(ocl_call *call, const cnr_run *run, const conv_state *s) {
    const cnr_node *node = run->node;
    ocl_arg_buffer(call, s->has_bias ? &node->inputs[2]->mem : &node->inputs[0]->mem);
    ocl_arg_buffer(call, &run->outputs[0]->mem);
}

/* The blocks of 4 output channels that hold the range; the last may reach into the next group. */
static void blocks_in(const conv_state *s, const ocl_box *box, int64_t *first, int64_t *end) {
    const int64_t each = s->shape.m / s->shape.group, last = box->end[1] - 1;
    *first = box->begin[1] / each * s->blocks + box->begin[1] % each / 4;
    *end = last / each * s->blocks + last % each / 4 + 1;
}

/* Launches a kernel with packed weights, in a buffer or an image, `wide` columns a work-item. */
static cnr_status run_packed(const cnr_run *run, int image, int64_t wide, cnr_error *err) {
    const conv_state *s = run->state;
    ocl_call call;
    ocl_box box;
    int64_t first, end;
    ocl_box_of(run, &s->shape, &box);
    if (box.begin[1] >= box.end[1]) return CNR_OK;
    blocks_in(s, &box, &first, &end);
    ocl_begin(&call, run->stream, s->code);
    ocl_arg_buffer(&call, &run->node->inputs[0]->mem);
    if (image) ocl_arg_image(&call, run->blob);
    else ocl_arg_buffer(&call, run->blob);
    common_args(&call, run, s);
    ocl_shape_args(&call, &s->shape, &box, s->blocks, first, wide, s->has_bias);
    ocl_chain_args(&call, &s->chain, run->node);
    const int64_t rows = (box.end[2] - box.begin[2]) * (box.end[3] - box.begin[3]);
    return ocl_launch(&call, rows * cnr_div_up(box.end[4] - box.begin[4], wide), end - first,
                      box.end[0] - box.begin[0], s->line, err);
}

/* Launches a kernel with weights as they are, `wide` outputs a work-item; windowed: it was built
 * for its window. */
static cnr_status run_stored(const cnr_run *run, int windowed, int64_t wide, cnr_error *err) {
    const conv_state *s = run->state;
    ocl_call call;
    ocl_box box;
    ocl_box_of(run, &s->shape, &box);
    ocl_begin(&call, run->stream, s->code);
    ocl_arg_buffer(&call, &run->node->inputs[0]->mem);
    ocl_arg_buffer(&call, &run->node->inputs[1]->mem);
    common_args(&call, run, s);
    ocl_shape_args(&call, &s->shape, &box, s->blocks, 0, wide, s->has_bias);
    if (!windowed) ocl_window_args(&call, &s->shape);
    ocl_chain_args(&call, &s->chain, run->node);
    const int64_t rows = (box.end[2] - box.begin[2]) * (box.end[3] - box.begin[3]);
    return ocl_launch(&call, rows * cnr_div_up(box.end[4] - box.begin[4], wide),
                      box.end[1] - box.begin[1], box.end[0] - box.begin[0], s->line, err);
}

/* Defines the plan function of a kernel. */
#define PLAN(name, kernel, options, flat, how) \
    static cnr_status name(const cnr_device *device, const cnr_node *node, cnr_space *workspace, \
                           void **state, cnr_error *err) { \
        static const ocl_source source = OCL_SOURCE("common/" #kernel ".cl", kernel##_cl); \
        (void)workspace; \
        return plan_with(device, node, &source, #kernel, options, flat, how, state, err); \
    }
PLAN(plan_buffer, conv_packed, "", 1, OCL_F32)
PLAN(plan_buffer_half, conv_packed, "", 1, OCL_F16)
PLAN(plan_buffer_math, conv_packed, "", 1, OCL_F16_MATH)
PLAN(plan_image, conv_packed, "-DIMAGE ", 1, OCL_F32)
PLAN(plan_image_math, conv_packed, "-DIMAGE ", 1, OCL_F16_MATH)
PLAN(plan_depthwise, depthwise, "", 0, OCL_F32)
PLAN(plan_plain, conv_plain, NULL, 1, OCL_F32)

/* Launches the kernel with weights in a buffer. */
static cnr_status run_buffer(const cnr_run *run, cnr_error *err) {
    return run_packed(run, 0, 4, err);
}
/* Launches the kernel with weights in an image. */
static cnr_status run_image(const cnr_run *run, cnr_error *err) {
    return run_packed(run, 1, 2, err);
}
/* Launches the depthwise kernel for the run's part, 4 outputs a work-item. */
static cnr_status run_depthwise(const cnr_run *run, cnr_error *err) {
    return run_stored(run, 1, 4, err);
}
/* Launches the plain kernel for the run's part, one output a work-item. */
static cnr_status run_plain(const cnr_run *run, cnr_error *err) {
    return run_stored(run, 0, 1, err);
}

/* Takes depthwise convolutions; for others out->why says why. */
static cnr_status accepts_depthwise(const cnr_device *device, const cnr_node *node,
                                    cnr_accept *out) {
    const cnr_tensor *weight = cnr_own_input(node, 1);
    (void)device;
    if (!weight || weight->rank < 3 || weight->dim[1] != 1 || ocl_conv_group(node) < 2)
        return cnr_refuse(out, "a group for each channel is wanted");
    return ocl_conv_take(node, out, 700);
}

/* Takes any f32 convolution. */
static cnr_status accepts_plain(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    return ocl_conv_take(node, out, 100);
}

OCL_KERNEL(ocl_conv_buffer, "conv_f32_buffer", "conv", .accepts = accepts_buffer,
           .prepare_size = buffer_size, .prepare = pack, .plan = plan_buffer, .run = run_buffer);
OCL_KERNEL(ocl_conv_image, "conv_f32_image", "conv", .accepts = accepts_image,
           .prepare_size = image_size, .prepare = pack, .plan = plan_image, .run = run_image);
OCL_KERNEL(ocl_conv_depthwise, "conv_f32_depthwise", "conv", .accepts = accepts_depthwise,
           .plan = plan_depthwise, .run = run_depthwise);
OCL_KERNEL(ocl_conv_plain, "conv_f32_plain", "conv", .accepts = accepts_plain, .plan = plan_plain,
           .run = run_plain);
OCL_HALF_KERNEL(ocl_conv_buffer_half, ocl_conv_buffer, "conv_f16_buffer", "conv", plan_buffer_half,
                run_buffer)
OCL_HALF_KERNEL(ocl_conv_image_half, ocl_conv_image, "conv_f16_image", "conv", plan_image,
                run_image)
OCL_MATH_KERNEL(ocl_conv_buffer_math, ocl_conv_buffer_half, ocl_conv_buffer, "conv_half_buffer",
                "conv", plan_buffer_math, run_buffer)
OCL_MATH_KERNEL(ocl_conv_image_math, ocl_conv_image_half, ocl_conv_image, "conv_half_image", "conv",
                plan_image_math, run_image)
