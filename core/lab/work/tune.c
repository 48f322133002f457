/* Times the kernels that accept each layer, in turns, and reports how reliable the choices are. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "work/work.h"
#include "work/watchdog.h"
#include "people/people.h"
#include "keep/keep.h"
#include <dirent.h>
#include <sched.h>
#include <math.h>
#include <stdio.h>

enum { ROUNDS = 9, USUAL_HANG_MS = 60000 };

typedef struct timing { /* callback state while the record is filled */
    cnr_runtime *rt;
    const cnr_observer *observer;
    int64_t segments;
    bool energy;       /* a meter may exist */
    double idle_watts; /* of the idle machine, once something was metered; 0: not yet */
    int64_t hang_ms;
    cnri_tuning *times;        /* the times to fill */
    const cnri_tuning *record; /* the stored record; NULL: nothing is stored before the end */
    /* Several repeats are made: only hanging kernels are stored at once, since medians are
     * stored. */
    bool repeated;
    const char *folder;
    bool shared; /* other ranks measure some of the layers */
} timing;

/* ---- one kernel on the segment ---- */

/* A kernel that is being timed. */
typedef struct trial {
    cnr_plan *plan;
    cnr_session *session;
    double ns[ROUNDS], remainder_ns[ROUNDS];
    /* Ns: of the current run; left: time in steps that are not the kernel's. */
    uint64_t begun, sum, left;
    int32_t rounds, heard;
} trial;

/* Counts only computing steps: layout costs depend on neighbours, which planning knows. */
static void hear(void *arg, const cnri_event *e) {
    trial *t = arg;
    if (e->kind == CNRI_EVENT_STEP_BEGIN) t->begun = e->now_ns;
    if (e->kind != CNRI_EVENT_STEP_END) return;
    const cnri_step *step = &e->plan->steps.at[e->step];
    if (step->kind != CNRI_STEP_KERNEL) return;
    const uint64_t took = e->took_ns ? e->took_ns : e->now_ns - t->begun;
    t->sum += took;
    if (step->node != 0) t->left += took;
}

/* Sets all inputs of the trial's session to made-up numbers. */
static cnr_status put_inputs(trial *t, const cnr_graph *g, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < g->inputs.n && !status; i++) {
        cnr_tensor in = *g->values.at[g->inputs.at[i]].type;
        in.bytes = cnr_dense_bytes(&in);
        in.data = cnri_alloc((size_t)in.bytes + 1);
        if (!in.data) return cnri_out_of_memory(err, "tune");
        cnri_fill_made_up(&in);
        status = cnr_session_set_input(t->session, i, &in, err);
        cnri_free(in.data);
    }
    return status;
}

/* ---- one kernel, until it has run once ---- */

/* True if the failure only rules out this kernel (an error of the device); out of memory is an
 * error of everything. */
static bool passes_over(cnr_status *status, const char *kernel, const cnr_error *why) {
    if (!*status || *status == CNR_E_MEMORY) return false;
    cnri_log(CNR_LOG_WARN, "tune", "%s: %s: %s: left out", kernel, why ? why->where : "",
             why ? why->text : "");
    *status = CNR_OK;
    return true;
}

/* Runs once; *hangs: it was cancelled. Timed streams notice a cancel even if nothing stops a
 * kernel. */
static cnr_status run_once(trial *t, int64_t hang_ms, bool *hangs, cnr_error *err) {
    cnri_watchdog w;
    cnr_status status = cnri_session_listen(t->session, hear, t, true, &t->heard, err);
    if (status) return status;
    for (int32_t i = 0; i < 2;
         i++) { /* a second try, because the whole process may have been stopped meanwhile */
        cnri_watchdog_begin(&w, t->session, hang_ms); /* the first run warms up */
        status = cnr_session_run(t->session, err);
        const bool late = cnri_watchdog_end(&w);
        *hangs = status && (late || *hangs);
        if (!*hangs) break;
    }
    return status;
}

/* True for the name of a kernel that computes regions, of which the segment is one. */
static bool is_for_regions(const char *kernel) {
    for (int32_t i = 0; kernel && i < cnri_descriptor_count(CNR_KIND_KERNEL); i++) {
        const cnr_kernel *k = cnri_descriptor_at(CNR_KIND_KERNEL, i);
        if (strcmp(k->op, CNR_REGION) == 0 && strcmp(k->name, kernel) == 0) return true;
    }
    return false;
}

