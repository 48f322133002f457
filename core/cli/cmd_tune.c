/* cnnrun tune: times the kernels that would take each layer, tells how surely the times choose, and
 * keeps the record that planning goes by. */
#include "core/cli/cli.h"

typedef struct tune { int64_t batch, repeat; bool again; } tune;

static const cnri_option options[] = {
    {"--batch", "N", CNRI_OPT_INT, offsetof(tune, batch), "pictures at a time (1)", 1, 65536, NULL,
     0},
    {"--repeat", "N", CNRI_OPT_INT, offsetof(tune, repeat),
     "measure all of it so often; the medians are kept (1)", 1, 1000, NULL, 0},
    {"--again", NULL, CNRI_OPT_FLAG, offsetof(tune, again), "measure what is on record too", 0, 0,
     NULL, 0},
};

static const cnri_syntax syntax = {
    .command = "tune",
    .operands = "NET --cache DIR",
    .summary = "Times each kernel that takes a layer, in turns, and keeps the medians in the\n"
               "cache folder, where planning finds them. Nothing else ever measures.",
    .details = "JSON: {\"net\", \"repeats\", \"rows\", \"choices\", \"agreement\", \"spread\"}; "
               "choices counts the layers\nthat several kernels take, agreement is the part of "
               "all choices that were the usual one,\nspread how far the sums of the chosen times "
               "lie apart, of their median.",
    .options = options,
    .n_options = CNRI_COUNT(options),
    .nets = true,
    .min_operands = 1,
    .max_operands = 1,
};

static cnr_status report(const cnri_args *args, const cnri_tuned *t, cnr_error *err) {
    const char *net = args->operands.at[0];
    if (!args->common.json) {
        cnri_say(
            stdout,
            "%s: %lld layers with a choice, measured %d times: %.1f%% agreement, spread %.1f%%; "
            "%d times on record\n",
            net, (long long)t->choices, (int)t->repeats, t->agreement * 100, t->spread * 100,
            (int)t->rows);
        return CNR_OK;
    }
    cnri_json j;
    cnri_json_begin(&j);
    cnri_json_text(&j, "net", net);
    cnri_json_int(&j, "repeats", t->repeats);
    cnri_json_int(&j, "rows", t->rows);
    cnri_json_int(&j, "choices", t->choices);
    cnri_json_real(&j, "agreement", t->agreement);
    cnri_json_real(&j, "spread", t->spread);
    return cnri_json_print(&j, err);
}

static cnr_status run_tune(const tune *t, const cnri_args *args, cnr_runtime *rt, cnr_error *err) {
    const cnri_tune_options o = {.folder = cnri_args_cache(args), .batch = t->batch,
                                 .repeat = t->repeat, .again = t->again};
    cnr_model *model;
    cnri_watching watching;
    cnri_tuned tuned;
    cnr_status status = cnri_args_load(args, rt, args->operands.at[0], &model, err);
    if (status) return status;
    status = cnri_tune_model(model, &o, cnri_watch(&watching, args), &tuned, err);
    cnri_watch_end(&watching);
    return status ? status : report(args, &tuned, err);
}

int cnri_cmd_tune(int argc, char **argv) {
    tune t = {.batch = 1, .repeat = 1};
    cnri_args args;
    cnr_runtime *rt = NULL;
    cnr_error err = CNR_ERROR_INIT;
    int code = 0;
    if (!cnri_args_parse(&args, &syntax, argc, argv, &t, &code)) return code;
    if (!cnri_args_cache(&args)) {
        code = cnri_usage_error(&args, "where to? want --cache DIR, or CNNRUN_CACHE set");
    } else if (args.common.deterministic) {
        code = cnri_usage_error(&args, "--deterministic never asks a clock: nothing to tune");
    } else {
        cnr_status status = cnri_args_open(&args, &rt, &err);
        if (!status) status = run_tune(&t, &args, rt, &err);
        if (status) code = cnri_complain(&args, &err);
    }
    cnr_close(rt);
    cnri_args_free(&args);
    return code;
}
