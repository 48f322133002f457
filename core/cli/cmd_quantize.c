/* cnnrun quantize: calibrates a net on pictures, has its layers work on whole numbers, and tells
 * what that cost and gained. */
#include "core/cli/cli.h"
#include "core/store/store.h"
#include <math.h>

typedef struct quantize {
    const char *out, *data, *layers;
    int64_t limit, check;
    double least; /* decibels */
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

static cnr_status report_layer(const cnri_quantised_layer *l, bool json, cnr_error *err) {
    if (!json) {
        cnri_say(stdout, "%-24s %10.4g %10.4g %8.1f dB  %s\n", l->name, l->low, l->high, l->decibels,
                 l->quantised ? "8 bits" : "float");
        return CNR_OK;
    }
    cnri_json j;
    cnri_json_begin(&j);
    cnri_json_text(&j, "layer", l->name);
    cnri_json_real(&j, "low", l->low);
    cnri_json_real(&j, "high", l->high);
    cnri_json_real(&j, "snr_db", l->decibels);
    cnri_json_bool(&j, "quantized", l->quantised);
    return cnri_json_print(&j, err);
}

static cnr_status report(const cnri_quantising *q, bool json, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < q->n_layers && !status; i++)
        status = report_layer(&q->layers[i], json, err);
    if (status) return status;
    if (!json) {
        cnri_say(stdout, "layers    %d of 8 bits\n", q->n_quantised);
        if (!q->checked) return CNR_OK;
        cnri_say(stdout, "pictures  %lld, the same answer to %.2f%%\n", (long long)q->checked,
                 100 * q->agree);
        if (!isnan(q->top1[0]))
            cnri_say(stdout, "top-1     %.2f%% float, %.2f%% quantised\n", 100 * q->top1[0],
                     100 * q->top1[1]);
        cnri_say(stdout, "time      %.3f ms float, %.3f ms quantised a picture\n", q->ms[0], q->ms[1]);
        return CNR_OK;
    }
    cnri_json j;
    cnri_json_begin(&j);
    cnri_json_int(&j, "layers", q->n_quantised);
    cnri_json_int(&j, "pictures", q->checked);
    cnri_json_real(&j, "top1_float", q->top1[0]);
    cnri_json_real(&j, "top1_quantized", q->top1[1]);
    cnri_json_real(&j, "agree", q->agree);
    cnri_json_real(&j, "ms_float", q->ms[0]);
    cnri_json_real(&j, "ms_quantized", q->ms[1]);
    return cnri_json_print(&j, err);
}

static cnr_status run_quantize(const quantize *q, const cnri_args *args, cnr_runtime *rt,
                               cnr_graph *net, cnr_error *err) {
    const cnr_load_options how = {.size = sizeof how, .no_rewrite = cnri_args_no_rewrite(args),
                                  .device = args->common.device,
                                  .memory_bound = args->common.memory,
                                  .memory_limit = args->common.memory_limit,
                                  .deterministic = args->common.deterministic};
    const cnri_quantise_options o = {.data = q->data, .layers = q->layers, .limit = q->limit,
                                     .check = q->check, .least = q->least, .how = &how};
    cnri_watching watching;
    cnri_quantising done;
    cnr_status status = cnri_quantise(rt, net, &o, cnri_watch(&watching, args), &done, err);
    cnri_watch_end(&watching);
    if (status) return status;
    status = report(&done, args->common.json, err);
    if (!status) status = cnri_store_write(done.quantized, q->out, err); /* nothing else can fail */
    cnri_quantising_free(&done);
    return status;
}

int cnri_cmd_quantize(int argc, char **argv) {
    quantize q = {.limit = 100, .check = -1, .least = 10};
    cnri_args args;
    cnr_runtime *rt = NULL;
    cnr_graph *net = NULL;
    cnr_error err = CNR_ERROR_INIT;
    int code = 0;
    if (!cnri_args_parse(&args, &syntax, argc, argv, &q, &code)) return code;
    if (!q.data || !q.out) {
        code = cnri_usage_error(&args, q.data ? "-o OUT.cnr is missing" : "--data SPEC is missing");
    } else {
        const char *const more[] = {q.data};
        cnr_status status = cnri_args_output(&args, q.out, more, CNRI_COUNT(more), &err);
        if (!status) status = cnri_args_open(&args, &rt, &err);
        if (!status) status = cnri_args_load_graph(&args, rt, args.operands.at[0], &net, &err);
        if (!status) status = cnri_graph_verdict(net, true, &err);
        if (!status) status = run_quantize(&q, &args, rt, net, &err);
        if (status) code = cnri_complain(&args, &err);
    }
    cnri_graph_free(net);
    cnr_close(rt);
    cnri_args_free(&args);
    return code;
}