/* True if the plan has a step that computes several nodes. */
static bool is_region(const cnr_plan *plan) {
    bool any = false;
    for (int32_t i = 0; i < plan->steps.n; i++) any = any || plan->steps.at[i].view.subgraph;
    return any;
}

/* *takes: whether the kernel, or with NULL any, would have the node at all; *hangs: it does not
 * end. */
static cnr_status begin(trial *t, cnri_devices *set, const cnr_graph *g, const char *device,
                        const char *kernel, int64_t hang_ms, bool *takes, bool *hangs,
                        cnr_error *err) {
    cnr_error why = CNR_ERROR_INIT;
    char *word = cnri_format("%s=%s", g->nodes.at[0]->view.desc->name, kernel ? kernel : "");
    const bool region = is_for_regions(kernel);
    const char *const words[] = {kernel && !region ? word : NULL, NULL};
    /* the watchdog cancels first: a device that heeds that is not lost */
    const cnri_plan_options options = {.device = device,
                                       .kernels = words,
                                       .forced_region = region ? kernel : NULL,
                                       .hang_ms = 4 * (uint64_t)hang_ms};
    const cnr_tensor **types = cnri_alloc((size_t)(g->inputs.n + 1) * sizeof *types);
    cnr_status status = word && types ? CNR_OK : cnri_out_of_memory(err, "tune");
    *takes = *hangs = false;
    for (int32_t i = 0; i < g->inputs.n && types; i++)
        types[i] = g->values.at[g->inputs.at[i]].type;
    if (!status) {
        *takes = !cnri_plan_make(g, set, &options, types, g->inputs.n, &t->plan, &why);
        if (*takes && region) *takes = is_region(t->plan);
        if (why.code == CNR_E_MEMORY) status = cnri_out_of_memory(err, "tune");
    }
    if (*takes) status = cnr_session_open(t->plan, &t->session, err);
    if (*takes && !status) status = put_inputs(t, g, err);
    if (*takes && !status) status = run_once(t, hang_ms, hangs, err);
    if (*takes && status && *hangs) status = CNR_OK;
    else if (*takes && status) *takes = !passes_over(&status, kernel ? kernel : device, err);
    if (*hangs) *takes = false;
    cnri_free(word);
    cnri_free(types);
    return status;
}

/* Closes a trial. */
static void end(trial *t) {
    cnr_session_close(t->session);
    cnri_plan_free(t->plan);
}

/* ---- answers: a kernel that is wrong here is never kept, however fast ---- */

enum { MAX_REFERENCE = 200000000 }; /* most operations for which the reference is used */
/* Relative to the largest number; errors of drivers are far larger. */
static const double AGREE = 2e-3;

bool cnri_outputs_agree(const cnr_tensor *got, const cnr_tensor *want) {
    const float *a = got->data, *b = want->data;
    double largest = 0, off = 0;
    const int64_t n = cnr_count(want);
    if (want->dtype != CNR_f32 || got->dtype != CNR_f32 || cnr_count(got) != n || !a || !b)
        return true;
    for (int64_t i = 0; i < n; i++) {
        const double distance = fabs((double)a[i] - b[i]);
        if (fabs((double)b[i]) > largest) largest = fabs((double)b[i]);
        if (a[i] != b[i] && !(distance <= off)) off = isnan(b[i]) && isnan(a[i]) ? off : distance;
        if (isnan(off)) return false;
    }
    return off <= AGREE * largest + 1e-6;
}

/* *agreed: the outputs of a trial are those of the judge (the reference's), within a tolerance. */
static cnr_status agrees(trial *t, trial *judge, const cnr_graph *g, bool *agreed, cnr_error *err) {
    cnr_status status = CNR_OK;
    *agreed = true;
    for (int32_t i = 0; i < g->outputs.n && !status && *agreed; i++) {
        const cnr_tensor *got, *want;
        status = cnr_session_output(t->session, i, &got, err);
        if (!status) status = cnr_session_output(judge->session, i, &want, err);
        if (!status) *agreed = cnri_outputs_agree(got, want);
    }
    return status;
}

