/* conv_integer, qlinear_conv: convolution of quantised numbers, exact in integers. */
#include "quant.h"

static const cnr_port integer_in[] = {{.name = "x", .help = "N C spatial, u8 or i8"},
                                      {.name = "w", .help = "M C/group kernel, u8 or i8"},
                                      QUANT_OPTION("x_zero_point", "one number"),
                                      QUANT_OPTION("w_zero_point", "one, or one per channel of y")};
static const cnr_port integer_out[] = {{.name = "y", .help = "i32"}};
static const cnr_port qlinear_in[] =
    {{.name = "x", .help = "N C spatial, u8 or i8"},
     {.name = "x_scale", .help = "one number"},
     {.name = "x_zero_point", .help = "one number"},
     {.name = "w", .help = "M C/group kernel, u8 or i8"},
     {.name = "w_scale", .help = "one, or one per channel of y"},
     {.name = "w_zero_point", .help = "one, or one per channel of y"},
     {.name = "y_scale", .help = "one number"},
     {.name = "y_zero_point", .help = "one number; gives the type of y"},
     QUANT_OPTION("bias", "i32, one per channel of y, in units of x_scale w_scale"),
     QUANT_OPTION("slope", "f32, one, or one per channel of y; negative results are multiplied by "
                           "it before they are rounded, as by leaky ReLU and PReLU")};
static const cnr_port qlinear_out[] = {{.name = "y", .help = "of the type of y_zero_point"}};
static const cnr_attr_spec attrs[] = {{.name = "kernel_shape",
                                       .type = CNR_ATTR_INTS,
                                       .alias = "kernel",
                                       .help = "none: taken from w"},
                                      OPS_WINDOW_ROWS,
                                      {.name = "group",
                                       .type = CNR_ATTR_INT,
                                       .flags = CNR_ATTR_BOUNDED,
                                       .alias = "groups",
                                       .min = 1,
                                       .max = 1 << 20,
                                       .default_i = 1,
                                       .help = "number of groups of channels"}};

/* Input ports; -1: the operator does not have it. */
typedef struct quant_ports {
    int32_t x, w, x_scale, x_zero, w_scale, w_zero, y_scale, y_zero, bias, slope;
} quant_ports;
static const quant_ports integer_ports = {0, 1, -1, 2, -1, 3, -1, -1, -1, -1};
static const quant_ports qlinear_ports = {0, 3, 1, 2, 4, 5, 6, 7, 8, 9};

/* *win receives the window over the input at port p->x. */
static cnr_status window_of(const cnr_node *node, const quant_ports *p, cnr_window *win,
                            cnr_error *err) {
    const cnr_tensor *x = node->inputs[p->x], *w = node->inputs[p->w];
    int64_t kernel[CNR_MAX_SPATIAL] = {1, 1, 1}, n;
    const int64_t *given = cnr_attr_ints(node, "kernel_shape", &n);
    for (int32_t i = 0; i < w->rank - 2; i++) {
        kernel[i] = w->dim[2 + i];
        if (n > 0 && i >= n)
            return ops_fail(err, CNR_E_SHAPE, node,
                            "kernel_shape has %lld numbers, w %d axes of such", (long long)n,
                            (int)(w->rank - 2));
        if (kernel[i] < 0 || (n > 0 && given[i] != kernel[i]))
            return ops_fail(err, CNR_E_SHAPE, node,
                            "input w: want %lld along axis %d, as kernel_shape has it, got %lld",
                            (long long)(n > 0 ? given[i] : 1), (int)(2 + i), (long long)kernel[i]);
    }
    const char *why = ops_host->window_resolve(node, x, kernel, win);
    return why ? ops_fail(err, CNR_E_SHAPE, node, "%s", why) : CNR_OK;
}

/* Checks for a scalar, or one element for each of the m channels. */
static cnr_status check_each(const cnr_node *node, int32_t port, uint32_t dtypes, int64_t m,
                             cnr_error *err) {
    const cnr_tensor *t = quant_in(node, port);
    if (!t) return CNR_OK;
    CNR_TRY(ops_want(node, port, dtypes, 0, 1, err));
    if (t->rank == 1 && t->dim[0] >= 0 && t->dim[0] != 1 && !ops_dims_agree(t->dim[0], m))
        return ops_fail(err, CNR_E_SHAPE, node, "input %s has %lld numbers, want %lld",
                        node->desc->inputs[port].name, (long long)t->dim[0], (long long)m);
    return CNR_OK;
}

