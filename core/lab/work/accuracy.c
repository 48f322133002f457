/* The answers of a net on the calibration pictures, and how many points of accuracy another net
 * loses there. */
#include "work/calibrate.h"
#include <math.h>

/* Keeps the scores in v->shares as shares that sum to 1, by softmax unless they do already. False:
 * out of memory. */
static bool keep_shares_of(cnri_verdict *v, const cnr_tensor *scores) {
    const bool are_shares = cnri_are_shares(scores);
    double most = -INFINITY, sum = 0;
    v->n = cnr_count(scores);
    v->shares = cnri_alloc_zero(((size_t)v->n + 1) * sizeof *v->shares);
    if (!v->shares) return false;
    for (int64_t i = 0; i < v->n; i++)
        most = fmax(most, cnri_element(scores->dtype, scores->data, i));
    for (int64_t i = 0; i < v->n; i++) {
        const double score = cnri_element(scores->dtype, scores->data, i);
        v->shares[i] = (float)(are_shares ? score : exp(score - most));
        sum += (double)v->shares[i];
    }
    for (int64_t i = 0; i < v->n && sum > 0; i++)
        v->shares[i] = (float)((double)v->shares[i] / sum);
    return true;
}

/* Frees the verdicts' shares and the list. */
void cnri_verdicts_free(cnri_verdicts *v) {
    for (int64_t i = 0; i < v->n; i++) cnri_free(v->at[i].shares);
    cnri_vec_free(v);
}

/* Runs the net on the pictures and lists its answers in *out, with all shares if keep_shares. Free
 * them after an error too. */
cnr_status cnri_verdicts_of(cnri_calibration *c, const cnr_graph *net, bool keep_shares,
                            cnri_verdicts *out, cnr_error *err) {
    cnr_model *model = NULL;
    cnri_runner runner = {0};
    cnr_status status = cnri_calibration_model(c, net, true, &model, err);
    if (!status) status = cnri_runner_open(&runner, model, c->observer, err);
    for (int64_t i = 0; i < c->pictures && !status; i++) {
        cnr_sample sample;
        const cnr_tensor *scores;
        cnr_tensor one;
        if (!cnri_judges(c, i)) continue;
        if ((status = cnri_samples_read(c->samples, i, &sample, err)) != CNR_OK) break;
        status = cnri_runner_shape(&runner, 1, &sample.picture, err);
        if (!status) status = cnri_runner_put(&runner, 0, &sample.picture, err);
        if (!status) status = cnri_runner_run(&runner, NULL, err);
        if (!status) status = cnr_session_output(runner.session, 0, &scores, err);
        cnri_verdict *v = status ? NULL : cnri_push(out);
        if (!status && !v) status = cnri_out_of_memory(err, "quantize");
        if (v) *v = (cnri_verdict){.class = -1, .label = sample.label};
        if (v && cnri_runner_slice(&runner, scores, 0, &one)) v->class = cnri_best_class(&one);
        if (v && v->class >= 0 && keep_shares && !keep_shares_of(v, &one))
            status = cnri_out_of_memory(err, "quantize");
        cnri_free(sample.picture.data);
        if (!status && cnri_stopped(c->observer))
            status = cnri_fail(err, CNR_E_CANCELLED, "quantize", "stopped");
    }
    cnri_runner_close(&runner);
    cnr_release(model);
    return status;
}

/* Probability, by the float net's shares, that its answer is right, minus that of the other net's
 * answer; 0 without shares. */
static double regret(const cnri_verdict *before, const cnri_verdict *after) {
    if (!before->shares || after->class < 0 || after->class >= before->n) return 0;
    return (double)before->shares[before->class] - (double)before->shares[after->class];
}

double cnri_points_lost(const cnri_verdicts *before, const cnri_verdicts *after) {
    int64_t labelled = 0, judged = 0, lost = 0, other = 0;
    double expected = 0;
    for (int64_t i = 0; i < before->n && i < after->n; i++) {
        const cnri_verdict *a = &before->at[i], *b = &after->at[i];
        if (a->class < 0) continue;
        judged++;
        other += a->class != b->class;
        expected += regret(a, b);
        labelled += a->label >= 0;
        lost += a->label >= 0 && a->class == a->label;
        lost -= a->label >= 0 && b->class == a->label;
    }
    if (judged == 0) return NAN;
    if (labelled == 0) return 100 * (double)other / (double)judged;
    return 100 * fmax((double)lost / (double)labelled, expected / (double)judged);
}

/* ---- a budget: as few layers as possible stay float ---- */

/* A search for the fewest layers that must stay in floats. */
typedef struct search {
    cnri_calibration *c;
    const cnri_verdicts *before;
    const int32_t *order; /* nodes of the net, the noisiest first */
    bool *wanted;
    double lost; /* points lost with the last choice */
} search;

/* Quantises with the n noisiest of `all` layers in floats (s->wanted then says which are
 * quantised), and sets s->lost to the points (hundredths) of accuracy lost on the pictures; the
 * quantised net is freed. Fails also if the observer stops it. */
static cnr_status try_floats(search *s, int32_t n, int32_t all, cnr_error *err) {
    cnri_answers answers = {0};
    cnri_verdicts after = {0};
    cnr_graph *quantized = NULL;
    for (int32_t i = 0; i < all; i++) s->wanted[s->order[i]] = i >= n;
    cnr_status status = cnri_quantized(s->c, s->wanted, &quantized, &answers, err);
    if (!status) status = cnri_verdicts_of(s->c, quantized, false, &after, err);
    if (!status) s->lost = cnri_points_lost(s->before, &after);
    cnri_answers_free(&answers);
    cnri_verdicts_free(&after);
    cnri_graph_free(quantized);
    return status ? status : cnri_report_progress(s->c->observer, "keeping accuracy", n, all, err);
}

cnr_status cnri_keep_within(cnri_calibration *c, const cnri_verdicts *before, double points,
                            const int32_t *order, int32_t n, bool *wanted, double *lost,
                            cnr_error *err) {
    search s = {c, before, order, wanted, 0};
    int32_t bad = -1, good = 0; /* numbers of layers in floats: too few, and enough */
    cnr_status status = try_floats(&s, 0, n, err);
    for (; !status && s.lost > points && good < n;) {
        bad = good;
        good = (int32_t)cnr_min(n, good ? good * 2 : 1);
        status = try_floats(&s, good, n, err);
    }
    while (!status && good - bad > 1) {
        const int32_t middle = bad + (good - bad) / 2;
        status = try_floats(&s, middle, n, err);
        *(s.lost > points ? &bad : &good) = middle;
    }
    if (!status) status = try_floats(&s, good, n, err);
    *lost = s.lost;
    return status;
}
