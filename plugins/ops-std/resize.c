/* resize, upsample: a tensor sampled on another grid, of any rank, as ONNX has it.
 *
 * Each axis gets a table: for every output position a few taps (source position and weight). An
 * output element is the sum over all combinations of taps, one an axis. */
#include "ops_kit.h"
#include "resize_taps.h"

static const char *const modes[] = {"nearest", "linear", "cubic", NULL};
static const char *const upsample_modes[] = {"nearest", "linear", "bilinear", NULL};
static const char *const grids[] = {"half_pixel",           "half_pixel_symmetric",
                                    "pytorch_half_pixel",   "align_corners",
                                    "asymmetric",           "tf_crop_and_resize",
                                    "tf_half_pixel_for_nn", NULL};
static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil",
                                        NULL};
static const char *const policies[] = {"stretch", "not_larger", "not_smaller", NULL};

/* The row of an optional input NAME with further flags. */
#define OPTION(NAME, FLAG, TEXT) \
    { .name = NAME, .flags = CNR_PORT_OPTIONAL | (FLAG), .help = TEXT }
static const cnr_port resize_in[] =
    {{.name = "x", .help = "any rank"},
     OPTION("roi", CNR_PORT_CONST, "region for tf_crop_and_resize: all begins, then all ends"),
     OPTION("scales", CNR_PORT_CONST, "instead of the attribute"),
     OPTION("sizes", CNR_PORT_CONST, "instead of the attribute")};
static const cnr_port upsample_in[] = {{.name = "x", .help = "any rank"},
                                       OPTION("scales", CNR_PORT_CONST,
                                              "instead of the attribute")};
static const cnr_port out[] = {{.name = "y", .help = "x on its new grid"}};

/* The row of an attribute that is one of the words CHOICES. */
#define CHOICE(NAME, DEFAULT, CHOICES, TEXT) \
    { .name = NAME, .type = CNR_ATTR_ENUM, .default_s = DEFAULT, .choices = CHOICES, .help = TEXT }
static const cnr_attr_spec resize_attrs[] =
    {CHOICE("mode", "nearest", modes, "interpolation between pixels"),
     CHOICE("coordinate_transformation_mode", "half_pixel", grids,
            "mapping of output positions to the input"),
     CHOICE("nearest_mode", "round_prefer_floor", roundings, "rounding to the nearest pixel"),
     CHOICE("keep_aspect_ratio_policy", "stretch", policies, "meaning of sizes"),
     {.name = "scales",
      .type = CNR_ATTR_FLOATS,
      .alias = "scale",
      .help = "factor of each axis (of axes, when given)"},
     {.name = "sizes", .type = CNR_ATTR_INTS, .alias = "size", .help = "new lengths instead"},
     {.name = "axes", .type = CNR_ATTR_INTS, .help = "axes to resize; none: all, or the last ones"},
     {.name = "cubic_coeff_a",
      .type = CNR_ATTR_FLOAT,
      .default_f = -0.75,
      .help = "shape of the cubic"},
     {.name = "exclude_outside", .type = CNR_ATTR_BOOL, .help = "pixels outside have weight 0"},
     {.name = "extrapolation_value",
      .type = CNR_ATTR_FLOAT,
      .help = "value outside the picture, for tf_crop_and_resize"},
     {.name = "antialias", .type = CNR_ATTR_BOOL, .help = "wider filter when shrinking"}};
static const cnr_attr_spec upsample_attrs[] =
    {CHOICE("mode", "nearest", upsample_modes, "interpolation between pixels"),
     {.name = "scales",
      .type = CNR_ATTR_FLOATS,
      .alias = "scale",
      .help = "factor of each axis; fewer: of the last ones"}};

/* Index of the word that attribute `name` has, in its choices; 0 where the node lacks the
 * attribute. */
static int choice(const cnr_node *node, const char *name) {
    const cnr_attr *a = cnr_attr_find(node, name);
    return a ? (int)a->i : 0;
}

/* Numbers from an input or an attribute, into `values`; *n is -1 if they are not known yet, 0 if
 * not given. */
