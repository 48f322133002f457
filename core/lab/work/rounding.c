/* Rounds weights to their 8 bits so that a row's errors cancel on the calibration pictures.
 * Rounding to the nearest leaves errors that add up wherever inputs go together, as the pixels of
 * a window do. Here the error of each weight is made up for by the weights behind it, as their
 * inputs correlate (Frantar and others, GPTQ, ICLR 2023), in blocks of BLOCK weights. What is left
 * of the mean is added to the bias.
 *
 * A layer is an operator that is linear in its weights. Its inputs are gathered as sliding windows
 * or rows; a layer whose outputs these do not give is left as it is. */
#include "work/calibrate.h"
#include <cnnrun/kit.h>
#include <math.h>

enum { BLOCK = 128, POSITIONS = 40, LEVELS = 127, PICTURES = 64 };
#define DAMPING 0.01 /* of the mean of the diagonal */

/* A layer whose weights are rounded, with sums over the positions of its inputs. */
typedef struct layer {
    int32_t node;
    cnr_value x, y, w, bias;
    int64_t rows, depth, groups, row_step, step;
    /* the inputs of one position, by group; then those of the first position of the first
     * picture */
    float *patch;
    double *mean;     /* by group, then element: sum of the inputs */
    float *square;    /* by group, then block: sums of products, upper triangles of side_of rows */
    int64_t *largest; /* by row: where its largest weight is */
    int64_t n;        /* number of positions added so far */
    bool is_wrong;    /* its outputs are not those of the gathered inputs */
} layer;

/* State of rounding weights: the calibration, the layers, and the seed by which positions are
 * drawn. */
typedef struct rounding {
    cnri_calibration *c;
    CNRI_VEC(layer) layers;
    uint32_t seed;
} rounding;

static int64_t blocks_of(const layer *l) { return (l->depth + BLOCK - 1) / BLOCK; }

/* Rows of a block's matrix: a depthwise layer has many groups of a few weights each. */
static int64_t side_of(const layer *l) { return cnr_min(BLOCK, l->depth); }

static int64_t block_size(const layer *l, int64_t block) {
    return cnr_min(BLOCK, l->depth - block * BLOCK);
}

/* The BLOCK x BLOCK matrix of input products of one group's block. */
static float *square_of(const layer *l, int64_t group, int64_t block) {
    return l->square + (group * blocks_of(l) + block) * side_of(l) * side_of(l);
}

/* ---- which layers ---- */

/* True for a constant f32 weight of two or more axes, with data, that only one node reads. */
static bool is_constant(const cnr_graph *g, cnr_value v) {
    const cnr_tensor *t = v >= 0 ? g->values.at[v].type : NULL;
    return t && t->dtype == CNR_f32 && !t->encoding && t->data && t->rank >= 2 &&
           t->flags & CNR_TENSOR_CONST && !(t->flags & CNR_TENSOR_VARIABLE) &&
           g->values.at[v].uses == 1 && cnr_count(t) > 0;
}

/* True if node `index` is a linear layer of known ports whose weights can be rounded; fills *l. */
static bool is_layer(const cnr_graph *g, int32_t index, layer *l) {
    const cnri_node *node = g->nodes.at[index];
    cnr_linear ports;
    if (!CNRI_HAS(node->view.desc, linear) || node->view.desc->linear(&node->view, &ports) != 1 ||
        ports.weight_port < 1 || ports.weight_port >= node->view.n_inputs)
        return false;
    *l = (layer){.node = index, .x = node->in[0], .y = node->out[0]};
    l->w = node->in[ports.weight_port];
    l->bias = cnri_bias_of(g, node);
    if (l->x < 0 || !is_constant(g, l->w)) return false;
    const cnr_tensor *w = g->values.at[l->w].type, *x = g->values.at[l->x].type;
    const bool is_turned = ports.weight_axis == 1 && w->rank == 2;
    if (ports.weight_axis != 0 && !is_turned) return false;
    l->rows = w->dim[ports.weight_axis];
    l->depth = cnr_count(w) / l->rows;
    l->row_step = is_turned ? 1 : l->depth;
    l->step = is_turned ? l->rows : 1;
    l->groups = w->rank >= 3 && x->rank == w->rank ? x->dim[1] / w->dim[1] : 1;
    return l->groups > 0 && l->rows % l->groups == 0;
}

/* Weight of a layer's row (output) and input k within its group. */
static double weight_at(const rounding *r, const layer *l, int64_t row, int64_t k) {
    const float *w = r->c->net->values.at[l->w].type->data;
    return (double)w[row * l->row_step + k * l->step];
}

