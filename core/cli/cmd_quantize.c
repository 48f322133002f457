/* cnnrun quantize: calibrates a net on pictures, has its layers work on whole numbers, and tells
 * what that cost and gained. */
#include "core/cli/calibrate.h"
#include "core/store/store.h"
#include <fnmatch.h>
#include <math.h>

typedef struct quantize {
    const char *out, *data, *layers;
    int64_t limit, check;
    double least;         /* decibels */
    cnri_watching watching;
    cnri_calibration c;
    cnr_graph *loaded, *net, *quantized; /* each borrows from the one before */
    cnri_answers answers;
    bool *wanted;         /* by node of net */
    double *given_up;     /* by node of net: decibels of those that stay float; else NaN */
    int64_t checked, labelled, right[2], agree;
    uint64_t ns[2];
} quantize;

static const cnri_option options[] = {
    {"--output", "FILE", CNRI_OPT_TEXT, offsetof(quantize, out), "the native file to write", 0, 0,
     NULL, 'o'},
    {"--data", "SPEC", CNRI_OPT_TEXT, offsetof(quantize, data),
     "pictures to calibrate with; their \"eval\" part, where a source has one, to check with", 0, 0,
     NULL, 0},
    {"--limit", "N", CNRI_OPT_INT, offsetof(quantize, limit), "pictures to calibrate with (100)", 1,
     1e9, NULL, 0},
    {"--layers", "GLOB", CNRI_OPT_TEXT, offsetof(quantize, layers), "only layers of such names (*)",
     0, 0, NULL, 0},
    {"--min-snr", "DB", CNRI_OPT_REAL, offsetof(quantize, least),
     "a layer with less signal to noise stays float (10)", -1000, 1000, NULL, 0},
    {"--check", "N", CNRI_OPT_INT, offsetof(quantize, check),
     "pictures to compare both nets on (as --limit)", 0, 1e9, NULL, 0},
};

static const cnri_syntax syntax = {
    .command = "quantize",
    .operands = "NET --data SPEC -o OUT.cnr",
    .summary = "Makes layers work on 8-bit whole numbers, with ranges seen on pictures.",
    .details = "Told for each layer: its output's range, and signal to noise in decibels against "
               "the float\nnet on some of the pictures. The loaded plugins' rewrites do the work "
               "(cnnrun plugins). JSON:\na line a layer {\"layer\", \"low\", \"high\", \"snr_db\", "
               "\"quantized\"}, then {\"layers\", \"pictures\",\n\"top1_float\", "
               "\"top1_quantized\", \"agree\", \"ms_float\", \"ms_quantized\"}.",
    .options = options,
    .n_options = CNRI_COUNT(options),
    .nets = true,
    .min_operands = 1,
    .max_operands = 1,
};

static cnr_status no_memory(cnr_error *err) {
    return cnri_fail(err, CNR_E_MEMORY, "quantize", "out of memory");
}

/* ---- quantising, until every layer that is left is good enough ---- */

/* The first layer that is too noisy: those behind it may be so because of it. NULL: none is. */
static const cnri_answer *too_noisy(const quantize *q) {
    for (int32_t i = 0; i < q->answers.n; i++)
        if (cnri_decibels(&q->answers.at[i]) < q->least) return &q->answers.at[i];
    return NULL;
}

enum { COMPARED = 16 }; /* pictures that signal and noise are measured on */

static cnr_status settle(quantize *q, cnr_error *err) {
    for (;;) {
        cnr_status status = cnri_quantized(&q->c, q->wanted, &q->quantized, &q->answers, err);
        if (!status && q->answers.n == 0)
            return cnri_fail(err, CNR_E_NOT_FOUND, q->c.args->operands.at[0],
                             "no layer can be quantised (or is left above --min-snr)");
        if (!status) status = cnri_compare(&q->c, q->quantized, &q->answers, COMPARED, err);
        const cnri_answer *bad = status ? NULL : too_noisy(q);
        if (!bad) return status;
        const int32_t node = q->net->values.at[bad->real].producer;
        q->given_up[node] = cnri_decibels(bad);
        q->wanted[node] = false;
        cnri_answers_free(&q->answers);
        memset(&q->answers, 0, sizeof q->answers);
        cnri_graph_free(q->quantized);
        q->quantized = NULL;
    }
}

