/* cnnrun bench: how fast a net runs, how much memory it takes, and which steps take the time. */
#include "core/cli/cli.h"

typedef struct bench { cnr_profile_options o; bool no_energy; } bench;
static const cnri_option options[] = {
    CNRI_OPTION(bench, o.batch, "--batch", "N", "pictures at a time (1)", .min = 1,
                .max = 65536),
    CNRI_OPTION(bench, o.runs, "--runs", "N", "timed runs (20)", .min = 1, .max = 1e7),
    CNRI_OPTION(bench, o.warm, "--warm", "N", "runs before the timed ones (2)", .min = 0,
                .max = 1e6),
    CNRI_OPTION(bench, o.steps, "--profile", NULL,
                "the time of each step, from runs of its own"),
    CNRI_OPTION(bench, o.repeat, "--repeat", NULL,
                "with --profile: joules of each step by repeating it alone, not by its time"),
    CNRI_OPTION(bench, no_energy, "--no-energy", NULL,
                "ask no meter (where there is one, runs go on until it can tell)")};

typedef struct whole {
    const char *net;
    cnr_timing t;
    double gflops;
    cnri_energy_shown e;
} whole;
static const cnri_field whole_fields[] = {
    CNRI_KEY(whole, net), CNRI_KEY_IN(whole, t, device), CNRI_KEY_IN(whole, t, threads),
    CNRI_KEY_IN(whole, t, batch), CNRI_KEY_IN(whole, t, runs), CNRI_KEY_IN(whole, t, ms_min),
    CNRI_KEY_IN(whole, t, ms_median), CNRI_KEY(whole, gflops), CNRI_KEY_IN(whole, t, arena_bytes),
    CNRI_KEY_IN(whole, t, arena_bound_bytes), CNRI_FIELD(whole, "weights_bytes", t.weight_bytes),
    CNRI_KEY_IN(whole, t, peak_rss_bytes), CNRI_ENERGY_FIELDS(whole, e)};
static const cnri_record whole_record = {
    .fields = whole_fields, .n = CNRI_COUNT(whole_fields), .warns = true,
    .line = "{net} on {device}, {threads} thread{threads+s}, batch {batch}, {runs} runs\n"
            "time      {ms_min:.3f} ms least, {ms_median:.3f} ms median, {gflops:.2f} GFLOPS\n"
            "memory    arena {arena_bytes:.2M} MB (bound {arena_bound_bytes:.2M}), weights "
            "{weights_bytes:.2M} MB, process at most {peak_rss_bytes:.1M} MB\n" CNRI_ENERGY_LINE};

typedef struct step {
    cnr_step_timing t;
    double ms, ms_min, gflops, share;
    const char *joules_by;
    int64_t bytes;
} step;
static const cnri_field step_fields[] = {
    CNRI_KEY_IN(step, t, step), CNRI_KEY_IN(step, t, node), CNRI_KEY_IN(step, t, op),
    CNRI_KEY_IN(step, t, kernel), CNRI_KEY_IN(step, t, device), CNRI_KEY(step, ms),
    CNRI_KEY(step, ms_min), CNRI_KEY(step, gflops), CNRI_MAYBE(step, "joules", t.joules),
    CNRI_MAYBE(step, "joules_by", joules_by), CNRI_MAYBE(step, "from", t.from),
    CNRI_MAYBE(step, "to", t.to), CNRI_MAYBE(step, "bytes", bytes), CNRI_ASIDE(step, "share", share)};
static const cnri_record step_record = CNRI_RECORD(step_fields,
    "{step:5}  {node:-24} {op:-20} {kernel:-24} {device:-10} {ms:10.4f} {share:5.1%} {gflops:8.2f}"
    "{joules? {joules:10.4g}}{from?  {bytes} bytes, {from} to {to}|}\n");

typedef struct op { cnri_op_timing t; double ms, share; } op;
static const cnri_field op_fields[] = {
    CNRI_KEY_IN(op, t, op), CNRI_KEY_IN(op, t, steps), CNRI_KEY(op, ms),
    CNRI_ASIDE(op, "share", share)};