/* Rules out, in `in`, kernels whose answers differ from the reference's, or, for large nodes, from
 * the processor's kernel. If neither can run, answers are not checked. */
static cnr_status judge_all(timing *m, const cnr_graph *g, trial *trials, bool *in, int32_t n,
                            const char *const *kernels, cnr_error *err) {
    const cnri_device *host;
    trial judge = {0};
    cnr_cost cost = {0};
    bool takes = false, hangs;
    const cnr_node *node = &g->nodes.at[0]->view;
    if (cnri_device_best(&m->rt->devices, true, &host, NULL)) return CNR_OK;
    if (CNRI_HAS(node->desc, cost)) node->desc->cost(node, &cost);
    const char *by = cost.flops < MAX_REFERENCE ? cnri_reference_name : NULL;
    cnr_status status =
        begin(&judge, &m->rt->devices, g, host->device.name, by, 0, &takes, &hangs, err);
    for (int32_t i = 0; i < n && takes && !status; i++) {
        if (!in[i]) continue;
        status = agrees(&trials[i], &judge, g, &in[i], err);
        if (passes_over(&status, kernels[i], err)) in[i] = false;
        else if (!status && !in[i])
            cnri_log(CNR_LOG_WARN, "tune", "%s: %s is not the reference's answer: not kept",
                     node->desc->name, kernels[i]);
    }
    end(&judge);
    return status;
}

/* Times the kernels in turns, so that disturbances affect all alike. Kernels three times as slow
 * as the best in the first round are not run again. */
static cnr_status run_rounds(trial *trials, bool *in, const char *const *kernels, int32_t n,
                             cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t round = 0; round < ROUNDS && !status; round++) {
        double minimum = INFINITY;
        for (int32_t i = 0; i < n && !status; i++) {
            trial *t = &trials[i];
            if (!in[i]) continue;
            t->sum = t->left = 0;
            status = cnr_session_run(t->session, err);
            if (passes_over(&status, kernels[i], err)) {
                t->rounds = 0;
                in[i] = false;
                continue;
            }
            t->ns[t->rounds] = t->sum ? (double)t->sum : 1;
            t->remainder_ns[t->rounds] = (double)t->left;
            if (t->ns[t->rounds] < minimum) minimum = t->ns[t->rounds];
            t->rounds++;
        }
        for (int32_t i = 0; i < n && round == 0 && !status; i++)
            if (in[i] && trials[i].ns[0] > 3 * minimum) in[i] = false;
    }
    return status;
}

static cnr_status run_again(void *session, cnr_error *err) { return cnr_session_run(session, err); }

/* Measures joules of a kernel for about a second. If nothing can be metered, it is not tried
 * again. */
static cnr_status meter(timing *m, trial *t, cnri_cost *cost, cnr_error *err) {
    cnr_energy energy = {.size = sizeof energy};
    cnr_session_unlisten(t->session, t->heard);
    cnr_status status =
        cnr_energy_of(m->rt, run_again, t->session, NULL, m->observer, &energy, err);
    if (status == CNR_E_NOT_FOUND) status = CNR_OK;
    m->energy = !status && energy.source != CNR_ENERGY_UNMEASURED;
    if (m->energy && energy.joules > 0) cost->joules = energy.joules;
    if (m->energy && energy.idle_watts > 0) m->idle_watts = energy.idle_watts;
    cnr_energy_free(&energy);
    return status;
}

/* True if the knob sets the clock of the device. A knob may feed several devices, separated by
 * commas. */
static bool clocks(const cnr_gauge *knob, const char *device) {
    const size_t n = strlen(device);
    for (const char *at = knob->feeds; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, device, n) == 0 && strchr(":,", at[n]))
            return true; /* strchr also finds the final NUL */
    }
    return false;
}

/* MHz of the knob that clocks the device or a part of it; 0: there is none, or it can't be read. */
static double mhz_of(cnr_runtime *rt, const char *device) {
    cnr_gauge_list list = {.size = sizeof list};
    double hz = 0;
    if (cnr_gauges(rt, NULL, NULL, &list, NULL)) return 0;
    for (int32_t i = 0; i < list.n; i++) {
        const cnr_gauge *g = &list.at[i];
        if (g->quantity || g->status || !clocks(g, device)) continue;
        if ((double)g->hz > hz) hz = (double)g->hz;
    }
    cnr_gauges_free(&list);
    return hz / 1e6;
}

