/* Quantising: calibrates on pictures, asks rewrites for whole numbers until every layer that has them
 * is good enough, and compares both nets. */
#include "core/work/calibrate.h"
#include <fnmatch.h>
#include <math.h>

typedef struct job {
    const cnri_quantise_options *o;
    cnri_calibration c;
    cnri_samples own;
    cnri_quantising *out; /* its net and quantized are ours until they are done */
    cnri_answers answers;
    bool *wanted;         /* by node of net */
    double *given_up;     /* by node of net: decibels of those that stay float; else NaN */
    int64_t labelled, right[2], agree;
    uint64_t ns[2];
} job;

static cnr_status no_memory(cnr_error *err) {
    return cnri_fail(err, CNR_E_MEMORY, "quantize", "out of memory");
}

/* ---- quantising, until every layer that is left is good enough ---- */

/* The first layer that is too noisy: those behind it may be so because of it. NULL: none is. */
static const cnri_answer *too_noisy(const job *q) {
    for (int32_t i = 0; i < q->answers.n; i++)
        if (cnri_decibels(&q->answers.at[i]) < q->o->least) return &q->answers.at[i];
    return NULL;
}

enum { COMPARED = 16 }; /* pictures that signal and noise are measured on */

static cnr_status quantise_the_good(job *q, cnr_error *err) {
    for (;;) {
        cnr_status status = cnri_quantized(&q->c, q->wanted, &q->out->quantized, &q->answers, err);
        if (!status && q->answers.n == 0)
            return cnri_fail(err, CNR_E_NOT_FOUND, q->out->net->name,
                             "no layer can be quantised (or is left above --min-snr)");
        if (!status) status = cnri_compare(&q->c, q->out->quantized, &q->answers, COMPARED, err);
        const cnri_answer *bad = status ? NULL : too_noisy(q);
        if (!bad) return status;
        const int32_t node = q->out->net->values.at[bad->as.real].producer;
        q->given_up[node] = cnri_decibels(bad);
        q->wanted[node] = false;
        cnri_answers_free(&q->answers);
        cnri_graph_free(q->out->quantized);
        q->out->quantized = NULL;
    }
}

/* The net as plans of it would be made: nothing is measured that a rewrite removes. */
static cnr_status rewritten(job *q, const cnr_graph *net, cnr_error *err) {
    q->out->net = cnri_graph_copy(net);
    if (!q->out->net) return no_memory(err);
    const cnr_status status = cnri_graph_rewrite(q->out->net, q->c.how.no_rewrite, err);
    if (status) return status;
    q->c.net = q->out->net;
    q->c.ranges = cnri_alloc_zero((size_t)(q->out->net->values.n + 1) * sizeof *q->c.ranges);
    q->wanted = cnri_alloc_zero((size_t)(q->out->net->nodes.n + 1) * sizeof *q->wanted);
    q->given_up = cnri_alloc_zero((size_t)(q->out->net->nodes.n + 1) * sizeof *q->given_up);
    if (!q->c.ranges || !q->wanted || !q->given_up) return no_memory(err);
    for (int32_t i = 0; i < q->out->net->nodes.n; i++) q->given_up[i] = NAN;
    for (int32_t i = 0; i < q->out->net->nodes.n; i++)
        q->wanted[i] = !q->o->layers || fnmatch(q->o->layers, q->out->net->nodes.at[i]->name, 0) == 0;
    return CNR_OK;
}

/* ---- both nets side by side ---- */

static cnr_status check_one(job *q, cnri_runner *runners, const cnr_sample *sample,
                            cnr_error *err) {
    int64_t said[2] = {-1, -1};
    for (int i = 0; i < 2; i++) {
        const cnr_tensor *out;
        cnr_tensor one;
        uint64_t ns;
        cnr_status status = cnri_runner_shape(&runners[i], 1, &sample->picture, err);
        if (!status) status = cnri_runner_put(&runners[i], 0, &sample->picture, err);
        if (!status) status = cnri_runner_run(&runners[i], &ns, err);
        if (!status) status = cnr_session_output(runners[i].session, 0, &out, err);
        if (status) return status;
        q->ns[i] += ns;
        if (cnri_runner_slice(&runners[i], out, 0, &one)) said[i] = cnri_best_class(&one);
        q->right[i] += sample->label >= 0 && said[i] == sample->label;
    }
    q->out->checked++;
    q->labelled += sample->label >= 0;
    q->agree += said[0] == said[1] && said[0] >= 0;
    return CNR_OK;
}

