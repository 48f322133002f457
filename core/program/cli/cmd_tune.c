/* cnnrun tune: times the kernels that accept each layer, reports how reliable the choices are,
 * and stores the record that planning uses. */
#include "cli/cli.h"

static const cnri_option options[] =
    {CNRI_OPTION(cnri_tune_options, batch, "--batch", "N", "pictures at a time (1)", .min = 1,
                 .max = 65536),
     CNRI_OPTION(cnri_tune_options, repeat, "--repeat", "N",
                 "number of repetitions; the medians are kept (1)", .min = 1, .max = 1000),
     CNRI_OPTION(cnri_tune_options, again, "--again", NULL,
                 "also measure kernels that are on record"),
     CNRI_OPTION(cnri_tune_options, no_energy, "--no-energy", NULL,
                 "times alone, though there is a meter (a second or so each kernel)")};

/* Result of tune. */
typedef struct tuned {
    const char *net;
    cnri_tuned t;
} tuned;
static const cnri_field fields[] = {CNRI_KEY(tuned, net),
                                    CNRI_KEY_IN(tuned, t, repeats),
                                    CNRI_KEY_IN(tuned, t, rows),
                                    CNRI_KEY_IN(tuned, t, joules),
                                    CNRI_KEY_IN(tuned, t, choices),
                                    CNRI_KEY_IN(tuned, t, agreement),
                                    CNRI_KEY_IN(tuned, t, spread)};
static const cnri_record record =
    CNRI_RECORD(fields, "{net}: {choices} layers with a choice, measured {repeats} times: "
                        "{agreement:.1%} agreement, "
                        "spread {spread:.1%}; {rows} times on record, {joules} with joules\n");

/* What is wrong with the options; NULL: nothing. */
static const char *wrong(const cnri_call *call, const void *values) {
    (void)values;
    if (!cnri_call_cache(call)) return "where to? want --cache DIR, or CNNRUN_CACHE set";
    return call->common.load.deterministic ? "--deterministic never asks a clock: nothing to tune"
                                           : NULL;
}

/* The command tune. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    cnri_tune_options *o = values;
    tuned t = {.net = call->operands.at[0]};
    if (!(o->folder = cnri_call_cache(call)))
        return cnri_fail(err, CNR_E_IO, "--cache", "can't be written");
    o->hang_ms = (int64_t)call->common.load.hang_ms;
    const cnr_status status = cnri_tune_model(call->model, o, cnri_watch(call), &t.t, err);
    cnri_watch_end(&call->watching);
    if (status == CNR_E_DEVICE && t.t.hung &&
        cnri_group_ranks() == 1) { /* what hangs there ends with this process */
        call->again = true;
        call->code = -CNR_E_DEVICE;
        return CNR_OK;
    }
    return status ? status : cnri_tell(call, &record, &t, err);
}

const cnri_command cnri_cmd_tune = {
    .name = "tune",
    .example = "cnnrun tune net.lua",
    .operands = "NET",
    .summary =
        "Times each kernel that takes a layer, in turns, on each of --devices, and copies between\n"
        "them; where there is a meter, joules too. The medians are kept in the cache folder,\n"
        "where planning finds them. Nothing else ever measures. Who is stopped goes on from there. "
        "A\n"
        "kernel that gives other answers than the reference, fails or takes longer than --hang-ms "
        "(a\n"
        "minute) is left out.",
    .details = "choices counts the layers that several kernels take, agreement is the part of all\n"
               "choices that were the usual one, spread how far the sums of the chosen times lie\n"
               "apart, of their median.",
    .results = CNRI_RESULTS(&record),
    CNRI_OPTIONS(options),
    CNRI_VALUES(cnri_tune_options, .batch = 1, .repeat = 1),
    .min_operands = 1,
    .max_operands = 1,
    .takes = CNRI_NETS | CNRI_PICTURES | CNRI_GROUP | CNRI_OWN_FILES,
    .opens = cnri_call_model_unplaced,
    .wrong = wrong,
    .run = run,
};
