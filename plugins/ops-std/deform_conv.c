/* deform_conv: convolution whose taps are displaced by offsets at each position. */
#include "ops_norm.h"
#include "ops_window.h"

static const cnr_attr_spec attrs[] = {OPS_CONV_ROWS,
                                      OPS_WINDOW_ROWS,
                                      {.name = "offset_group",
                                       .type = CNR_ATTR_INT,
                                       .flags = CNR_ATTR_BOUNDED,
                                       .min = 1,
                                       .max = 1 << 20,
                                       .default_i = 1,
                                       .help =
                                           "number of groups of channels with their own offsets"}};
static const cnr_port in[] =
    {{.name = "x", .help = "N C and one to three spatial axes"},
     {.name = "weight", .flags = CNR_PORT_PARAMETER, .help = "out, C / group, the window's axes"},
     {.name = "offset", .help = "N, offset_group * taps * spatial axes, output's spatial axes"},
     {.name = "bias", .flags = CNR_PORT_OPTIONAL, .help = "out"},
     {.name = "mask",
      .flags = CNR_PORT_OPTIONAL,
      .help = "N, offset_group * taps, output's spatial axes: a factor for each tap"}};
static const cnr_port out[] = {{.name = "y", .help = "N out and the spatial axes"}};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const int64_t parts = cnr_attr_int(node, "offset_group");
    cnr_window w;
    for (int32_t p = 0; p < 3; p++)
        CNR_TRY(ops_want(node, p, OPS_FLOATS, 3, 2 + CNR_MAX_SPATIAL, err));
    const cnr_tensor *x = node->inputs[0], *weight = node->inputs[1];
    CNR_TRY(ops_conv_check(node, x, weight, &w, err));
    if (x->dim[1] >= 0 && x->dim[1] % parts != 0)
        return ops_fail(err, CNR_E_SHAPE, node, "%lld channels do not fall into %lld offset groups",
                        (long long)x->dim[1], (long long)parts);
    int64_t dim[CNR_MAX_RANK] = {x->dim[0], ops_span(weight, 2, weight->rank)};
    for (int32_t i = 0; i < w.spatial; i++) dim[2 + i] = w.out[i];
    if (dim[1] > OPS_MAX_DIM / parts) return ops_fail(err, CNR_E_LIMIT, node, "too many offsets");
    if (dim[1] >= 0) dim[1] *= parts;
    CNR_TRY(ops_want_shape(node, 4, x->dtype, x->rank, dim, err));
    if (dim[1] >= 0) dim[1] *= w.spatial;
    CNR_TRY(ops_want_shape(node, 2, x->dtype, x->rank, dim, err));
    CNR_TRY(ops_want_shape(node, 3, x->dtype, 1, weight->dim, err));
    ops_like(outputs[0], x);
    outputs[0]->dim[1] = weight->dim[0];
    for (int32_t i = 0; i < w.spatial; i++) outputs[0]->dim[2 + i] = w.out[i];
    return CNR_OK;
}

/* Method parameters: *t receives type and shape of the weight at `port`, and *init how it is
 * first filled. */
static cnr_status parameters(const cnr_node *node, int32_t port, cnr_tensor *t, cnr_init *init,
                             cnr_error *err) {
    return port == 1 ? ops_conv.parameters(node, port, t, init, err) : CNR_E_NOT_FOUND;
}

/* Method cost: counts the multiply-adds of a run. */
static void cost(const cnr_node *node, cnr_cost *c) {
    const cnr_tensor *weight = node->inputs[1];
    const int64_t taps = ops_span(weight, 1, weight->rank);
    c->macs = ops_mul(ops_elements(node->outputs[0]), taps < 0 ? 0 : (uint64_t)taps);
    c->flops = ops_mul(ops_elements(node->inputs[2]), 8);
}

/* Method region: *r receives the part of input `port` that [begin, end) of the output's axis
 * needs; axis -1: all. */
static void region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                   cnr_input_range *r) {
    (void)node;
    *r = (cnr_input_range){.axis = -1};
    if (axis == 0 && port != 1 && port != 3) *r = (cnr_input_range){0, begin, end};
    if (axis == 1 && (port == 1 || port == 3)) *r = (cnr_input_range){0, begin, end};
    if (axis >= 2 && (port == 2 || port == 4)) *r = (cnr_input_range){axis, begin, end};
}

