/* cnnrun bench: how fast a net runs, how much memory it takes, and which steps take the time. */
#include "cli/cli.h"
#include "lua/script.h"
#include "people/people.h"
#include <math.h>

/* Options of bench. */
typedef struct bench {
    cnr_profile_options o;
    bool energy, no_energy;
    const char *product, *output;
} bench;
static const cnri_option options[] =
    {CNRI_OPTION(bench, o.batch, "--batch", "N", "batch size (1)", .min = 1, .max = 65536),
     CNRI_OPTION(bench, o.runs, "--runs", "N", "timed runs (20)", .min = 1, .max = 1e7),
     CNRI_OPTION(bench, o.warm, "--warm", "N", "runs before the timed ones (2)", .min = 0,
                 .max = 1e6),
     CNRI_OPTION(bench, o.steps, "--profile", NULL, "the time of each step, from separate runs"),
     CNRI_OPTION(bench, output, "--output", "FILE",
                 "with --profile: plot of the steps' times, a .png or .svg", .letter = 'o',
                 .writes = true),
     CNRI_OPTION(bench, o.repeat, "--repeat", NULL,
                 "with --profile: joules of each step by repeating it alone, not by its time"),
     CNRI_OPTION(bench, o.trace, "--trace", "FILE",
                 "one more run, step by step, as Chrome's tracing and Perfetto read it",
                 .writes = true),
     CNRI_OPTION(bench, product, "--gemm", "M,N,K",
                 "instead of a net: a product of matrices, M x K by K x N"),
     CNRI_OPTION(bench, energy, "--energy", NULL,
                 "what a run takes, where there is a meter, as without this option"),
     CNRI_OPTION(bench, no_energy, "--no-energy", NULL,
                 "ask no meter (where there is one, runs go on until it can tell)")};

/* Result: the whole net. */
typedef struct whole {
    const char *net;
    cnr_timing t;
    double gflops;
    bool extrapolated;
    cnri_energy_shown e;
} whole;
static const cnri_field whole_fields[] = {CNRI_KEY(whole, net),
                                          CNRI_KEY_IN(whole, t, device),
                                          CNRI_KEY_IN(whole, t, threads),
                                          CNRI_KEY_IN(whole, t, batch),
                                          CNRI_KEY_IN(whole, t, runs),
                                          CNRI_KEY_IN(whole, t, ms_min),
                                          CNRI_KEY_IN(whole, t, ms_median),
                                          CNRI_MAYBE(whole, "enqueue_ms", t.enqueue_ms),
                                          CNRI_KEY(whole, gflops),
                                          CNRI_KEY(whole, extrapolated),
                                          CNRI_KEY_IN(whole, t, arena_bytes),
                                          CNRI_KEY_IN(whole, t, arena_bound_bytes),
                                          CNRI_FIELD(whole, "weights_bytes", t.weight_bytes),
                                          CNRI_KEY_IN(whole, t, peak_rss_bytes),
                                          CNRI_ENERGY_FIELDS(whole, e)};
static const cnri_record whole_record =
    {.fields = whole_fields,
     .n = CNRI_COUNT(whole_fields),
     .warns = true,
     .line = "{net} on {device}, {threads} thread{threads+s}, batch {batch}, {runs} runs\n"
             "time      {ms_min:.3f} ms least, {ms_median:.3f} ms median, {gflops:.2f} GFLOPS"
             "{extrapolated?, extrapolated|}\n"
             "{enqueue_ms?queued    in {enqueue_ms:.3f} ms of the host's time (median)\n|}"
             "memory    arena {arena_bytes:.2M} MB (bound {arena_bound_bytes:.2M}), weights "
             "{weights_bytes:.2M} MB, process at most {peak_rss_bytes:.1M} MB\n" CNRI_ENERGY_LINE};