/* Notes for each row of weights the index of the largest magnitude. */
static void find_largest(const rounding *r, layer *l) {
    for (int64_t row = 0; row < l->rows; row++)
        for (int64_t k = 0; k < l->depth; k++)
            if (fabs(weight_at(r, l, row, k)) > fabs(weight_at(r, l, row, l->largest[row])))
                l->largest[row] = k;
}

/* Frees the layers and their sums. */
static void free_layers(rounding *r) {
    for (int32_t i = 0; i < r->layers.n; i++) {
        cnri_free(r->layers.at[i].patch);
        cnri_free(r->layers.at[i].mean);
        cnri_free(r->layers.at[i].square);
        cnri_free(r->layers.at[i].largest);
    }
    cnri_vec_free(&r->layers);
}

/* Adds a node to the layers with its lists, if its weights can be rounded. */
static cnr_status add_layer(rounding *r, int32_t node, cnr_error *err) {
    layer l;
    if (!is_layer(r->c->net, node, &l)) return CNR_OK;
    layer *to = cnri_push(&r->layers);
    if (!to) return cnri_out_of_memory(err, "quantize");
    const size_t inputs = (size_t)(l.groups * l.depth);
    l.patch = cnri_alloc_zero((2 * inputs + 1) * sizeof *l.patch);
    l.mean = cnri_alloc_zero((inputs + 1) * sizeof *l.mean);
    const int64_t side = side_of(&l);
    l.square = cnri_alloc_zero((size_t)(l.groups * blocks_of(&l) * side * side) * sizeof *l.square);
    l.largest = cnri_alloc_zero((size_t)l.rows * sizeof *l.largest);
    *to = l;
    if (l.largest) find_largest(r, to);
    return l.patch && l.mean && l.square && l.largest ? CNR_OK
                                                      : cnri_out_of_memory(err, "quantize");
}

/* ---- gathering inputs ---- */

/* Copies the window of output position `at` of picture 0, zeros where it is outside. */
static void gather_window(const cnr_window *w, const cnr_tensor *x, int64_t at, float *to) {
    const int64_t taps =
        w->kernel[0] * (w->spatial > 1 ? w->kernel[1] : 1) * (w->spatial > 2 ? w->kernel[2] : 1);
    const int64_t inner = cnr_span(x, 2, x->rank);
    int64_t out[CNR_MAX_SPATIAL] = {0};
    for (int32_t i = w->spatial - 1; i >= 0; i--) {
        out[i] = at % w->out[i];
        at /= w->out[i];
    }
    for (int64_t tap = 0; tap < taps; tap++) {
        int64_t left = tap, from = 0, scale = 1;
        bool inside = true;
        for (int32_t i = w->spatial - 1; i >= 0; i--) {
            const int64_t k = left % w->kernel[i];
            const int64_t v = out[i] * w->stride[i] - w->pad_begin[i] + k * w->dilation[i];
            left /= w->kernel[i];
            inside &= v >= 0 && v < w->in[i];
            from += v * scale;
            scale *= w->in[i];
        }
        for (int64_t c = 0; c < x->dim[1]; c++)
            to[c * taps + tap] = inside ? ((const float *)x->data)[c * inner + from] : 0;
    }
}

/* Number of output positions, or 0 if the inputs do not fit. */
static int64_t positions(const rounding *r, const layer *l, const cnr_tensor *x, cnr_window *w) {
    const cnri_node *node = r->c->net->nodes.at[l->node];
    const cnr_tensor *weights = r->c->net->values.at[l->w].type;
    if (weights->rank == 2) return cnr_count(x) % l->depth ? 0 : cnr_count(x) / l->depth;
    if (x->rank != weights->rank || x->dim[1] != l->groups * weights->dim[1] ||
        cnri_host.window_resolve(&node->view, x, weights->dim + 2, w))
        return 0;
    int64_t n = 1;
    for (int32_t i = 0; i < w->spatial; i++) n *= cnr_max(0, w->out[i]);
    return n;
}

/* Copies the inputs of position `at` of a layer to `to`; outside of the picture they are 0. */
static void gather(const layer *l, const cnr_tensor *x, const cnr_window *w, int64_t at,
                   float *to) {
    if (w->spatial > 0) gather_window(w, x, at, to);
    else memcpy(to, (const float *)x->data + at * l->depth, (size_t)l->depth * sizeof *to);
}

/* Adds the products of a block's inputs. side: length of a matrix row. */
static void add_block(const float *x, int64_t n, int64_t side, float *square) {
    for (int64_t i = 0; i < n; i++) {
        const float v = x[i];
        float *row = square + i * side;
        if (v == 0) continue;
        for (int64_t j = i; j < n; j++) row[j] += v * x[j];
    }
}

