/* detection_output: decodes an SSD net's offsets and scores to boxes (Caffe). */
#include "nms.h"

static const cnr_port in[] = {{.name = "loc",
                               .help = "N, 4 numbers per prior box: its offset and scale"},
                              {.name = "conf", .help = "N, a score for each prior box and class"},
                              {.name = "prior", .help = "1 2 4n, as prior_box makes them"}};
static const cnr_port out[] = {
    {.name = "y", .help = "1 1 found 7: picture, class, score, x0 y0 x1 y1 from 0 to 1"}};
static const char *const codes[] = {"CORNER", "CENTER_SIZE", "CORNER_SIZE", NULL};
enum { CORNER, CENTER_SIZE, CORNER_SIZE };
/* A whole attribute of -1 or more. */
#define COUNT(NAME, DEFAULT, TEXT) \
    { \
        .name = NAME, .type = CNR_ATTR_INT, .flags = CNR_ATTR_BOUNDED, .min = -1, .max = 1 << 30, \
        .default_i = DEFAULT, .help = TEXT \
    }
static const cnr_attr_spec attrs[] =
    {{.name = "num_classes",
      .type = CNR_ATTR_INT,
      .flags = CNR_ATTR_REQUIRED | CNR_ATTR_BOUNDED,
      .min = 1,
      .max = 1 << 20,
      .help = "with the background"},
     {.name = "share_location",
      .type = CNR_ATTR_BOOL,
      .default_i = 1,
      .help = "one offset for all classes"},
     COUNT("background_label_id", 0, "the class of the background; -1: none"),
     {.name = "nms_threshold",
      .type = CNR_ATTR_FLOAT,
      .default_f = 0.3,
      .help = "maximum overlap of boxes of a class"},
     COUNT("top_k", -1, "number of best boxes of a class before suppression; -1: all"),
     {.name = "eta",
      .type = CNR_ATTR_FLOAT,
      .default_f = 1,
      .help = "factor that lowers the threshold step by step"},
     {.name = "code_type",
      .type = CNR_ATTR_ENUM,
      .default_s = "CORNER",
      .choices = codes,
      .help = "encoding of the offsets"},
     {.name = "variance_encoded_in_target",
      .type = CNR_ATTR_BOOL,
      .help = "the offsets are not scaled by the variances"},
     COUNT("keep_top_k", -1, "number of boxes kept in a picture; -1: all"),
     {.name = "confidence_threshold",
      .type = CNR_ATTR_FLOAT,
      .default_f = -INFINITY,
      .help = "minimum score"}};