/* Gives y its shape; fails where types, groups or scales do not fit. */
static cnr_status infer_with(const cnr_node *node, const quant_ports *p, cnr_tensor *y,
                             cnr_error *err) {
    const int64_t group = cnr_attr_int(node, "group");
    const cnr_tensor *x = node->inputs[p->x], *w = node->inputs[p->w];
    cnr_window win;
    CNR_TRY(ops_want(node, p->x, QUANT_BYTES, 3, 2 + CNR_MAX_SPATIAL, err));
    CNR_TRY(ops_want(node, p->w, QUANT_BYTES, x->rank, x->rank, err));
    const int64_t m = w->dim[0], channels = x->dim[1];
    CNR_TRY(window_of(node, p, &win, err));
    if (m >= 0 && m % group != 0)
        return ops_fail(err, CNR_E_SHAPE, node, "input w: %lld outputs don't fall into %lld groups",
                        (long long)m, (long long)group);
    if (channels >= 0 && w->dim[1] >= 0 && channels != w->dim[1] * group)
        return ops_fail(err, CNR_E_SHAPE, node,
                        "input w: want %lld along axis 1 (%lld channels in %lld groups), got %lld",
                        (long long)(channels / group), (long long)channels, (long long)group,
                        (long long)w->dim[1]);
    CNR_TRY(check_each(node, p->x_zero, 1u << x->dtype, 1, err));
    CNR_TRY(check_each(node, p->w_zero, 1u << w->dtype, m, err));
    CNR_TRY(check_each(node, p->x_scale, OPS_FLOATS, 1, err));
    CNR_TRY(check_each(node, p->w_scale, OPS_FLOATS, m, err));
    CNR_TRY(check_each(node, p->y_scale, OPS_FLOATS, 1, err));
    CNR_TRY(check_each(node, p->y_zero, QUANT_BYTES, 1, err));
    CNR_TRY(check_each(node, p->slope, 1u << CNR_f32, m, err));
    const cnr_tensor *bias = quant_in(node, p->bias);
    if (bias && (bias->dtype != CNR_i32 || bias->rank != 1 || !ops_dims_agree(bias->dim[0], m)))
        return ops_fail(err, CNR_E_SHAPE, node, "input bias: want i32, one a channel, %lld",
                        (long long)m);
    y->dtype = p->y_zero < 0 ? CNR_i32 : node->inputs[p->y_zero]->dtype;
    y->rank = x->rank;
    y->dim[0] = x->dim[0];
    y->dim[1] = m;
    for (int32_t i = 0; i < win.spatial; i++) y->dim[2 + i] = win.out[i];
    return CNR_OK;
}

/* Whole number i of t, or its only one; t NULL: 0. */
static int64_t whole_at(const cnr_tensor *t, int64_t i) {
    if (!t) return 0;
    return ops_get_int(t->dtype, t->data, cnr_count(t) == 1 ? 0 : i);
}

/* Number i of t, or its only one; t NULL: 1. */
static double real_at(const cnr_tensor *t, int64_t i) {
    if (!t) return 1;
    return ops_get(t->dtype, t->data, cnr_count(t) == 1 ? 0 : i);
}

/* The sum over a window: channels of the group, and three spatial axes (missing ones are 1). */
typedef struct quant_conv {
    const cnr_tensor *x, *w;
    int64_t channels, in[3], k[3], stride[3], dilation[3], pad[3], out[3], x_zero, w_zero;
} quant_conv;