static cnr_status numbers(const cnr_node *node, int32_t port, const char *attr, double *values,
                          int32_t max, int64_t *n, cnr_error *err) {
    const cnr_tensor *t = port >= 0 ? cnr_own_input(node, port) : NULL;
    const cnr_attr *a = attr ? cnr_attr_find(node, attr) : NULL;
    *n = 0;
    if (t) {
        CNR_TRY(ops_want(node, port, OPS_NUMBERS, 0, 1, err));
        *n = cnr_count(t);
    }
    if (*n == 0 && a) *n = a->n;
    else if (t && *n > 0 && !t->data) *n = -1;
    if (*n > max) return ops_fail(err, CNR_E_LIMIT, node, "more than %d numbers", (int)max);
    for (int64_t i = 0; i < *n; i++)
        values[i] = t && cnr_count(t) > 0      ? elem_f64(t, i)
                    : a->type == CNR_ATTR_INTS ? (double)a->ints[i]
                                               : a->floats[i];
    return CNR_OK;
}

/* Fills p's scales and output sizes of n `axes` from their scales; fails for one that is not
 * positive. */
static cnr_status from_scales(const cnr_node *node, resize_plan *p, const double *scales,
                              const int32_t *axes, int64_t n, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    for (int64_t i = 0; i < n; i++) {
        const int32_t a = axes[i];
        if (!(scales[i] > 0 && scales[i] <= 1 << 20))
            return ops_fail(err, CNR_E_ARG, node, "a scale of %g", scales[i]);
        p->scale[a] = scales[i];
        double length = (double)x->dim[a] * scales[i];
        if (p->grid == RESIZE_CROP_AND_RESIZE) length *= p->end[a] - p->begin[a];
        if (scales[i] == 1 && p->grid != RESIZE_CROP_AND_RESIZE) p->size[a] = x->dim[a];
        else if (x->dim[a] < 0) p->size[a] = CNR_DIM_UNKNOWN;
        else if (!(length >= 0 && length <= (double)OPS_MAX_DIM))
            return ops_fail(err, CNR_E_LIMIT, node, "axis %d would have %g elements", a, length);
        /* float rounding: 10 times 2.3f is 23 */
        else p->size[a] = (int64_t)floor((double)(float)length);
    }
    return CNR_OK;
}

/* Fills p's scales and output sizes of n `axes` from their sizes, by keep_aspect_ratio_policy;
 * fails for a bad size. */
static cnr_status from_sizes(const cnr_node *node, resize_plan *p, const double *sizes,
                             const int32_t *axes, int64_t n, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    const int policy = choice(node, "keep_aspect_ratio_policy");
    double scale = 0;
    int known = 1;
    for (int64_t i = 0; i < n; i++) {
        const int32_t a = axes[i];
        if (!(sizes[i] >= 0 && sizes[i] <= (double)OPS_MAX_DIM))
            return ops_fail(err, CNR_E_ARG, node, "a size of %g", sizes[i]);
        p->size[a] = (int64_t)sizes[i];
        p->scale[a] = x->dim[a] > 0 ? sizes[i] / (double)x->dim[a] : 0;
        if (x->dim[a] < 0) known = 0;
        if (i == 0 || (policy == 1 ? p->scale[a] < scale : p->scale[a] > scale))
            scale = p->scale[a];
    }
    for (int64_t i = 0; policy && i < n; i++) {
        const int32_t a = axes[i];
        if (known && scale * (double)x->dim[a] > (double)OPS_MAX_DIM)
            return ops_fail(err, CNR_E_LIMIT, node, "axis %d would be too large", (int)a);
        p->scale[a] = scale;
        p->size[a] = known ? (int64_t)floor(scale * (double)x->dim[a] + 0.5) : CNR_DIM_UNKNOWN;
    }
    return CNR_OK;
}

/* axes receives the n axes that the scales or sizes are of; fails where their number differs. */
static cnr_status plan_axes(const cnr_node *node, int64_t n, int32_t *axes, cnr_error *err) {
    const int32_t rank = node->inputs[0]->rank;
    kit_list given;
    uint32_t set;
    CNR_TRY(kit_ints(node, -1, "axes", &given, err));
    CNR_TRY(kit_axis_set(node, &given, rank, &set, err));
    if (given.n > 0 ? given.n != n : n > rank)
        return ops_fail(err, CNR_E_SHAPE, node, "%lld scales or sizes for %d axes", (long long)n,
                        given.n > 0 ? (int)given.n : (int)rank);
    for (int64_t i = 0; i < n; i++) {
        const int64_t a = given.n > 0 ? given.at[i] : rank - n + i;
        axes[i] = (int32_t)(a < 0 ? a + rank : a);
    }
    return CNR_OK;
}