/* Adds the gathered inputs to the layer's means and products; skips those that aren't finite. */
static void add_patch(layer *l) {
    const int64_t inputs = l->groups * l->depth;
    for (int64_t i = 0; i < inputs; i++)
        if (!isfinite(l->patch[i])) return;
    for (int64_t i = 0; i < inputs; i++) l->mean[i] += (double)l->patch[i];
    for (int64_t g = 0; g < l->groups; g++)
        for (int64_t b = 0; b < blocks_of(l); b++)
            add_block(l->patch + g * l->depth + b * BLOCK, block_size(l, b), side_of(l),
                      square_of(l, g, b));
    l->n++;
}

/* Gathers inputs of a layer from the tensor x at random positions, and adds them up. */
static void add_inputs(rounding *r, layer *l, const cnr_tensor *x) {
    cnr_window w = {0};
    const int64_t n = positions(r, l, x, &w);
    l->is_wrong |= n == 0 || x->dtype != CNR_f32;
    if (l->is_wrong) return;
    gather(l, x, &w, 0, l->patch + l->groups * l->depth);
    for (int64_t i = 0; i < cnr_min(n, POSITIONS); i++) {
        r->seed = r->seed * 1664525U + 1013904223U;
        gather(l, x, &w, n <= POSITIONS ? i : (int64_t)(r->seed >> 8) % n, l->patch);
        add_patch(l);
    }
}

/* ---- the layer is what it was taken for ---- */

/* Compares the first position's outputs with those computed from gathered inputs; l->is_wrong: they
 * differ. */
static void verify(const rounding *r, layer *l, const cnr_tensor *y) {
    const cnri_node *node = r->c->net->nodes.at[l->node];
    const cnr_tensor *w = r->c->net->values.at[l->w].type;
    const float *bias = l->bias >= 0 ? r->c->net->values.at[l->bias].type->data : NULL;
    const int64_t inner = w->rank == 2 ? 1 : cnr_span(y, 2, y->rank);
    const int64_t per_group = l->rows / l->groups, step = cnr_max(1, l->rows / 8);
    const bool has_other_bias = l->bias < 0 && node->view.n_inputs > 2;
    for (int64_t row = 0; row < l->rows && !has_other_bias; row += step) {
        const float *x = l->patch + (l->groups + row / per_group) * l->depth;
        double sum = bias ? (double)bias[row] : 0, size = fabs(sum);
        for (int64_t k = 0; k < l->depth; k++) {
            const double product = weight_at(r, l, row, k) * (double)x[k];
            sum += product;
            size += fabs(product);
        }
        const bool fits = y->dtype == CNR_f32 && row * inner < cnr_count(y);
        l->is_wrong |=
            !fits || !(fabs(sum - (double)((const float *)y->data)[row * inner]) <= 0.02 * size);
    }
}

/* Session tap: adds inputs of layers, and checks outputs once. */
static void tap(void *arg, const char *node, int32_t output, const cnr_tensor *value) {
    rounding *r = arg;
    const cnr_value v = cnri_tapped_value(r->c->net, node, output);
    for (int32_t i = 0; i < r->layers.n; i++) {
        layer *l = &r->layers.at[i];
        if (l->y == v && l->n > 0 && !l->is_wrong) verify(r, l, value);
        if (l->x == v && !l->is_wrong) add_inputs(r, l, value);
    }
}

/* ---- rounding ---- */

/* Replaces the lower triangle of a symmetric positive matrix by its Cholesky factor. False: it is
 * not positive. */
static bool factor(double *a, int64_t n) {
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = j; i < n; i++) {
            double sum = a[i * BLOCK + j];
            for (int64_t k = 0; k < j; k++) sum -= a[i * BLOCK + k] * a[j * BLOCK + k];
            if (i == j && !(sum > 0)) return false;
            a[i * BLOCK + j] = i == j ? sqrt(sum) : sum / a[j * BLOCK + j];
        }
    }
    return true;
}

/* Replaces the lower triangle of a, a factor, by that of the inverse, in place; column: room for
 * n. */
static void invert(double *a, int64_t n, double *column) {
    for (int64_t j = 0; j < n; j++) { /* the factor's inverse, column by column */
        for (int64_t i = j; i < n; i++) {
            double sum = i == j;
            for (int64_t k = j; k < i; k++) sum -= a[i * BLOCK + k] * column[k];
            column[i] = sum / a[i * BLOCK + i];
        }
        /* the upper triangle keeps it, since later columns need the factor */
        for (int64_t i = j + 1; i < n; i++) a[j * BLOCK + i] = column[i];
        column[j] = 0;
    }
    for (int64_t i = 0; i < n; i++) a[i * BLOCK + i] = 1 / a[i * BLOCK + i];
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            double sum = 0;
            for (int64_t k = i; k < n; k++) sum += a[i * BLOCK + k] * a[j * BLOCK + k];
            column[j] = sum;
            if (j == i)
                for (int64_t k = 0; k <= i; k++) a[i * BLOCK + k] = column[k];
        }
}