/* Maximum number of boxes of a class before suppression, and of rows of a picture. */
static int64_t looked_at(const cnr_node *node, int64_t priors) {
    const int64_t top = cnr_attr_int(node, "top_k");
    return top >= 0 && top < priors ? top : priors;
}

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const int64_t classes = cnr_attr_int(node, "num_classes");
    const int64_t per = cnr_attr_int(node, "share_location") ? 1 : classes;
    const int64_t keep = cnr_attr_int(node, "keep_top_k");
    cnr_tensor *y = outputs[0];
    int64_t n;
    CNR_TRY(ops_want(node, 0, OPS_FLOATS, 2, CNR_MAX_RANK, err));
    CNR_TRY(ops_want(node, 1, OPS_FLOATS, 2, CNR_MAX_RANK, err));
    CNR_TRY(ops_want(node, 2, OPS_FLOATS, 3, 3, err));
    const cnr_tensor *loc = node->inputs[0], *conf = node->inputs[1], *prior = node->inputs[2];
    CNR_TRY(kit_same(node, loc->dim[0], conf->dim[0], &n, err));
    y->dtype = loc->dtype;
    y->rank = 4;
    y->dim[0] = y->dim[1] = 1;
    y->dim[2] = CNR_DIM_UNKNOWN;
    y->dim[3] = 7;
    y->flags |= CNR_TENSOR_DYNAMIC;
    const int64_t numbers = ops_span(prior, 1, prior->rank), locs = ops_span(loc, 1, loc->rank);
    const int64_t confs = ops_span(conf, 1, conf->rank);
    if (numbers < 0 || locs < 0 || confs < 0) return CNR_OK;
    const int64_t priors = numbers / 8;
    for (int32_t i = 0; i < 2; i++)
        if (prior->dim[i] != i + 1)
            return ops_fail(err, CNR_E_SHAPE, node, "input prior: want %d along axis %d, got %lld",
                            (int)i + 1, (int)i, (long long)prior->dim[i]);
    if (numbers % 8 != 0)
        return ops_fail(err, CNR_E_SHAPE, node,
                        "input prior: want 4 along axis 2 for each box, got %lld",
                        (long long)prior->dim[2]);
    if (locs != priors * 4 * per)
        return ops_fail(err, CNR_E_SHAPE, node, "input loc has %lld numbers a picture, want %lld",
                        (long long)locs, (long long)(priors * 4 * per));
    if (confs != priors * classes)
        return ops_fail(err, CNR_E_SHAPE, node,
                        "input conf has %lld numbers, want %lld for %lld boxes of %lld classes",
                        (long long)confs, (long long)(priors * classes), (long long)priors,
                        (long long)classes);
    int64_t rows = looked_at(node, priors) * classes;
    if (keep >= 0 && keep < rows) rows = keep;
    return kit_mul(node, n, rows, &y->dim[2], err);
}

/* One box that was kept, with its score and class. */
typedef struct detection {
    double score;
    nms_box box;
    int64_t label;
} detection;

/* The parts of the workspace: boxes, scores and orders of candidates of a class, and what was
 * found. */
typedef struct detection_space {
    nms_box *box;
    double *score;
    int64_t *order;
    detection *found;
    double *found_score;
    int64_t *found_order;
} detection_space;

/* Points the fields of *s into the workspace at `at`, one behind the other; at NULL: sets them to
 * NULL, as it only counts. Returns the bytes needed. */
static uint64_t lay_out(const cnr_node *node, uint8_t *at, detection_space *s) {
    const uint64_t priors = (uint64_t)cnr_span(node->inputs[2], 1, 3) / 8;
    const uint64_t rows =
        (uint64_t)looked_at(node, (int64_t)priors) * (uint64_t)cnr_attr_int(node, "num_classes");
    uint64_t used = 0;
/* Gives `field` room for `count` elements, and adds their bytes to `used`. */
#define PART(field, count) \
    s->field = at ? (void *)(at + used) : NULL, used += (count) * sizeof *s->field
    PART(box, priors);
    PART(score, priors);
    PART(order, priors);
    PART(found, rows);
    PART(found_score, rows);
    PART(found_order, rows);
#undef PART
    return used;
}

/* Method workspace: bytes of scratch that reference needs. */
static uint64_t workspace(const cnr_node *node) {
    detection_space none;
    return lay_out(node, NULL, &none);
}

/* The box that prior i and its four regression numbers d give. */
static nms_box decode(const cnr_node *node, int64_t priors, int64_t i, const double *d) {
    const cnr_tensor *prior = node->inputs[2];
    const int code = (int)cnr_attr_find(node, "code_type")->i;
    const int scaled = !cnr_attr_int(node, "variance_encoded_in_target");
    double p[4], v[4], m[4];
    for (int k = 0; k < 4; k++) {
        p[k] = elem_f64(prior, i * 4 + k);
        v[k] = scaled ? elem_f64(prior, (priors + i) * 4 + k) : 1;
        m[k] = d[k] * v[k];
    }
    const double w = p[2] - p[0], h = p[3] - p[1];
    if (code == CORNER) return (nms_box){p[0] + m[0], p[1] + m[1], p[2] + m[2], p[3] + m[3]};
    if (code == CORNER_SIZE)
        return (nms_box){p[0] + m[0] * w, p[1] + m[1] * h, p[2] + m[2] * w, p[3] + m[3] * h};
    const double x = m[0] * w + (p[0] + p[2]) / 2, y = m[1] * h + (p[1] + p[3]) / 2;
    const double half_w = exp(m[2]) * w / 2, half_h = exp(m[3]) * h / 2;
    return (nms_box){x - half_w, y - half_h, x + half_w, y + half_h};
}

