/* prior_box: the default boxes of SSD at every position of a feature map (Caffe). */
#include "ops_kit.h"

static const cnr_port in[] = {{.name = "x", .help = "feature map, N C H W; its data is not read"},
                              {.name = "image",
                               .help = "the picture, N C H W; its data is not read"}};
static const cnr_port out[] = {
    {.name = "y", .help = "1 2 n: corners x0 y0 x1 y1 from 0 to 1, and their variances"}};
/* Attribute: a size in pixels, 0 for none. */
#define SIZE(NAME, TEXT) \
    { \
        .name = NAME, .type = CNR_ATTR_INT, .flags = CNR_ATTR_BOUNDED, .min = 0, .max = 1 << 30, \
        .help = TEXT \
    }
static const cnr_attr_spec attrs[] =
    {{.name = "min_size",
      .type = CNR_ATTR_FLOATS,
      .flags = CNR_ATTR_REQUIRED,
      .help = "sides of square boxes, pixels of the picture"},
     {.name = "max_size",
      .type = CNR_ATTR_FLOATS,
      .help = "one for each min_size: adds a square with the geometric mean of both as side"},
     {.name = "aspect_ratio", .type = CNR_ATTR_FLOATS, .help = "width over height of more boxes"},
     {.name = "flip",
      .type = CNR_ATTR_BOOL,
      .default_i = 1,
      .help = "add the inverse of each ratio"},
     {.name = "clip", .type = CNR_ATTR_BOOL, .help = "clip boxes at the picture's border"},
     {.name = "variance", .type = CNR_ATTR_FLOATS, .help = "one or four; none: 0.1"},
     SIZE("img_h", "height of the picture; 0: that of the input"),
     SIZE("img_w", "width of the picture; 0: that of the input"),
     {.name = "step_h", .type = CNR_ATTR_FLOAT, .help = "distance of positions in pixels; 0: even"},
     {.name = "step_w", .type = CNR_ATTR_FLOAT, .help = "distance of positions in pixels; 0: even"},
     {.name = "offset",
      .type = CNR_ATTR_FLOAT,
      .default_f = 0.5,
      .help = "position of a box's centre in its cell"}};

#define MAX_RATIOS 64

/* Writes 1, then each distinct ratio of the node and, with flip, its inverse; returns how many. */
static int32_t ratios_of(const cnr_node *node, double *ratios) {
    int64_t n;
    const double *given = cnr_attr_floats(node, "aspect_ratio", &n);
    int32_t count = 0;
    ratios[count++] = 1;
    for (int64_t i = 0; i < n; i++) {
        int known = 0;
        for (int32_t k = 0; k < count; k++) known |= fabs(given[i] - ratios[k]) < 1e-6;
        if (known || count + 2 > MAX_RATIOS) continue;
        ratios[count++] = given[i];
        if (cnr_attr_int(node, "flip")) ratios[count++] = 1 / given[i];
    }
    return count;
}

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    double ratios[MAX_RATIOS];
    int64_t n_min, n_max, n_variance, n_ratios;
    const double *least = cnr_attr_floats(node, "min_size", &n_min);
    const double *given = cnr_attr_floats(node, "aspect_ratio", &n_ratios);
    const double *most = cnr_attr_floats(node, "max_size", &n_max);
    cnr_attr_floats(node, "variance", &n_variance);
    CNR_TRY(ops_want(node, 0, OPS_FLOATS, 4, 4, err));
    CNR_TRY(ops_want(node, 1, ~0u, 4, 4, err));
    if (n_min < 1 || (n_max != 0 && n_max != n_min) || n_ratios >= MAX_RATIOS / 2 ||
        (n_variance != 0 && n_variance != 1 && n_variance != 4))
        return ops_fail(err, CNR_E_ARG, node,
                        "wanted: a min_size or more, as many max_size or none, at most 31 ratios, "
                        "0, 1 or 4 variances");
    for (int64_t i = 0; i < n_min; i++)
        if (!(least[i] > 0) || (n_max && !(most[i] >= least[i])))
            return ops_fail(err, CNR_E_ARG, node, "sizes must be above 0, max_size above min_size");
    for (int64_t i = 0; i < n_ratios; i++)
        if (!(given[i] > 0))
            return ops_fail(err, CNR_E_ARG, node, "an aspect ratio of %g", given[i]);
    cnr_tensor *y = outputs[0];
    const int64_t each = ratios_of(node, ratios) * n_min + n_max;
    y->dtype = node->inputs[0]->dtype;
    y->rank = 3;
    y->dim[0] = 1;
    y->dim[1] = 2;
    CNR_TRY(kit_mul(node, node->inputs[0]->dim[2], node->inputs[0]->dim[3], &y->dim[2], err));
    return kit_mul(node, y->dim[2], 4 * each, &y->dim[2], err);
}

