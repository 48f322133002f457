/* cnnrun bench: how fast a net runs, how much memory it takes, and which steps take the time. */
#include "core/cli/cli.h"

typedef struct bench {
    int64_t batch, runs, warm;
    bool profile;
} bench;

static const cnri_option options[] = {
    {"--batch", "N", CNRI_OPT_INT, offsetof(bench, batch), "pictures at a time (1)", 1, 65536, NULL,
     0},
    {"--runs", "N", CNRI_OPT_INT, offsetof(bench, runs), "timed runs (20)", 1, 1e7, NULL, 0},
    {"--warm", "N", CNRI_OPT_INT, offsetof(bench, warm), "runs before the timed ones (2)", 0, 1e6,
     NULL, 0},
    {"--profile", NULL, CNRI_OPT_FLAG, offsetof(bench, profile),
     "the time of each step, from runs of its own", 0, 0, NULL, 0},
};

static const cnri_syntax syntax = {
    .command = "bench",
    .operands = "NET",
    .summary = "Measures a net on made-up inputs, with whatever weights it has.",
    .details = "JSON: {\"net\", \"device\", \"threads\", \"batch\", \"runs\", \"ms_min\", "
               "\"ms_median\", \"gflops\",\n\"arena_bytes\", \"arena_bound_bytes\", "
               "\"weights_bytes\", \"peak_rss_bytes\"}; gflops counts a\nmultiply-accumulate as "
               "two and goes by the median. With --profile a line a step follows,\nthen one an operator.",
    .options = options,
    .n_options = CNRI_COUNT(options),
    .nets = true,
    .min_operands = 1,
    .max_operands = 1,
};

/* Times to a millionth: more than a clock is worth. */
static double rounded(double ms) {
    return (double)(int64_t)(ms * 1e6 + 0.5) / 1e6;
}

static double gflops(double flops, double ms) {
    return ms > 0 ? flops / (ms * 1e6) : 0;
}

/* ---- steps, and their sums by operator ---- */

static cnr_status json_step(const cnr_step_timing *s, cnr_error *err) {
    cnri_json j;
    cnri_json_begin(&j);
    cnri_json_int(&j, "step", s->step);
    cnri_json_text(&j, "node", s->node);
    cnri_json_text(&j, "op", s->op);
    cnri_json_text(&j, "kernel", s->kernel);
    cnri_json_text(&j, "device", s->device);
    cnri_json_real(&j, "ms", rounded(s->ms));
    cnri_json_real(&j, "ms_min", rounded(s->ms_min));
    cnri_json_real(&j, "gflops", rounded(gflops(s->flops, s->ms)));
    return cnri_json_print(&j, err);
}

static cnr_status json_op(const cnri_op_timing *o, cnr_error *err) {
    cnri_json j;
    cnri_json_begin(&j);
    cnri_json_text(&j, "op", o->op);
    cnri_json_int(&j, "steps", o->steps);
    cnri_json_real(&j, "ms", rounded(o->ms));
    return cnri_json_print(&j, err);
}

static cnr_status json_steps(const cnr_timing *t, const cnri_op_timing *ops, int32_t n,
                             cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < t->n_steps && !status; i++) status = json_step(&t->steps[i], err);
    for (int32_t i = 0; i < n && !status; i++) status = json_op(&ops[i], err);
    return status;
}

static void print_steps(const cnr_timing *t, const cnri_op_timing *ops, int32_t n) {
    double all = 0;
    for (int32_t i = 0; i < t->n_steps; i++) all += t->steps[i].ms;
    const double percent = all > 0 ? 100 / all : 0;
    cnri_say(stdout, "\n%5s  %-24s %-20s %-24s %-10s %10s %6s %8s\n", "step", "node", "operator",
             "kernel", "device", "ms", "share", "GFLOPS");
    for (int32_t i = 0; i < t->n_steps; i++) {
        const cnr_step_timing *s = &t->steps[i];
        const double speed = gflops(s->flops, s->ms);
        cnri_say(stdout, "%5d  %-24s %-20s %-24s %-10s %10.4f %5.1f%%", (int)s->step, s->node,
                 s->op, s->kernel, s->device, s->ms, s->ms * percent);
        if (speed > 0) cnri_say(stdout, " %8.2f", speed);
        cnri_say(stdout, "\n");
    }
    cnri_say(stdout, "\n%-20s %6s %10s\n", "operator", "steps", "ms");
    for (int32_t i = 0; i < n; i++)
        cnri_say(stdout, "%-20s %6d %10.4f %5.1f%%\n", ops[i].op, (int)ops[i].steps, ops[i].ms,
                 ops[i].ms * percent);
}

