/* cnnrun kernelcheck: judges every kernel against its operator's reference, and every operator
 * against its descriptor, as TAP. */
#include "judge/judge.h"
#include "kernelcheck/kernelcheck.h"
#include "people/people.h"
#include <math.h>

/* Options of kernelcheck. */
typedef struct settings {
    cnri_check_options o;
    const char *worker, *weights;
} settings;

/* A row of the table of options. */
#define ROW(member, name, ...) CNRI_OPTION(settings, member, name, __VA_ARGS__)
static const cnri_option options[] =
    {ROW(o.plugin, "--plugin", "NAME", "only what this plugin brings"),
     ROW(o.op, "--op", "NAME", "only this operator, and kernels for it"),
     ROW(o.kernel, "--kernel", "NAME", "only this kernel"),
     ROW(o.arithmetic, "--arithmetic", "TYPE",
         "fp16, bf16: only kernels that multiply in it, and in no other run"),
     ROW(o.operators, "--operators", NULL, "only operators, no kernels"),
     ROW(o.device, "--device", "NAME", "only kernels, on this device"),
     ROW(o.seed, "--seed", "N", "draws other cases (1)", .max = 1e15),
     ROW(o.cases, "--cases", "N", "cases a kernel or operator (20)", .min = 1, .max = 1e6),
     ROW(o.only, "--case", "N", "this case alone", .max = 1e9),
     ROW(o.threads, "--threads", "N",
         "of devices with threads (cases take turns at 1 and more than there are cores)", .min = 1,
         .max = 1024),
     ROW(o.net, "--net", "FILE", "kernels on the nodes of this net, at their own shapes"),
     ROW(weights, "--weights", "FILE,..", "of the net (its own, or random:1)"),
     ROW(o.weights_type, "--weights-type", "TYPE",
         "of the net: fp16, bf16: kernels that store weights so, too"),
     ROW(o.timeout, "--timeout", "SECONDS", "for one case (30; of a net 300)", .min = 0.1,
         .max = 1e6),
     ROW(o.bench, "--bench", NULL, "time the cases too"),
     ROW(worker, "--worker", "WORDS", NULL)};
#undef ROW

/* ---- telling ---- */

/* A test as it is printed. */
typedef struct judged {
    const char *net, *kernel, *op, *device, *plugin, *why, *unjudged;
    int64_t cases, failures;
    bool skipped, absent;
    int32_t number;
} judged;
static const cnri_field fields[] = {CNRI_KEY(judged, kernel),
                                    CNRI_FIELD(judged, "operator", op),
                                    CNRI_KEY(judged, device),
                                    CNRI_KEY(judged, plugin),
                                    CNRI_KEY(judged, cases),
                                    CNRI_KEY(judged, failures),
                                    CNRI_MAYBE(judged, "net", net),
                                    CNRI_KEY(judged, skipped),
                                    CNRI_KEY(judged, why),
                                    CNRI_FIELD(judged, "not_judged", unjudged),
                                    CNRI_ASIDE(judged, "absent", absent),
                                    CNRI_ASIDE(judged, "number", number)};
static const cnri_record record =
    CNRI_RECORD(fields, "{failures?not }ok {number} - {kernel?{kernel}|{operator?operator "
                        "{operator}|the plan}}{device? on {device}}"
                        "{skipped? # SKIP {absent?|no case could be drawn: }{why}|"
                        "{failures?: {failures} of {cases} cases failed; {why}|"
                        ": {cases} cases{not_judged?; not judged: {not_judged}}}}\n");

/* Where tests are printed. */
typedef struct telling {
    cnri_call *call;
    const settings *s;
    int32_t tests;
    const cnr_observer *observer;
    cnr_error err; /* error of writing */
} telling;

/* Prints a diagnostic of TAP; with --json it is not a result. */
static void tell_note(void *arg, const char *text) {
    const telling *t = arg;
    cnri_say(t->call->common.json ? stderr : stdout, "# %s\n", text);
    fflush(stdout);
}

/* Appends the names of the promises whose bit is set, with commas. */
static void list_promises(uint32_t which, cnri_text *out) {
    for (int32_t i = 0; i < CNRI_PROMISES; i++)
        if (which >> i & 1) cnri_text_add(out, "%s%s", out->n ? ", " : "", cnri_promise_name(i));
}

/* Prints the result of a test as TAP or JSON; an error of writing is kept in to->err. */
static void tell_test(void *arg, const cnri_check_test *t) {
    telling *to = arg;
    cnri_text unjudged = {0};
    const void *what = t->kernel ? (const void *)t->kernel : t->op;
    const cnri_plugin *owner = what ? cnri_owner(what) : NULL;
    list_promises(t->unjudged, &unjudged);
    const judged j = {.net = to->s->o.net,
                      .kernel = t->kernel ? t->name : NULL,
                      .op = t->op ? t->name : NULL,
                      .device = t->device,
                      .plugin = owner ? owner->name : NULL,
                      .cases = t->cases,
                      .failures = t->failures,
                      .skipped = t->skipped || t->absent,
                      .absent = t->absent,
                      .number = ++to->tests,
                      .unjudged = unjudged.at,
                      .why = t->skipped || t->absent ? t->why
                             : t->failures           ? t->first
                                                     : NULL};
    (void)cnri_tell(to->call, &record, &j, &to->err);
    cnri_text_free(&unjudged);
}