/* Result: a step. */
typedef struct step {
    cnr_step_timing t;
    double ms, ms_min, gflops, kernel_gflops, share, peak_share, read_share;
    const char *joules_by;
    int64_t bytes;
    bool extrapolated;
    const char *note;        /* why a share is missing or above 1 */
    char peak[16], read[16]; /* the shares as text */
} step;
static const cnri_field step_fields[] = {CNRI_KEY_IN(step, t, step),
                                         CNRI_KEY_IN(step, t, node),
                                         CNRI_KEY_IN(step, t, op),
                                         CNRI_KEY_IN(step, t, kernel),
                                         CNRI_KEY_IN(step, t, device),
                                         CNRI_KEY(step, ms),
                                         CNRI_KEY(step, ms_min),
                                         CNRI_KEY(step, gflops),
                                         CNRI_MAYBE(step, "joules", t.joules),
                                         CNRI_MAYBE(step, "joules_by", joules_by),
                                         CNRI_MAYBE(step, "from", t.from),
                                         CNRI_MAYBE(step, "to", t.to),
                                         CNRI_MAYBE(step, "bytes", bytes),
                                         CNRI_MAYBE(step, "peak_share", peak_share),
                                         CNRI_MAYBE(step, "read_share", read_share),
                                         CNRI_MAYBE(step, "share_note", note),
                                         CNRI_MAYBE(step, "kernel_gflops", kernel_gflops),
                                         CNRI_MAYBE(step, "memory_bytes", t.memory_bytes),
                                         CNRI_MAYBE(step, "counters", t.counters),
                                         CNRI_FIELD(step, "extrapolated", extrapolated),
                                         CNRI_ASIDE(step, "share", share),
                                         CNRI_ASIDE(step, "peak", peak),
                                         CNRI_ASIDE(step, "read", read)};
static const cnri_record step_record =
    CNRI_RECORD(step_fields, "{step:5}  {node:-24} {op:-20} {kernel:-24} {device:-10} {ms:10.4f} "
                             "{share:5.1%} {gflops:8.2f}"
                             " {peak:6} {read:6}"
                             "{joules? {joules:10.4g}}{from?  {bytes} bytes, {from} to "
                             "{to}|}{extrapolated?  extrapolated|}{counters?  {counters}|}\n");

/* Result: all steps of an operator. */
typedef struct op {
    cnri_op_timing t;
    double ms, share;
} op;
static const cnri_field op_fields[] = {CNRI_KEY_IN(op, t, op), CNRI_KEY_IN(op, t, steps),
                                       CNRI_KEY(op, ms), CNRI_ASIDE(op, "share", share)};
static const cnri_record op_record =
    CNRI_RECORD(op_fields, "{op:-20} {steps:6} {ms:10.4f} {share:5.1%}\n");

/* Rounds to a millionth, which is finer than any clock. */
static double rounded(double ms) { return (double)(int64_t)(ms * 1e6 + 0.5) / 1e6; }

static double gflops(double flops, double ms) { return ms > 0 ? flops / (ms * 1e6) : 0; }

/* ---- what a device could do at most ---- */

/* What a device can do at most, measured on itself. */
typedef struct peak {
    const char *device;
    double fma_gflops, read_gbs;
} peak; /* NaN: the device does not report it */

/* Measures a device; a simulated one is not measured. */
static cnr_status measure_peak(const cnri_call *call, const char *device, peak *out,
                               cnr_error *err) {
    cnri_fact_list list = {0};
    *out = (peak){device, NAN, NAN};
    if (!cnri_clock_is_real()) return CNR_OK; /* of a made-up machine nothing can be measured */
    const cnr_status status = cnri_device_facts(call->rt, device, 1, &list, err);
    for (int32_t i = 0; i < list.n; i++) {
        if (strcmp(list.at[i].name, "fma_gflops") == 0) out->fma_gflops = list.at[i].value;
        if (strcmp(list.at[i].name, "read_gbs") == 0) out->read_gbs = list.at[i].value;
    }
    cnri_facts_free(&list);
    return status;
}

/* Peaks of the devices measured so far, at most 16. */
typedef struct peaks {
    peak at[16];
    int32_t n;
} peaks;

/* The measured peak of a device, measured at first use. */
static cnr_status peak_of(const cnri_call *call, peaks *p, const char *device, const peak **out,
                          cnr_error *err) {
    static const peak none = {NULL, NAN, NAN};
    *out = &none;
    for (int32_t i = 0; i < p->n; i++)
        if (strcmp(p->at[i].device, device) == 0) *out = &p->at[i];
    if ((*out)->device || p->n == (int32_t)CNRI_COUNT(p->at)) return CNR_OK;
    *out = &p->at[p->n];
    return measure_peak(call, device, &p->at[p->n++], err);
}

/* ---- steps ---- */

static const char above[] =
    "above what the device measured of itself: it has less time for us at times, or more",
                  other[] = "the device measures itself in f32 alone";

/* Formats a share such as "12.3%"; ">100%" if it is above 1, because no share can be; "-" if it
 * is NaN. */
static void share_text(double share, char *out, size_t capacity) {
    if (isnan(share)) snprintf(out, capacity, "-");
    else if (share > 1) snprintf(out, capacity, ">100%%");
    else snprintf(out, capacity, "%.1f%%", share * 100);
}

