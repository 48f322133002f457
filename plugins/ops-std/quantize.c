/* quantize_linear, dequantize_linear, dynamic_quantize_linear: between real and quantised numbers;
 * the scale is for all elements, for a slice of an axis, or for a block. */
#include "ops_kit.h"

#define SMALL (1u << CNR_u8 | 1u << CNR_i8 | 1u << CNR_u16 | 1u << CNR_i16 | ELEM_NIBBLES)

static const cnr_port quantize_in[] = {{.name = "x", .help = "real numbers"},
                                       {.name = "scale",
                                        .help =
                                            "one, one per slice of `axis`, or one per block of it"},
                                       {.name = "zero_point",
                                        .flags = CNR_PORT_OPTIONAL,
                                        .help = "quantised value of 0; shape of scale"}};
static const cnr_port quantize_out[] = {{.name = "y", .help = "round(x / scale) + zero_point"}};
static const cnr_port dequantize_in[] =
    {{.name = "x", .help = "quantised numbers"},
     {.name = "scale", .help = "one, one per slice of `axis`, or one per block of it"},
     {.name = "zero_point",
      .flags = CNR_PORT_OPTIONAL,
      .help = "quantised value of 0; shape of scale"}};
static const cnr_port dequantize_out[] = {{.name = "y", .help = "(x - zero_point) scale"}};
#define ROWS \
    OPS_AXIS_ROW(1, "the axis that scales belong to"), \
        {.name = "block_size", \
         .type = CNR_ATTR_INT, \
         .flags = CNR_ATTR_BOUNDED, \
         .min = 0, \
         .max = 1 << 30, \
         .help = "elements of the axis that share a scale"}, \
    { \
        .name = "output_dtype", .type = CNR_ATTR_DTYPE, .help = "none: from the other inputs" \
    }
static const cnr_attr_spec quantize_attrs[] =
    {ROWS,
     {.name = "saturate", .type = CNR_ATTR_BOOL, .default_i = 1, .help = "of 8-bit floats only"},
     {.name = "precision", .type = CNR_ATTR_DTYPE, .help = "of the division: f32 in any case"}};
static const cnr_attr_spec dequantize_attrs[] = {ROWS};

/* Index of the scale of element (outer, c, inner) of x: outer so + c / block sc + inner si. */
typedef struct scale_map {
    int64_t outer, length, inner, block, so, sc, si;
} scale_map;

/* Checks the scale's and zero point's shapes against the axis and block size. */
static cnr_status check_scale(const cnr_node *node, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0], *scale = node->inputs[1], *zero = cnr_own_input(node, 2);
    const int64_t block = cnr_attr_int(node, "block_size");
    int32_t axis;
    if (zero && zero->rank != scale->rank && cnr_count(zero) != 1)
        return ops_fail(err, CNR_E_SHAPE, node, "scale and zero_point differ in rank");
    for (int32_t a = 0; zero && zero->rank == scale->rank && a < scale->rank; a++)
        if (!ops_dims_agree(zero->dim[a], scale->dim[a]))
            return ops_fail(err, CNR_E_SHAPE, node, "scale and zero_point differ in shape");
    if (scale->rank == 0 || (scale->rank == 1 && scale->dim[0] == 1 && !block)) return CNR_OK;
    CNR_TRY(ops_axis(node, "axis", x->rank, 0, &axis, err));
    if (!block) {
        if (scale->rank == 1 && ops_dims_agree(scale->dim[0], x->dim[axis])) return CNR_OK;
        return ops_fail(err, CNR_E_SHAPE, node, "one scale, or one a slice of axis %d, is wanted",
                        (int)axis);
    }
    for (int32_t a = 0; a < x->rank && scale->rank == x->rank; a++) {
        const int whole = x->dim[a] < 0 || a != axis;
        const int64_t dim = whole ? x->dim[a] : (x->dim[a] + block - 1) / block;
        if (!ops_dims_agree(scale->dim[a], dim))
            return ops_fail(err, CNR_E_SHAPE, node, "axis %d of scale is %lld, wanted %lld", a,
                            (long long)scale->dim[a], (long long)dim);
    }
    if (scale->rank != x->rank)
        return ops_fail(err, CNR_E_SHAPE, node, "blocks want scales of the rank of x");
    return CNR_OK;
}

/* *m receives how an element's place gives its scale's. */
static void map_of(const cnr_node *node, scale_map *m) {
    const cnr_tensor *x = node->inputs[0], *scale = node->inputs[1];
    const int64_t block = cnr_attr_int(node, "block_size");
    int32_t axis = 0;
    *m = (scale_map){.outer = 1, .length = 1, .inner = cnr_count(x), .block = 1};
    if (cnr_count(scale) == 1 || ops_axis(node, "axis", x->rank, 0, &axis, NULL) != CNR_OK) return;
    m->outer = cnr_span(x, 0, axis);
    m->length = x->dim[axis];
    m->inner = cnr_span(x, axis + 1, x->rank);
    m->sc = 1;
    if (!block) return;
    m->block = block;
    m->sc = m->inner;
    m->so = scale->dim[axis] * m->inner;
    m->si = 1;
}