/* The net as plans of it would be made: nothing is measured that a rewrite removes. */
static cnr_status rewritten(quantize *q, cnr_error *err) {
    q->net = cnri_graph_copy(q->loaded);
    if (!q->net) return no_memory(err);
    const cnr_status status = cnri_graph_rewrite(q->net, cnri_args_no_rewrite(q->c.args), err);
    if (status) return status;
    q->c.net = q->net;
    q->c.ranges = cnri_alloc_zero((size_t)(q->net->values.n + 1) * sizeof *q->c.ranges);
    q->wanted = cnri_alloc_zero((size_t)(q->net->nodes.n + 1) * sizeof *q->wanted);
    q->given_up = cnri_alloc_zero((size_t)(q->net->nodes.n + 1) * sizeof *q->given_up);
    if (!q->c.ranges || !q->wanted || !q->given_up) return no_memory(err);
    for (int32_t i = 0; i < q->net->nodes.n; i++) q->given_up[i] = NAN;
    for (int32_t i = 0; i < q->net->nodes.n; i++)
        q->wanted[i] = !q->layers || fnmatch(q->layers, q->net->nodes.at[i]->name, 0) == 0;
    return CNR_OK;
}

/* ---- both nets side by side ---- */

static cnr_status check_one(quantize *q, cnri_runner *runners, const cnr_sample *sample,
                            cnr_error *err) {
    int64_t said[2] = {-1, -1};
    for (int i = 0; i < 2; i++) {
        const cnr_tensor *out;
        cnr_tensor one;
        cnr_top top;
        uint64_t ns;
        cnr_status status = cnri_runner_shape(&runners[i], 1, &sample->picture, err);
        if (!status) status = cnri_runner_put(&runners[i], 0, &sample->picture, err);
        if (!status) status = cnri_runner_run(&runners[i], &ns, err);
        if (!status) status = cnr_session_output(runners[i].session, 0, &out, err);
        if (status) return status;
        q->ns[i] += ns;
        if (cnri_runner_slice(&runners[i], out, 0, &one) && cnri_is_classes(&one) &&
            cnr_topk(&one, 1, &top) == 1)
            said[i] = top.index;
        q->right[i] += sample->label >= 0 && said[i] == sample->label;
    }
    q->checked++;
    q->labelled += sample->label >= 0;
    q->agree += said[0] == said[1] && said[0] >= 0;
    return cnri_cancelled() ? cnri_fail(err, CNR_E_CANCELLED, "quantize", "stopped") : CNR_OK;
}

static cnr_status check(quantize *q, cnr_error *err) {
    const cnr_graph *nets[2] = {q->net, q->quantized};
    cnr_model *models[2] = {NULL, NULL};
    cnri_runner runners[2] = {{0}, {0}};
    cnri_samples samples = {0};
    cnri_progress progress;
    cnr_status status = cnri_samples_open(q->data, "eval", &samples, err);
    const int64_t n = status || q->check < samples.info.count ? q->check : samples.info.count;
    for (int i = 0; i < 2 && !status; i++) {
        status = cnri_model_of(q->c.args, q->c.rt, nets[i], true, &models[i], err);
        if (!status) status = cnri_runner_open(&runners[i], models[i], q->c.observer, err);
    }
    cnri_progress_begin(&progress, "checking", n, q->c.args->common.quiet);
    for (int64_t i = 0; i < n && !status; i++) {
        cnr_sample sample;
        if ((status = cnri_samples_read(&samples, i, &sample, err)) != CNR_OK) break;
        status = check_one(q, runners, &sample, err);
        cnri_free(sample.picture.data);
        cnri_progress_show(&progress, i + 1, NULL);
    }
    cnri_progress_end(&progress);
    for (int i = 0; i < 2; i++) {
        cnri_runner_close(&runners[i]);
        cnr_release(models[i]);
    }
    cnri_samples_close(&samples);
    return status;
}

/* ---- report ---- */

static double share(int64_t part, int64_t all) {
    return all ? (double)part / (double)all : NAN;
}

static cnr_status report_layer(const quantize *q, int32_t node, const cnri_answer *a,
                               cnr_error *err) {
    const cnri_node *layer = q->net->nodes.at[node];
    const cnri_range *r = &q->c.ranges[layer->out[0]];
    const double db = a ? cnri_decibels(a) : q->given_up[node];
    if (!q->c.args->common.json) {
        cnri_say(stdout, "%-24s %10.4g %10.4g %8.1f dB  %s\n", layer->name, r->low, r->high, db,
                 a ? "8 bits" : "float");
        return CNR_OK;
    }
    cnri_json j;
    cnri_json_begin(&j);
    cnri_json_text(&j, "layer", layer->name);
    cnri_json_real(&j, "low", r->low);
    cnri_json_real(&j, "high", r->high);
    cnri_json_real(&j, "snr_db", db);
    cnri_json_bool(&j, "quantized", a != NULL);
    return cnri_json_print(&j, err);
}

