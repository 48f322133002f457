/* cnnrun kernelcheck: every kernel against its operator's reference, and every operator against what
 * it says of itself, as TAP. */
#include "core/cli/cli.h"
#include "core/check/check.h"

typedef struct settings {
    const char *plugin, *op, *kernel, *device, *worker;
    int64_t seed, cases, only, threads;
    double timeout;
    bool bench, operators;
} settings;

static const cnri_option options[] = {
    {"--plugin", "NAME", CNRI_OPT_TEXT, offsetof(settings, plugin), "only what this plugin brings",
     0, 0, NULL, 0},
    {"--op", "NAME", CNRI_OPT_TEXT, offsetof(settings, op),
     "only this operator, and kernels for it", 0, 0, NULL, 0},
    {"--kernel", "NAME", CNRI_OPT_TEXT, offsetof(settings, kernel), "only this kernel", 0, 0, NULL,
     0},
    {"--operators", NULL, CNRI_OPT_FLAG, offsetof(settings, operators),
     "only operators, no kernels", 0, 0, NULL, 0},
    {"--device", "NAME", CNRI_OPT_TEXT, offsetof(settings, device),
     "only kernels, on this device", 0, 0, NULL, 0},
    {"--seed", "N", CNRI_OPT_INT, offsetof(settings, seed), "draws other cases (1)", 0, 1e15, NULL,
     0},
    {"--cases", "N", CNRI_OPT_INT, offsetof(settings, cases),
     "cases a kernel or operator (20)", 1, 1e6, NULL, 0},
    {"--case", "N", CNRI_OPT_INT, offsetof(settings, only), "this case alone", 0, 1e9, NULL, 0},
    {"--threads", "N", CNRI_OPT_INT, offsetof(settings, threads),
     "of devices with threads (cases take turns at 1 and 3)", 1, 1024, NULL, 0},
    {"--timeout", "SECONDS", CNRI_OPT_REAL, offsetof(settings, timeout), "for one case (30)", 0.1,
     1e6, NULL, 0},
    {"--bench", NULL, CNRI_OPT_FLAG, offsetof(settings, bench), "time the cases too", 0, 0, NULL,
     0},
    {"--worker", "WORDS", CNRI_OPT_TEXT, offsetof(settings, worker), NULL, 0, 0, NULL, 0},
};

static const cnri_syntax syntax = {
    .command = "kernelcheck",
    .operands = "",
    .summary = "Runs every kernel on nodes drawn from its operator's schema and compares with the\n"
               "operator's reference; and holds every operator to what it says of itself. Prints\n"
               "TAP: one test a kernel and device, or operator.",
    .details = "Of operators: the reference writes all of its outputs and nothing else, the same each\n"
               "time; in ranges it gives what it gives whole; a part needs no more than its region;\n"
               "results in place of inputs, views, apply_f32, channel_affine and linear are right;\n"
               "the gradient is what differences say. What no case could show is told.\n"
               "Cases follow from --seed, the name and their number, so that one can be run again\n"
               "alone. A kernel of any operator gets a tenth of the cases for each of them. What\n"
               "crashes or does not end costs that case only. --op and --kernel together pick an\n"
               "operator for a kernel of any.\n"
               "JSON: {\"kernel\" or \"operator\", \"device\", \"plugin\", \"cases\", \"failures\",\n"
               "\"skipped\", \"why\", \"not_judged\"}, a line a test.",
    .options = options,
    .n_options = CNRI_COUNT(options)};

/* ---- telling ---- */

typedef struct telling {
    bool json;
    int32_t tests;
    cnr_error err; /* of writing */
} telling;

/* Diagnostics of TAP; with --json they are no results. */
static void tell_note(void *arg, const char *text) {
    const telling *t = arg;
    cnri_say(t->json ? stderr : stdout, "# %s\n", text);
    fflush(stdout);
}

static void list_promises(uint32_t which, cnri_text *out) {
    for (int32_t i = 0; i < CNRI_PROMISES; i++)
        if (which >> i & 1)
            cnri_text_add(out, "%s%s", out->n ? ", " : "", cnri_promise_name(i));
}

