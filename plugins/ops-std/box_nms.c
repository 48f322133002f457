/* box_nms: sorts rows of boxes and marks suppressed ones; the number of rows stays, as in MXNet. */
#include "nms.h"

static const cnr_port in[] = {{.name = "x", .help = "..., boxes, numbers per box"}};
static const cnr_port out[] = {
    {.name = "y", .help = "the rows that stay, best first, then rows of -1"}};
/* Attribute: a place in a row, -1 for none. */
#define INDEX(NAME, VALUE, TEXT) \
    { \
        .name = NAME, .type = CNR_ATTR_INT, .flags = CNR_ATTR_BOUNDED, .min = -1, .max = 1 << 30, \
        .default_i = VALUE, .help = TEXT \
    }
static const cnr_attr_spec attrs[] =
    {{.name = "overlap_thresh",
      .type = CNR_ATTR_FLOAT,
      .default_f = 0.5,
      .help = "maximum overlap of boxes of a class"},
     {.name = "valid_thresh", .type = CNR_ATTR_FLOAT, .help = "minimum score"},
     INDEX("topk", -1, "number of best boxes before suppression; -1: all"),
     INDEX("coord_start", 2, "index of the box's four numbers in its row"),
     INDEX("score_index", 1, "index of its score"),
     INDEX("id_index", -1, "index of its class; -1: all boxes have one class"),
     INDEX("background_id", -1, "the class of the background; -1: none"),
     {.name = "force_suppress",
      .type = CNR_ATTR_BOOL,
      .help = "suppress boxes of different classes, too"},
     {.name = "center_in",
      .type = CNR_ATTR_BOOL,
      .help = "input boxes are centre x, centre y, width, height, not corners"},
     {.name = "center_out", .type = CNR_ATTR_BOOL, .help = "output boxes are so, too"}};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    CNR_TRY(ops_want(node, 0, OPS_FLOATS, 2, CNR_MAX_RANK, err));
    const int64_t k = x->dim[x->rank - 1], box = cnr_attr_int(node, "coord_start");
    const int64_t score = cnr_attr_int(node, "score_index"), id = cnr_attr_int(node, "id_index");
    if (box < 0 || score < 0 || (k >= 0 && (box + 4 > k || score >= k || id >= k)))
        return ops_fail(err, CNR_E_ARG, node, "a row of %lld has no such numbers", (long long)k);
    ops_like(outputs[0], x);
    return CNR_OK;
}

/* Method workspace: bytes of scratch that reference needs. */
static uint64_t workspace(const cnr_node *node) {
    const cnr_tensor *x = node->inputs[0];
    return ops_mul((uint64_t)x->dim[x->rank - 2],
                   sizeof(nms_box) + sizeof(double) + sizeof(int64_t));
}

/* The box in the four elements from `at` on: two corners, or with `centre`, centre and size. */
static nms_box box_at(const cnr_tensor *x, int64_t at, int centre) {
    double v[4];
    for (int i = 0; i < 4; i++) v[i] = elem_f64(x, at + i);
    if (!centre) return (nms_box){v[0], v[1], v[2], v[3]};
    return (nms_box){v[0] - v[2] / 2, v[1] - v[3] / 2, v[0] + v[2] / 2, v[1] + v[3] / 2};
}

/* Moves boxes of different classes apart, so that they cannot overlap. */
static void apart(nms_box *boxes, const int64_t *order, int64_t some, const cnr_tensor *x,
                  int64_t first, int64_t k, int64_t id) {
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < some; i++) {
        low = fmin(low, boxes[order[i]].x0);
        high = fmax(high, boxes[order[i]].x1);
    }
    for (int64_t i = 0; i < some; i++) {
        const double far = elem_f64(x, (first + order[i]) * k + id) * (fmax(high - low, 0) + 1);
        boxes[order[i]].x0 += far;
        boxes[order[i]].x1 += far;
    }
}

/* Copies row `from` of the input to row `to` of y, with the box in the wanted form. */
static void copy_row(const cnr_node *node, const cnr_tensor *y, int64_t to, int64_t from) {
    const cnr_tensor *x = node->inputs[0];
    const int64_t k = x->dim[x->rank - 1], start = cnr_attr_int(node, "coord_start");
    const int centre = cnr_attr_int(node, "center_in") != 0;
    const int want = cnr_attr_int(node, "center_out") != 0;
    for (int64_t i = 0; i < k; i++) elem_set_f64(y, to * k + i, elem_f64(x, from * k + i));
    if (centre == want) return;
    const nms_box b = box_at(x, from * k + start, centre);
    const double v[2][4] = {{b.x0, b.y0, b.x1, b.y1},
                            {(b.x0 + b.x1) / 2, (b.y0 + b.y1) / 2, b.x1 - b.x0, b.y1 - b.y0}};
    for (int i = 0; i < 4; i++) elem_set_f64(y, to * k + start + i, v[want][i]);
}

/* Method reference of box_nms: non-maximum suppression on rows of boxes, best first; returns
 * CNR_OK. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_node *node = run->node;
    const cnr_tensor *x = node->inputs[0], *y = run->outputs[0];
    const int64_t n = x->dim[x->rank - 2], k = x->dim[x->rank - 1];
    const int64_t id = cnr_attr_int(node, "id_index"), top = cnr_attr_int(node, "topk");
    const int64_t nothing = cnr_attr_int(node, "background_id");
    const int64_t pictures = n && k ? cnr_count(x) / n / k : 0;
    const double least = cnr_attr_float(node, "valid_thresh");
    nms_box *boxes = run->workspace_data;
    double *score = (double *)(boxes + n);
    int64_t *order = (int64_t *)(score + n);
    (void)err;
    for (int64_t first = 0; first < pictures * n; first += n) {
        int64_t some = 0;
        for (int64_t i = 0; i < n; i++) {
            const int64_t row = (first + i) * k;
            score[i] = elem_f64(x, row + cnr_attr_int(node, "score_index"));
            boxes[i] = box_at(x, row + cnr_attr_int(node, "coord_start"),
                              cnr_attr_int(node, "center_in") != 0);
            const int thing = id < 0 || nothing < 0 || elem_f64(x, row + id) != (double)nothing;
            if (score[i] > least && thing) order[some++] = i;
        }
        nms_sort(order, some, score);
        if (top >= 0 && top < some) some = top;
        if (id >= 0 && !cnr_attr_int(node, "force_suppress"))
            apart(boxes, order, some, x, first, k, id);
        some = nms_keep(order, some, boxes, cnr_attr_float(node, "overlap_thresh"), 1, some);
        for (int64_t i = 0; i < some; i++) copy_row(node, y, first + i, first + order[i]);
        for (int64_t i = (first + some) * k; i < (first + n) * k; i++) elem_set_f64(y, i, -1);
    }
    return CNR_OK;
}

const cnr_op ops_box_nms = {
    CNR_OP_SIZES,
    .name = "box_nms",
    .summary = "Non-maximum suppression on rows of boxes, best first.",
    .flags = CNR_OP_PURE,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .reference = reference,
    .reference_workspace = workspace,
};