static cnr_status report_all(const quantize *q, cnr_error *err) {
    const double pictures = q->checked ? (double)q->checked * 1e6 : 1;
    const double top[2] = {share(q->right[0], q->labelled), share(q->right[1], q->labelled)};
    if (!q->c.args->common.json) {
        cnri_say(stdout, "layers    %d of 8 bits\n", q->answers.n);
        if (!q->checked) return CNR_OK;
        cnri_say(stdout, "pictures  %lld, the same answer to %.2f%%\n", (long long)q->checked,
                 100 * share(q->agree, q->checked));
        if (q->labelled)
            cnri_say(stdout, "top-1     %.2f%% float, %.2f%% quantised\n", 100 * top[0],
                     100 * top[1]);
        cnri_say(stdout, "time      %.3f ms float, %.3f ms quantised a picture\n",
                 (double)q->ns[0] / pictures, (double)q->ns[1] / pictures);
        return CNR_OK;
    }
    cnri_json j;
    cnri_json_begin(&j);
    cnri_json_int(&j, "layers", q->answers.n);
    cnri_json_int(&j, "pictures", q->checked);
    cnri_json_real(&j, "top1_float", top[0]);
    cnri_json_real(&j, "top1_quantized", top[1]);
    cnri_json_real(&j, "agree", share(q->agree, q->checked));
    cnri_json_real(&j, "ms_float", (double)q->ns[0] / pictures);
    cnri_json_real(&j, "ms_quantized", (double)q->ns[1] / pictures);
    return cnri_json_print(&j, err);
}

static cnr_status report(const quantize *q, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < q->net->nodes.n && !status; i++) {
        const cnri_answer *a = NULL;
        for (int32_t k = 0; k < q->answers.n && !a; k++)
            if (q->net->values.at[q->answers.at[k].real].producer == i) a = &q->answers.at[k];
        if (a || !isnan(q->given_up[i])) status = report_layer(q, i, a, err);
    }
    return status ? status : report_all(q, err);
}

static cnr_status run_quantize(quantize *q, const cnri_args *args, cnr_error *err) {
    const char *path = args->operands.at[0];
    cnr_status status = cnri_args_load_graph(args, q->c.rt, path, &q->loaded, err);
    if (!status) status = cnri_graph_verdict(q->loaded, true, err);
    if (!status) status = cnri_samples_open(q->data, "train", &q->c.samples, err);
    if (!status) status = rewritten(q, err);
    if (status) return status;
    q->c.pictures = q->limit < q->c.samples.info.count ? q->limit : q->c.samples.info.count;
    if (q->check < 0) q->check = q->limit;
    q->c.observer = cnri_watch(&q->watching, args);
    status = cnri_calibrate(&q->c, err);
    if (!status) status = settle(q, err);
    if (!status) {
        cnri_quantized_clean(q->quantized);
        status = cnri_store_write(q->quantized, q->out, err);
    }
    if (!status && q->check) status = check(q, err);
    return status ? status : report(q, err);
}

int cnri_cmd_quantize(int argc, char **argv) {
    quantize q = {.limit = 100, .check = -1, .least = 10};
    cnri_args args;
    cnr_error err = CNR_ERROR_INIT;
    int code = 0;
    if (!cnri_args_parse(&args, &syntax, argc, argv, &q, &code)) return code;
    q.c.args = &args;
    if (!q.data || !q.out) {
        code = cnri_usage_error(&args, q.data ? "-o OUT.cnr is missing" : "--data SPEC is missing");
    } else {
        cnr_status status = cnri_args_open(&args, &q.c.rt, &err);
        if (!status) status = run_quantize(&q, &args, &err);
        if (status) code = cnri_complain(&args, &err);
    }
    cnri_samples_close(&q.c.samples);
    cnri_answers_free(&q.answers);
    cnri_free(q.wanted);
    cnri_free(q.given_up);
    cnri_free(q.c.ranges);
    cnri_graph_free(q.quantized);
    cnri_graph_free(q.net);
    cnri_graph_free(q.loaded);
    cnr_close(q.c.rt);
    cnri_args_free(&args);
    return code;
}