/* Computes the upper factor U of a block's inverse, U'U = inverse; false: nothing was seen. */
static bool spread_of(const layer *l, int64_t group, int64_t block, double *u) {
    const float *square = square_of(l, group, block);
    const int64_t n = block_size(l, block), side = side_of(l);
    double trace = 0, column[BLOCK];
    for (int64_t i = 0; i < n; i++) trace += (double)square[i * side + i] / (double)n;
    if (!(trace > 0)) return false;
    /* Few positions say little about how inputs correlate. */
    const double damping = trace * (DAMPING + 0.5 * (double)n / (double)l->n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++)
            u[i * BLOCK + j] = (double)square[j * side + i] + (i == j ? damping : 0);
    if (!factor(u, n)) return false;
    invert(u, n, column);
    return factor(u, n);
}

/* Rounds a row's part in a block. The largest weight of the row stays, since it sets the scale. */
static void round_row(const rounding *r, const layer *l, int64_t row, int64_t block,
                      const double *u, float *to) {
    const int64_t largest = l->largest[row];
    const double most = fabs(weight_at(r, l, row, largest));
    const float scale = (float)(most / LEVELS);
    const int64_t n = block_size(l, block), first = block * BLOCK;
    double w[BLOCK];
    for (int64_t i = 0; i < n; i++) w[i] = weight_at(r, l, row, first + i);
    for (int64_t i = 0; i < n && scale > 0; i++) {
        const double q = rint(w[i] / (double)scale) * (double)scale;
        const double kept =
            first + i == largest ? weight_at(r, l, row, largest) : fmin(most, fmax(-most, q));
        to[row * l->row_step + (first + i) * l->step] = (float)kept;
        if (!u) continue;
        const double off = (w[i] - kept) / u[i * BLOCK + i];
        for (int64_t j = i + 1; j < n; j++) w[j] -= off * u[j * BLOCK + i];
    }
}

/* Adds what the row is off by, for the mean of its inputs, to its shift. */
static void shift_row(const rounding *r, const layer *l, int64_t row, const float *w,
                      double *shift) {
    const double *mean = l->mean + row / (l->rows / l->groups) * l->depth;
    for (int64_t k = 0; k < l->depth; k++)
        shift[row] += (weight_at(r, l, row, k) - (double)w[row * l->row_step + k * l->step]) *
                      mean[k] / (double)l->n;
}

/* Rounds the weights of a layer so that its outputs change least, into c->rounded, with shifts of
 * its bias. */
static cnr_status round_layer(const rounding *r, const layer *l, cnr_error *err) {
    cnri_rounded *to = &r->c->rounded[l->node];
    double *u = cnri_alloc_zero((size_t)BLOCK * BLOCK * sizeof *u);
    float *w = cnri_alloc_zero((size_t)(l->rows * l->depth) * sizeof *w);
    double *shift = cnri_alloc_zero((size_t)l->rows * sizeof *shift);
    const int64_t per_group = l->rows / l->groups;
    if (!u || !w || !shift) {
        cnri_free(u);
        cnri_free(w);
        cnri_free(shift);
        return cnri_out_of_memory(err, "quantize");
    }
    for (int64_t g = 0; g < l->groups; g++)
        for (int64_t b = 0; b < blocks_of(l); b++) {
            const bool seen = spread_of(l, g, b, u);
            for (int64_t row = g * per_group; row < (g + 1) * per_group; row++)
                round_row(r, l, row, b, seen ? u : NULL, w);
        }
    for (int64_t row = 0; row < l->rows; row++) shift_row(r, l, row, w, shift);
    cnri_free(u);
    *to = (cnri_rounded){l->w, l->bias, w, shift};
    return CNR_OK;
}

cnr_status cnri_round_weights(cnri_calibration *c, const cnri_answers *answers, cnr_error *err) {
    rounding r = {.c = c, .seed = 1};
    c->rounded = cnri_alloc_zero(((size_t)c->net->nodes.n + 1) * sizeof *c->rounded);
    cnr_status status = c->rounded ? CNR_OK : cnri_out_of_memory(err, "quantize");
    for (int32_t i = 0; i < answers->n && !status; i++)
        status = add_layer(&r, cnri_answer_node(c->net, &answers->at[i]), err);
    if (!status && r.layers.n > 0) status = cnri_calibration_watch(c, PICTURES, tap, &r, err);
    for (int32_t i = 0; i < r.layers.n && !status; i++) {
        const layer *l = &r.layers.at[i];
        if (l->n > 0 && !l->is_wrong) status = round_layer(&r, l, err);
        if (!status) status = cnri_report_progress(c->observer, "rounding", i + 1, r.layers.n, err);
    }
    free_layers(&r);
    return status;
}
