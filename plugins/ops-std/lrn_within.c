/* lrn_within: local response normalisation within a channel (Caffe's WITHIN_CHANNEL). */
#include "ops_norm.h"
#include "ops_window.h"

static const cnr_attr_spec attrs[] =
    {{.name = "size",
      .type = CNR_ATTR_INT,
      .flags = CNR_ATTR_REQUIRED | CNR_ATTR_BOUNDED,
      .min = 1,
      .max = (1 << 20) - 1,
      .help = "extent of the window along each spatial axis, odd"},
     {.name = "alpha", .type = CNR_ATTR_FLOAT, .default_f = 1, .help = "scales the mean square"},
     {.name = "beta", .type = CNR_ATTR_FLOAT, .default_f = 0.75, .help = "the power"},
     {.name = "bias",
      .type = CNR_ATTR_FLOAT,
      .alias = "k",
      .default_f = 1,
      .help = "added before the power"}};
static const cnr_port in[] = {{.name = "x", .help = "N C and one to three spatial axes"}};
static const cnr_port out[] = {{.name = "y", .help = "the same shape"}};
static const cnr_port grad_ports[] = {{.name = "dy", .help = "gradient of the output"},
                                      {.name = "x", .help = "the input"}};
static const cnr_port grad_out_ports[] = {{.name = "dx", .help = "gradient of x"}};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    CNR_TRY(ops_want(node, 0, OPS_FLOATS, 3, 2 + CNR_MAX_SPATIAL, err));
    if (cnr_attr_int(node, "size") % 2 == 0)
        return ops_fail(err, CNR_E_ARG, node, "size: want an odd number");
    ops_like(outputs[0], node->inputs[0]);
    if (node->desc->n_inputs < 2) return CNR_OK;
    CNR_TRY(ops_want(node, 1, OPS_FLOATS, 3, 2 + CNR_MAX_SPATIAL, err));
    return ops_want_shape(node, 1, outputs[0]->dtype, outputs[0]->rank, outputs[0]->dim, err);
}

/* The window as that of a pooling: stride 1, padding of half its size. */
static void geometry(const cnr_run *run, ops_geometry *g) {
    const cnr_tensor *x = run->node->inputs[0];
    const int64_t size = cnr_attr_int(run->node, "size");
    cnr_window w = {.spatial = x->rank - 2};
    for (int32_t i = 0; i < w.spatial; i++) {
        w.in[i] = w.out[i] = x->dim[2 + i];
        w.kernel[i] = size;
        w.stride[i] = w.dilation[i] = 1;
        w.pad_begin[i] = w.pad_end[i] = size / 2;
    }
    ops_geometry_of(&w, x, run, g);
}

/* Method cost: counts the arithmetic operations of a run. */
static void cost(const cnr_node *node, cnr_cost *c) {
    uint64_t taps = 1;
    for (int32_t i = 2; i < node->outputs[0]->rank; i++)
        taps = ops_mul(taps, (uint64_t)cnr_attr_int(node, "size"));
    c->flops = ops_mul(ops_elements(node->outputs[0]), taps + 4);
}

/* Method region: *r receives the part of input `port` that [begin, end) of the output's axis
 * needs; axis -1: all. */
static void region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                   cnr_input_range *r) {
    const int64_t half = cnr_attr_int(node, "size") / 2;
    (void)port;
    *r = (cnr_input_range){axis, begin, end};
    if (axis < 2) return;
    r->begin = begin > half ? begin - half : 0;
    r->end = end < node->outputs[0]->dim[axis] - half ? end + half : node->outputs[0]->dim[axis];
}

/* bias + alpha * mean of the squares, with padding counted as zeros. */
OPS_INLINE double base(const cnr_node *node, const ops_geometry *g, int32_t dtype, const void *x,
                       int64_t plane, const int64_t *o) {
    double sum = 0;
    OPS_EACH_TAP(g, o, index, {
        const double v = ops_get(dtype, x, plane + index);
        sum += v * v;
    });
    return cnr_attr_float(node, "bias") +
           cnr_attr_float(node, "alpha") * ops_flushed(dtype, sum) / ops_average_divisor(g, 1, o);
}