/* The result row of step i; part: its share of the time. */
static step step_of(const cnr_timing *t, int32_t i, const peak *maximum, double part) {
    const cnr_step_timing *s = &t->steps[i];
    const bool runs = !s->from && s->bytes > 0 && s->ms > 0;
    const bool f32 = s->arithmetic && strcmp(s->arithmetic, cnr_dtype_name(CNR_f32)) == 0;
    step one = {.t = *s,
                .ms = rounded(s->ms),
                .ms_min = rounded(s->ms_min),
                .gflops = rounded(gflops(s->flops, s->ms)),
                .kernel_gflops = runs ? rounded(gflops(s->kernel_flops, s->ms)) : (double)NAN,
                .share = s->ms * part,
                .extrapolated = s->extrapolated != 0,
                .peak_share = NAN,
                .read_share = NAN,
                .joules_by = t->joules_by,
                .bytes = s->from ? (int64_t)s->bytes : CNRI_NONE};
    if (runs && (f32 || s->kernel_flops == 0))
        one.peak_share = gflops(s->kernel_flops, s->ms) / maximum->fma_gflops;
    if (runs) one.read_share = s->memory_bytes / (s->ms * 1e6) / maximum->read_gbs;
    if (!runs) one.t.memory_bytes = NAN;
    if (one.peak_share > 1 || one.read_share > 1) one.note = above;
    else if (runs && !f32 && s->kernel_flops > 0 && !isnan(maximum->fma_gflops)) one.note = other;
    share_text(one.peak_share, one.peak, sizeof one.peak);
    share_text(one.read_share, one.read, sizeof one.read);
    return one;
}

/* Title of the column of joules; "": there is none. */
static const char *title_of(const char *joules_by) {
    if (!joules_by) return "";
    return strcmp(joules_by, "counted") == 0 ? "          J (counted at each step)"
           : strcmp(joules_by, "time") == 0  ? "          J (the run's, shared out by time)"
                                             : "          J (the layer repeated)";
}

/* Prints the titles of the steps. */
static void tell_titles(const cnr_timing *t) {
    cnri_say(stdout, "\n%5s  %-24s %-20s %-24s %-10s %10s %6s %8s %6s %6s%s\n", "step", "node",
             "operator", "kernel", "device", "ms", "share", "GFLOPS", "peak", "read",
             title_of(t->joules_by));
}

/* Prints what the columns mean; exceeded: also of what is above 100%. */
static void tell_legend(const peaks *p, bool exceeded) {
    for (int32_t i = 0; i < p->n; i++)
        if (!isnan(p->at[i].fma_gflops))
            cnri_say(stdout,
                     "\npeak: the kernel's own arithmetic, of %.1f GFLOPS in f32; read: what it "
                     "reads out of "
                     "memory,\nnot out of caches, of %.1f GB/s. %s measured both of itself just "
                     "now.\n",
                     p->at[i].fma_gflops, p->at[i].read_gbs, p->at[i].device);
    if (exceeded) cnri_say(stdout, ">100%%: %s\n", above);
}

/* Prints all steps and then sums by operator, as lines or JSON. */
static cnr_status tell_steps(const cnri_call *call, const cnr_timing *t, cnr_error *err) {
    const bool titles = !call->common.json;
    bool exceeded = false;
    double all = 0;
    peaks found = {.n = 0};
    cnr_status status = CNR_OK;
    cnri_op_timing *ops = cnri_alloc((size_t)(t->n_steps + 1) * sizeof *ops);
    if (!ops) return cnri_out_of_memory(err, "bench");
    const int32_t n = cnri_sum_by_operator(t->steps, t->n_steps, ops);
    for (int32_t i = 0; i < t->n_steps; i++) all += t->steps[i].ms;
    const double part = all > 0 ? 1 / all : 0;
    if (titles) tell_titles(t);
    for (int32_t i = 0; i < t->n_steps && !status; i++) {
        const peak *maximum;
        status = peak_of(call, &found, t->steps[i].device, &maximum, err);
        const step one = step_of(t, i, maximum, part);
        exceeded |= one.peak_share > 1 || one.read_share > 1;
        if (!status) status = cnri_tell(call, &step_record, &one, err);
    }
    if (titles) tell_legend(&found, exceeded);
    if (titles) cnri_say(stdout, "\n%-20s %6s %10s\n", "operator", "steps", "ms");
    for (int32_t i = 0; i < n && !status; i++) {
        const op one = {ops[i], rounded(ops[i].ms), ops[i].ms * part};
        status = cnri_tell(call, &op_record, &one, err);
    }
    cnri_free(ops);
    return status;
}