/* *cost: median cost of a trial, with joules if there is a meter and the kernel is still in. */
static cnr_status cost_of(timing *m, trial *t, const char *device, bool in, cnri_cost *cost,
                          cnr_error *err) {
    if (t->rounds == 0) return CNR_OK;
    cost->ns = cnri_median(t->ns, t->rounds);
    cost->remainder_ns = cnri_median(t->remainder_ns, t->rounds);
    if (cost->remainder_ns >= cost->ns) cost->remainder_ns = 0;
    cost->mhz = mhz_of(m->rt, device);
    return in && m->energy ? meter(m, t, cost, err) : CNR_OK;
}

/* Stores the times so far, so that a killed process can be continued. */
static cnr_status keep(const timing *m, cnr_error *err) {
    cnri_tuning news = {0};
    cnr_status status = CNR_OK;
    for (int32_t i = 0; m->record && i < m->times->rows.n && !status; i++) {
        const cnri_timed *row = &m->times->rows.at[i];
        const cnri_timed *was = cnri_tuning_find(m->record, row->key, row->kernel);
        if (m->repeated && row->cost.ns < CNRI_TUNING_HANGS) continue;
        if (!was || was->cost.ns != row->cost.ns)
            status = cnri_tuning_set(&news, row->key, row->kernel, row->cost, err);
    }
    if (!status && news.rows.n) status = cnri_tuning_save(m->folder, &news, err);
    cnri_vec_free(&news.rows);
    return status;
}

/* Prepares all trials. After a hang, an asynchronous device can't be used again in this process. */
static cnr_status begin_all(timing *m, const cnr_graph *g, const char *device, trial *trials,
                            bool *in, const char *const *kernels, int32_t n, cnri_cost *costs,
                            cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < n && !status; i++) {
        bool hangs;
        status = begin(&trials[i], &m->rt->devices, g, device, kernels[i], m->hang_ms, &in[i],
                       &hangs, err);
        if (status || !hangs) continue;
        costs[i].ns = CNRI_TUNING_HANGS;
        cnri_log(CNR_LOG_WARN, "tune", "%s does not end on %s in %.3g s: left out from now on",
                 kernels[i], device, (double)m->hang_ms / 1000);
        if (CNRI_HAS(trials[i].plan->devices[0]->cls, event_record))
            status = cnri_fail(err, CNR_E_DEVICE, device,
                               "%s hangs on it: what was timed is kept, tune "
                               "again to go on",
                               kernels[i]);
    }
    return status;
}

/* True if this rank measures the layer. The choice follows from the operators and sizes of the
 * segment, so all ranks agree. */
static bool is_ours(const cnr_graph *segment, const char *device) {
    const int32_t ranks = cnri_group_ranks();
    cnri_text all = {0};
    uint8_t print[16];
    cnri_text_add(&all, "%s", device);
    for (int32_t i = 0; i < segment->nodes.n; i++)
        cnri_text_add(&all, " %s", segment->nodes.at[i]->view.desc->name);
    for (cnr_value v = 0; v < segment->values.n; v++)
        for (int32_t a = 0; a < segment->values.at[v].type->rank; a++)
            cnri_text_add(&all, " %lld", (long long)segment->values.at[v].type->dim[a]);
    cnri_fingerprint(all.n ? all.at : "", all.n, print);
    cnri_text_free(&all);
    return (print[0] | print[1] << 8) % ranks == cnri_group_rank();
}

