/* How large values become: some numbers like those of each value, followed through the graph by
 * what the descriptors say, so that random weights fit what they will meet.
 *
 *     data  n n n n ...      normal, as large as pictures are prepared
 *     conv  n n n n ...      sums of products: normal again; the weights are made for variance 1
 *     relu  0 n 0 n ...      element-wise: computed
 *     pool  0 n 0 n ...      anything else: as they came in
 *
 * So a residual sum, a gate or a swish is met by its real size, which scaling by the fan-in alone
 * misses: activations then double at each residual block, or fade at each swish. */
#include "initial/spread.h"
#include <math.h>

enum { NUMBERS = 256 };

/* Sample rows that are sent through a net to estimate the spread of its values. */
typedef struct spread {
    const cnr_graph *g;
    float *rows;
    uint64_t state;
} spread;

/* ---- random numbers: splitmix64, so a seed and a name give the same weights everywhere ---- */

/* Next random number (SplitMix64) */
static uint64_t next(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static double uniform(uint64_t *state) { return ((double)(next(state) >> 11) + 0.5) * 0x1p-53; }

double cnri_random_normal(uint64_t *state) {
    const double radius = sqrt(-2 * log(uniform(state)));
    return radius * cos(6.28318530717958647692 * uniform(state));
}

/* The deviation for a random weight by its fan-in alone. */
static double deviation_of(const cnri_value *v) {
    /* If the operator gives no fan-in: the number of weights that one output (axis 0) reads. */
    const cnr_tensor *t = v->type;
    const int64_t n = cnr_count(t), guess = t->rank > 0 && t->dim[0] > 0 ? n / t->dim[0] : 1;
    return sqrt(2.0 / (double)(v->init.fan_in > 0 ? v->init.fan_in : guess > 0 ? guess : 1));
}

/* ---- numbers of each value ---- */

static float *row(const spread *s, cnr_value v) { return s->rows + (size_t)v * NUMBERS; }

/* True if the value is an input or computed by a node, no constant. */
static bool computed(const spread *s, cnr_value v) {
    return v >= 0 && (s->g->values.at[v].producer >= 0 || s->g->values.at[v].is_input);
}

/* Mean of the squares of a row. */
static double mean_square(const float *at) {
    double sum = 0;
    for (int32_t i = 0; i < NUMBERS; i++) sum += (double)at[i] * at[i];
    return sum / NUMBERS;
}

/* Fills with each random number and its negative, scaled, so that mean and variance are exact
 * for any count. */
static void fill_normal(spread *s, float *to, double deviation) {
    for (int32_t i = 0; i < NUMBERS / 2; i++) {
        to[i] = (float)cnri_random_normal(&s->state);
        to[i + NUMBERS / 2] = -to[i];
    }
    const double scale = deviation / sqrt(mean_square(to));
    for (int32_t i = 0; i < NUMBERS; i++) to[i] = (float)(to[i] * scale);
}

/* True if the value is a weight without data that is drawn from a normal distribution. */
static bool learned_at_random(const cnri_value *v) {
    return v->unfilled && v->init.kind == CNR_INIT_HE;
}

/* Fills `to` with the sample row of a constant: normal numbers, or the one it has everywhere. */
static void fill_constant(spread *s, const cnri_value *v, float *to) {
    const int64_t n = cnr_count(v->type);
    const bool known = v->type->data && v->type->dtype == CNR_f32 && !v->type->encoding && n > 0;
    const double same = !v->unfilled || v->init.kind == CNR_INIT_ONE ? 1
                        : v->init.kind == CNR_INIT_CONST             ? v->init.value
                                                                     : 0;
    if (learned_at_random(v)) {
        fill_normal(s, to, deviation_of(v));
        return;
    }
    for (int32_t i = 0; i < NUMBERS; i++)
        to[i] = known ? ((const float *)v->type->data)[i % n] : (float)same;
}

/* Constants behind the first input may be limits (as of clip), which the operator reads itself.
 * False: it failed. */
static bool apply(const spread *s, const cnri_node *node, float *to) {
    const cnr_op *op = node->view.desc;
    const int32_t n = node->view.n_inputs;
    int32_t moving = 0;
    if (!(op->flags & CNR_OP_ELEMENTWISE) || !op->apply_f32 || n < 1) return false;
    for (int32_t i = 0; i < n; i++) {
        if (node->in[i] < 0 && i < 2) return false;
        moving += computed(s, node->in[i]);
    }
    const float *x = row(s, node->in[0]);
    if (n == 2) {
        op->apply_f32(&node->view, x, row(s, node->in[1]), to, NUMBERS);
    } else if (n == 1 || moving == 1) {
        op->apply_f32(&node->view, x, NULL, to, NUMBERS);
    } else if (op->flags & CNR_OP_ADDS) {
        memcpy(to, x, NUMBERS * sizeof *to);
        for (int32_t k = 1; k < n; k++)
            for (int32_t i = 0; i < NUMBERS; i++) to[i] += row(s, node->in[k])[i];
    } else {
        return false;
    }
    for (int32_t i = 0; i < NUMBERS; i++)
        if (!(fabsf(to[i]) < 1e6f)) to[i] = 0; /* a division by 0 must not spread */
    return true;
}

/* Passes the inputs' numbers on; of several inputs a share of each. */
static void pass(const spread *s, const cnri_node *node, cnr_value out) {
    const float *from[16];
    int32_t n = 0;
    for (int32_t i = 0; i < node->view.n_inputs && n < 16; i++)
        if (computed(s, node->in[i])) from[n++] = row(s, node->in[i]);
    for (int32_t i = 0; i < NUMBERS; i++) row(s, out)[i] = n ? from[i % n][i] : 0;
}

/* Finds the deviation of the weights of a node that sums products, for an output variance of 1.
 * False: the node does not sum products. */
static bool fit(spread *s, const cnri_node *node, double *deviation) {
    bool any = false;
    if (node->view.desc->flags & CNR_OP_ELEMENTWISE || node->view.n_inputs < 2 || node->in[0] < 0)
        return false;
    const double size = mean_square(row(s, node->in[0]));
    for (int32_t i = 1; i < node->view.n_inputs; i++) {
        const cnr_value w = node->in[i];
        if (w < 0 || !learned_at_random(&s->g->values.at[w])) continue;
        any = true;
        if (size > 1e-9) deviation[w] = deviation_of(&s->g->values.at[w]) / sqrt(2 * size);
    }
    return any;
}

/* The first number of metadata "input.INPUT" + key, for a picture input; `without`: none. */
static double picture_number(const cnr_graph *g, const char *input, const char *key,
                             double without) {
    char *name = cnri_format("input.%s%s", input, key);
    const char *text = name ? cnri_graph_meta(g, name) : NULL, *end;
    double number;
    const bool known = text && cnri_parse_double(text, &end, &number) && isfinite(number);
    cnri_free(name);
    return known ? number : without;
}

/* The expected root mean square of a picture input: pixels spread evenly from 0 to 255, after mean,
 * deviation and scale. At least sqrt(0.5), that of numbers behind a relu, which is also taken
 * without picture settings. */
static double input_size(const cnr_graph *g, const char *name) {
    const double factor = picture_number(g, name, ".scale", 1);
    const double mean = picture_number(g, name, ".mean", 0),
                 std = picture_number(g, name, ".std", 1);
    if (factor == 1 && mean == 0 && std == 1) return sqrt(0.5);
    const double size = sqrt((127.5 - mean) * (127.5 - mean) + 5418.75) * fabs(factor / std);
    return size > sqrt(0.5) && size < 1e6 ? size : sqrt(0.5);
}

cnr_status cnri_spread_find(const cnr_graph *g, uint64_t seed, double *deviation, cnr_error *err) {
    spread s = {.g = g, .state = seed};
    if ((size_t)g->values.n > SIZE_MAX / 2 / (NUMBERS * sizeof *s.rows) ||
        !(s.rows = cnri_alloc_zero((size_t)g->values.n * NUMBERS * sizeof *s.rows)))
        return cnri_out_of_memory(err, g->name);
    for (int32_t k = 0; k < g->values.n; k++) {
        const cnri_value *v = &g->values.at[k];
        deviation[k] = deviation_of(v);
        if (v->is_input) fill_normal(&s, row(&s, k), input_size(g, v->name));
        else if (v->producer < 0) fill_constant(&s, v, row(&s, k));
    }
    for (int32_t i = 0; i < g->nodes.n; i++) {
        const cnri_node *node = g->nodes.at[i];
        const bool fitted = fit(&s, node, deviation);
        for (int32_t k = 0; k < node->view.n_outputs; k++) {
            if (node->out[k] < 0) continue;
            if (fitted) fill_normal(&s, row(&s, node->out[k]), 1);
            else if (k > 0 || !apply(&s, node, row(&s, node->out[k]))) pass(&s, node, node->out[k]);
        }
    }
    cnri_free(s.rows);
    return CNR_OK;
}
