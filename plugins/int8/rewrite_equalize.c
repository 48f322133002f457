/* equalize-channels: cross-layer equalisation. Channels between two layers whose calibrated values
 * are small are scaled up before quantisation, and the following weights are scaled down:
 *
 *     w2 f(w1 x)  =  (w2 / k) f(k w1 x)       k > 0 by channel, f(k x) = k f(x)
 *
 * The single scale of an activation then rounds all channels with the same relative error. Weights
 * have a scale per output channel, so those of the first layer and of a depthwise second layer are
 * rounded as before. In other second layers, columns become small relative to their neighbours, so
 * k balances both rounding errors. A relu6 still limits no other channel than before, since k makes
 * none larger than the largest.
 *
 * Runs only if metadata has the calibrated maxima: "channels.VALUE" = "largest,largest,..". */
#include "graphs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define LARGEST 64.0F /* limit of k: values outside the calibration set may be larger */

/* 1 for a plain f32 constant of that rank (-1: any) */
static int own_f32(const cnr_tensor *t, int32_t rank) {
    return t && t->dtype == CNR_f32 && !t->encoding && t->data && (t->flags & CNR_TENSOR_CONST) &&
           !(t->flags & CNR_TENSOR_VARIABLE) && (rank < 0 || t->rank == rank);
}

/* 1 for a convolution whose weights may change. */
static int is_conv(const graph *g, const cnr_node *node, const cnr_value *in) {
    const cnr_tensor *bias = cnr_own_input(node, 2);
    return graph_is(node, "conv") && node->inputs[0] && node->inputs[0]->rank >= 3 &&
           own_f32(cnr_own_input(node, 1), -1) && int8_host->graph_use_count(g, in[1]) == 1 &&
           (!bias || (own_f32(bias, 1) && int8_host->graph_use_count(g, in[2]) == 1));
}

/* Whether f(k x) = k f(x) for each channel; limits count as linear while no value exceeds them. */
static int is_homogeneous(const cnr_node *node) {
    static const char *const ops[] = {"relu",     "leaky_relu",   "relu6",
                                      "max_pool", "average_pool", "identity"};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (graph_is(node, ops[i])) return 1;
    return 0;
}

/* Index of the convolution whose output channels reach `value` unmixed; -1: none. */
static int32_t layer_before(const graph *g, cnr_value value) {
    for (int averaged = 0;;) {
        const int32_t producer = int8_host->graph_producer(g, value);
        const cnr_value *in;
        if (producer < 0 || int8_host->graph_use_count(g, value) != 1) return -1;
        const cnr_node *node = int8_host->graph_node_at(g, producer, &in, NULL);
        if (is_conv(g, node, in)) return producer;
        if (!is_homogeneous(node) || node->n_inputs < 1) return -1;
        /* means say nothing about reaching its limit */
        if (averaged && graph_is(node, "relu6")) return -1;
        averaged |= graph_is(node, "average_pool");
        value = in[0];
    }
}

/* ---- computing k ---- */

/* Parses n numbers, which are not negative, into out, with 1; 0: the text does not have them. */
static int read_largest(const char *text, float *out, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        char *end;
        out[i] = strtof(text, &end);
        if (end == text || !(out[i] >= 0) || (*end != ',' && i + 1 < n)) return 0;
        text = end + 1;
    }
    return 1;
}

typedef struct second { /* the second layer, which reads the channels */
    const float *w;
    int64_t rows, depth, inner, per_group, channels;
} second;

/* The weights of the second convolution, and how its rows' elements follow from input channels. */
static second second_of(const cnr_node *node) {
    const cnr_tensor *w = node->inputs[1];
    const int64_t channels = node->inputs[0]->dim[1], groups = channels / w->dim[1];
    return (second){w->data,
                    w->dim[0],
                    cnr_count(w) / w->dim[0],
                    cnr_span(w, 2, w->rank),
                    w->dim[0] / groups,
                    channels};
}

/* The input channel of element `at` of row `row`. */
static int64_t channel_of(const second *s, int64_t row, int64_t at) {
    return row / s->per_group * (s->depth / s->inner) + at / s->inner;
}

/* Computes two sums of squares for each channel: own, of its weights; rows, of the largest weight
 * of each row that it occurs in. */
static void weigh(const second *s, double *own, double *rows) {
    for (int64_t r = 0; r < s->rows; r++) {
        double most = 0;
        for (int64_t i = 0; i < s->depth; i++)
            most = fmax(most, fabs((double)s->w[r * s->depth + i]));
        for (int64_t i = 0; i < s->depth; i++) {
            const double v = (double)s->w[r * s->depth + i];
            own[channel_of(s, r, i)] += v * v;
            rows[channel_of(s, r, i)] += most * most;
        }
    }
}

/* Replaces each channel's `largest` weight of the first layer by the factor k that it is divided
 * by. 0: out of memory. */
