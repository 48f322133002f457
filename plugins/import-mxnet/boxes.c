/* Heads of detectors: SSD's priors as constants, its detections as a list, GluonCV's box
 * decoding. */
#include "mxnet.h"

#include <math.h>

enum { MOST_BOXES = 1 << 20, MOST_SIZES = 64 };

/* ---- MultiBoxPrior: 1 x boxes x 4 corners, as fractions of the picture ---- */

/* Prior boxes at all positions of a picture. */
typedef struct grid {
    double sizes[MOST_SIZES], ratios[MOST_SIZES], step[2], offset[2];
    int32_t n_sizes, n_ratios;
    int64_t height, width;
    int clip;
    float *at;
} grid;

/* Writes one box, as corners in parts of the picture. */
static void put_box(grid *g, double x, double y, double size, double ratio) {
    const double root = sqrt(ratio);
    const double w = size * (double)g->height / (double)g->width * root / 2, h = size / root / 2;
    const double corners[] = {x - w, y - h, x + w, y + h};
    for (int i = 0; i < 4; i++)
        *g->at++ = (float)(!g->clip ? corners[i] : fmin(fmax(corners[i], 0), 1));
}

/* Writes the boxes of every position: all sizes with the first ratio, then the first size with the
 * other ratios. */
static void put_all(grid *g) {
    for (int64_t k = 0; k < g->height * g->width; k++) {
        const double y = ((double)(k / g->width) + g->offset[0]) * g->step[0];
        const double x = ((double)(k % g->width) + g->offset[1]) * g->step[1];
        for (int32_t i = 0; i < g->n_sizes; i++) put_box(g, x, y, g->sizes[i], g->ratios[0]);
        for (int32_t i = 1; i < g->n_ratios; i++) put_box(g, x, y, g->sizes[0], g->ratios[i]);
    }
}

/* Reads the attributes of prior boxes. 0: failed, a problem is noted. */
static int read_grid(mx_job *j, grid *g) {
    const cnr_tensor *x = mx_type(j, j->x);
    if (!x || x->rank != 4 || x->dim[2] < 1 || x->dim[3] < 1)
        return mx_problem(j, "the size of its input is not known"), 0;
    *g = (grid){.sizes = {1},
                .ratios = {1},
                .offset = {0.5, 0.5},
                .height = x->dim[2],
                .width = x->dim[3],
                .clip = mx_bool(j->n, "clip", 0)};
    g->n_sizes = mx_floats(j->n, "sizes", g->sizes, MOST_SIZES, 1);
    g->n_ratios = mx_floats(j->n, "ratios", g->ratios, MOST_SIZES, 1);
    if (!mx_text(j->n, "sizes")) g->n_sizes = 1;
    if (!mx_text(j->n, "ratios")) g->n_ratios = 1;
    const int32_t n = mx_floats(j->n, "steps", g->step, 2, 0);
    const int32_t m = mx_floats(j->n, "offsets", g->offset, 2, 0.5);
    if (g->n_sizes < 1 || g->n_ratios < 1 || (n && n != 2) || (m && m != 2))
        return mx_problem(j, "sizes, ratios, steps or offsets are wrong"), 0;
    for (int32_t i = 0; i < g->n_ratios; i++)
        if (!(g->ratios[i] > 0)) return mx_problem(j, "a ratio is not above 0"), 0;
    if (!(g->step[0] > 0)) g->step[0] = 1 / (double)g->height;
    if (!(g->step[1] > 0)) g->step[1] = 1 / (double)g->width;
    return 1;
}

/* Converts MultiBoxPrior into a constant with all boxes; needs a known size. */
static void prior(mx_job *j) {
    grid g;
    if (!read_grid(j, &g)) return;
    const int64_t each = g.n_sizes + g.n_ratios - 1;
    if (g.height > MOST_BOXES || g.width > MOST_BOXES || g.height * g.width > MOST_BOXES / each)
        return mx_problem(j, "it makes too many boxes");
    const int64_t dim[] = {1, g.height * g.width * each, 4};
    float *values = (float *)imp_host->alloc((size_t)(4 * dim[1]) * sizeof *values);
    if (!values) {
        j->net->b.status = CNR_E_MEMORY;
        j->failed = 1;
        return;
    }
    g.at = values;
    put_all(&g);
    mx_give(j, imp_weight(&j->net->b, j->n->name, "", values, dim, 3));
    imp_host->free(values);
}

/* ---- MultiBoxDetection ---- */

/* Adds a node of two inputs. */
static cnr_value two(mx_job *j, const char *op, const char *suffix, cnr_value a, cnr_value b) {
    return mx_op(j, op, suffix, (cnr_value[]){a, b}, 2, NULL);
}

