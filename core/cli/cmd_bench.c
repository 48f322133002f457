/* cnnrun bench: how fast a net runs, how much memory it takes, and which steps take the time. */
#include "core/cli/cli.h"
#include "core/watch/watch.h"
#include <stdlib.h>
#include <sys/resource.h>

typedef struct bench {
    int64_t batch, runs, warm;
    bool profile;
    cnr_plan *plan;
    cnr_session *session;
    uint64_t *ns;        /* of each run */
    cnri_profile *steps; /* --profile */
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

/* ---- inputs ---- */

/* Values of a sane size, the same at every run. */
static void fill(cnr_tensor *t) {
    uint64_t state = 1;
    const int64_t n = t->dtype == CNR_f32 ? cnr_count(t) : 0;
    memset(t->data, 0, (size_t)t->bytes);
    for (int64_t i = 0; i < n; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        ((float *)t->data)[i] = (float)(state >> 40) * 0x1p-24f;
    }
}

static cnr_status prepare(bench *b, cnr_model *model, const cnr_observer *o, cnr_error *err) {
    cnri_shapes shapes;
    cnr_status status = cnri_input_shapes(model, b->batch, &shapes, err);
    if (!status) status = cnr_plan_for(model, shapes.list, shapes.n, &b->plan, err);
    if (!status) status = cnri_residency_warm(b->plan, err);
    if (!status) status = cnr_session_open(b->plan, &b->session, err);
    if (!status) cnri_session_cancel_by(b->session, o->cancel);
    for (int32_t i = 0; i < shapes.n && !status; i++) {
        cnr_tensor *in = &shapes.at[i];
        in->bytes = cnr_dense_bytes(in);
        in->data = in->bytes < SIZE_MAX ? cnri_alloc((size_t)in->bytes) : NULL;
        if (!in->data) {
            status = cnri_fail(err, CNR_E_MEMORY, "inputs", "out of memory");
            break;
        }
        fill(in);
        status = cnr_session_set_input(b->session, i, in, err);
        cnri_free(in->data);
    }
    if (!status && shapes.n > 0 && shapes.at[0].rank > 1) b->batch = shapes.at[0].dim[0];
    cnri_shapes_free(&shapes);
    return status;
}

/* ---- measuring ---- */

static cnr_status runs(bench *b, int64_t n, uint64_t *ns, cnr_error *err) {
    for (int64_t i = 0; i < n; i++) {
        const uint64_t begin = cnri_now_ns();
        const cnr_status status = cnr_session_run(b->session, err);
        if (status) return status;
        if (ns) ns[i] = cnri_now_ns() - begin;
    }
    return CNR_OK;
}

static int by_time(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static cnr_status measure(bench *b, cnr_error *err) {
    b->ns = cnri_alloc((size_t)b->runs * sizeof *b->ns);
    if (b->profile) b->steps = cnri_profile_new(b->plan);
    if (!b->ns || (b->profile && !b->steps)) return cnri_fail(err, CNR_E_MEMORY, "bench", "out of memory");
    cnr_status status = runs(b, b->warm, NULL, err);
    if (!status) status = runs(b, b->runs, b->ns, err);
    if (status) return status;
    qsort(b->ns, (size_t)b->runs, sizeof *b->ns, by_time);
    if (!b->profile) return CNR_OK;
    cnri_session_listen(b->session, cnri_profile_hear, b->steps, true);
    status = runs(b, b->runs, NULL, err);
    cnri_session_listen(b->session, NULL, NULL, false);
    return status;
}

/* ---- report ---- */

static double median_ms(const bench *b) {
    const int64_t half = b->runs / 2;
    const double upper = (double)b->ns[half];
    return (b->runs % 2 ? upper : (upper + (double)b->ns[half - 1]) / 2) * 1e-6;
}

static double macs_of(const cnr_node *node) {
    cnr_cost cost = {0, 0};
    if (CNRI_HAS(node->desc, cost)) node->desc->cost(node, &cost);
    return (double)cost.macs;
}

static double macs_of_plan(const cnr_plan *plan) {
    double macs = 0;
    for (int32_t i = 0; i < plan->graph->nodes.n; i++)
        macs += macs_of(&plan->graph->nodes.at[i]->view);
    return macs;
}

static cnr_status report_profile(const bench *b, bool json, cnr_error *err) {
    cnri_text text = {0};
    cnri_profile_print(b->steps, json, &text);
    const bool good = !text.failed;
    if (good && !json) cnri_say(stdout, "\n");
    if (good) cnri_say_lines(stdout, text.at, text.n);
    cnri_text_free(&text);
    return good ? CNR_OK : cnri_fail(err, CNR_E_MEMORY, "bench", "out of memory");
}

static cnr_status report(const bench *b, const cnri_args *args, cnr_error *err) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const cnr_device *device = b->plan->n_devices ? b->plan->devices[0] : NULL;
    const char *device_name = device ? device->name : "", *net = args->operands.at[0];
    const int32_t threads = device ? device->concurrency : 0;
    const double least = (double)b->ns[0] * 1e-6, median = median_ms(b);
    const double gflops = median > 0 ? 2 * macs_of_plan(b->plan) / (median * 1e6) : 0;
    const int64_t peak = (int64_t)usage.ru_maxrss * 1024;
    if (!args->common.json) {
        cnri_say(stdout, "%s on %s, %d thread%s, batch %lld, %lld runs\n", net, device_name,
                 threads, threads == 1 ? "" : "s", (long long)b->batch, (long long)b->runs);
        cnri_say(stdout, "time      %.3f ms least, %.3f ms median, %.2f GFLOPS\n", least, median,
                 gflops);
        cnri_say(stdout,
                 "memory    arena %.2f MB (bound %.2f), weights %.2f MB, process at most %.1f MB\n",
                 (double)b->plan->arena_bytes / 1e6, (double)b->plan->bound_bytes / 1e6,
                 (double)b->plan->weight_bytes / 1e6, (double)peak / 1e6);
        return b->profile ? report_profile(b, false, err) : CNR_OK;
    }
    cnri_json j;
    cnri_json_begin(&j);
    cnri_json_text(&j, "net", net);
    cnri_json_text(&j, "device", device_name);
    cnri_json_int(&j, "threads", threads);
    cnri_json_int(&j, "batch", b->batch);
    cnri_json_int(&j, "runs", b->runs);
    cnri_json_real(&j, "ms_min", least);
    cnri_json_real(&j, "ms_median", median);
    cnri_json_real(&j, "gflops", gflops);
    cnri_json_int(&j, "arena_bytes", (int64_t)b->plan->arena_bytes);
    cnri_json_int(&j, "arena_bound_bytes", (int64_t)b->plan->bound_bytes);
    cnri_json_int(&j, "weights_bytes", (int64_t)b->plan->weight_bytes);
    cnri_json_int(&j, "peak_rss_bytes", peak);
    const cnr_status status = cnri_json_print(&j, err);
    return status || !b->profile ? status : report_profile(b, true, err);
}

int cnri_cmd_bench(int argc, char **argv) {
    bench b = {.batch = 1, .runs = 20, .warm = 2};
    cnri_args args;
    cnr_runtime *rt = NULL;
    cnr_model *model;
    cnri_watching watching;
    cnr_error err = CNR_ERROR_INIT;
    int code = 0;
    if (!cnri_args_parse(&args, &syntax, argc, argv, &b, &code)) return code;
    cnr_status status = cnri_args_open(&args, &rt, &err);
    if (!status) status = cnri_args_load(&args, rt, args.operands.at[0], &model, &err);
    if (!status) status = prepare(&b, model, cnri_watch(&watching, &args), &err);
    if (!status) status = measure(&b, &err);
    if (!status) status = report(&b, &args, &err);
    if (status) code = cnri_complain(&args, &err);
    if (b.session) cnr_session_close(b.session);
    if (b.plan) cnr_plan_release(b.plan);
    cnri_free(b.ns);
    cnri_profile_free(b.steps);
    cnr_close(rt);
    cnri_args_free(&args);
    return code;
}