static cnr_status report_steps(const cnr_timing *t, bool json, cnr_error *err) {
    cnri_op_timing *ops = cnri_alloc((size_t)(t->n_steps + 1) * sizeof *ops);
    cnr_status status = CNR_OK;
    if (!ops) return cnri_fail(err, CNR_E_MEMORY, "bench", "out of memory");
    const int32_t n = cnri_sum_by_operator(t->steps, t->n_steps, ops);
    if (json) status = json_steps(t, ops, n, err);
    else print_steps(t, ops, n);
    cnri_free(ops);
    return status;
}

/* ---- the whole ---- */

static void print(const cnr_timing *t, const char *net) {
    cnri_say(stdout, "%s on %s, %d thread%s, batch %lld, %lld runs\n", net, t->device, t->threads,
             t->threads == 1 ? "" : "s", (long long)t->batch, (long long)t->runs);
    cnri_say(stdout, "time      %.3f ms least, %.3f ms median, %.2f GFLOPS\n", t->ms_min,
             t->ms_median, gflops(t->flops, t->ms_median));
    cnri_say(stdout,
             "memory    arena %.2f MB (bound %.2f), weights %.2f MB, process at most %.1f MB\n",
             (double)t->arena_bytes / 1e6, (double)t->arena_bound_bytes / 1e6,
             (double)t->weight_bytes / 1e6, (double)t->peak_rss_bytes / 1e6);
}

static cnr_status print_json(const cnr_timing *t, const char *net, const cnr_model *model,
                             cnr_error *err) {
    cnri_json j;
    cnri_json_begin(&j);
    cnri_json_text(&j, "net", net);
    cnri_json_text(&j, "device", t->device);
    cnri_json_int(&j, "threads", t->threads);
    cnri_json_int(&j, "batch", t->batch);
    cnri_json_int(&j, "runs", t->runs);
    cnri_json_real(&j, "ms_min", t->ms_min);
    cnri_json_real(&j, "ms_median", t->ms_median);
    cnri_json_real(&j, "gflops", gflops(t->flops, t->ms_median));
    cnri_json_int(&j, "arena_bytes", (int64_t)t->arena_bytes);
    cnri_json_int(&j, "arena_bound_bytes", (int64_t)t->arena_bound_bytes);
    cnri_json_int(&j, "weights_bytes", (int64_t)t->weight_bytes);
    cnri_json_int(&j, "peak_rss_bytes", (int64_t)t->peak_rss_bytes);
    cnri_json_warnings(&j, model->graph);
    return cnri_json_print(&j, err);
}

static cnr_status run_bench(const bench *b, const cnri_args *args, cnr_runtime *rt,
                            cnr_error *err) {
    const cnr_profile_options o = {.size = sizeof o, .steps = b->profile, .batch = b->batch,
                                   .runs = b->runs, .warm = b->warm ? b->warm : -1};
    const char *net = args->operands.at[0];
    cnr_model *model;
    cnri_watching watching;
    cnr_timing t = {.size = sizeof t};
    cnr_status status = cnri_args_load(args, rt, net, &model, err);
    if (status) return status;
    status = cnr_profile(model, &o, cnri_watch(&watching, args), &t, err);
    cnri_watch_end(&watching);
    if (!status && args->common.json) status = print_json(&t, net, model, err);
    else if (!status) print(&t, net);
    if (!status && b->profile) status = report_steps(&t, args->common.json, err);
    cnr_timing_free(&t);
    return status;
}

int cnri_cmd_bench(int argc, char **argv) {
    bench b = {.batch = 1, .runs = 20, .warm = 2};
    cnri_args args;
    cnr_runtime *rt = NULL;
    cnr_error err = CNR_ERROR_INIT;
    int code = 0;
    if (!cnri_args_parse(&args, &syntax, argc, argv, &b, &code)) return code;
    cnr_status status = cnri_args_open(&args, &rt, &err);
    if (!status) status = run_bench(&b, &args, rt, &err);
    if (status) code = cnri_complain(&args, &err);
    cnr_close(rt);
    cnri_args_free(&args);
    return code;
}