OPS_INLINE void body(const cnr_run *run, const ops_geometry *g, int32_t dtype) {
    const void *x = run->node->inputs[0]->data;
    const double beta = cnr_attr_float(run->node, "beta");
    int64_t o[3];
    for (int64_t n = g->lo[0]; n < g->hi[0]; n++)
        for (int64_t c = g->lo[1]; c < g->hi[1]; c++) {
            const int64_t plane = (n * g->c + c) * ops_volume(g->in);
            if (ops_cancelled(run)) return;
            for (o[0] = g->lo[2]; o[0] < g->hi[2]; o[0]++)
                for (o[1] = g->lo[3]; o[1] < g->hi[3]; o[1]++)
                    for (o[2] = g->lo[4]; o[2] < g->hi[4]; o[2]++) {
                        const int64_t at = plane + (o[0] * g->in[1] + o[1]) * g->in[2] + o[2];
                        ops_put(dtype, run->outputs[0]->data, at,
                                ops_get(dtype, x, at) /
                                    pow(base(run->node, g, dtype, x, plane, o), beta));
                    }
        }
}

/* As in lrn_grad. Windows are symmetric: the windows that contain a pixel are those of the pixels
 * in its window. Two passes: first dy * x * base^(-beta - 1) of the whole plane, then its sums. */
OPS_INLINE void grad_body(const cnr_run *run, const ops_geometry *g, int32_t dtype) {
    const void *dy = run->node->inputs[0]->data, *x = run->node->inputs[1]->data;
    const double beta = cnr_attr_float(run->node, "beta");
    const double scale = 2 * beta * cnr_attr_float(run->node, "alpha");
    const int64_t volume = ops_volume(g->in);
    double *term = run->workspace_data;
    int64_t o[3];
    for (int64_t n = g->lo[0]; n < g->hi[0]; n++)
        for (int64_t c = g->lo[1]; c < g->hi[1]; c++) {
            const int64_t plane = (n * g->c + c) * volume;
            if (ops_cancelled(run)) return;
            for (int pass = 0; pass < 2; pass++)
                for (int64_t i = 0; i < volume; i++) {
                    o[0] = i / g->in[2] / g->in[1];
                    o[1] = i / g->in[2] % g->in[1];
                    o[2] = i % g->in[2];
                    const double b = base(run->node, g, dtype, x, plane, o);
                    const double d = ops_get(dtype, dy, plane + i);
                    const double v = ops_get(dtype, x, plane + i);
                    if (pass == 0) {
                        term[i] = d * v * pow(b, -beta - 1) / ops_average_divisor(g, 1, o);
                        continue;
                    }
                    double sum = 0;
                    OPS_EACH_TAP(g, o, index, sum += term[index]);
                    ops_put(dtype, run->outputs[0]->data, plane + i,
                            d * pow(b, -beta) - scale * v * sum);
                }
        }
}

/* Method reference of lrn_within: x / (bias + alpha * mean square of a window in its channel) ^
 * beta (Caffe); returns CNR_OK. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    ops_geometry g;
    (void)err;
    geometry(run, &g);
    OPS_SPECIALISE(run->outputs[0]->dtype, body(run, &g, dtype));
    return CNR_OK;
}

/* Method reference of lrn_within_grad: the gradient of lrn_within's input; lrn_within's own
 * attributes; returns CNR_OK. */
static cnr_status grad_reference(const cnr_run *run, cnr_error *err) {
    ops_geometry g;
    (void)err;
    geometry(run, &g);
    OPS_SPECIALISE(run->outputs[0]->dtype, grad_body(run, &g, dtype));
    return CNR_OK;
}

/* Method gradient: adds a node lrn_within_grad that computes the wanted gradient of the input. */
static cnr_status gradient(OPS_GRADIENT_ARGS) {
    return ops_grad_of_input("lrn_within_grad", host, graph, node, inputs, outputs, grad_out, want,
                             grad_in, err);
}

const cnr_op ops_lrn_within = {
    CNR_OP_SIZES,
    .name = "lrn_within",
    .summary = "x / (bias + alpha * mean square of a window in its channel) ^ beta (Caffe).",
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = cost,
    .split_axes = ops_split_all,
    .input_range = region,
    .gradient = gradient,
    .reference = reference,
};

const cnr_op ops_lrn_within_grad = {
    CNR_OP_SIZES,
    .name = "lrn_within_grad",
    .summary = "The gradient of lrn_within's input; lrn_within's own attributes.",
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(grad_ports, grad_out_ports),
    .infer = infer,
    .cost = cost,
    .split_axes = ops_split_two,
    .input_range = ops_region_every,
    .reference = grad_reference,
    .reference_workspace = ops_plane_workspace,
};