/* Times several kernels of one node; a kernel that was not timed has ns 0. */
static cnr_status time_kernels(void *arg, const cnr_graph *segment, const char *device,
                               const char *const *kernels, int32_t n, cnri_cost *costs,
                               cnr_error *err) {
    timing *m = arg;
    if (m->shared && !is_ours(segment, device)) return CNR_OK;
    trial *trials = cnri_alloc_zero((size_t)n * sizeof *trials);
    bool *in = cnri_alloc_zero((size_t)n);
    cnr_status status = trials && in ? CNR_OK : cnri_out_of_memory(err, "tune");
    if (!status) status = keep(m, err);
    if (!status) status = cnri_report_progress(m->observer, "tune", m->segments++, 0, err);
    if (!status) status = begin_all(m, segment, device, trials, in, kernels, n, costs, err);
    if (!status) status = judge_all(m, segment, trials, in, n, kernels, err);
    if (!status) status = run_rounds(trials, in, kernels, n, err);
    for (int32_t i = 0; i < n && !status; i++)
        status = cost_of(m, &trials[i], device, in[i], &costs[i], err);
    for (int32_t i = 0; trials && i < n; i++) end(&trials[i]);
    cnri_free(trials);
    cnri_free(in);
    return status;
}

/* ---- beside the kernels: copies between devices, and the idle machine ---- */

/* Times transfers between two devices, unless they are on record. */
static cnr_status time_link(const cnri_device *from, const cnri_device *to, cnri_tuning *t,
                            cnr_error *err) {
    static const struct {
        const char *name;
        uint64_t bytes;
    } sizes[] = {{CNRI_TUNING_COPY_LESS, CNRI_TUNING_BYTES_LESS},
                 {CNRI_TUNING_COPY_MORE, CNRI_TUNING_BYTES_MORE}};
    char key[CNRI_TUNING_KEY];
    cnr_status status = cnri_tuning_link_key(from, to, key, err);
    if (status || cnri_tuning_find(t, key, "")) return status;
    for (size_t i = 0; i < CNRI_COUNT(sizes) && !status; i++) {
        cnri_cost cost = {0};
        status = cnri_copy_ns(&from->device, &to->device, sizes[i].bytes, &cost.ns, err);
        if (!status) status = cnri_tuning_set(t, key, sizes[i].name, cost, err);
    }
    return status;
}

/* Records the idle watts of a device, as a row of one second. */
static cnr_status keep_idle(const timing *m, const cnri_device *d, cnri_tuning *t, cnr_error *err) {
    const cnri_cost second = {.ns = 1e9, .joules = m->idle_watts, .mhz = mhz_of(m->rt, d->name)};
    char key[CNRI_TUNING_KEY];
    const cnr_status status = cnri_tuning_device_key(d, key, err);
    return status ? status : cnri_tuning_set(t, key, CNRI_TUNING_IDLE, second, err);
}

/* Times transfers among all devices of the set. */
static cnr_status time_around(const timing *m, const cnri_device_set *set, cnri_tuning *t,
                              cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t a = 0; a < set->n && !status; a++) {
        for (int32_t b = 0; b < set->n && !status; b++)
            if (a != b) status = time_link(set->at[a], set->at[b], t, err);
        if (!status && m->idle_watts > 0) status = keep_idle(m, set->at[a], t, err);
    }
    return status;
}

/* Makes a plan in *out while timing kernels that are not on record. */
static cnr_status tune(cnr_model *m, const cnr_tensor *const *types, int32_t n, timing timing,
                       cnr_plan **out, cnr_error *err) {
    cnri_plan_options options = m->plan_options;
    cnri_tuning *t = timing.times;
    cnri_measuring measuring = {time_kernels, &timing};
    cnri_device_set set;
    *out = NULL;
    options.tuning = t;
    options.candidates = true; /* makes the rows of all devices */
    cnr_status status = cnri_device_set_make(&set, &m->rt->devices, m->graph, &options, err);
    if (status) return status;
    t->measure = cnri_measure_missing;
    t->arg = &measuring;
    status = cnri_device_check_timed(&set.at[set.fallback]->device, err);
    if (!status) status = cnri_plan_make_on(m->graph, &set, &options, types, n, out, err);
    t->measure = NULL;
    t->arg = NULL;
    if (!status && !options.deterministic) status = time_around(&timing, &set, t, err);
    cnri_device_set_free(&set);
    return status;
}

cnr_status cnri_tune(cnr_model *m, const cnr_tensor *const *types, int32_t n, bool energy,
                     cnri_tuning *t, const cnr_observer *observer, cnr_plan **out, cnr_error *err) {
    const timing timing = {.rt = m->rt,
                           .observer = observer,
                           .energy = energy,
                           .times = t,
                           .hang_ms = USUAL_HANG_MS};
    return tune(m, types, n, timing, out, err);
}

