/* yolo, region: the activations of Darknet's detection heads; boxes are decoded by who reads them.
 *
 * Channels of x, for each anchor: x, y, w, h, objectness, then a score a class. */
#include "ops_kit.h"

static const cnr_port in[] = {{.name = "x", .help = "N, anchors (coords + 1 + classes), H, W"}};
static const cnr_port out[] = {{.name = "y", .help = "the shape of x"}};
/* A whole attribute of 0 or more. */
#define COUNT(NAME, DEFAULT, TEXT) \
    { \
        .name = NAME, .type = CNR_ATTR_INT, .flags = CNR_ATTR_BOUNDED, .min = 0, .max = 1 << 20, \
        .default_i = DEFAULT, .help = TEXT \
    }
static const cnr_attr_spec yolo_attrs[] = {COUNT("classes", 80, "classes"),
                                           COUNT("num", 3, "anchors"),
                                           {.name = "scale_x_y",
                                            .type = CNR_ATTR_FLOAT,
                                            .default_f = 1,
                                            .help =
                                                "factor by which x and y may leave their cell"}};
static const cnr_attr_spec region_attrs[] =
    {COUNT("classes", 20, "classes"),
     COUNT("num", 5, "anchors"),
     COUNT("coords", 4, "number of values of a box"),
     {.name = "softmax", .type = CNR_ATTR_BOOL, .default_i = 1, .help = "over the classes"},
     {.name = "background", .type = CNR_ATTR_BOOL, .help = "objectness is treated as a class"}};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const int64_t coords = cnr_attr_find(node, "coords") ? cnr_attr_int(node, "coords") : 4;
    const int64_t channels =
        cnr_attr_int(node, "num") * (coords + 1 + cnr_attr_int(node, "classes"));
    CNR_TRY(ops_want(node, 0, OPS_FLOATS, 4, 4, err));
    if (coords < 2 || channels == 0 || !ops_dims_agree(node->inputs[0]->dim[1], channels))
        return ops_fail(err, CNR_E_SHAPE, node, "x has %lld channels, wanted %lld",
                        (long long)node->inputs[0]->dim[1], (long long)channels);
    ops_like(outputs[0], node->inputs[0]);
    return CNR_OK;
}

static double logistic(double v) { return 1 / (1 + exp(-v)); }

/* Plane `from` of y: logistic(x) * scale + shift if active, else x. */
static void plane(const cnr_run *run, int64_t from, int active, double scale, double shift) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    const int64_t area = x->dim[2] * x->dim[3];
    for (int64_t i = from * area; i < (from + 1) * area; i++) {
        const double v = elem_f64(x, i);
        elem_set_f64(y, i, active ? logistic(v) * scale + shift : v);
    }
}

/* Method reference of yolo, activations of a YOLO head: sigmoid, except for widths and heights;
 * returns CNR_OK. */
static cnr_status yolo_reference(const cnr_run *run, cnr_error *err) {
    const int64_t each = 5 + cnr_attr_int(run->node, "classes");
    const int64_t planes = run->outputs[0]->dim[0] * run->outputs[0]->dim[1];
    const double scale = cnr_attr_float(run->node, "scale_x_y");
    (void)err;
    for (int64_t p = 0; p < planes; p++) {
        const int64_t entry = p % each;
        const int position = entry < 2;
        plane(run, p, position || entry >= 4, position ? scale : 1,
              position ? -0.5 * (scale - 1) : 0);
    }
    return CNR_OK;
}

/* Softmax over n channels from `first`, at each place of the run. */
static void softmax(const cnr_run *run, int64_t first, int64_t n) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    const int64_t area = x->dim[2] * x->dim[3];
    for (int64_t i = first * area; i < (first + 1) * area; i++) {
        double top = -INFINITY, sum = 0;
        for (int64_t c = 0; c < n; c++) top = fmax(top, elem_f64(x, i + c * area));
        for (int64_t c = 0; c < n; c++) sum += exp(elem_f64(x, i + c * area) - top);
        for (int64_t c = 0; c < n; c++)
            elem_set_f64(y, i + c * area, exp(elem_f64(x, i + c * area) - top) / sum);
    }
}

/* Method reference of region, activations of a YOLO v2 head: sigmoid, and softmax over the classes;
 * returns CNR_OK. */
static cnr_status region_reference(const cnr_run *run, cnr_error *err) {
    const cnr_node *node = run->node;
    const int64_t coords = cnr_attr_int(node, "coords"), classes = cnr_attr_int(node, "classes");
    const int soft = cnr_attr_int(node, "softmax") != 0;
    const int background = cnr_attr_int(node, "background") != 0;
    const int64_t each = coords + 1 + classes;
    const int64_t planes = run->outputs[0]->dim[0] * run->outputs[0]->dim[1];
    (void)err;
    for (int64_t p = 0; p < planes; p += each) {
        const int64_t scores = coords + !background;
        for (int64_t entry = 0; entry < (soft ? scores : each); entry++)
            plane(run, p + entry, entry < 2 || (entry == coords && !background) || entry > coords,
                  1, 0);
        if (soft) softmax(run, p + scores, each - scores);
    }
    return CNR_OK;
}

/* Operator NAME, with the hooks of this file. */
#define HEAD_OP(NAME, SUMMARY) \
    const cnr_op ops_##NAME = {CNR_OP_SIZES, \
                               .name = #NAME, \
                               .summary = SUMMARY, \
                               .flags = CNR_OP_PURE, \
                               CNR_OP_ATTRS(NAME##_attrs), \
                               CNR_OP_PORTS(in, out), \
                               .infer = infer, \
                               .cost = kit_cost_flops, \
                               .reference = NAME##_reference}
HEAD_OP(yolo, "Activations of a YOLO head (v3 on): sigmoid, except for widths and heights.");
HEAD_OP(region, "Activations of a YOLO v2 head: sigmoid, and softmax over the classes.");
