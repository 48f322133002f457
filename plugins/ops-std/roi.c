/* max_roi_pool, roi_align: pool regions of a feature map to a fixed size. */
#include "ops_kit.h"

static const cnr_port pool_in[] = {{.name = "x", .help = "N C H W"},
                                   {.name = "rois",
                                    .help = "one row each: picture, x0 y0 x1 y1 in pixels"}};
static const cnr_port align_in[] = {{.name = "x", .help = "N C H W"},
                                    {.name = "rois", .help = "one row each: x0 y0 x1 y1"},
                                    {.name = "batch_indices", .help = "i64: the picture of each"}};
static const cnr_port out[] = {{.name = "y", .help = "regions, C, height, width"}};
#define SCALE_ROW \
    { \
        .name = "spatial_scale", .type = CNR_ATTR_FLOAT, .default_f = 1, \
        .help = "factor from the rois' pixels to those of x" \
    }
static const cnr_attr_spec pool_attrs[] = {{.name = "pooled_shape",
                                            .type = CNR_ATTR_INTS,
                                            .flags = CNR_ATTR_REQUIRED | CNR_ATTR_BOUNDED,
                                            .min = 1,
                                            .max = 1 << 16,
                                            .help = "height and width of y"},
                                           SCALE_ROW};
static const char *const align_modes[] = {"avg", "max", NULL};
static const char *const align_grids[] = {"half_pixel", "output_half_pixel", NULL};
/* Attribute: a side of the output, in elements. */
#define SIDE(NAME, TEXT) \
    { \
        .name = NAME, .type = CNR_ATTR_INT, .flags = CNR_ATTR_BOUNDED, .min = 1, .max = 1 << 16, \
        .default_i = 1, .help = TEXT \
    }
static const cnr_attr_spec align_attrs[] =
    {{.name = "mode",
      .type = CNR_ATTR_ENUM,
      .default_s = "avg",
      .choices = align_modes,
      .help = "reduction of a bin's samples"},
     SIDE("output_height", "height of y"),
     SIDE("output_width", "width of y"),
     {.name = "sampling_ratio",
      .type = CNR_ATTR_INT,
      .flags = CNR_ATTR_BOUNDED,
      .min = 0,
      .max = 1 << 10,
      .help = "samples along each side of a bin; 0: by its size"},
     SCALE_ROW,
     {.name = "coordinate_transformation_mode",
      .type = CNR_ATTR_ENUM,
      .default_s = "half_pixel",
      .choices = align_grids,
      .help = "half_pixel: the centre of a pixel is at one half; output_half_pixel: as before "
              "opset 16"}};
static const char *const pool_aliases[] = {"roi_pool", NULL};

/* Gives y the shape [regions, channels, height, width]; fails unless a region has `row` numbers. */
static cnr_status infer_with(const cnr_node *node, int64_t row, int64_t height, int64_t width,
                             cnr_tensor *y, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0], *rois = node->inputs[1];
    CNR_TRY(ops_want(node, 0, OPS_FLOATS, 4, 4, err));
    CNR_TRY(ops_want(node, 1, OPS_FLOATS, 2, 2, err));
    if (!ops_dims_agree(rois->dim[1], row))
        return ops_fail(err, CNR_E_SHAPE, node, "a region has %lld numbers, wanted %lld",
                        (long long)rois->dim[1], (long long)row);
    y->dtype = x->dtype;
    y->rank = 4;
    y->dim[0] = rois->dim[0];
    y->dim[1] = x->dim[1];
    y->dim[2] = height;
    y->dim[3] = width;
    return CNR_OK;
}