/* ---- all of it, several times ---- */

typedef struct found { /* results of all repeats */
    CNRI_VEC(cnri_tuning) times;
    cnri_tuned *out;
    bool kept; /* the times before a failure are stored */
} found;

/* False for "(idle)" and "(copy 4K)", which belong to a device or to two. */
static bool is_kernel(const cnri_timed *row) { return row->kernel[0] != '('; }

/* True if no earlier row has the same key. */
static bool first_of_key(const cnri_tuning *t, int32_t row) {
    for (int32_t i = 0; i < row; i++)
        if (strcmp(t->rows.at[i].key, t->rows.at[row].key) == 0) return false;
    return true;
}

/* The kernel with the least time for a key; *several: there was a choice. NULL: none has a time. */
static const cnri_timed *fastest(const cnri_tuning *t, const char *key, bool *several) {
    const cnri_timed *best = NULL;
    *several = false;
    for (int32_t i = 0; i < t->rows.n; i++) {
        const cnri_timed *row = &t->rows.at[i];
        if (strcmp(row->key, key) != 0 || row->cost.ns >= CNRI_TUNING_HANGS) continue;
        *several = *several || best;
        if (!best || row->cost.ns < best->cost.ns) best = row;
    }
    return best;
}

/* Computes how often each repeat chose the most frequent kernel, and the spread of the sums of
 * chosen times. */
static cnr_status compare(found *f, cnr_error *err) {
    const int32_t n = f->times.n;
    const cnri_tuning *first = &f->times.at[0];
    int64_t choices = 0, agreed = 0;
    double *sums = cnri_alloc_zero((size_t)n * sizeof *sums);
    if (!sums) return cnri_out_of_memory(err, "tune");
    for (int32_t row = 0; row < first->rows.n; row++) {
        const char *key = first->rows.at[row].key;
        int32_t commonest = 0;
        bool several;
        if (!is_kernel(&first->rows.at[row]) || !first_of_key(first, row)) continue;
        if (!fastest(first, key, &several) || !several) continue;
        f->out->choices++;
        for (int32_t a = 0; a < n; a++) {
            const cnri_timed *chosen = fastest(&f->times.at[a], key, &several);
            int32_t alike = 0;
            for (int32_t b = 0; chosen && b < n; b++) {
                const cnri_timed *other = fastest(&f->times.at[b], key, &several);
                alike += other && strcmp(chosen->kernel, other->kernel) == 0;
            }
            if (chosen) sums[a] += chosen->cost.ns;
            if (alike > commonest) commonest = alike;
        }
        choices += n;
        agreed += commonest;
    }
    f->out->agreement = choices ? (double)agreed / (double)choices : 1;
    const double middle = cnri_median(sums, n); /* sorts the sums */
    f->out->spread = middle > 0 ? (sums[n - 1] - sums[0]) / middle : 0;
    cnri_free(sums);
    return CNR_OK;
}

/* Records the medians of all repeats; rows that were recorded before are left out. */
static cnr_status record_medians(const found *f, const cnri_tuning *record, cnri_tuning *news,
                                 cnr_error *err) {
    const cnri_tuning *first = &f->times.at[0];
    double *values = cnri_alloc((size_t)f->times.n * sizeof *values);
    cnr_status status = values ? CNR_OK : cnri_out_of_memory(err, "tune");
    for (int32_t row = 0; row < first->rows.n && !status; row++) {
        const cnri_timed *r = &first->rows.at[row];
        int32_t n = 0;
        for (int32_t i = 0; i < f->times.n; i++) {
            const cnri_timed *one = cnri_tuning_find(&f->times.at[i], r->key, r->kernel);
            if (one) values[n++] = one->cost.ns;
        }
        const cnri_timed *was = cnri_tuning_find(record, r->key, r->kernel);
        cnri_cost cost = r->cost;
        cost.ns = cnri_median(values, n);
        cost.remainder_ns *= cost.ns / r->cost.ns;
        if (!was || cost.ns != was->cost.ns)
            status = cnri_tuning_set(news, r->key, r->kernel, cost, err);
    }
    cnri_free(values);
    return status;
}

