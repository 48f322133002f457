/* Bias correction: what a quantised layer's output is off by on average, channel by channel, is
 * taken off its bias. One layer after the other, since those behind see what this one gives then:
 * two at a time, tiny-darknet's outputs became noisier by 2 dB instead of better by 2. */
#include "work/calibrate.h"
#include <math.h>

enum { PASSES = 64 };

/* Bias of the layer that computes an answer's value in the float net; -1: it has none. */
static cnr_value bias_of(const cnri_calibration *c, const cnri_answer *a) {
    return cnri_bias_of(c->net, c->net->nodes.at[cnri_answer_node(c->net, a)]);
}

/* One of *n passes (set by the first): corrects the bias of the layers whose turn it
 * is. With more than PASSES layers, several share a pass. */
static cnr_status correct_some(cnri_calibration *c, cnri_float_net *net, const bool *wanted,
                               int64_t pictures, int32_t pass, int32_t *n, cnr_error *err) {
    cnri_answers answers = {0};
    cnr_graph *quantized = NULL;
    cnr_status status = cnri_quantized(c, wanted, &quantized, &answers, err);
    const int32_t passes = *n = (int32_t)cnr_min(PASSES, answers.n);
    bool any = false;
    for (int32_t i = 0; i < answers.n && !status && pass < passes; i++) {
        cnri_answer *a = &answers.at[i];
        const cnr_value bias = bias_of(c, a);
        if (bias < 0 || i * passes / answers.n != pass) continue;
        a->channels = c->net->values.at[bias].type->dim[0];
        a->off = cnri_alloc_zero((size_t)a->channels * 2 * sizeof *a->off);
        if (!a->off) status = cnri_out_of_memory(err, "quantize");
        any = true;
    }
    if (!status && any) status = cnri_compare_with(c, net, quantized, &answers, pictures, err);
    for (int32_t i = 0; i < answers.n && !status; i++) {
        const cnri_answer *a = &answers.at[i];
        double **shift = &c->shifts[cnri_answer_node(c->net, a)];
        if (!a->off) continue;
        if (!*shift) *shift = cnri_alloc_zero(((size_t)a->channels + 1) * sizeof **shift);
        if (!*shift) status = cnri_out_of_memory(err, "quantize");
        for (int64_t k = 0; k < a->channels && !status; k++)
            if (a->off[k * 2 + 1] > 0) (*shift)[k] += a->off[k * 2] / a->off[k * 2 + 1];
    }
    cnri_answers_free(&answers);
    cnri_graph_free(quantized);
    return status;
}

cnr_status cnri_correct_biases(cnri_calibration *c, const bool *wanted, int64_t pictures,
                               cnr_error *err) {
    cnri_shifts_free(c);
    c->shifts = cnri_alloc_zero(((size_t)c->net->nodes.n + 1) * sizeof *c->shifts);
    if (!c->shifts) return cnri_out_of_memory(err, "quantize");
    cnri_float_net net;
    cnr_status status = cnri_float_net_open(c, &net, err);
    int32_t n = 1;
    for (int32_t pass = 0; pass < n && !status; pass++) {
        status = correct_some(c, &net, wanted, pictures, pass, &n, err);
        if (!status)
            status = cnri_report_progress(c->observer, "correcting biases", pass + 1,
                                          cnr_max(pass + 1, n), err);
    }
    cnri_float_net_close(&net);
    return status;
}