/* Method infer of pool: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status pool_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    int64_t n;
    const int64_t *shape = cnr_attr_ints(node, "pooled_shape", &n);
    if (n != 2) return ops_fail(err, CNR_E_ARG, node, "pooled_shape has two numbers");
    return infer_with(node, 5, shape[0], shape[1], outputs[0], err);
}

/* Method infer of align: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status align_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    int64_t n;
    CNR_TRY(ops_want(node, 2, OPS_INTS, 1, 1, err));
    CNR_TRY(infer_with(node, 4, cnr_attr_int(node, "output_height"),
                       cnr_attr_int(node, "output_width"), outputs[0], err));
    return kit_same(node, node->inputs[1]->dim[0], node->inputs[2]->dim[0], &n, err);
}

/* *picture receives the number v of a picture in the batch; fails where there is none. */
static cnr_status picture_of(const cnr_node *node, double v, int64_t *picture, cnr_error *err) {
    const int64_t n = node->inputs[0]->dim[0];
    if (!(v >= 0 && v < (double)n))
        return ops_fail(err, CNR_E_ARG, node, "picture %g of %lld", v, (long long)n);
    *picture = (int64_t)v;
    return CNR_OK;
}

/* Rounds the boundary of a bin along a side and clips it to the map. */
static int64_t edge(double v, double start, int64_t limit) {
    v += start;
    return !(v >= 0) ? 0 : v > (double)limit ? limit : (int64_t)v;
}

/* NaN counts as largest. */
static double larger(double a, double b) { return a > b || a != a ? a : b; }

/* Method reference of max_roi_pool: the largest value in each bin of each region; NaN is larger
 * than all. */
static cnr_status pool_reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *rois = run->node->inputs[1];
    const cnr_tensor *y = run->outputs[0];
    const double scale = cnr_attr_float(run->node, "spatial_scale");
    const int64_t h = x->dim[2], w = x->dim[3], ph = y->dim[2], pw = y->dim[3];
    int64_t to = 0;
    for (int64_t r = 0; r < rois->dim[0]; r++) {
        double c[4];
        int64_t picture;
        CNR_TRY(picture_of(run->node, elem_f64(rois, r * 5), &picture, err));
        for (int k = 0; k < 4; k++) c[k] = round(elem_f64(rois, r * 5 + 1 + k) * scale);
        const double bin_h = fmax(c[3] - c[1] + 1, 1) / (double)ph;
        const double bin_w = fmax(c[2] - c[0] + 1, 1) / (double)pw;
        for (int64_t i = 0; i < x->dim[1] * ph * pw; i++, to++) {
            const int64_t channel = i / (ph * pw), a = i / pw % ph, b = i % pw;
            const int64_t y0 = edge(floor((double)a * bin_h), c[1], h);
            const int64_t y1 = edge(ceil((double)(a + 1) * bin_h), c[1], h);
            const int64_t x0 = edge(floor((double)b * bin_w), c[0], w);
            const int64_t x1 = edge(ceil((double)(b + 1) * bin_w), c[0], w);
            double best = y1 > y0 && x1 > x0 ? -INFINITY : 0;
            for (int64_t p = y0; p < y1; p++)
                for (int64_t q = x0; q < x1; q++)
                    best = larger(best,
                                  elem_f64(x, ((picture * x->dim[1] + channel) * h + p) * w + q));
            elem_set_f64(y, to, best);
        }
    }
    return CNR_OK;
}

/* Bilinear interpolation of the four pixels around (py, px); largest: the maximum of the weighted
 * pixels instead of their sum. */
static double bilinear(const cnr_tensor *x, int64_t base, double py, double px, int largest) {
    const int64_t h = x->dim[2], w = x->dim[3];
    if (h < 1 || w < 1 || py < -1 || py > (double)h || px < -1 || px > (double)w) return 0;
    py = fmin(fmax(py, 0), (double)(h - 1));
    px = fmin(fmax(px, 0), (double)(w - 1));
    const int64_t y0 = (int64_t)py, x0 = (int64_t)px;
    const int64_t y1 = y0 + 1 < h ? y0 + 1 : y0, x1 = x0 + 1 < w ? x0 + 1 : x0;
    const double fy = py - (double)y0, fx = px - (double)x0;
    const double v[4] = {(1 - fy) * (1 - fx) * elem_f64(x, base + y0 * w + x0),
                         (1 - fy) * fx * elem_f64(x, base + y0 * w + x1),
                         fy * (1 - fx) * elem_f64(x, base + y1 * w + x0),
                         fy * fx * elem_f64(x, base + y1 * w + x1)};
    return largest ? larger(larger(v[0], v[1]), larger(v[2], v[3])) : v[0] + v[1] + v[2] + v[3];
}