/* Copies what is known before a repeat: hanging kernels, and with `all` every time. */
static cnr_status take_known(const cnri_tuning *from, bool all, cnri_tuning *to, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t k = 0; !status && k < from->rows.n; k++) {
        const cnri_timed *row = &from->rows.at[k];
        if (all || row->cost.ns >= CNRI_TUNING_HANGS)
            status = cnri_tuning_set(to, row->key, row->kernel, row->cost, err);
    }
    return status;
}

/* Times everything until it was done `times` times. */
static cnr_status repeat(const cnri_tune_options *o, int64_t times, cnr_model *model,
                         const cnri_tuning *record, const cnr_observer *observer, found *f,
                         cnr_error *err) {
    cnri_shapes shapes;
    cnr_status status = cnri_input_shapes(model, o->batch, &shapes, err);
    for (int64_t i = f->times.n; i < times && !status; i++) {
        cnri_tuning *one = cnri_push(&f->times);
        cnr_plan *plan = NULL;
        if (!one) status = cnri_out_of_memory(err, "tune");
        const timing timing = {.rt = model->rt,
                               .observer = observer,
                               .energy = !o->no_energy,
                               .times = one,
                               .hang_ms = o->hang_ms ? o->hang_ms : USUAL_HANG_MS,
                               .record = record,
                               .repeated = times > 1,
                               .folder = o->folder};
        if (!status) status = take_known(record, !o->again && o->repeat == 1, one, err);
        if (!status && i) status = take_known(&f->times.at[i - 1], false, one, err);
        if (!status) status = tune(model, shapes.list, shapes.n, timing, &plan, err);
        if (status && one && status != CNR_E_MEMORY) f->kept = !keep(&timing, NULL);
        cnri_plan_free(plan);
        if (!status && cnri_stopped(observer))
            status = cnri_fail(err, CNR_E_CANCELLED, "tune", "stopped");
    }
    cnri_shapes_free(&shapes);
    return status;
}

/* Each rank measures a part of the layers and stores it. */
static cnr_status measure_shared(const cnri_tune_options *o, cnr_model *model,
                                 const cnr_observer *observer, cnr_error *err) {
    cnri_tuning record = {0}, times = {0};
    cnri_shapes shapes = {0};
    cnr_plan *plan = NULL;
    uint8_t print[16];
    if (o->repeat > 1)
        return cnri_fail(err, CNR_E_ARG, "--repeat",
                         "is for one process: %d of them measure a part each",
                         (int)cnri_group_ranks());
    const timing timing = {.rt = model->rt,
                           .observer = observer,
                           .energy = !o->no_energy,
                           .times = &times,
                           .hang_ms = o->hang_ms ? o->hang_ms : USUAL_HANG_MS,
                           .record = &record,
                           .folder = o->folder,
                           .shared = true};
    cnr_status status = cnri_tuning_load(o->folder, &record, print, err);
    if (!status) status = cnri_group_barrier(err); /* all ranks know the same afterwards */
    if (!status) status = take_known(&record, !o->again, &times, err);
    if (!status) status = cnri_input_shapes(model, o->batch, &shapes, err);
    if (!status) status = tune(model, shapes.list, shapes.n, timing, &plan, err);
    if (!status) status = keep(&timing, err);
    cnri_plan_free(plan);
    cnri_shapes_free(&shapes);
    cnri_vec_free(&record.rows);
    cnri_vec_free(&times.rows);
    return status ? status : cnri_group_barrier(err); /* all times are stored */
}

/* True if a kernel hung that the record does not list yet. */
static bool hangs_more(const cnri_tuning *times, const cnri_tuning *record) {
    for (int32_t i = 0; i < times->rows.n; i++) {
        const cnri_timed *row = &times->rows.at[i], *was;
        if (row->cost.ns < CNRI_TUNING_HANGS) continue;
        was = cnri_tuning_find(record, row->key, row->kernel);
        if (!was || was->cost.ns < CNRI_TUNING_HANGS) return true;
    }
    return false;
}

/* ---- a loaded machine ---- */

enum { TIMES_IF_LOADED = 3 };
static const double most_waiting = 0.1, least_seconds = 0.05;