static void tell_object(telling *to, const cnri_check_test *t, const char *unjudged) {
    const cnri_plugin *owner = cnri_owner(t->kernel ? (const void *)t->kernel : t->op);
    cnri_json j = {0};
    cnri_json_begin(&j);
    cnri_json_text(&j, "kernel", t->kernel ? t->name : NULL);
    cnri_json_text(&j, "operator", t->kernel ? NULL : t->name);
    cnri_json_text(&j, "device", t->device);
    cnri_json_text(&j, "plugin", owner ? owner->name : NULL);
    cnri_json_int(&j, "cases", t->cases);
    cnri_json_int(&j, "failures", t->failures);
    cnri_json_bool(&j, "skipped", t->skipped);
    cnri_json_text(&j, "why", t->skipped ? t->why : t->failures ? t->first : NULL);
    cnri_json_text(&j, "not_judged", unjudged);
    cnri_json_print(&j, &to->err);
}

static void tell_line(int32_t number, const cnri_check_test *t, const char *unjudged) {
    cnri_say(stdout, "%sok %d - %s%s%s", t->failures ? "not " : "", (int)number,
             t->kernel ? "" : "operator ", t->name, t->device ? " on " : "");
    if (t->device) cnri_say(stdout, "%s", t->device);
    if (t->absent) cnri_say(stdout, " # SKIP %s\n", t->why);
    else if (t->skipped) cnri_say(stdout, " # SKIP no case could be drawn: %s\n", t->why);
    else if (t->failures)
        cnri_say(stdout, ": %lld of %lld cases failed; %s\n", (long long)t->failures,
                 (long long)t->cases, t->first);
    else
        cnri_say(stdout, ": %lld cases%s%s\n", (long long)t->cases,
                 unjudged ? "; not judged: " : "", unjudged ? unjudged : "");
    fflush(stdout);
}

static void tell_test(void *arg, const cnri_check_test *test) {
    telling *t = arg;
    cnri_text unjudged = {0};
    list_promises(test->unjudged, &unjudged);
    t->tests++;
    if (t->json) tell_object(t, test, unjudged.at);
    else tell_line(t->tests, test, unjudged.at);
    cnri_text_free(&unjudged);
}

static void tell_totals(const cnri_check_totals *sum) {
    cnri_say(stdout, "1..%d\n", sum->tests);
    cnri_say(stdout, "# %d kernels and operators, %lld cases, %d failed, %d not judged",
             sum->tests, (long long)sum->cases, sum->failed, sum->skipped);
    if (sum->unjudged) cnri_say(stdout, ", %d in part", sum->unjudged);
    if (sum->absent) cnri_say(stdout, "; %d for devices that are not here", sum->absent);
    cnri_say(stdout, "\n");
}

/* ---- the command ---- */

static int run(const settings *s, const cnri_args *args, int argc, char **argv) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_runtime *rt;
    cnri_check_totals sum = {0};
    telling to = {.json = args->common.json, .err = CNR_ERROR_INIT};
    const cnri_check_options o = {
        .plugin = s->plugin, .op = s->op, .kernel = s->kernel, .device = s->device,
        .operators = s->operators, .seed = s->seed, .cases = s->cases, .only = s->only,
        .threads = s->threads, .timeout = s->timeout, .bench = s->bench, .words = argv,
        .n_words = argc, .arg = &to, .note = tell_note, .tested = tell_test,
        .cancelled = cnri_cancelled};
    cnr_status status = cnri_args_open(args, &rt, &err);
    if (status) return cnri_complain(args, &err);
    if (s->worker) status = cnri_check_work(&o, s->worker, &err);
    else {
        if (!to.json) cnri_say(stdout, "# seed %lld\n", (long long)s->seed);
        status = cnri_check_all(&o, &sum, &err);
        if (!to.json && sum.tests) tell_totals(&sum);
        if (!status && to.err.code) {
            err = to.err;
            status = err.code;
        }
    }
    cnr_close(rt);
    if (status) return cnri_complain(args, &err);
    if (cnri_cancelled()) return cnri_exit_code(CNR_E_CANCELLED);
    return sum.failed ? 1 : 0;
}

int cnri_cmd_kernelcheck(int argc, char **argv) {
    settings s = {.seed = 1, .cases = 20, .only = -1, .timeout = 30};
    cnri_args args;
    int code;
    if (!cnri_args_parse(&args, &syntax, argc, argv, &s, &code)) return code;
    code = run(&s, &args, argc, argv);
    cnri_args_free(&args);
    return code;
}