/* Fills p from what the node, a resize (is_resize) or an upsample, gives: scales or sizes. */
static cnr_status plan_with(const cnr_node *node, int is_resize, resize_plan *p, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    double scales[CNR_MAX_RANK], sizes[CNR_MAX_RANK], roi[2 * CNR_MAX_RANK];
    int32_t axes[CNR_MAX_RANK];
    int64_t n_scales, n_sizes = 0, n_roi = 0;
    memset(p, 0, sizeof *p);
    p->mode = choice(node, "mode");
    if (!is_resize && p->mode > RESIZE_LINEAR) p->mode = RESIZE_LINEAR;
    p->grid = is_resize ? choice(node, "coordinate_transformation_mode") : RESIZE_ASYMMETRIC;
    p->rounding = is_resize ? choice(node, "nearest_mode") : 2;
    p->exclude = cnr_attr_int(node, "exclude_outside") != 0;
    p->antialias = cnr_attr_int(node, "antialias") != 0;
    p->a = cnr_attr_float(node, "cubic_coeff_a");
    p->outside = cnr_attr_float(node, "extrapolation_value");
    for (int32_t a = 0; a < x->rank; a++) {
        p->scale[a] = 1;
        p->size[a] = x->dim[a];
        p->end[a] = 1;
    }
    CNR_TRY(numbers(node, is_resize ? 2 : 1, "scales", scales, CNR_MAX_RANK, &n_scales, err));
    if (is_resize) {
        CNR_TRY(numbers(node, 3, "sizes", sizes, CNR_MAX_RANK, &n_sizes, err));
        if (p->grid == RESIZE_CROP_AND_RESIZE)
            CNR_TRY(numbers(node, 1, NULL, roi, 2 * CNR_MAX_RANK, &n_roi, err));
    }
    if (n_scales < 0 || n_sizes < 0 || n_roi < 0) {
        for (int32_t a = 0; a < x->rank; a++) p->size[a] = CNR_DIM_UNKNOWN;
        return CNR_OK;
    }
    if ((n_scales > 0) == (n_sizes > 0))
        return ops_fail(err, CNR_E_ARG, node, "either scales or sizes are wanted");
    p->known = 1;
    const int64_t n = n_scales > 0 ? n_scales : n_sizes;
    CNR_TRY(plan_axes(node, n, axes, err));
    if (p->grid == RESIZE_CROP_AND_RESIZE && n_roi != 2 * n)
        return ops_fail(err, CNR_E_SHAPE, node, "roi has %lld numbers, wanted %lld",
                        (long long)n_roi, (long long)(2 * n));
    for (int64_t i = 0; n_roi > 0 && i < n; i++) {
        p->begin[axes[i]] = roi[i];
        p->end[axes[i]] = roi[i + n];
    }
    if (n_scales > 0) return from_scales(node, p, scales, axes, n, err);
    return from_sizes(node, p, sizes, axes, n, err);
}

/* Gives y the type of x and the resized shape; fails as the plan does. */
static cnr_status infer_with(const cnr_node *node, int is_resize, cnr_tensor *y, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    resize_plan p;
    CNR_TRY(ops_want(node, 0, OPS_WHOLE, 1, CNR_MAX_RANK, err));
    CNR_TRY(plan_with(node, is_resize, &p, err));
    ops_like(y, x);
    for (int32_t a = 0; a < x->rank; a++) {
        y->dim[a] = p.size[a];
        if (x->dim[a] == 0 && y->dim[a] > 0)
            return ops_fail(err, CNR_E_SHAPE, node, "axis %d has nothing to take from", (int)a);
    }
    return CNR_OK;
}

/* Bytes of the taps of all axes; 0 where the plan fails. */
static uint64_t workspace_with(const cnr_node *node, int is_resize) {
    const cnr_tensor *x = node->inputs[0];
    resize_plan p;
    uint64_t taps = 0;
    if (plan_with(node, is_resize, &p, NULL) != CNR_OK) return 0;
    for (int32_t a = 0; a < x->rank; a++)
        taps += (uint64_t)p.size[a] * (uint64_t)resize_taps(&p, a, x->dim[a]);
    return taps * sizeof(resize_tap);
}

