/* Sensitivity: each layer quantised alone, and the noise that it makes in all values behind it.
 * Noise adds up along a net, so a value can be bad because of a layer far before it, whose own
 * output looks good. */
#include "work/calibrate.h"
#include <math.h>

enum { PICTURES = 4 };

/* ---- along the net ---- */

/* Marks the nodes that compute inputs of marked nodes. */
static void mark_before(const cnr_graph *net, bool *nodes) {
    for (int32_t i = net->nodes.n - 1; i >= 0; i--)
        for (int32_t k = 0; nodes[i] && k < net->nodes.at[i]->view.n_inputs; k++) {
            const cnr_value v = net->nodes.at[i]->in[k];
            if (v >= 0 && net->values.at[v].producer >= 0) nodes[net->values.at[v].producer] = true;
        }
}

/* True if the node computes from marked values. A node without a gradient selects (sorts,
 * counts) instead. */
static bool follows(const cnri_node *node, const bool *values) {
    bool out = false;
    for (int32_t k = 0; k < node->view.n_inputs; k++)
        out |= node->in[k] >= 0 && values[node->in[k]];
    return out && CNRI_HAS(node->view.desc, gradient);
}

bool *cnri_values_behind(const cnr_graph *net, const cnri_answers *answers) {
    /* By node: it is a layer, or depends on one. */
    bool *before = cnri_alloc_zero((size_t)net->nodes.n + 1);
    bool *out = cnri_alloc_zero(2 * ((size_t)net->values.n + 1)),
         *reached = out + net->values.n + 1;
    if (!before || !out) {
        cnri_free(before);
        cnri_free(out);
        return NULL;
    }
    for (int32_t i = 0; i < answers->n; i++) {
        before[cnri_answer_node(net, &answers->at[i])] = true;
        out[answers->at[i].as.real] = reached[answers->at[i].as.real] = true;
    }
    mark_before(net, before);
    for (int32_t i = 0; i < net->nodes.n; i++) {
        const cnri_node *node = net->nodes.at[i];
        for (int32_t k = 0; k < node->view.n_outputs && follows(node, reached); k++) {
            reached[node->out[k]] = true;
            out[node->out[k]] |= !before[i];
        }
    }
    cnri_free(before);
    return out;
}

/* ---- one layer alone ---- */

/* out, by watched value: noise of all answers if only the layers in `wanted` are quantised. */
static cnr_status compare_alone(cnri_sensitivity *s, const bool *wanted, double *out,
                                cnr_error *err) {
    cnri_answers answers = {0};
    cnr_graph *quantized = NULL;
    cnr_status status = cnri_quantized(s->c, wanted, &quantized, &answers, err);
    if (!status) status = cnri_answers_add_watched(s->c, quantized, s->watched, &answers, err);
    if (!status) status = cnri_compare(s->c, quantized, &answers, PICTURES, err);
    for (int32_t i = 0; i < answers.n && !status; i++) {
        const cnri_answer *a = &answers.at[i];
        out[a->as.real] = a->noise > 0 ? a->noise / a->signal : 0;
    }
    cnri_answers_free(&answers);
    cnri_graph_free(quantized);
    return status;
}

/* Measures, unless that was done, the noise that one layer makes alone: s->alone[node], by
 * value. */
static cnr_status measure(cnri_sensitivity *s, int32_t node, cnr_error *err) {
    const cnr_graph *net = s->c->net;
    if (!s->alone) s->alone = cnri_alloc_zero(((size_t)net->nodes.n + 1) * sizeof *s->alone);
    if (!s->alone) return cnri_out_of_memory(err, "quantize");
    if (s->alone[node]) return CNR_OK;
    bool *wanted = cnri_alloc_zero((size_t)net->nodes.n + 1);
    s->alone[node] = cnri_alloc_zero(((size_t)net->values.n + 1) * sizeof **s->alone);
    cnr_status status = wanted && s->alone[node] ? CNR_OK : cnri_out_of_memory(err, "quantize");
    if (!status) wanted[node] = true;
    if (!status) status = compare_alone(s, wanted, s->alone[node], err);
    cnri_free(wanted);
    return status ? status
                  : cnri_report_progress(s->c->observer, "layers alone", ++s->measured, 0, err);
}