/* Where boxes are written (element `at` of y), and the image's size in pixels. */
typedef struct prior_box {
    const cnr_tensor *y;
    int64_t at;
    double width, height;
    int clip;
} prior_box;

/* Writes the next box of centre (x, y), in parts of the image's size. */
static void put(prior_box *p, double x, double y, double w, double h) {
    const double corner[4] = {(x - w / 2) / p->width, (y - h / 2) / p->height,
                              (x + w / 2) / p->width, (y + h / 2) / p->height};
    for (int i = 0; i < 4; i++) {
        const double v = corner[i];
        elem_set_f64(p->y, p->at++, !p->clip ? v : v < 0 ? 0 : v > 1 ? 1 : v);
    }
}

/* Method reference of prior_box: prior boxes of several sizes and shapes at every position of a
 * feature map; returns CNR_OK. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_node *node = run->node;
    const cnr_tensor *x = node->inputs[0], *image = node->inputs[1];
    const int64_t img_h = cnr_attr_int(node, "img_h"), img_w = cnr_attr_int(node, "img_w");
    prior_box p = {run->outputs[0], 0, (double)(img_w ? img_w : image->dim[3]),
                   (double)(img_h ? img_h : image->dim[2]), cnr_attr_int(node, "clip") != 0};
    double step_w = cnr_attr_float(node, "step_w"), step_h = cnr_attr_float(node, "step_h");
    const double offset = cnr_attr_float(node, "offset");
    double ratios[MAX_RATIOS];
    int64_t n_min, n_max, n_variance;
    const double *least = cnr_attr_floats(node, "min_size", &n_min);
    const double *most = cnr_attr_floats(node, "max_size", &n_max);
    const double *variance = cnr_attr_floats(node, "variance", &n_variance);
    const int32_t n_ratios = ratios_of(node, ratios);
    (void)err;
    if (!(step_w > 0)) step_w = p.width / (double)x->dim[3];
    if (!(step_h > 0)) step_h = p.height / (double)x->dim[2];
    for (int64_t place = 0; place < x->dim[2] * x->dim[3]; place++) {
        const double cx = ((double)(place % x->dim[3]) + offset) * step_w;
        const double cy = ((double)(place / x->dim[3]) + offset) * step_h;
        for (int64_t s = 0; s < n_min; s++) {
            put(&p, cx, cy, least[s], least[s]);
            if (n_max) put(&p, cx, cy, sqrt(least[s] * most[s]), sqrt(least[s] * most[s]));
            for (int32_t r = 1; r < n_ratios; r++)
                put(&p, cx, cy, least[s] * sqrt(ratios[r]), least[s] / sqrt(ratios[r]));
        }
    }
    for (int64_t i = 0; p.at < cnr_count(p.y); i++)
        elem_set_f64(p.y, p.at++, n_variance ? variance[i % n_variance] : 0.1);
    return CNR_OK;
}

const cnr_op ops_prior_box = {
    CNR_OP_SIZES,
    .name = "prior_box",
    .summary = "Prior boxes of several sizes and shapes at every position of a feature map.",
    .flags = CNR_OP_PURE,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .reference = reference,
};
