/* fake_quantize: numbers as whole numbers of 8 bits would hold them, still as floats. Training with
 * it prepares a net for quantisation (Jacob et al., "Quantization and Training of Neural Networks
 * for Efficient Integer-Arithmetic-Only Inference", 2018). */
#include "ops_kit.h"

static const cnr_port in[] = {{.name = "x", .help = "any shape"}};
static const cnr_port out[] = {{.name = "y", .help = "the shape of x"}};
static const cnr_attr_spec attrs[] =
    {{.name = "step",
      .type = CNR_ATTR_FLOAT,
      .flags = CNR_ATTR_BOUNDED,
      .min = 0,
      .max = 1e30,
      .help = "between two of the 256 values; 0: of each slice, 1/127 of its largest magnitude"},
     {.name = "low", .type = CNR_ATTR_FLOAT, .help = "the least value, with a step"},
     {.name = "axis",
      .type = CNR_ATTR_INT,
      .flags = CNR_ATTR_BOUNDED,
      .min = 0,
      .max = CNR_MAX_RANK - 1,
      .help = "the axis of slices, without a step"}};

enum { MOST = 255, MOST_SIGNED = 127 };

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    CNR_TRY(ops_want(node, 0, 1u << CNR_f32, 0, CNR_MAX_RANK, err));
    const cnr_tensor *x = node->inputs[0];
    if (cnr_attr_float(node, "step") == 0 && cnr_attr_int(node, "axis") >= x->rank)
        return ops_fail(err, CNR_E_ARG, node, "axis: want one below %d", (int)x->rank);
    ops_like(outputs[0], x);
    return CNR_OK;
}

/* y: n numbers rounded to steps of `scale` from `low` on; what is no number stays so. */
static void round_all(const float *x, float *y, int64_t n, float scale, float low) {
    for (int64_t i = 0; i < n; i++) {
        const float step = rintf((x[i] - low) / scale);
        const float held = step < 0 ? 0 : step > MOST ? (float)MOST : step;
        y[i] = held == held ? held * scale + low : x[i];
    }
}

/* The largest of so_far and the absolute values of n elements; NaN is passed over. */
static float largest_of(const float *x, int64_t n, float so_far) {
    for (int64_t i = 0; i < n; i++) so_far = fabsf(x[i]) > so_far ? fabsf(x[i]) : so_far;
    return so_far;
}

/* Rounds n elements to whole multiples of scale; scale 0: copies. */
static void round_slice(const float *x, float *y, int64_t n, float scale) {
    for (int64_t i = 0; i < n; i++) y[i] = scale > 0 ? rintf(x[i] / scale) * scale : x[i];
}

/* Rounds each slice along `axis` by a scale from its own largest value. */
static void round_slices(const cnr_tensor *x, float *y, int32_t axis) {
    const float *from = x->data;
    const int64_t outer = cnr_span(x, 0, axis), inner = cnr_span(x, axis + 1, x->rank);
    for (int64_t c = 0; c < x->dim[axis]; c++) {
        float largest = 0;
        for (int64_t o = 0; o < outer; o++)
            largest = largest_of(from + (o * x->dim[axis] + c) * inner, inner, largest);
        for (int64_t o = 0; o < outer; o++) {
            const int64_t at = (o * x->dim[axis] + c) * inner;
            round_slice(from + at, y + at, inner, largest / MOST_SIGNED);
        }
    }
}

/* Method reference of fake_quantize: round((x - low) / step), limited to 0 to 255, times step, plus
 * low; without a step, each slice of the axis in steps of 1/127 of its largest magnitude. The
 * gradient passes where x is within the range; returns CNR_OK. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0];
    const float scale = (float)cnr_attr_float(run->node, "step");
    (void)err;
    if (scale > 0)
        round_all(x->data, run->outputs[0]->data, cnr_count(x), scale,
                  (float)cnr_attr_float(run->node, "low"));
    else round_slices(x, run->outputs[0]->data, (int32_t)cnr_attr_int(run->node, "axis"));
    return CNR_OK;
}

/* Method cost: counts the arithmetic operations of a run. */
static void cost(const cnr_node *node, cnr_cost *c) {
    c->flops = ops_mul(ops_elements(node->outputs[0]), 4);
}

/* The gradient passes straight through where the value was within the range, which is where y is
 * less than a step away from x. */
static cnr_status gradient(OPS_GRADIENT_ARGS) {
    kit_build b = {host, graph, CNR_OK};
    const double scale = cnr_attr_float(node, "step");
    if (grad_out[0] < 0 || !want[0]) return CNR_OK;
    if (scale == 0) {
        grad_in[0] = grad_out[0];
        return CNR_OK;
    }
    const cnr_value off = kit_node1(&b, "abs", kit_node2(&b, "sub", inputs[0], outputs[0]));
    const cnr_value within = kit_node2(&b, "less", off, kit_constant(&b, CNR_f32, scale));
    grad_in[0] = kit_node3(&b, "where", within, grad_out[0], kit_constant(&b, CNR_f32, 0));
    return kit_built(&b, node, err);
}

const cnr_op ops_fake_quantize = {
    CNR_OP_SIZES,
    .name = "fake_quantize",
    .summary = "round((x - low) / step), limited to 0 to 255, times step, plus low; without a "
               "step, each slice of the axis in steps of 1/127 of its largest magnitude. The "
               "gradient passes where x is within the range.",
    .flags = CNR_OP_PURE | CNR_OP_ROUNDS,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = cost,
    .gradient = gradient,
    .reference = reference,
};