/* Passes progress on to the caller's observer. */
static void tell_progress(void *arg, const char *device, int64_t done, int64_t total) {
    const telling *t = arg;
    const cnr_progress p = {.size = sizeof p,
                            .what = device,
                            .done = done,
                            .total = total,
                            .top1 = NAN};
    if (t->observer) t->observer->progress(t->observer->arg, &p);
}

/* Prints the number of tests and the totals, as TAP comments. */
static void tell_totals(const cnri_check_options *o, const cnri_check_totals *sum) {
    cnri_say(stdout, "1..%d\n", sum->tests);
    if (o->net) {
        cnri_say(stdout,
                 "# %d kernels and plans on %d nodes of %s, %lld cases, %d failed, %d nodes not "
                 "judged\n",
                 sum->tests, sum->nodes, o->net, (long long)sum->cases, sum->failed, sum->odd);
        return;
    }
    cnri_say(stdout, "# %d kernels and operators, %lld cases, %d failed, %d not judged", sum->tests,
             (long long)sum->cases, sum->failed, sum->skipped);
    if (sum->unjudged) cnri_say(stdout, ", %d in part", sum->unjudged);
    if (sum->absent) cnri_say(stdout, "; %d for devices that are not here", sum->absent);
    cnri_say(stdout, "\n");
}

/* ---- the command ---- */

/* The command kernelcheck: checks what the options select; the exit code says if tests failed. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    settings *s = values;
    cnri_check_options *o = &s->o;
    cnri_check_totals sum = {0};
    telling to = {.call = call, .s = s, .err = CNR_ERROR_INIT};
    const bool tap = !call->common.json;
    cnri_checked_net net = {.rt = call->rt,
                            .path = o->net,
                            .weights = s->weights,
                            .weights_type = o->weights_type,
                            .arithmetic = o->arithmetic};
    o->words = call->argv;
    o->n_words = call->argc;
    o->arg = &to;
    o->note = tell_note;
    o->tested = tell_test;
    o->cancelled = cnri_cancelled;
    o->progress = tell_progress;
    o->net_arg = &net;
    o->open_net = cnri_checked_open;
    o->whole_net = cnri_checked_whole;
    if (o->timeout <= 0) o->timeout = o->net ? 300 : 30;
    if (s->worker) return cnri_check_work(o, s->worker, err);
    if (o->op && !cnri_op_find(o->op))
        return cnri_fail(err, CNR_E_NOT_FOUND, o->op, "no such operator; cnnrun ops lists all");
    if (o->net) to.observer = cnri_watch(call);
    if (tap) cnri_say(stdout, "# seed %lld\n", (long long)o->seed);
    cnr_status status = cnri_check_all(o, &sum, err);
    cnri_watch_end(&call->watching);
    if (tap && sum.tests) tell_totals(o, &sum);
    if (!status && to.err.code)
        status = cnri_fail(err, to.err.code, to.err.where, "%s", to.err.text);
    if (sum.failed) call->code = 1;
    if (cnri_cancelled()) call->code = cnri_exit_code(CNR_E_CANCELLED);
    return status;
}

const cnri_command cnri_cmd_kernelcheck = {
    .name = "kernelcheck",
    .example = "cnnrun kernelcheck --op relu --device cpu",
    .operands = "",
    .summary = "Runs every kernel on nodes drawn from its operator's schema and compares with the\n"
               "operator's reference; and holds every operator to what it says of itself. Prints\n"
               "TAP: one test a kernel and device, or operator.",
    .details =
        "Of operators: the reference writes all of its outputs and nothing else, the same each\n"
        "time; in ranges it gives what it gives whole; a part needs no more than its region;\n"
        "results in place of inputs, views, apply_f32, channel_affine and linear are right;\n"
        "the gradient is what differences say; infer takes the weights that parameters shapes.\n"
        "What no case could show is told.\n"
        "Cases follow from --seed, the name and their number, so that one can be run again\n"
        "alone. A kernel of any operator gets a tenth of the cases for each of them. What\n"
        "crashes or does not end costs that case only. --op and --kernel together pick an\n"
        "operator for a kernel of any.\n"
        "With --net: each kernel that could run a node of the net, on all devices or --device, at\n"
        "the node's own shapes, types, weights, attributes and with what follows it, plain and in\n"
        "the layout of the plan, and where the plan has it in memory. Nodes that differ in their\n"
        "weights alone are one case. Of a large node the reference computes three parts, and\n"
        "elsewhere there has to be a number. At last the plan as a whole, step by step and then\n"
        "freely: no node's numbers may be off by a hundredth of the largest from those of a plan\n"
        "where nothing is fused, shared or laid out, on the processor.",
    .results = CNRI_RESULTS(&record),
    CNRI_OPTIONS(options),
    CNRI_VALUES(settings, .o = {.seed = 1, .cases = 20, .only = -1}),
    .opens = cnri_call_runtime,
    .run = run,
};