/* x at a fractional position: linear interpolation along each axis, 0 outside. */
OPS_INLINE double sample(const ops_geometry *g, int32_t dtype, const void *x, int64_t plane,
                         const double *place) {
    int64_t floor_at[3];
    double rest[3], sum = 0;
    for (int a = 0; a < 3; a++) {
        if (!(place[a] > -1 && place[a] < (double)g->in[a])) return 0;
        floor_at[a] = (int64_t)floor(place[a]);
        rest[a] = place[a] - (double)floor_at[a];
    }
    for (int corner = 0; corner < 8; corner++) {
        double share = 1;
        int64_t at = 0;
        for (int a = 0; a < 3; a++) {
            const int up = corner >> a & 1;
            const int64_t i = floor_at[a] + up;
            share *= up ? rest[a] : 1 - rest[a];
            if (i < 0 || i >= g->in[a]) share = 0;
            at = at * g->in[a] + i;
        }
        if (share > 0) sum += share * ops_get(dtype, x, plane + at);
    }
    return sum;
}

/* Sizes of the node: groups, offset groups, taps of a window, channels. */
typedef struct shape {
    int64_t group, parts, taps, c, each;
    int32_t spatial;
} shape;

/* Value of tap k of the window at o (of sample n, offset group `part`), times its mask. */
OPS_INLINE double tap(const cnr_run *run, const ops_geometry *g, const shape *s, int32_t dtype,
                      int64_t n, int64_t part, int64_t k, const int64_t *o, double *place) {
    const cnr_tensor *mask = cnr_own_input(run->node, 4);
    const int64_t volume = ops_volume(g->out), at = (o[0] * g->out[1] + o[1]) * g->out[2] + o[2];
    const int64_t first = (n * s->parts + part) * s->taps + k;
    const int64_t step[3] = {k / g->k[2] / g->k[1], k / g->k[2] % g->k[1], k % g->k[2]};
    for (int a = 0; a < 3; a++) {
        place[a] = (double)(o[a] * g->s[a] - g->p[a] + step[a] * g->d[a]);
        const int own = a - (3 - s->spatial);
        if (own >= 0)
            place[a] += ops_get(dtype, run->node->inputs[2]->data,
                                (first * s->spatial + own) * volume + at);
    }
    return mask ? ops_get(dtype, mask->data, first * volume + at) : 1;
}

OPS_INLINE double element(const cnr_run *run, const ops_geometry *g, const shape *s, int32_t dtype,
                          int64_t n, int64_t m, const int64_t *o) {
    const cnr_node *node = run->node;
    const int64_t first = m / s->each * s->c, per_part = g->c / s->parts;
    double sum = cnr_own_input(node, 3) ? ops_get(dtype, node->inputs[3]->data, m) : 0;
    for (int64_t c = 0; c < s->c; c++)
        for (int64_t k = 0; k < s->taps; k++) {
            double place[3];
            const double factor = tap(run, g, s, dtype, n, (first + c) / per_part, k, o, place);
            sum += factor * ops_get(dtype, node->inputs[1]->data, (m * s->c + c) * s->taps + k) *
                   sample(g, dtype, node->inputs[0]->data,
                          (n * g->c + first + c) * ops_volume(g->in), place);
        }
    return sum;
}

OPS_INLINE void body(const cnr_run *run, const ops_geometry *g, const shape *s, int32_t dtype) {
    const cnr_tensor *y = run->outputs[0];
    int64_t o[3];
    for (int64_t n = g->lo[0]; n < g->hi[0]; n++)
        for (int64_t m = g->lo[1]; m < g->hi[1]; m++) {
            const int64_t base = (n * y->dim[1] + m) * ops_volume(g->out);
            if (ops_cancelled(run)) return;
            for (o[0] = g->lo[2]; o[0] < g->hi[2]; o[0]++)
                for (o[1] = g->lo[3]; o[1] < g->hi[3]; o[1]++)
                    for (o[2] = g->lo[4]; o[2] < g->hi[4]; o[2]++)
                        ops_put(dtype, y->data, base + (o[0] * g->out[1] + o[1]) * g->out[2] + o[2],
                                element(run, g, s, dtype, n, m, o));
        }
}

/* Method reference of deform_conv: convolution whose taps are shifted by offsets for each output
 * position (deformable convolution). */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *weight = run->node->inputs[1];
    cnr_window w;
    ops_geometry g;
    CNR_TRY(ops_conv_check(run->node, x, weight, &w, err));
    ops_geometry_of(&w, x, run, &g);
    shape s = {.group = cnr_attr_int(run->node, "group"),
               .parts = cnr_attr_int(run->node, "offset_group"),
               .taps = ops_volume(g.k),
               .c = weight->dim[1],
               .spatial = w.spatial};
    s.each = weight->dim[0] / s.group;
    OPS_SPECIALISE(run->outputs[0]->dtype, body(run, &g, &s, dtype));
    return CNR_OK;
}

const cnr_op ops_deform_conv = {
    CNR_OP_SIZES,
    .name = "deform_conv",
    .summary = "Convolution whose taps are shifted by offsets for each output position (deformable "
               "convolution).",
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = cost,
    .split_axes = ops_split_all,
    .input_range = region,
    .parameters = parameters,
    .reference = reference,
};