static int choose(const second *s, float *largest) {
    double *own = int8_host->alloc((size_t)s->channels * 2 * sizeof *own),
           *rows = own + s->channels;
    float most = 0;
    if (!own) return 0;
    memset(own, 0, (size_t)s->channels * 2 * sizeof *own);
    weigh(s, own, rows);
    for (int64_t c = 0; c < s->channels; c++) most = fmaxf(most, largest[c]);
    for (int64_t c = 0; c < s->channels; c++) {
        const double seen = (double)largest[c];
        double k = seen > 0 ? (double)most / seen : 1;
        /* rounding noise of the activation's byte (255 steps) against that of the weights (254);
         * the root mean square of a channel is about a third of its maximum */
        if (s->depth > s->inner && rows[c] > 0 && seen > 0)
            k = fmin(k, sqrt((double)most * sqrt(own[c]) / (sqrt(rows[c]) * seen / 3)));
        largest[c] = fminf(LARGEST, fmaxf(1, (float)k));
    }
    int8_host->free(own);
    return 1;
}

/* ---- applying k ---- */

/* Replaces a constant that only this layer reads. */
static cnr_status replace_one(graph *g, cnr_value old, const cnr_tensor *like, const char *suffix,
                              const float *data) {
    char name[256];
    cnr_tensor t = *like;
    snprintf(name, sizeof name, "%.240s.%s", int8_host->graph_value_name(g, old), suffix);
    t.flags = CNR_TENSOR_CONST;
    t.data = (void *)data;
    const cnr_value made = int8_host->graph_constant(g, name, &t);
    return made < 0 ? CNR_E_STATE : int8_host->graph_replace(g, old, made);
}

/* Replaces the layer's weights and bias (NULL: unchanged). */
static cnr_status replace(graph *g, int32_t index, const float *w, const float *bias) {
    const cnr_value *in;
    const cnr_node *node = int8_host->graph_node_at(g, index, &in, NULL);
    CNR_TRY(replace_one(g, in[1], node->inputs[1], "equal", w));
    if (!bias) return CNR_OK;
    node = int8_host->graph_node_at(g, index, &in, NULL);
    return replace_one(g, in[2], node->inputs[2], "equal", bias);
}

/* Divides the output channels of the first convolution by k. */
static cnr_status scale_first(graph *g, int32_t index, const float *k) {
    const cnr_node *node = int8_host->graph_node_at(g, index, NULL, NULL);
    const cnr_tensor *w = node->inputs[1], *b = cnr_own_input(node, 2);
    const int64_t n = cnr_count(w), depth = n / w->dim[0];
    float *to = int8_host->alloc((size_t)(n + w->dim[0]) * sizeof *to);
    if (!to) return CNR_E_MEMORY;
    for (int64_t i = 0; i < n; i++) to[i] = ((const float *)w->data)[i] * k[i / depth];
    for (int64_t i = 0; b && i < w->dim[0]; i++) to[n + i] = ((const float *)b->data)[i] * k[i];
    const cnr_status status = replace(g, index, to, b ? to + n : NULL);
    int8_host->free(to);
    return status;
}

/* Multiplies the input channels of the second convolution by k. */
static cnr_status scale_second(graph *g, int32_t index, const float *k) {
    const second s = second_of(int8_host->graph_node_at(g, index, NULL, NULL));
    float *to = int8_host->alloc((size_t)(s.rows * s.depth) * sizeof *to);
    if (!to) return CNR_E_MEMORY;
    for (int64_t i = 0; i < s.rows * s.depth; i++)
        to[i] = s.w[i] / k[channel_of(&s, i / s.depth, i % s.depth)];
    const cnr_status status = replace(g, index, to, NULL);
    int8_host->free(to);
    return status;
}

/* Equalises the channels between the layer before and this one; 1: done, 0: there is nothing to do,
 * negative: failed. */
static int32_t equalize(graph *g, int32_t index, cnr_error *err) {
    const cnr_value *in;
    char key[300];
    const cnr_node *node = int8_host->graph_node_at(g, index, &in, NULL);
    if (!graph_is(node, "conv")) return 0;
    snprintf(key, sizeof key, "channels.%.280s", int8_host->graph_value_name(g, in[0]));
    const char *text = int8_host->graph_meta(g, key);
    const int32_t first = text && is_conv(g, node, in) ? layer_before(g, in[0]) : -1;
    if (first < 0) return 0;
    const second s = second_of(node);
    const cnr_tensor *w1 = int8_host->graph_node_at(g, first, NULL, NULL)->inputs[1];
    float *k = int8_host->alloc((size_t)s.channels * sizeof *k);
    int32_t done = k && w1->dim[0] == s.channels && read_largest(text, k, s.channels);
    cnr_status status = !k || (done && !choose(&s, k)) ? CNR_E_MEMORY : CNR_OK;
    if (!status && done) status = scale_first(g, first, k);
    if (!status && done) status = scale_second(g, index, k);
    if (!status) status = int8_host->graph_set_meta(g, key, NULL); /* not to be applied twice */
    int8_host->free(k);
    return status ? int8_host->fail(err, status, "equalize-channels", "could not be applied")
                  : done;
}

/* Applies the rewrite; returns how many pairs changed, or a negative status. */
static int32_t apply(graph *g, cnr_error *err) {
    int32_t changes = 0;
    for (int32_t i = 0; i < int8_host->graph_node_count(g); i++) {
        const int32_t done = equalize(g, i, err);
        if (done < 0) return done;
        changes += done;
    }
    return changes;
}

const cnr_rewrite int8_equalize = {
    .size = sizeof(cnr_rewrite),
    .order = 45,
    .name = "equalize-channels",
    .summary = "equalises channels between layers where that is asked for",
    .apply = apply,
    .flags = CNR_REWRITE_STRUCTURE, /* off for nets without this metadata */
    .example = int8_example_equalize,
};