static const cnri_record op_record =
    CNRI_RECORD(op_fields, "{op:-20} {steps:6} {ms:10.4f} {share:5.1%}\n");

/* Times to a millionth: more than a clock is worth. */
static double rounded(double ms) {
    return (double)(int64_t)(ms * 1e6 + 0.5) / 1e6;
}

static double gflops(double flops, double ms) {
    return ms > 0 ? flops / (ms * 1e6) : 0;
}

/* How the joules of steps were come by; NULL: they weren't. */
static const char *joules_by(const cnr_timing *t) {
    static const char *const words[] = {NULL, "counted", "time", "repeated"};
    return words[t->joules_by];
}

static cnr_status tell_steps(const cnri_call *call, const cnr_timing *t, cnr_error *err) {
    static const char *const titled[] = {"", "          J (counted at each step)",
                                         "          J (the run's, shared out by time)",
                                         "          J (the layer repeated)"};
    const bool titles = !call->common.json;
    double all = 0;
    cnr_status status = CNR_OK;
    cnri_op_timing *ops = cnri_alloc((size_t)(t->n_steps + 1) * sizeof *ops);
    if (!ops) return cnri_fail(err, CNR_E_MEMORY, "bench", "out of memory");
    const int32_t n = cnri_sum_by_operator(t->steps, t->n_steps, ops);
    for (int32_t i = 0; i < t->n_steps; i++) all += t->steps[i].ms;
    const double part = all > 0 ? 1 / all : 0;
    if (titles)
        cnri_say(stdout, "\n%5s  %-24s %-20s %-24s %-10s %10s %6s %8s%s\n", "step", "node",
                 "operator",
                 "kernel", "device", "ms", "share", "GFLOPS", titled[t->joules_by]);
    for (int32_t i = 0; i < t->n_steps && !status; i++) {
        const cnr_step_timing *s = &t->steps[i];
        const step one = {*s, rounded(s->ms), rounded(s->ms_min), rounded(gflops(s->flops, s->ms)),
                          s->ms * part, joules_by(t),
                          s->from ? (int64_t)s->bytes : CNRI_NONE};
        status = cnri_tell(call, &step_record, &one, err);
    }
    if (titles) cnri_say(stdout, "\n%-20s %6s %10s\n", "operator", "steps", "ms");
    for (int32_t i = 0; i < n && !status; i++) {
        const op one = {ops[i], rounded(ops[i].ms), ops[i].ms * part};
        status = cnri_tell(call, &op_record, &one, err);
    }
    cnri_free(ops);
    return status;
}

static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    bench *b = values;
    cnr_profile_options *o = &b->o;
    whole w = {.net = call->operands.at[0], .t = {.size = sizeof w.t}};
    if (o->warm == 0) o->warm = -1; /* none, rather than the usual number */
    o->energy = !b->no_energy;
    cnr_status status = cnr_profile(call->model, o, cnri_watch(call), &w.t, err);
    cnri_watch_end(&call->watching);
    w.gflops = gflops(w.t.flops, w.t.ms_median);
    w.e = cnri_energy_show(w.t.energy, "a run", (double)w.t.batch);
    if (!status) status = cnri_tell(call, &whole_record, &w, err);
    if (!status) status = cnri_tell_domains(call, w.t.energy, w.e.fps, err);
    if (!status && o->steps) status = tell_steps(call, &w.t, err);
    cnr_timing_free(&w.t);
    return status;
}

const cnri_command cnri_cmd_bench = {
    .name = "bench", .operands = "NET",
    .summary = "Measures a net on made-up inputs, with whatever weights it has.",
    .details = "gflops counts a multiply-accumulate as two and goes by the median. With --profile a\n"
               "line a step follows, then one an operator. Joules are a run's and of the whole machine,\n"
               "where a plugin finds a meter; a line a domain follows.",
    .results = CNRI_RESULTS(&whole_record, &cnri_energy_domain, &step_record, &op_record),
    CNRI_OPTIONS(options), CNRI_VALUES(bench, .o = {.size = sizeof(cnr_profile_options), .batch = 1,
                                                    .runs = 20, .warm = 2}),
    CNRI_ONE_NET(CNRI_OPENS_MODEL),
    .run = run,
};