/* Draws the steps as a picture to b->output, by the script. */
static cnr_status draw_steps(const cnri_call *call, const bench *b, const whole *w,
                             cnr_error *err) {
    char title[400];
    cnri_json j;
    snprintf(title, sizeof title, "%s on %s, %d threads, batch %lld: %.3f ms", w->net, w->t.device,
             (int)w->t.threads, (long long)w->t.batch, w->t.ms_median);
    cnri_json_begin(&j);
    cnri_json_text(&j, "output", b->output);
    cnri_json_text(&j, "title", title);
    cnri_json_list(&j, "rows");
    for (int32_t i = 0; i < w->t.n_steps; i++) {
        const cnr_step_timing *s = &w->t.steps[i];
        cnri_json_object(&j, NULL);
        cnri_json_text(&j, "node", s->node ? s->node : s->op);
        cnri_json_text(&j, "kernel", s->kernel ? s->kernel : s->op);
        cnri_json_text(&j, "device", s->device);
        cnri_json_real(&j, "ms", s->ms);
        cnri_json_end(&j);
    }
    cnri_json_end(&j);
    return cnri_call_script(call, "calls/bench_chart.lua", &j, NULL, 0, err);
}

/* ---- a product of matrices: a net that ships, for these sizes ---- */

/* Result of --gemm. */
typedef struct product {
    const char *sizes;
    cnr_timing t;
    double gflops, share;
    const char *note;
    bool extrapolated;
    char part[16];
    cnri_energy_shown e;
} product;
static const cnri_field product_fields[] = {CNRI_FIELD(product, "product", sizes),
                                            CNRI_KEY_IN(product, t, device),
                                            CNRI_KEY_IN(product, t, threads),
                                            CNRI_KEY_IN(product, t, runs),
                                            CNRI_KEY_IN(product, t, ms_min),
                                            CNRI_KEY_IN(product, t, ms_median),
                                            CNRI_KEY(product, gflops),
                                            CNRI_KEY(product, share),
                                            CNRI_MAYBE(product, "share_note", note),
                                            CNRI_KEY(product, extrapolated),
                                            CNRI_ASIDE(product, "part", part),
                                            CNRI_ENERGY_FIELDS(product, e)};
static const cnri_record product_record =
    CNRI_RECORD(product_fields,
                "{product} on {device}, {threads} thread{threads+s}, {runs} runs\n"
                "time      {ms_min:.4f} ms least, {ms_median:.4f} ms median, {gflops:.2f} GFLOPS"
                "{share?, {part} of what the device measured of itself just now|}"
                "{extrapolated?, extrapolated|}\n" CNRI_ENERGY_LINE);

/* Splits "64,32,16" into "m=64", "n=32" and "k=16"; false: it is malformed. */
static bool read_sizes(const char *text, char words[3][32]) {
    for (int i = 0; i < 3; i++) {
        char number[24];
        int64_t size;
        const size_t n = strcspn(text, ",");
        if (n == 0 || n >= sizeof number || (text[n] == ',') != (i < 2)) return false;
        snprintf(number, sizeof number, "%.*s", (int)n, text);
        if (!cnri_parse_int(number, &size) || size < 1 || size > 65536) return false;
        snprintf(words[i], sizeof words[i], "%c=%s", "mnk"[i], number);
        text += n + 1;
    }
    return true;
}

/* Times a matrix product M,N,K as a net of one layer. */
static cnr_status run_product(cnri_call *call, const bench *b, cnr_error *err) {
    char words[3][32];
    product p = {.sizes = b->product, .t = {.size = sizeof p.t}};
    peak maximum;
    if (!read_sizes(b->product, words))
        return cnri_fail(err, CNR_E_ARG, "--gemm", "wanted M,N,K, each 1 to 65536, got \"%s\"",
                         b->product);
    char *path = cnri_lua_shipped("bench/product.lua");
    const char **slot = cnri_push(&call->operands);
    cnr_status status =
        path ? CNR_OK : cnri_fail(err, CNR_E_NOT_FOUND, "bench/product.lua", "is not installed");
    if (slot) *slot = path;
    for (int i = 0; i < 3 && !status; i++) {
        if (!cnri_list_add(&call->common.load.symbols, words[i]))
            status = cnri_out_of_memory(err, "bench");
    }
    if (!status) status = cnri_call_model(call, err);
    if (!status) status = cnr_profile(call->model, &b->o, cnri_watch(call), &p.t, err);
    cnri_watch_end(&call->watching);
    if (!status) status = measure_peak(call, p.t.device, &maximum, err);
    if (!status) {
        p.gflops = gflops(p.t.flops, p.t.ms_min);
        p.share = p.gflops / maximum.fma_gflops;
        p.note = p.share > 1 ? above : NULL;
        p.extrapolated = p.t.extrapolated != 0;
        share_text(p.share, p.part, sizeof p.part);
        p.e = cnri_energy_show(p.t.energy, "a product", NAN);
        status = cnri_tell(call, &product_record, &p, err);
    }
    if (!status) status = cnri_tell_domains(call, p.t.energy, p.e.fps, err);
    cnr_timing_free(&p.t);
    call->operands.n = 0;
    cnri_free(path);
    return status;
}