/* Sampling points along a bin: as wanted, else one for each element it covers. */
static int64_t samples(int64_t wanted, double bin) {
    const double n = ceil(bin);
    return wanted > 0 ? wanted : !(n >= 1) ? 1 : n > 1024 ? 1024 : (int64_t)n;
}

/* Method reference of roi_align: the mean or largest of samples in each bin of each region; NaN is
 * larger than all. */
static cnr_status align_reference(const cnr_run *run, cnr_error *err) {
    const cnr_node *node = run->node;
    const cnr_tensor *x = node->inputs[0], *rois = node->inputs[1], *y = run->outputs[0];
    const double scale = cnr_attr_float(node, "spatial_scale");
    const int half = cnr_attr_is(node, "coordinate_transformation_mode", "half_pixel");
    const int largest = cnr_attr_is(node, "mode", "max");
    const int64_t ratio = cnr_attr_int(node, "sampling_ratio"), ph = y->dim[2], pw = y->dim[3];
    int64_t to = 0;
    for (int64_t r = 0; r < rois->dim[0]; r++) {
        double c[4];
        int64_t picture;
        CNR_TRY(picture_of(node, elem_f64(node->inputs[2], r), &picture, err));
        for (int k = 0; k < 4; k++) c[k] = elem_f64(rois, r * 4 + k) * scale - (half ? 0.5 : 0);
        double roi_w = c[2] - c[0], roi_h = c[3] - c[1];
        if (!half) roi_w = fmax(roi_w, 1), roi_h = fmax(roi_h, 1);
        const double bin_h = roi_h / (double)ph, bin_w = roi_w / (double)pw;
        const int64_t nh = samples(ratio, bin_h), nw = samples(ratio, bin_w);
        for (int64_t i = 0; i < x->dim[1] * ph * pw; i++, to++) {
            const int64_t base = (picture * x->dim[1] + i / (ph * pw)) * x->dim[2] * x->dim[3];
            double sum = largest ? -INFINITY : 0;
            for (int64_t s = 0; s < nh * nw; s++) {
                const double py = c[1] + (double)(i / pw % ph) * bin_h +
                                  ((double)(s / nw) + 0.5) * bin_h / (double)nh;
                const double px =
                    c[0] + (double)(i % pw) * bin_w + ((double)(s % nw) + 0.5) * bin_w / (double)nw;
                const double v = bilinear(x, base, py, px, largest);
                sum = largest ? larger(sum, v) : sum + v;
            }
            elem_set_f64(y, to, largest ? sum : sum / (double)(nh * nw));
        }
    }
    return CNR_OK;
}

const cnr_op ops_max_roi_pool = {
    CNR_OP_SIZES,
    .name = "max_roi_pool",
    .summary = "The largest value in each bin of each region; NaN is larger than all.",
    .aliases = pool_aliases,
    .flags = CNR_OP_PURE,
    CNR_OP_ATTRS(pool_attrs),
    CNR_OP_PORTS(pool_in, out),
    .infer = pool_infer,
    .reference = pool_reference,
};

const cnr_op ops_roi_align = {
    CNR_OP_SIZES,
    .name = "roi_align",
    .summary = "The mean or largest of samples in each bin of each region; NaN is larger than all.",
    .flags = CNR_OP_PURE,
    CNR_OP_ATTRS(align_attrs),
    CNR_OP_PORTS(align_in, out),
    .infer = align_infer,
    .reference = align_reference,
};