/* Adds the slice of elements 2 i and 2 i + 1 of each box. */
static cnr_value half(mx_job *j, const char *suffix, cnr_value v, int64_t i) {
    return imp_slice(&j->net->b, j->n->name, suffix, v, 2, 2 * i, 2 * i + 2);
}

/* Adds a constant of two numbers, named after the node. */
static cnr_value pair_of(mx_job *j, const char *suffix, const float v[2]) {
    const int64_t dim = 2;
    return imp_weight(&j->net->b, j->n->name, suffix, v, &dim, 1);
}

/* Factors of the offsets of a box's centre (var1) and size (var2); centre: boxes are given as
 * centres and sizes. */
typedef struct decoding {
    float var1[2], var2[2];
    double most; /* upper bound on the logarithm of the size's factor; 0: none */
    int centre;
} decoding;

/* Adds the corners of the boxes after the offsets are applied to their centres and sizes. */
static cnr_value corners(mx_job *j, cnr_value loc, cnr_value boxes, const decoding *d) {
    const cnr_value low = half(j, ".low", boxes, 0), high = half(j, ".high", boxes, 1);
    const cnr_value part = imp_scalar(&j->net->b, j->n->name, ".half", 0.5);
    const cnr_value size = d->centre ? high : two(j, "sub", ".size", high, low);
    cnr_value middle = low;
    if (!d->centre) middle = two(j, "mul", ".middle", two(j, "add", ".both", low, high), part);
    cnr_value by = two(j, "mul", ".by", half(j, ".moves", loc, 0), pair_of(j, ".var1", d->var1));
    middle = two(j, "add", ".moved", middle, two(j, "mul", ".shift", by, size));
    by = two(j, "mul", ".grows", half(j, ".stretches", loc, 1), pair_of(j, ".var2", d->var2));
    if (d->most > 0)
        by = two(j, "min", ".bound", by, imp_scalar(&j->net->b, j->n->name, ".most", d->most));
    by = mx_op(j, "exp", ".times", &by, 1, NULL);
    const cnr_value reach = two(j, "mul", ".reach", two(j, "mul", ".grown", by, size), part);
    const cnr_value both[] = {two(j, "sub", ".from", middle, reach),
                              two(j, "add", ".to", middle, reach)};
    imp_attrs l = {.n = 0};
    imp_int(&l, "axis", 2);
    return mx_op(j, "concat", ".corners", both, 2, &l);
}

/* N classes boxes -> N, boxes x classes. Keeps a box's score only for its best class, and only if
 * it is among the best `top` of all (0: all). */
static cnr_value best_only(mx_job *j, int64_t classes, int64_t top) {
    const int64_t perm[] = {0, 2, 1}, axis = 2;
    imp_attrs l = {.n = 0}, most = {.n = 0};
    imp_ints(&l, "axes", &axis, 1);
    imp_bool(&l, "keepdims", 1);
    const cnr_value all = imp_transpose(&j->net->b, j->n->name, ".turned", j->x, perm, 3);
    const cnr_value things = imp_slice(&j->net->b, j->n->name, ".things", all, 2, 1, classes);
    const cnr_value best = mx_op(j, "reduce_max", ".best", &things, 1, &l);
    cnr_value keep = two(j, "equal", ".is_best", all, best);
    if (top) {
        imp_int(&most, "k", top);
        imp_int(&most, "axis", 1);
        cnr_value last = mx_op(j, "top_k", ".most", &best, 1, &most);
        last = imp_slice(&j->net->b, j->n->name, ".last", last, 1, top - 1, top);
        keep = two(j, "and", ".both_best", keep, two(j, "greater_or_equal", ".top", all, last));
    }
    const cnr_value none = imp_scalar(&j->net->b, j->n->name, ".none", -1);
    const cnr_value v = mx_op(j, "where", ".scores", (cnr_value[]){keep, all, none}, 3, NULL);
    return mx_op(j, "flatten", ".flat", &v, 1, NULL);
}

/* Reads the variances. 0: they are wrong. */
static int read_variances(mx_job *j, decoding *d) {
    double given[4];
    const int32_t n = mx_floats(j->n, "variances", given, 4, 0);
    for (int i = 0; n == 4 && i < 2; i++) {
        d->var1[i] = (float)given[i];
        d->var2[i] = (float)given[2 + i];
    }
    return n == 0 || n == 4 || (mx_problem(j, "variances are wrong"), 0);
}

/* Gives the list of detection_output. MXNet gives a row for each box, most of them with class
 * -1. */