/* What is wrong with the options; NULL: nothing. */
static const char *wrong(const cnri_call *call, const void *values) {
    const bench *b = values;
    const bool product = b->product != NULL;
    const char *dot = b->output ? strrchr(b->output, '.') : NULL;
    if (b->energy && b->no_energy) return "--energy, --no-energy: want one of them";
    if (b->output && (!b->o.steps || product))
        return "-o FILE draws steps: want --profile and a net";
    if (b->output && (!dot || (strcmp(dot, ".png") != 0 && strcmp(dot, ".svg") != 0)))
        return "-o: wanted a name that ends with .png or .svg";
    if (product && call->operands.n) return "--gemm stands for the net: want one of them";
    return product || call->operands.n ? NULL : "which net? want NET, or --gemm M,N,K";
}

/* The command bench. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    bench *b = values;
    cnr_profile_options *o = &b->o;
    if (o->warm == 0) o->warm = -1; /* none, rather than the usual number */
    o->energy = !b->no_energy;
    if (b->product) return run_product(call, b, err);
    cnr_status status = cnri_call_model(call, err);
    if (status) return status;
    whole w = {.net = call->operands.at[0], .t = {.size = sizeof w.t}};
    status = cnr_profile(call->model, o, cnri_watch(call), &w.t, err);
    cnri_watch_end(&call->watching);
    w.gflops = gflops(w.t.flops, w.t.ms_median);
    w.extrapolated = w.t.extrapolated != 0;
    w.e = cnri_energy_show(w.t.energy, "a run", (double)w.t.batch);
    if (!status) status = cnri_tell(call, &whole_record, &w, err);
    if (!status) status = cnri_tell_domains(call, w.t.energy, w.e.fps, err);
    if (!status && o->steps) status = tell_steps(call, &w.t, err);
    if (!status && b->output) status = draw_steps(call, b, &w, err);
    cnr_timing_free(&w.t);
    return status;
}

const cnri_command cnri_cmd_bench = {
    .name = "bench",
    .example = "cnnrun bench net.cnr --threads 2 --profile",
    .operands = "NET | --gemm M,N,K",
    .summary = "Times a net on random inputs.",
    .details =
        "queued, enqueue_ms: what the host does of a run, until a device that works by itself has "
        "all of it.\n"
        "gflops counts a multiply-accumulate as two and goes by the median. With --profile a\n"
        "line a step follows, then one an operator. peak: the arithmetic that the kernel does (a\n"
        "Winograd convolution does less than the operator's GFLOPS), of the most that the device\n"
        "measures of itself in f32 (cnnrun devices --measure); kernels in other types have no "
        "share.\n"
        "read: bytes read out of memory, of the most a second that the device measures. Not "
        "counted is\n"
        "what a cache of the device's size has kept since its last use. A share above 1 is told "
        "with\n"
        "share_note, in text as >100%.\n"
        "-o draws the times of the steps as bars, by the plugin draw-cairo.\n"
        "Joules are a run's (with --gemm a product's) and of the whole machine, where a plugin "
        "finds\n"
        "a meter; a line a domain follows. Runs go on until its sensors can tell: times, frames a\n"
        "second (of the mean) and joules are of all these runs. By a simulated board's clock each\n"
        "object has \"simulated\".",
    .results =
        CNRI_RESULTS(&whole_record, &cnri_energy_domain, &step_record, &op_record, &product_record),
    CNRI_OPTIONS(options),
    CNRI_VALUES(bench,
                .o = {.size = sizeof(cnr_profile_options), .batch = 1, .runs = 20, .warm = 2}),
    .max_operands = 1,
    .takes = CNRI_NETS | CNRI_PICTURES,
    .opens = cnri_call_open,
    .wrong = wrong,
    .run = run,
};
