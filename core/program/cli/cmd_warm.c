/* cnnrun warm: plans a net and prepares its weights in the cache, so that later starts are
 * quick. */
#include "cli/cli.h"

/* Options of warm. */
typedef struct warm {
    cnri_words batches;
} warm;

static const cnri_option options[] = {
    CNRI_OPTION(warm, batches, "--batch", "N", "batch size; one plan for each (repeatable; 1)")};

/* Result of warm. */
typedef struct warmed {
    const char *net;
    cnri_warmed w;
} warmed;
static const cnri_field fields[] = {CNRI_KEY(warmed, net),
                                    CNRI_KEY_IN(warmed, w, batch),
                                    CNRI_KEY_IN(warmed, w, origin),
                                    CNRI_KEY_IN(warmed, w, ms),
                                    CNRI_KEY_IN(warmed, w, blobs),
                                    CNRI_KEY_IN(warmed, w, blob_bytes),
                                    CNRI_KEY_IN(warmed, w, prepared),
                                    CNRI_KEY_IN(warmed, w, taken_over)};
static const cnri_record record =
    CNRI_RECORD(fields, "{net}, batch {batch}: {origin}; {blobs} blobs of {blob_bytes:.2M} MB, "
                        "{prepared} prepared, "
                        "{ms:.1f} ms\n");

/* Makes and stores the plan for the batch size in `text` (1 to 65536), and prints the result. */
static cnr_status warm_batch(cnri_call *call, const char *text, cnr_error *err) {
    warmed w = {.net = call->operands.at[0]};
    int64_t batch;
    if (!cnri_parse_int(text, &batch) || batch < 1 || batch > 65536)
        return cnri_fail(err, CNR_E_ARG, "--batch",
                         "wanted a whole number from 1 to 65536, got "
                         "\"%s\"",
                         text);
    const cnr_status status = cnri_warm(call->model, batch, &w.w, err);
    return status ? status : cnri_tell(call, &record, &w, err);
}

/* What is wrong with the options; NULL: nothing. */
static const char *wrong(const cnri_call *call, const void *values) {
    (void)values;
    return cnri_call_cache(call) ? NULL : "where to? want --cache DIR, or CNNRUN_CACHE set";
}

/* Loads the net; names the user's own folder, so that all plans are stored there. */
static cnr_status open_model(cnri_call *call, cnr_error *err) {
    if (!call->common.load.no_cache) call->common.load.cache = cnri_call_cache(call);
    return cnri_call_model(call, err);
}

/* The command warm. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    const warm *w = values;
    if (!cnri_call_cache(call)) return cnri_fail(err, CNR_E_IO, "--cache", "can't be written");
    cnr_status status = w->batches.n ? CNR_OK : warm_batch(call, "1", err);
    for (int32_t i = 0; i < w->batches.n && !status; i++)
        status = warm_batch(call, w->batches.at[i], err);
    return status;
}

const cnri_command cnri_cmd_warm = {
    .name = "warm",
    .example = "cnnrun warm net.cnr",
    .operands = "NET",
    .summary = "Plans a net, prepares its weights and keeps both in the cache folder.",
    .details = "A line a plan; origin is hit, or miss or stale and why.",
    .results = CNRI_RESULTS(&record),
    CNRI_OPTIONS(options),
    CNRI_VALUES(warm, .batches = {0}),
    CNRI_ONE_NET(open_model),
    .wrong = wrong,
    .run = run,
};