/* Appends to s->found the boxes of one class in one picture that survive suppression, `found` being
 * there before; returns how many there are now. */
static int64_t find_class(const cnr_node *node, detection_space *s, int64_t picture, int64_t label,
                          int64_t priors, int64_t found) {
    const cnr_tensor *loc = node->inputs[0], *conf = node->inputs[1];
    const int64_t classes = cnr_attr_int(node, "num_classes");
    const int shared = cnr_attr_int(node, "share_location") != 0;
    const int64_t per = shared ? 1 : classes, which = shared ? 0 : label;
    const double least = cnr_attr_float(node, "confidence_threshold");
    int64_t n = 0;
    for (int64_t i = 0; i < priors; i++) {
        double d[4];
        s->score[i] = elem_f64(conf, (picture * priors + i) * classes + label);
        if (!(s->score[i] > least)) continue;
        for (int k = 0; k < 4; k++)
            d[k] = elem_f64(loc, ((picture * priors + i) * per + which) * 4 + k);
        s->box[i] = decode(node, priors, i, d);
        s->order[n++] = i;
    }
    nms_sort(s->order, n, s->score);
    if (n > looked_at(node, priors)) n = looked_at(node, priors);
    n = nms_keep(s->order, n, s->box, cnr_attr_float(node, "nms_threshold"),
                 cnr_attr_float(node, "eta"), n);
    for (int64_t i = 0; i < n; i++, found++) {
        s->found[found] = (detection){s->score[s->order[i]], s->box[s->order[i]], label};
        s->found_score[found] = s->found[found].score;
        s->found_order[found] = found;
    }
    return found;
}

/* Method reference of detection_output: decodes an SSD net's offsets and scores into the boxes that
 * it found; returns CNR_OK. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_node *node = run->node;
    const int64_t classes = cnr_attr_int(node, "num_classes");
    const int64_t background = cnr_attr_int(node, "background_label_id");
    const int64_t keep = cnr_attr_int(node, "keep_top_k");
    const int64_t priors = cnr_span(node->inputs[2], 1, 3) / 8;
    cnr_tensor *y = run->outputs[0];
    detection_space s;
    int64_t rows = 0;
    (void)err;
    lay_out(node, run->workspace_data, &s);
    for (int64_t picture = 0; picture < node->inputs[0]->dim[0]; picture++) {
        int64_t found = 0;
        for (int64_t label = 0; label < classes; label++)
            if (label != background) found = find_class(node, &s, picture, label, priors, found);
        if (keep >= 0 && found > keep) { /* keeps the best of all classes, still ordered by class */
            nms_sort(s.found_order, found, s.found_score);
            for (int64_t i = keep; i < found; i++) s.found[s.found_order[i]].label = -1;
        }
        for (int64_t i = 0; i < found; i++) {
            const detection *d = &s.found[i];
            const double row[7] = {(double)picture, (double)d->label, d->score, d->box.x0,
                                   d->box.y0,       d->box.x1,        d->box.y1};
            if (d->label < 0) continue;
            for (int k = 0; k < 7; k++) elem_set_f64(y, rows * 7 + k, row[k]);
            rows++;
        }
    }
    y->dim[2] = rows;
    return CNR_OK;
}

const cnr_op ops_detection_output = {
    CNR_OP_SIZES,
    .name = "detection_output",
    .summary = "Decodes an SSD net's offsets and scores into the boxes that it found.",
    .flags = CNR_OP_PURE,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .reference = reference,
    .reference_workspace = workspace,
};
