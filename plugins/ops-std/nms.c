/* Non-maximum suppression (nms.h), and non_max_suppression, ONNX's operator of it. */
#include "nms.h"

/* 1: box a comes before b: by a higher score, then by its number. */
static int better(const double *scores, int64_t a, int64_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
}

/* Moves heap[at] down until no child is worse: the worst of n is at the top. */
static void sink(int64_t *heap, int64_t n, int64_t at, const double *scores) {
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && better(scores, heap[child], heap[child + 1])) child++;
        if (!better(scores, heap[at], heap[child])) return;
        const int64_t moved = heap[at];
        heap[at] = heap[child];
        heap[child] = moved;
    }
}

void nms_sort(int64_t *order, int64_t n, const double *scores) {
    for (int64_t i = n / 2 - 1; i >= 0; i--) sink(order, n, i, scores);
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t moved = order[0];
        order[0] = order[i];
        order[i] = moved;
        sink(order, i, 0, scores);
    }
}

/* Area of a box; 0 where a side is negative. */
static double area(const nms_box *b) {
    return b->x1 < b->x0 || b->y1 < b->y0 ? 0 : (b->x1 - b->x0) * (b->y1 - b->y0);
}

/* Common area of two boxes divided by the area of both together; 0 where that is none. */
static double overlap(const nms_box *a, const nms_box *b) {
    const nms_box both = {fmax(a->x0, b->x0), fmax(a->y0, b->y0), fmin(a->x1, b->x1),
                          fmin(a->y1, b->y1)};
    const double common = area(&both), all = area(a) + area(b) - common;
    return common > 0 && all > 0 ? common / all : 0;
}

int64_t nms_keep(int64_t *order, int64_t n, const nms_box *boxes, double threshold, double eta,
                 int64_t most) {
    int64_t kept = 0;
    for (int64_t i = 0; i < n && kept < most; i++) {
        int free = 1;
        for (int64_t k = 0; k < kept && free; k++)
            free = !(overlap(&boxes[order[i]], &boxes[order[k]]) > threshold);
        if (!free) continue;
        order[kept++] = order[i];
        if (eta < 1 && threshold > 0.5) threshold *= eta;
    }
    return kept;
}

/* ---- non_max_suppression ---- */

/* The row of an optional input NAME. */
#define NUMBER(NAME, TEXT) \
    { .name = NAME, .flags = CNR_PORT_OPTIONAL, .help = TEXT }
static const cnr_port in[] = {{.name = "boxes",
                               .help = "N, boxes, 4: y0 x0 y1 x1, or see center_point_box"},
                              {.name = "scores", .help = "N, classes, boxes"},
                              NUMBER("max_output_boxes_per_class",
                                     "maximum number of boxes of a class and picture; none: 0"),
                              NUMBER("iou_threshold", "maximum overlap of boxes"),
                              NUMBER("score_threshold", "minimum score")};
static const cnr_port out[] = {{.name = "selected", .help = "i64, rows: picture, class, box"}};
static const cnr_attr_spec attrs[] = {{.name = "center_point_box",
                                       .type = CNR_ATTR_BOOL,
                                       .help = "boxes are centre x, centre y, width, height"}};

/* Most boxes that a class keeps: the constant input 2, at most `boxes`; `boxes` where the input is
 * unknown, 0 where it is not positive. */