/* Seconds that the process' threads ran, and that they were ready and waited for a processor. */
typedef struct processor_time {
    double ran, waited;
} processor_time;

/* Reads both for all threads; 0: the system does not tell. */
static processor_time processor_time_now(void) {
    processor_time sum = {0};
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *e; tasks && (e = readdir(tasks));) {
        char path[300];
        unsigned long long ran, waited;
        snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", e->d_name);
        FILE *file = *e->d_name == '.' ? NULL : fopen(path, "re");
        if (file && fscanf(file, "%llu %llu", &ran, &waited) == 2) {
            sum.ran += (double)ran * 1e-9;
            sum.waited += (double)waited * 1e-9;
        }
        if (file) fclose(file);
    }
    if (tasks) closedir(tasks);
    return sum;
}

/* True if each thread that the runtime was asked for can have a processor of its own: otherwise
 * they wait for each other, whatever else runs. */
static bool has_processors(const cnr_model *model) {
    cpu_set_t allowed;
    return sched_getaffinity(0, sizeof allowed, &allowed) == 0 &&
           model->rt->devices.options.threads <= CPU_COUNT(&allowed);
}

/* Times once, or o->repeat times. If threads had to wait for processors, warns, and times again. */
static cnr_status repeat_if_loaded(const cnri_tune_options *o, cnr_model *model,
                                   const cnri_tuning *record, const cnr_observer *observer,
                                   found *f, cnr_error *err) {
    const processor_time begin = processor_time_now();
    const cnr_status status = repeat(o, o->repeat, model, record, observer, f, err);
    const processor_time end = processor_time_now();
    const double waited = end.waited - begin.waited, all = end.ran - begin.ran + waited;
    if (status || !cnri_clock_is_real() || !has_processors(model) || all < least_seconds ||
        waited < most_waiting * all)
        return status;
    const bool again = o->repeat < TIMES_IF_LOADED;
    cnri_log(CNR_LOG_WARN, "tune",
             "other processes kept these threads waiting for %.0f%% of their time, so times are "
             "too long: %s; tune again with --again on an idle machine",
             100 * waited / all, again ? "all is timed three times" : "medians are kept");
    return again ? repeat(o, TIMES_IF_LOADED, model, record, observer, f, err) : CNR_OK;
}

/* Times everything in this process, and writes the record. */
static cnr_status tune_alone(cnr_model *model, const cnri_tune_options *options,
                             const cnr_observer *observer, cnri_tuned *out, cnr_error *err) {
    cnri_tuning record = {0}, news = {0};
    uint8_t print[16];
    *out = (cnri_tuned){0};
    found f = {.out = out};
    const int64_t before = cnri_alloc_failures();
    cnr_status status = cnri_tuning_load(options->folder, &record, print, err);
    if (!status) status = repeat_if_loaded(options, model, &record, observer, &f, err);
    for (int32_t i = 0; i < f.times.n && f.kept; i++) /* so that it does not hang again */
        out->hung = out->hung || hangs_more(&f.times.at[i], &record);
    if (!status) status = compare(&f, err);
    if (!status) status = record_medians(&f, &record, &news, err);
    /* A kernel may have been left out for want of memory. */
    status = cnri_alloc_verdict(before, status, options->folder, err);
    if (!status) status = cnri_tuning_save(options->folder, &news, err);
    out->repeats = f.times.n;
    out->rows = news.rows.n;
    for (int32_t i = 0; i < news.rows.n; i++) out->joules += news.rows.at[i].cost.joules > 0;
    for (int32_t i = 0; i < f.times.n; i++) cnri_vec_free(&f.times.at[i].rows);
    cnri_vec_free(&f.times);
    cnri_vec_free(&record.rows);
    cnri_vec_free(&news.rows);
    return status;
}

cnr_status cnri_tune_model(cnr_model *model, const cnri_tune_options *options,
                           const cnr_observer *observer, cnri_tuned *out, cnr_error *err) {
    cnri_tune_options rest = *options;
    *out = (cnri_tuned){0};
    if (cnri_group_ranks() == 1) return tune_alone(model, options, observer, out, err);
    cnr_status status = measure_shared(options, model, observer, err);
    rest.again = false;
    return status ? status : tune_alone(model, &rest, observer, out, err);
}
