/* grid_sample: samples a tensor of 1 to 3 spatial axes at positions given by another tensor. */
#include "ops_kit.h"

static const cnr_port in[] =
    {{.name = "x", .help = "N C spatial"},
     {.name = "grid",
      .help = "N, output's spatial axes, one number per axis: last axis first, -1 "
              "to 1 across x"}};
static const cnr_port out[] = {{.name = "y", .help = "N C and the grid's spatial axes"}};
static const char *const modes[] = {"linear", "nearest", "cubic", "bilinear", "bicubic", NULL};
static const char *const paddings[] = {"zeros", "border", "reflection", NULL};
enum { LINEAR, NEAREST, CUBIC };
enum { ZEROS, BORDER, REFLECTION };
static const cnr_attr_spec attrs[] =
    {{.name = "mode",
      .type = CNR_ATTR_ENUM,
      .default_s = "linear",
      .choices = modes,
      .help = "interpolation between pixels; bilinear and bicubic: older names"},
     {.name = "padding_mode",
      .type = CNR_ATTR_ENUM,
      .default_s = "zeros",
      .choices = paddings,
      .help = "values outside x"},
     {.name = "align_corners",
      .type = CNR_ATTR_BOOL,
      .help = "-1 and 1 are the centres of the outermost pixels, not their outer edges"}};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0], *grid = node->inputs[1];
    cnr_tensor *y = outputs[0];
    CNR_TRY(ops_want(node, 0, OPS_WHOLE, 3, 5, err));
    CNR_TRY(ops_want(node, 1, OPS_FLOATS, x->rank, x->rank, err));
    if (!ops_dims_agree(grid->dim[x->rank - 1], x->rank - 2))
        return ops_fail(err, CNR_E_SHAPE, node, "a position has %lld numbers, wanted %d",
                        (long long)grid->dim[x->rank - 1], (int)x->rank - 2);
    for (int32_t a = 2; a < x->rank; a++)
        if (x->dim[a] == 0) return ops_fail(err, CNR_E_SHAPE, node, "x is empty");
    y->dtype = x->dtype;
    y->rank = x->rank;
    CNR_TRY(kit_same(node, x->dim[0], grid->dim[0], &y->dim[0], err));
    y->dim[1] = x->dim[1];
    for (int32_t a = 2; a < x->rank; a++) y->dim[a] = grid->dim[a - 1];
    return CNR_OK;
}

/* Attributes of the node: mode, padding and whether the corners are aligned. */
typedef struct grid_plan {
    int mode, padding, align;
} grid_plan;

/* v mirrored at the ends of [low, high] until it lies between them. */
static double reflect(double v, double low, double high) {
    const double range = high - low;
    if (!(range > 0)) return 0;
    if (v < low) v = low + (low - v);
    v = fmod(v - low, 2 * range);
    return low + (v > range ? 2 * range - v : v);
}

/* Brings coordinate v of an axis of `size` elements into range by the padding mode; zeros: v as it
 * is. */
static double inside(const grid_plan *p, double v, double size) {
    const double low = p->align ? 0 : -0.5, high = p->align ? size - 1 : size - 0.5;
    if (p->padding == REFLECTION && (v < low || v > high)) v = reflect(v, low, high);
    return v;
}

/* Weight of a cubic interpolation (a = -0.75) at distance x from the element; 0 from distance 2
 * on. */
static double cubic(double x) {
    const double a = -0.75;
    x = fabs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* Computes up to 4 taps along an axis; at < 0 reads 0. Returns how many. */
static int taps(const grid_plan *p, double g, int64_t dim, int64_t *at, double *weight) {
    const double size = (double)dim;
    double v = p->align ? (g + 1) / 2 * (size - 1) : ((g + 1) * size - 1) / 2;
    if (!(fabs(v) < 1e9)) v = v < 0 ? -2 - size : 2 * size + 2; /* far outside, or NaN */
    if (p->mode != CUBIC) {
        v = inside(p, v, size);
        if (p->padding != ZEROS) v = fmin(fmax(v, 0), size - 1);
    }
    const int n = p->mode == NEAREST ? 1 : p->mode == LINEAR ? 2 : 4;
    const int64_t first = n == 1 ? (int64_t)rint(v) : (int64_t)floor(v) - (n == 4);
    for (int i = 0; i < n; i++) {
        double pixel = (double)(first + i);
        const double d = fabs(pixel - v);
        weight[i] = n == 1 ? 1 : n == 2 ? 1 - d : cubic(d);
        if (n == 4 && p->padding != ZEROS) pixel = fmin(fmax(inside(p, pixel, size), 0), size - 1);
        at[i] = pixel >= 0 && pixel < size ? (int64_t)pixel : -1;
    }
    return n;
}

/* Method reference of grid_sample: x read at the positions of a grid; returns CNR_OK. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *grid = run->node->inputs[1], *y = run->outputs[0];
    const int32_t spatial = x->rank - 2;
    const int64_t area = cnr_span(x, 2, x->rank), points = cnr_span(y, 2, y->rank);
    static const int kinds[] = {LINEAR, NEAREST, CUBIC, LINEAR, CUBIC};
    const grid_plan p = {kinds[cnr_attr_find(run->node, "mode")->i],
                         (int)cnr_attr_find(run->node, "padding_mode")->i,
                         cnr_attr_int(run->node, "align_corners") != 0};
    (void)err;
    for (int64_t place = 0; place < y->dim[0] * points; place++) {
        int64_t at[3][4] = {{0}};
        double weight[3][4] = {{1}, {1}, {1}};
        int n[3] = {1, 1, 1}; /* missing leading axes have one tap */
        for (int32_t a = 0; a < spatial; a++) {
            const int32_t k = 3 - spatial + a;
            n[k] = taps(&p, elem_f64(grid, place * spatial + spatial - 1 - a), x->dim[2 + a], at[k],
                        weight[k]);
        }
        const int64_t h = spatial > 1 ? x->dim[x->rank - 2] : 1, w = x->dim[x->rank - 1];
        for (int64_t c = 0; c < x->dim[1]; c++) {
            const int64_t line = place / points * x->dim[1] + c;
            double sum = 0;
            for (int i = 0; i < n[0] * n[1] * n[2]; i++) {
                const int a = i / (n[1] * n[2]), b = i / n[2] % n[1], d = i % n[2];
                if (at[0][a] < 0 || at[1][b] < 0 || at[2][d] < 0) continue;
                const int64_t from = (at[0][a] * h + at[1][b]) * w + at[2][d];
                sum += weight[0][a] * weight[1][b] * weight[2][d] * elem_f64(x, line * area + from);
            }
            elem_set_f64(y, line * points + place % points, sum);
        }
    }
    return CNR_OK;
}

const cnr_op ops_grid_sample = {
    CNR_OP_SIZES,         .name = "grid_sample",  .summary = "x read at the positions of a grid.",
    .flags = CNR_OP_PURE, CNR_OP_ATTRS(attrs),    CNR_OP_PORTS(in, out),
    .infer = infer,       .cost = kit_cost_flops, .reference = reference,
};