/* ---- iteration over the output ---- */

/* Where a sample is computed: the taps of each axis. */
typedef struct resize_walk {
    const cnr_tensor *x;
    int32_t rank;
    int64_t n[CNR_MAX_RANK];
    const resize_tap *tap[CNR_MAX_RANK]; /* taps of the current position */
} resize_walk;

/* The value at element `at` of x: the weighted sum of the taps of the axes from `axis` on. */
static double sample(const resize_walk *w, int32_t axis, int64_t at) {
    double sum = 0;
    if (axis == w->rank) return ops_get(w->x->dtype, w->x->data, at);
    for (int64_t k = 0; k < w->n[axis]; k++) {
        const resize_tap *tap = &w->tap[axis][k];
        if (tap->weight != 0) sum += tap->weight * sample(w, axis + 1, at + tap->at);
    }
    return sum;
}

/* Computes the run's part by the taps of each axis, which it puts into the workspace. */
static cnr_status reference_with(const cnr_run *run, int is_resize, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    const size_t size = ops_size(y->dtype);
    const int64_t count = cnr_count(y);
    int64_t strides[CNR_MAX_RANK], index[CNR_MAX_RANK] = {0};
    const resize_tap *table[CNR_MAX_RANK];
    resize_tap *taps = run->workspace_data;
    resize_walk w = {.x = x, .rank = x->rank};
    resize_plan p;
    CNR_TRY(plan_with(run->node, is_resize, &p, err));
    kit_dense_strides(x, strides);
    for (int32_t a = 0; a < x->rank; a++) {
        w.n[a] = resize_taps(&p, a, x->dim[a]);
        table[a] = taps;
        for (int64_t i = 0; i < y->dim[a]; i++, taps += w.n[a])
            resize_fill(&p, a, i, x->dim[a], strides[a], w.n[a], taps);
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t at = 0;
        int outside = 0;
        for (int32_t a = 0; a < x->rank; a++) {
            w.tap[a] = table[a] + index[a] * w.n[a];
            if (w.tap[a]->at < 0) outside = 1;
            at += w.tap[a]->at;
        }
        if (outside) elem_set_f64(y, i, p.outside);
        else if (p.mode == RESIZE_NEAREST)
            memcpy((uint8_t *)y->data + (size_t)i * size,
                   (const uint8_t *)x->data + (size_t)at * size, size);
        else elem_set_f64(y, i, sample(&w, 0, 0));
        for (int32_t a = x->rank - 1; a >= 0 && ++index[a] == y->dim[a]; a--) index[a] = 0;
    }
    return CNR_OK;
}

/* Method cost: counts the arithmetic operations of a run. */
static void cost(const cnr_node *node, cnr_cost *c) {
    static const uint64_t each[] = {1, 4, 16};
    c->flops = ops_mul(ops_elements(node->outputs[0]), each[choice(node, "mode") % 3]);
}

/* Defines operator NAME with its hooks; IS_RESIZE: resize, else upsample. */
#define RESIZE_OP(NAME, SUMMARY, IS_RESIZE) \
    static cnr_status NAME##_infer(const cnr_node *node, cnr_tensor *const *outputs, \
                                   cnr_error *err) { \
        return infer_with(node, IS_RESIZE, outputs[0], err); \
    } \
    static uint64_t NAME##_workspace(const cnr_node *node) { \
        return workspace_with(node, IS_RESIZE); \
    } \
    static cnr_status NAME##_reference(const cnr_run *run, cnr_error *err) { \
        return reference_with(run, IS_RESIZE, err); \
    } \
    const cnr_op ops_##NAME = {CNR_OP_SIZES, \
                               .name = #NAME, \
                               .summary = SUMMARY, \
                               .flags = CNR_OP_PURE, \
                               CNR_OP_ATTRS(NAME##_attrs), \
                               CNR_OP_PORTS(NAME##_in, out), \
                               .infer = NAME##_infer, \
                               .cost = cost, \
                               .reference = NAME##_reference, \
                               .reference_workspace = NAME##_workspace};
RESIZE_OP(resize, "Resamples x on another grid.", 1)
RESIZE_OP(upsample, "x enlarged (an older form of resize).", 0)