/* Takes the noisiest layer of `before` out of `wanted`. Returns the sum of the others' noise at
 * `at`. */
static double drop_one(const cnri_sensitivity *s, const bool *before, cnr_value at, bool *wanted) {
    int32_t worst = -1;
    double sum = 0;
    for (int32_t i = 0; i < s->c->net->nodes.n; i++) {
        if (!before[i] || !wanted[i] || !s->alone[i]) continue;
        if (worst < 0 || s->alone[i][at] > s->alone[worst][at]) worst = i;
    }
    if (worst >= 0) wanted[worst] = false;
    for (int32_t i = 0; i < s->c->net->nodes.n; i++)
        if (before[i] && wanted[i] && s->alone[i]) sum += s->alone[i][at];
    return sum;
}

cnr_status cnri_drop_noisiest(cnri_sensitivity *s, const cnri_answers *answers, cnr_value at,
                              double maximum, bool *wanted, cnr_error *err) {
    const cnr_graph *net = s->c->net;
    bool *before = cnri_alloc_zero((size_t)net->nodes.n + 1);
    cnr_status status = before ? CNR_OK : cnri_out_of_memory(err, "quantize");
    if (before) before[net->values.at[at].producer] = true;
    if (before) mark_before(net, before);
    for (int32_t i = 0; i < answers->n && !status; i++)
        if (cnri_is_quantised(&answers->at[i]) && before[cnri_answer_node(net, &answers->at[i])])
            status = measure(s, cnri_answer_node(net, &answers->at[i]), err);
    if (!status)
        while (drop_one(s, before, at, wanted) > maximum) {}
    cnri_free(before);
    return status;
}

/* The noise of a layer in the values that the outputs are computed from; if all watched values
 * are layers, in all of them. */
static double noise_behind(const cnri_sensitivity *s, const cnri_answers *answers, int32_t node) {
    double all = 0, behind = 0;
    for (cnr_value v = 0; v < s->c->net->values.n; v++) {
        bool layer = false;
        if (!s->watched[v]) continue;
        for (int32_t i = 0; i < answers->n; i++)
            layer |= cnri_is_quantised(&answers->at[i]) && answers->at[i].as.real == v;
        all += s->alone[node][v];
        if (!layer) behind += s->alone[node][v];
    }
    return behind > 0 ? behind : all;
}

/* Sorts the layers in `answers` into `order`, as long as the answers, with their number in *n: the
 * noisiest first, by the noise that each alone makes in the watched values that are no layers (if
 * there are none, in all watched values). */
cnr_status cnri_noisiest_first(cnri_sensitivity *s, const cnri_answers *answers, int32_t *order,
                               int32_t *n, cnr_error *err) {
    double *noise = cnri_alloc_zero(((size_t)answers->n + 1) * sizeof *noise);
    cnr_status status = noise ? CNR_OK : cnri_out_of_memory(err, "quantize");
    *n = 0;
    for (int32_t i = 0; i < answers->n && !status; i++) {
        if (!cnri_is_quantised(&answers->at[i])) continue;
        const int32_t node = cnri_answer_node(s->c->net, &answers->at[i]);
        if ((status = measure(s, node, err)) != CNR_OK) break;
        const double own = noise_behind(s, answers, node);
        int32_t at = (*n)++;
        for (; at > 0 && noise[at - 1] < own; at--) {
            noise[at] = noise[at - 1];
            order[at] = order[at - 1];
        }
        noise[at] = own;
        order[at] = node;
    }
    cnri_free(noise);
    return status;
}

/* Frees the lists; the struct is the caller's. */
void cnri_sensitivity_free(cnri_sensitivity *s) {
    for (int32_t i = 0; s->alone && i < s->c->net->nodes.n; i++) cnri_free(s->alone[i]);
    cnri_free(s->alone);
    s->alone = NULL;
}