/* Runs flush denormal numbers to zero; a denormal scale would give 0 / 0 for an x of 0. It is
 * restored from its bits. */
static void restore_denormals(const cnr_tensor *t, int64_t at, int64_t step, int64_t n,
                              elem_run *run) {
    if (t->dtype != CNR_f32 && t->dtype != CNR_bf16) return;
    for (int64_t k = 0; k < n; k++) {
        uint32_t bits = t->dtype == CNR_f32
                            ? ((const uint32_t *)t->data)[at + k * step]
                            : (uint32_t)((const uint16_t *)t->data)[at + k * step] << 16;
        const double size = (double)(bits & 0x7fffffu) * 0x1p-149;
        if ((bits & 0x7f800000u) == 0) run->f[k] = bits >> 31 ? -size : size;
    }
}

/* round(x / scale) with the quotient rounded to float32, since ties depend on it: dividing two
 * floats in double and rounding to float gives the same. NaN stays NaN. */
static double quotient(double x, double scale) { return (double)rintf((float)(x / scale)); }

/* Loads the scales and zero points of n elements from inner index i on. */
static void load_scales(const cnr_node *node, const scale_map *m, int64_t o, int64_t c, int64_t i,
                        int64_t n, elem_run *scales, elem_run *zeros) {
    const cnr_tensor *scale = node->inputs[1], *zero = cnr_own_input(node, 2);
    const int64_t at = o * m->so + c / m->block * m->sc + i * m->si;
    elem_load(scale->dtype, scale->data, at, m->si, n, ELEM_F, scales);
    restore_denormals(scale, at, m->si, n, scales);
    memset(zeros, 0, sizeof *zeros);
    if (!zero) return;
    const int one = cnr_count(zero) == 1;
    elem_load(zero->dtype, zero->data, one ? 0 : at, one ? 0 : m->si, n, ELEM_F, zeros);
}

/* Smallest and largest number of a whole type, into *low and *high. */
static void limits(int32_t dtype, double *low, double *high) {
    const unsigned bits = cnr_dtype_bits(dtype);
    const int is_signed = elem_domain_of(dtype) == ELEM_I;
    *low = is_signed ? -ldexp(1, (int)bits - 1) : 0;
    *high = ldexp(1, (int)bits - is_signed) - 1;
}

/* v clamped to [low, high]; NaN becomes low, as in ONNX Runtime. */
static double saturate(double v, double low, double high) {
    return v > high ? high : v > low ? v : low;
}

/* Method infer of quantize: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status quantize_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_tensor *zero = cnr_own_input(node, 2);
    const int32_t dtype = (int32_t)cnr_attr_int(node, "output_dtype");
    CNR_TRY(ops_want(node, 0, OPS_FLOATS | 1u << CNR_i32, 0, CNR_MAX_RANK, err));
    CNR_TRY(ops_want(node, 1, OPS_FLOATS | 1u << CNR_i32, 0, CNR_MAX_RANK, err));
    CNR_TRY(kit_want(node, 2, SMALL, 0, CNR_MAX_RANK, err));
    CNR_TRY(check_scale(node, err));
    ops_like(outputs[0], node->inputs[0]);
    outputs[0]->dtype = zero ? zero->dtype : dtype ? dtype : CNR_u8;
    if (!elem_in(outputs[0]->dtype, SMALL) || (dtype && outputs[0]->dtype != dtype))
        return ops_fail(err, CNR_E_UNSUPPORTED, node, "output_dtype %s", cnr_dtype_name(dtype));
    return CNR_OK;
}

/* Method reference of quantize_linear: round(x / scale) + zero point, saturated; NaN becomes the
 * smallest value. */
static cnr_status quantize_reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    scale_map m;
    double low, high;
    elem_run v, scales, zeros;
    (void)err;
    map_of(run->node, &m);
    limits(y->dtype, &low, &high);
    for (int64_t line = 0; line < m.outer * m.length; line++)
        for (int64_t i = 0; i < m.inner; i += ELEM_RUN) {
            const int64_t n = m.inner - i < ELEM_RUN ? m.inner - i : ELEM_RUN;
            load_scales(run->node, &m, line / m.length, line % m.length, i, n, &scales, &zeros);
            elem_load(x->dtype, x->data, line * m.inner + i, 1, n, ELEM_F, &v);
            restore_denormals(x, line * m.inner + i, 1, n, &v);
            for (int64_t k = 0; k < n; k++)
                v.f[k] = saturate(quotient(v.f[k], scales.f[k]) + zeros.f[k], low, high);
            elem_store(y->dtype, y->data, line * m.inner + i, n, ELEM_F, &v);
        }
    return CNR_OK;
}

/* Method infer of dequantize: checks the inputs' types and shapes, and gives each output its
 * own. */