static void detection(mx_job *j) {
    const cnr_value loc = mx_data(j, 1), boxes = mx_data(j, 2);
    const cnr_tensor *scores = mx_type(j, j->x), *box = mx_type(j, boxes);
    const int64_t top = mx_int(j->n, "nms_topk", -1), shape[] = {0, -1, 4};
    if (j->failed || !scores || !box) return;
    if (scores->rank != 3 || scores->dim[1] < 2 || box->rank != 3 || box->dim[1] < 1)
        return mx_problem(j, "its classes or boxes are not known");
    if (mx_int(j->n, "background_id", 0) != 0 || mx_bool(j->n, "force_suppress", 0))
        return mx_problem(j, "a background_id other than 0, or force_suppress");
    const int64_t dim[] = {1, 2, 4 * box->dim[1]};
    decoding d = {{0.1f, 0.1f}, {0.2f, 0.2f}, 0, 0};
    if (!read_variances(j, &d)) return;
    const cnr_value offsets = imp_reshape(&j->net->b, j->n->name, ".offsets", loc, shape, 3);
    cnr_value found = corners(j, offsets, boxes, &d);
    imp_attrs cut = {.n = 0};
    imp_float(&cut, "min", 0);
    imp_float(&cut, "max", 1);
    if (mx_bool(j->n, "clip", 1)) found = mx_op(j, "clip", ".cut", &found, 1, &cut);
    const cnr_value in[] = {mx_op(j, "flatten", ".boxes", &found, 1, NULL),
                            best_only(j, scores->dim[1], top > 0 && top < box->dim[1] ? top : 0),
                            imp_filled(&j->net->b, j->n->name, ".origin", 0, dim, 3)};
    imp_attrs l = {.n = 0};
    imp_int(&l, "num_classes", scores->dim[1]);
    imp_float(&l, "confidence_threshold", mx_float(j->n, "threshold", 0.01));
    imp_float(&l, "nms_threshold", mx_float(j->n, "nms_threshold", 0.5));
    imp_enum(&l, "code_type", "CORNER");
    imp_bool(&l, "variance_encoded_in_target", 1);
    if (!j->failed) mx_give(j, mx_op(j, "detection_output", "", in, 3, &l));
}

/* ---- box_decode and box_nms, the last operators of GluonCV's detectors ---- */

/* 1 if boxes are given as corners, not centre and size. */
static int is_corner(mx_job *j, const char *key, const char *usual) {
    const char *format = mx_text(j->n, key);
    return strcmp(format ? format : usual, "corner") == 0;
}

/* Converts box_decode. */
static void box_decode(mx_job *j) {
    const cnr_value boxes = mx_data(j, 1);
    decoding d = {.most = mx_float(j->n, "clip", -1), .centre = !is_corner(j, "format", "center")};
    if (j->failed) return;
    const char *const keys[] = {"std0", "std1", "std2", "std3"};
    for (int i = 0; i < 2; i++) {
        d.var1[i] = (float)mx_float(j->n, keys[i], 1);
        d.var2[i] = (float)mx_float(j->n, keys[2 + i], 1);
    }
    mx_give(j, corners(j, j->x, boxes, &d));
}

/* Converts box_nms. */
static void box_nms(mx_job *j) {
    imp_attrs l = {.n = 0};
    imp_float(&l, "overlap_thresh", mx_float(j->n, "overlap_thresh", 0.5));
    imp_float(&l, "valid_thresh", mx_float(j->n, "valid_thresh", 0));
    imp_int(&l, "topk", mx_int(j->n, "topk", -1));
    imp_int(&l, "coord_start", mx_int(j->n, "coord_start", 2));
    imp_int(&l, "score_index", mx_int(j->n, "score_index", 1));
    imp_int(&l, "id_index", mx_int(j->n, "id_index", -1));
    imp_int(&l, "background_id", mx_int(j->n, "background_id", -1));
    imp_bool(&l, "force_suppress", mx_bool(j->n, "force_suppress", 0));
    imp_bool(&l, "center_in", !is_corner(j, "in_format", "corner"));
    imp_bool(&l, "center_out", !is_corner(j, "out_format", "corner"));
    mx_give(j, mx_op(j, "box_nms", "", &j->x, 1, &l));
}

/* Converter of an operator on boxes, and its *flags; NULL: it is none. */
mx_convert mx_box_row(const mx_node *n, int *flags) {
    const char *op = strncmp(n->op, "_contrib_", 9) == 0 ? n->op + 9 : n->op;
    *flags = 0;
    if (strcmp(op, "MultiBoxPrior") == 0) return prior;
    if (strcmp(op, "box_decode") == 0) return box_decode;
    if (strcmp(op, "box_nms") == 0) return box_nms;
    return strcmp(op, "MultiBoxDetection") == 0 ? detection : NULL;
}