/* Sum of the products of one window at place o, with the zero points taken off. */
static int64_t window_sum(const quant_conv *c, int64_t x_base, int64_t w_base, const int64_t *o) {
    const int64_t plane = c->in[0] * c->in[1] * c->in[2];
    int64_t sum = 0, w_at = w_base;
    for (int64_t ch = 0; ch < c->channels; ch++)
        for (int64_t a = 0; a < c->k[0]; a++)
            for (int64_t b = 0; b < c->k[1]; b++)
                for (int64_t d = 0; d < c->k[2]; d++, w_at++) {
                    const int64_t i0 = o[0] * c->stride[0] - c->pad[0] + a * c->dilation[0];
                    const int64_t i1 = o[1] * c->stride[1] - c->pad[1] + b * c->dilation[1];
                    const int64_t i2 = o[2] * c->stride[2] - c->pad[2] + d * c->dilation[2];
                    if (i0 < 0 || i0 >= c->in[0] || i1 < 0 || i1 >= c->in[1] || i2 < 0 ||
                        i2 >= c->in[2])
                        continue; /* padding is the zero point */
                    const int64_t at = x_base + ch * plane + (i0 * c->in[1] + i1) * c->in[2] + i2;
                    sum += (ops_get_int(c->x->dtype, c->x->data, at) - c->x_zero) *
                           (ops_get_int(c->w->dtype, c->w->data, w_at) - c->w_zero);
                }
    return sum;
}

/* Computes the run's part with inputs at the ports p. */
static cnr_status reference_with(const cnr_run *run, const quant_ports *p, cnr_error *err) {
    const cnr_node *node = run->node;
    const cnr_tensor *y = run->outputs[0], *bias = quant_in(node, p->bias);
    const int64_t group = cnr_attr_int(node, "group");
    quant_conv c = {.x = node->inputs[p->x], .w = node->inputs[p->w]};
    cnr_window win;
    CNR_TRY(window_of(node, p, &win, err));
    c.channels = c.w->dim[1];
    for (int32_t i = 0; i < 3; i++) {
        const int32_t s = i - (3 - win.spatial);
        c.in[i] = s < 0 ? 1 : win.in[s];
        c.out[i] = s < 0 ? 1 : win.out[s];
        c.k[i] = s < 0 ? 1 : win.kernel[s];
        c.stride[i] = s < 0 ? 1 : win.stride[s];
        c.dilation[i] = s < 0 ? 1 : win.dilation[s];
        c.pad[i] = s < 0 ? 0 : win.pad_begin[s];
    }
    c.x_zero = whole_at(quant_in(node, p->x_zero), 0);
    const int64_t m = y->dim[1], plane = c.in[0] * c.in[1] * c.in[2];
    const int64_t w_each = c.channels * c.k[0] * c.k[1] * c.k[2];
    const int64_t points = c.out[0] * c.out[1] * c.out[2];
    const int64_t zero = whole_at(quant_in(node, p->y_zero), 0);
    int64_t to = 0;
    for (int64_t line = 0; line < y->dim[0] * m; line++) {
        const int64_t n = line / m, oc = line % m, g = oc / (m / group);
        const double x_scale = real_at(quant_in(node, p->x_scale), 0);
        const double w_scale = real_at(quant_in(node, p->w_scale), oc);
        const double y_scale = real_at(quant_in(node, p->y_scale), 0);
        const float slope = (float)real_at(quant_in(node, p->slope), oc);
        c.w_zero = whole_at(quant_in(node, p->w_zero), oc);
        if (ops_cancelled(run)) return CNR_E_CANCELLED;
        for (int64_t i = 0; i < points; i++, to++) {
            const int64_t o[3] = {i / (c.out[1] * c.out[2]), i / c.out[2] % c.out[1], i % c.out[2]};
            const int64_t sum =
                window_sum(&c, (n * c.x->dim[1] + g * c.channels) * plane, oc * w_each, o) +
                whole_at(bias, oc);
            if (p->y_zero < 0) ops_put_int(y->dtype, y->data, to, sum);
            else
                elem_set_f64(y, to,
                             quant_clamp(y->dtype,
                                         quant_steps_sloped(sum, x_scale, w_scale, y_scale, slope) +
                                             (double)zero));
        }
    }
    return CNR_OK;
}

/* Sets out->macs to the multiply-adds of the convolution with these ports. */
static void cost_with(const cnr_node *node, const quant_ports *p, cnr_cost *out) {
    const cnr_tensor *w = node->inputs[p->w];
    const uint64_t m = w->dim[0] > 0 ? (uint64_t)w->dim[0] : 1;
    out->macs = ops_mul(ops_elements(node->outputs[0]), ops_elements(w) / m);
}

QUANT_OP(conv_integer, integer, "Convolution of 8-bit numbers with a 32-bit result.",
         CNR_OP_ATTRS(attrs));
QUANT_OP(qlinear_conv, qlinear, "Convolution of quantised numbers with a quantised result.",
         CNR_OP_ATTRS(attrs));