static cnr_status check(job *q, int64_t most, cnr_error *err) {
    const cnr_graph *nets[2] = {q->out->net, q->out->quantized};
    cnr_model *models[2] = {NULL, NULL};
    cnri_runner runners[2] = {{0}, {0}};
    cnri_samples own = {0}, *samples = q->o->samples ? q->o->samples : &own;
    cnr_status status =
        q->o->samples ? CNR_OK : cnri_samples_open(q->o->data, "eval", &own, err);
    const int64_t n = status || most < samples->info.count ? most : samples->info.count;
    for (int i = 0; i < 2 && !status; i++) {
        status = cnri_calibration_model(&q->c, nets[i], true, &models[i], err);
        if (!status) status = cnri_runner_open(&runners[i], models[i], q->c.observer, err);
    }
    for (int64_t i = 0; i < n && !status; i++) {
        cnr_sample sample;
        if ((status = cnri_samples_read(samples, i, &sample, err)) != CNR_OK) break;
        status = check_one(q, runners, &sample, err);
        cnri_free(sample.picture.data);
        if (!status) status = cnri_go_on(q->c.observer, "checking", i + 1, n, err);
    }
    for (int i = 0; i < 2; i++) {
        cnri_runner_close(&runners[i]);
        cnr_release(models[i]);
    }
    if (!q->o->samples) cnri_samples_close(&own);
    return status;
}

/* ---- the result ---- */

static double share(int64_t part, int64_t all) {
    return all ? (double)part / (double)all : NAN;
}

static const cnri_answer *answer_of(const job *q, int32_t node) {
    for (int32_t i = 0; i < q->answers.n; i++)
        if (q->out->net->values.at[q->answers.at[i].as.real].producer == node)
            return &q->answers.at[i];
    return NULL;
}

static cnr_status take(job *q, cnr_error *err) {
    cnri_quantising *out = q->out;
    const int32_t n = out->net->nodes.n;
    out->layers = cnri_alloc_zero((size_t)(n + 1) * sizeof *out->layers);
    if (!out->layers) return no_memory(err);
    for (int32_t i = 0; i < n; i++) {
        const cnri_answer *a = answer_of(q, i);
        const cnri_node *node = out->net->nodes.at[i];
        if (!a && isnan(q->given_up[i])) continue;
        const cnri_range *r = &q->c.ranges[node->out[0]];
        out->layers[out->n_layers++] = (cnri_quantised_layer){
            node->name, r->low, r->high, a ? cnri_decibels(a) : q->given_up[i], a != NULL};
    }
    out->n_quantised = q->answers.n;
    out->agree = share(q->agree, out->checked);
    for (int i = 0; i < 2; i++) {
        out->top1[i] = share(q->right[i], q->labelled);
        out->ms[i] = out->checked ? (double)q->ns[i] * 1e-6 / (double)out->checked : 0;
    }
    return CNR_OK;
}

static cnr_status all(job *q, const cnr_graph *net, cnr_error *err) {
    const int64_t limit = q->o->limit > 0 ? q->o->limit : 100;
    cnr_status status =
        q->o->samples ? CNR_OK : cnri_samples_open(q->o->data, "train", &q->own, err);
    if (!status) status = rewritten(q, net, err);
    if (status) return status;
    q->c.samples = q->o->samples ? q->o->samples : &q->own;
    q->c.pictures = limit < q->c.samples->info.count ? limit : q->c.samples->info.count;
    status = cnri_calibrate(&q->c, err);
    if (!status) status = quantise_the_good(q, err);
    if (!status && q->o->check) status = check(q, q->o->check < 0 ? limit : q->o->check, err);
    return status ? status : take(q, err);
}

cnr_status cnri_quantise(cnr_runtime *rt, const cnr_graph *net, const cnri_quantise_options *options,
                         const cnr_observer *observer, cnri_quantising *out, cnr_error *err) {
    job q = {.o = options, .out = out, .c = {.rt = rt, .observer = observer}};
    *out = (cnri_quantising){0};
    CNRI_TAKE(q.c.how, options->how);
    const int64_t before = cnri_alloc_failures();
    cnr_status status = all(&q, net, err);
    if (!options->samples) cnri_samples_close(&q.own);
    cnri_answers_free(&q.answers);
    cnri_free(q.wanted);
    cnri_free(q.given_up);
    cnri_calibration_free(out->quantized);
    cnri_free(q.c.ranges);
    status = cnri_alloc_verdict(before, status, net->name, err);
    if (status) cnri_quantising_free(out);
    return status;
}

void cnri_quantising_free(cnri_quantising *q) {
    cnri_graph_free(q->quantized);
    cnri_graph_free(q->net);
    cnri_free(q->layers);
    *q = (cnri_quantising){0};
}