static int64_t most_of(const cnr_node *node, int64_t boxes) {
    int known;
    const double most = kit_scalar(node, 2, NULL, &known);
    if (!known || boxes < 0) return boxes;
    return most <= 0 ? 0 : most < (double)boxes ? (int64_t)most : boxes;
}

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_tensor *boxes = node->inputs[0], *scores = node->inputs[1];
    cnr_tensor *y = outputs[0];
    int64_t n, count;
    CNR_TRY(ops_want(node, 0, OPS_FLOATS, 3, 3, err));
    CNR_TRY(ops_want(node, 1, OPS_FLOATS, 3, 3, err));
    CNR_TRY(kit_want(node, 2, OPS_INTS, 0, 1, err));
    CNR_TRY(kit_want(node, 3, OPS_FLOATS, 0, 1, err));
    CNR_TRY(kit_want(node, 4, OPS_FLOATS, 0, 1, err));
    CNR_TRY(kit_same(node, boxes->dim[0], scores->dim[0], &n, err));
    CNR_TRY(kit_same(node, boxes->dim[1], scores->dim[2], &count, err));
    if (!ops_dims_agree(boxes->dim[2], 4))
        return ops_fail(err, CNR_E_SHAPE, node, "a box has 4 numbers, not %lld",
                        (long long)boxes->dim[2]);
    y->dtype = CNR_i64;
    y->rank = 2;
    y->dim[1] = 3;
    y->flags |= CNR_TENSOR_DYNAMIC;
    CNR_TRY(kit_mul(node, n, scores->dim[1], &y->dim[0], err));
    return kit_mul(node, y->dim[0], most_of(node, count), &y->dim[0], err);
}

/* Method workspace: bytes of scratch that reference needs. */
static uint64_t workspace(const cnr_node *node) {
    return ops_mul((uint64_t)node->inputs[0]->dim[1],
                   sizeof(nms_box) + sizeof(double) + sizeof(int64_t));
}

/* Reads n boxes from box `first`; centre: they are given by centre and size. */
static void load_boxes(const cnr_tensor *t, int64_t first, int64_t n, int centre, nms_box *out_) {
    for (int64_t i = 0; i < n; i++) {
        double v[4];
        for (int k = 0; k < 4; k++) v[k] = elem_f64(t, (first + i) * 4 + k);
        if (centre)
            out_[i] = (nms_box){v[0] - v[2] / 2, v[1] - v[3] / 2, v[0] + v[2] / 2, v[1] + v[3] / 2};
        else /* corners in any order */
            out_[i] =
                (nms_box){fmin(v[1], v[3]), fmin(v[0], v[2]), fmax(v[1], v[3]), fmax(v[0], v[2])};
    }
}

/* Method reference of non_max_suppression: non-maximum suppression: the best boxes of each class
 * that do not overlap; boxes with score NaN are left out; returns CNR_OK. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_node *node = run->node;
    const cnr_tensor *boxes = node->inputs[0], *scores = node->inputs[1];
    const int64_t n = boxes->dim[1], classes = scores->dim[1], most = most_of(node, n);
    nms_box *box = run->workspace_data;
    double *score = (double *)(box + n);
    int64_t *order = (int64_t *)(score + n), *y = run->outputs[0]->data, found = 0;
    int known;
    const double threshold = kit_scalar(node, 3, NULL, &known);
    const double least = cnr_own_input(node, 4) ? kit_scalar(node, 4, NULL, &known) : -HUGE_VAL;
    const int all = !cnr_own_input(node, 4); /* all but NaN */
    (void)err;
    for (int64_t line = 0; line < boxes->dim[0] * classes; line++) {
        int64_t some = 0;
        if (line % classes == 0)
            load_boxes(boxes, line / classes * n, n, cnr_attr_int(node, "center_point_box") != 0,
                       box);
        for (int64_t i = 0; i < n; i++) {
            score[i] = elem_f64(scores, line * n + i);
            if (all ? score[i] == score[i] : score[i] > least) order[some++] = i;
        }
        nms_sort(order, some, score);
        some = nms_keep(order, some, box, threshold, 1, most);
        for (int64_t i = 0; i < some; i++, found++) {
            y[found * 3] = line / classes;
            y[found * 3 + 1] = line % classes;
            y[found * 3 + 2] = order[i];
        }
    }
    run->outputs[0]->dim[0] = found;
    return CNR_OK;
}

const cnr_op ops_non_max_suppression = {
    CNR_OP_SIZES,
    .name = "non_max_suppression",
    .summary = "Non-maximum suppression: the best boxes of each class that do not overlap; boxes "
               "with score NaN are left out.",
    .flags = CNR_OP_PURE,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .reference = reference,
    .reference_workspace = workspace,
};