static cnr_status dequantize_infer(const cnr_node *node, cnr_tensor *const *outputs,
                                   cnr_error *err) {
    const int32_t dtype = (int32_t)cnr_attr_int(node, "output_dtype");
    CNR_TRY(ops_want(node, 0, SMALL | 1u << CNR_i32, 0, CNR_MAX_RANK, err));
    CNR_TRY(ops_want(node, 1, OPS_FLOATS, 0, CNR_MAX_RANK, err));
    CNR_TRY(kit_want(node, 2, 1u << node->inputs[0]->dtype, 0, CNR_MAX_RANK, err));
    CNR_TRY(check_scale(node, err));
    ops_like(outputs[0], node->inputs[0]);
    outputs[0]->dtype = dtype ? dtype : node->inputs[1]->dtype;
    if (!elem_in(outputs[0]->dtype, OPS_FLOATS))
        return ops_fail(err, CNR_E_UNSUPPORTED, node, "output_dtype %s", cnr_dtype_name(dtype));
    return CNR_OK;
}

/* Method reference of dequantize_linear: dequantises: (x - zero point) * scale; returns CNR_OK. */
static cnr_status dequantize_reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    scale_map m;
    elem_run v, scales, zeros;
    (void)err;
    map_of(run->node, &m);
    for (int64_t line = 0; line < m.outer * m.length; line++)
        for (int64_t i = 0; i < m.inner; i += ELEM_RUN) {
            const int64_t n = m.inner - i < ELEM_RUN ? m.inner - i : ELEM_RUN;
            load_scales(run->node, &m, line / m.length, line % m.length, i, n, &scales, &zeros);
            elem_load(x->dtype, x->data, line * m.inner + i, 1, n, ELEM_F, &v);
            for (int64_t k = 0; k < n; k++) v.f[k] = (v.f[k] - zeros.f[k]) * scales.f[k];
            elem_store(y->dtype, y->data, line * m.inner + i, n, ELEM_F, &v);
        }
    return CNR_OK;
}

const cnr_op ops_quantize_linear = {
    CNR_OP_SIZES,
    .name = "quantize_linear",
    .summary =
        "Quantises: round(x / scale) + zero point, saturated; NaN becomes the smallest value.",
    .flags = CNR_OP_PURE,
    CNR_OP_ATTRS(quantize_attrs),
    CNR_OP_PORTS(quantize_in, quantize_out),
    .infer = quantize_infer,
    .cost = kit_cost_flops,
    .reference = quantize_reference,
};

const cnr_op ops_dequantize_linear = {
    CNR_OP_SIZES,
    .name = "dequantize_linear",
    .summary = "Dequantises: (x - zero point) scale.",
    .flags = CNR_OP_PURE,
    CNR_OP_ATTRS(dequantize_attrs),
    CNR_OP_PORTS(dequantize_in, dequantize_out),
    .infer = dequantize_infer,
    .cost = kit_cost_flops,
    .reference = dequantize_reference,
};

/* ---- dynamic_quantize_linear ---- */

static const cnr_port dynamic_in[] = {{.name = "x", .help = "f32"}};
static const cnr_port dynamic_out[] = {{.name = "y", .help = "u8"},
                                       {.name = "y_scale", .help = "f32, one number"},
                                       {.name = "y_zero_point", .help = "u8, one number"}};

/* Method infer of dynamic: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status dynamic_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    CNR_TRY(ops_want(node, 0, 1u << CNR_f32, 0, CNR_MAX_RANK, err));
    if (node->n_outputs != 3) return ops_fail(err, CNR_E_ARG, node, "it has three outputs");
    ops_like(outputs[0], node->inputs[0]);
    outputs[0]->dtype = outputs[2]->dtype = CNR_u8;
    outputs[1]->dtype = CNR_f32;
    return CNR_OK;
}

/* Method reference of dynamic_quantize_linear: quantises to u8 with a scale from the range of the
 * data; NaN becomes 0; returns CNR_OK. */
static cnr_status dynamic_reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0];
    const float *in = x->data;
    uint8_t *y = run->outputs[0]->data;
    const int64_t count = cnr_count(x);
    float low = 0, high = 0;
    (void)err;
    for (int64_t i = 0; i < count; i++) {
        if (in[i] < low) low = in[i];
        if (in[i] > high) high = in[i];
    }
    const float scale = high == low ? 1 : (high - low) / 255;
    const float zero = (float)saturate((double)rintf(-low / scale), 0, 255);
    for (int64_t i = 0; i < count; i++)
        y[i] = (uint8_t)saturate((double)(rintf(in[i] / scale) + zero), 0, 255);
    elem_set_f64(run->outputs[1], 0, scale);
    elem_set_f64(run->outputs[2], 0, zero);
    return CNR_OK;
}

const cnr_op ops_dynamic_quantize_linear = {
    CNR_OP_SIZES,
    .name = "dynamic_quantize_linear",
    .summary = "Quantises to u8 with a scale from the range of the data; NaN becomes 0.",
    .flags = CNR_OP_PURE,
    CNR_OP_PORTS(dynamic_in, dynamic_out),
    .infer = dynamic_infer,
    .cost = kit_cost_flops,
    .reference = dynamic_reference,
};
