/* cnnrun warm: plans a net and prepares its weights into the cache, for quick starts later. */
#include "core/cli/cli.h"

typedef struct warm { cnri_words batches; } warm;

static const cnri_option options[] = {
    {"--batch", "N", CNRI_OPT_LIST, offsetof(warm, batches),
     "pictures at a time, a plan each (repeatable; 1)", 0, 0, NULL, 0},
};

static const cnri_syntax syntax = {
    .command = "warm",
    .operands = "NET --cache DIR",
    .summary = "Plans a net, prepares its weights and keeps both in the cache folder.",
    .details = "JSON, a line a plan: {\"net\", \"batch\", \"origin\", \"ms\", \"blobs\", "
               "\"blob_bytes\",\n\"prepared\", \"taken_over\"}; origin is hit, or miss or stale "
               "and why.",
    .options = options,
    .n_options = CNRI_COUNT(options),
    .nets = true,
    .min_operands = 1,
    .max_operands = 1,
};

static cnr_status report(const cnri_args *args, const cnr_plan *plan, int64_t batch, uint64_t ns,
                         cnr_error *err) {
    cnri_residency_stats stats;
    uint64_t bytes = 0, one;
    const char *name, *net = args->operands.at[0];
    const char *origin = plan->origin ? plan->origin : "not kept";
    int32_t blobs = 0;
    while (cnri_residency_blob(plan, blobs, &name, &one)) {
        bytes += one;
        blobs++;
    }
    cnri_residency_stats_of(plan, &stats);
    if (!args->common.json) {
        cnri_say(stdout, "%s, batch %lld: %s; %d blobs of %.2f MB, %llu prepared, %.1f ms\n", net,
                 (long long)batch, origin, (int)blobs, (double)bytes / 1e6,
                 (unsigned long long)stats.prepared, (double)ns * 1e-6);
        return CNR_OK;
    }
    cnri_json j;
    cnri_json_begin(&j);
    cnri_json_text(&j, "net", net);
    cnri_json_int(&j, "batch", batch);
    cnri_json_text(&j, "origin", origin);
    cnri_json_real(&j, "ms", (double)ns * 1e-6);
    cnri_json_int(&j, "blobs", blobs);
    cnri_json_int(&j, "blob_bytes", (int64_t)bytes);
    cnri_json_int(&j, "prepared", (int64_t)stats.prepared);
    cnri_json_int(&j, "taken_over", (int64_t)stats.kept);
    return cnri_json_print(&j, err);
}

static cnr_status warm_one(const cnri_args *args, cnr_model *model, int64_t batch, cnr_error *err) {
    cnr_plan *plan = NULL;
    const uint64_t begin = cnri_now_ns();
    cnri_shapes shapes;
    cnr_status status = cnri_input_shapes(model, batch, &shapes, err);
    if (!status) status = cnr_plan_for(model, shapes.list, shapes.n, &plan, err);
    if (!status) status = cnri_residency_warm(plan, err);
    if (!status) status = report(args, plan, batch, cnri_now_ns() - begin, err);
    cnr_plan_release(plan);
    cnri_shapes_free(&shapes);
    return status;
}

int cnri_cmd_warm(int argc, char **argv) {
    warm w = {{0}};
    cnri_args args;
    cnr_runtime *rt = NULL;
    cnr_model *model = NULL;
    cnr_error err = CNR_ERROR_INIT;
    int code = 0;
    if (!cnri_args_parse(&args, &syntax, argc, argv, &w, &code)) return code;
    if (!cnri_args_cache(&args)) {
        code = cnri_usage_error(&args, "where to? want --cache DIR, or CNNRUN_CACHE set");
        goto out;
    }
    cnr_status status = cnri_args_open(&args, &rt, &err);
    if (!status) status = cnri_args_load(&args, rt, args.operands.at[0], &model, &err);
    if (!status && w.batches.n == 0) status = warm_one(&args, model, 1, &err);
    for (int32_t i = 0; i < w.batches.n && !status; i++) {
        int64_t batch;
        if (cnri_parse_int(w.batches.at[i], &batch) && batch >= 1 && batch <= 65536)
            status = warm_one(&args, model, batch, &err);
        else
            status = cnri_fail(&err, CNR_E_ARG, "--batch", "wanted a whole number from 1 to 65536, "
                               "got \"%s\"", w.batches.at[i]);
    }
    if (status) code = cnri_complain(&args, &err);
    cnr_close(rt);
out:
    cnri_vec_free(&w.batches);
    cnri_args_free(&args);
    return code;
}
