/* A way of online tuning: plans it, rehearses it, runs it and cancels it if it is too slow. */
#include "work/adapt.h"
#include "work/watchdog.h"
#include "people/people.h"
#include "keep/keep.h"
#include <math.h>

typedef cnri_adapt_way way;

/* ---- ways ---- */

way *cnri_adapt_add_way(cnri_adapt *a, const char *name) {
    way *w = cnri_alloc_zero(sizeof *w), **slot = w ? cnri_push(&a->ways) : NULL;
    if (!slot) {
        cnri_free(w);
        return NULL;
    }
    snprintf(w->name, sizeof w->name, "%s", name);
    return *slot = w;
}

void cnri_adapt_close_way(way *w) {
    cnri_adapt_note_steps(w);
    if (w->session) cnr_session_close(w->session);
    cnri_profile_free(w->profile);
    cnr_plan_release(w->plan);
    w->session = NULL;
    w->profile = NULL;
    w->plan = NULL;
    w->heard = 0;
}

/* Closes and frees one way, with its lists. */
static void free_way(way *w) {
    cnri_adapt_close_way(w);
    for (int32_t i = 0; i < w->kernels.n; i++) cnri_free(w->kernels.at[i]);
    for (int32_t i = 0; i < w->devices.n; i++) cnri_free(w->devices.at[i]);
    cnri_vec_free(&w->kernels);
    cnri_vec_free(&w->devices);
    for (int32_t i = 0; i < w->wishes.n; i++) {
        cnri_free(w->wishes.at[i].node);
        cnri_free(w->wishes.at[i].parts);
    }
    cnri_vec_free(&w->wishes);
    cnri_adapt_free_runs(&w->runs);
    cnri_free((void *)w->tries);
    cnri_free(w->placement);
    cnri_free(w);
}

void cnri_adapt_free_ways(cnri_adapt *a) {
    for (int32_t i = 0; i < a->ways.n; i++) free_way(a->ways.at[i]);
    cnri_vec_free(&a->ways);
}

/* Median of n numbers, which stay in order; NAN: n is 0; the last of them if memory is out. */
double cnri_adapt_median(const double *values, int32_t n) {
    double *copy = cnri_alloc(((size_t)n + 1) * sizeof *copy);
    if (!copy || n == 0) {
        cnri_free(copy);
        return n > 0 ? values[n - 1] : NAN;
    }
    memcpy(copy, values, (size_t)n * sizeof *copy);
    const double middle = cnri_median(copy, n);
    cnri_free(copy);
    return middle;
}

/* ---- plans ---- */

cnr_status cnri_adapt_options(const cnri_adapt *a, const way *w, const char ***words,
                              cnri_plan_options *options, cnr_error *err) {
    const int32_t own = cnri_count_options(a->original.kernels);
    const char **list =
        cnri_alloc_zero(((size_t)own + w->kernels.n + w->devices.n + 2) * sizeof *list);
    *options = a->original;
    *words = list;
    if (!list) return cnri_out_of_memory(err, "adapt");
    for (int32_t i = 0; i < own; i++) list[i] = a->original.kernels[i];
    for (int32_t i = 0; i < w->kernels.n; i++) list[own + i] = w->kernels.at[i];
    options->kernels = list;
    if (w->devices.n) {
        const char **devices = list + own + w->kernels.n + 1;
        for (int32_t i = 0; i < w->devices.n; i++) devices[i] = w->devices.at[i];
        options->device = devices[0];
        options->devices = w->devices.n > 1 ? devices : NULL;
        options->policy = NULL;
    }
    if (w->wishes.n) {
        options->placements = w->wishes.at;
        options->n_placements = w->wishes.n;
    }
    if (w->placement) return cnri_policy_open("adapt", w->placement, NULL, &options->policy, err);
    options->policy = cnri_policy_retain(options->policy);
    return CNR_OK;
}

/* Makes the plan of a trial, which the model does not use otherwise and no cache stores. */
static cnr_status plan_trial(cnri_adapt *a, const way *w, cnr_plan **out, cnr_error *err) {
    cnr_model *m = a->model;
    const char **words;
    cnri_plan_options options;
    cnri_tuning record = {0};
    uint8_t print[16];
    cnr_status status = cnri_adapt_options(a, w, &words, &options, err);
    if (!status && m->cache) (void)cnri_tuning_load(m->cache, &record, print, NULL);
    options.tuning = record.rows.n ? &record : NULL;
    if (!status)
        status =
            cnri_plan_make(m->graph, &m->rt->devices, &options, a->list, a->n_inputs, out, err);
    if (words) cnri_policy_release(options.policy);
    cnri_free((void *)words);
    cnri_vec_free(&record.rows);
    return status;
}

static bool is_default(const cnri_adapt *a, const way *w) { return w == a->ways.at[0]; }

/* Makes the plan of a way and a profile for it, unless it has them. */
static cnr_status plan_way(cnri_adapt *a, way *w, cnr_error *err) {
    if (w->plan) return CNR_OK;
    CNR_TRY(is_default(a, w) ? cnr_plan_for(a->model, a->list, a->n_inputs, &w->plan, err)
                             : plan_trial(a, w, &w->plan, err));
    w->profile = cnri_profile_new(w->plan);
    return w->profile ? CNR_OK : cnri_out_of_memory(err, "adapt");
}

/* Opens the session of a way, with all weights prepared. */
static cnr_status open_way(cnri_adapt *a, way *w, cnr_error *err) {
    cnr_status status = plan_way(a, w, err);
    if (!status) status = cnri_residency_warm(w->plan, err);
    return status ? status : cnr_session_open(w->plan, &w->session, err);
}

/* ---- runs ---- */

/* Whether the remaining steps took less in the rehearsal than a whole run by default. Then
 * finishing the run gives its result sooner than cancelling it. */
static bool ends_soon(const cnri_adapt *a, const way *w, int32_t step) {
    double ns = 0;
    for (int32_t i = step + 1; i < w->plan->steps.n; i++) {
        const cnri_step_time t = cnri_profile_of(w->profile, i);
        if (t.runs == 0) return false;
        ns += (double)t.least_ns;
    }
    return ns < a->limit_ns / a->rules.stop;
}

/* Event listener: times steps and cancels a run that exceeds the limit, between two steps. */
static void hear(void *arg, const cnri_event *e) {
    cnri_adapt *a = arg;
    way *w = a->running;
    const uint64_t now = e->now_ns ? e->now_ns : cnri_now_ns();
    if (!w->placement) cnri_profile_hear(w->profile, e);
    if (e->kind != CNRI_EVENT_STEP_END || a->limit_ns <= 0) return;
    if ((double)(now - a->begun_ns) <= a->limit_ns || a->cut) return;
    a->cut = e->step + 1 < w->plan->steps.n; /* not after the last step */
    if (a->cut && w->runs.rehearsed && ends_soon(a, w, e->step)) a->cut = false;
    w->runs.stopped_at = e->step;
    if (a->cut) cnr_session_cancel(w->session);
}

cnr_status cnri_adapt_listen(cnri_adapt *a, way *w, bool on, cnr_error *err) {
    if (on == (w->heard != 0)) return CNR_OK;
    /* steps of a placed way are not timed: waiting for each would keep devices from overlapping */
    if (on) return cnri_session_listen(w->session, hear, a, !w->placement, &w->heard, err);
    cnr_session_unlisten(w->session, w->heard);
    w->heard = 0;
    return CNR_OK;
}

/* Number of the step that ran when the watchdog cancelled the run: the first without a time, else
 * the last. */
static int32_t step_under_way(const way *w) {
    int32_t i = 0;
    while (i + 1 < w->plan->steps.n && cnri_profile_of(w->profile, i).runs > 0) i++;
    return i;
}

/* Runs the session within the time limit. `cold`: the way's first run, which may take twice as long
 * and 1 ms more. A watchdog thread cancels it then, since one step may never end. */
static cnr_status run_limited(cnri_adapt *a, way *w, bool cold, cnr_error *err) {
    enum { COLD_NS = 1000000 };
    cnri_watchdog dog;
    const double limit_ns = a->limit_ns;
    a->running = w;
    a->cut = false;
    if (is_default(a, w)) a->limit_ns = 0;
    else if (cold && a->limit_ns > 0) a->limit_ns = 2 * a->limit_ns + COLD_NS;
    const bool watched = cold && cnri_clock_is_real();
    cnri_watchdog_begin(&dog, w->session, watched ? (int64_t)ceil(a->limit_ns / 1e6) : 0);
    a->begun_ns = cnri_now_ns();
    const cnr_status status = cnr_session_run(w->session, err);
    const bool late = cnri_watchdog_end(&dog);
    a->limit_ns = limit_ns;
    if (late && status && !a->cut) {
        a->cut = true;
        w->runs.stopped_at = w->heard ? step_under_way(w) : 0;
    }
    return status;
}

/* Sets the inputs of a way's session. */
static cnr_status put_inputs(const cnri_adapt *a, way *w, const cnr_tensor *const *inputs,
                             cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < a->n_inputs && !status; i++)
        status = cnr_session_set_input(w->session, i, inputs[i], err);
    return status;
}

/* Cost of a run: its EDP in J s if joules were measured since `before`, else its ns. If a meter
 * gave none, a->report.by becomes "time": all runs are judged by time. */
static double cost_of(cnri_adapt *a, const cnri_reading_point *before, double ns) {
    cnri_reading_point after = {0};
    cnr_energy e = {.size = sizeof e};
    double cost = ns;
    if (!before->at) return ns;
    if (!cnri_sampler_point(a->sampler, true, &after, NULL) &&
        !cnri_account(a->sampler, before, &after, 1, 0, &e, NULL) && e.source && e.joules > 0)
        cost = e.joules * ns * 1e-9;
    if (cost == ns) a->report.by = "time"; /* one run lacks joules: all are judged by time */
    cnri_free(after.at);
    cnr_energy_free(&e);
    return cost;
}

/* Marks a failed or cancelled trial and returns CNR_OK. Returns failures of the default, lack of
 * memory, and cancellation by the application. */
static cnr_status judge_failure(cnri_adapt *a, way *w, cnr_status status, cnr_error *err) {
    if (is_default(a, w) || status == CNR_E_MEMORY || (status == CNR_E_CANCELLED && !a->cut))
        return status;
    if (a->cut) {
        w->runs.stopped = true;
        a->report.stopped++;
        return CNR_OK;
    }
    w->runs.failed = true;
    cnri_log(CNR_LOG_INFO, "adapt", "%s: left out: %s: %s", w->name, err ? err->where : "",
             err ? err->text : "");
    return CNR_OK;
}

cnr_status cnri_adapt_run_way(cnri_adapt *a, way *w, const cnr_tensor *const *inputs,
                              cnr_error *err) {
    cnri_reading_point before = {0};
    cnr_error why = CNR_ERROR_INIT;
    a->answered = NULL;
    cnr_status status = put_inputs(a, w, inputs, &why);
    if (!status && a->sampler && strcmp(a->report.by, "edp") == 0)
        status = cnri_sampler_point(a->sampler, true, &before, &why);
    const uint64_t begin = cnri_now_ns();
    if (!status) status = run_limited(a, w, false, &why);
    const double ns = (double)(cnri_now_ns() - begin);
    a->report.last_ms = ns * 1e-6;
    if (!status) {
        const double cost = cost_of(a, &before, ns);
        double *slot = w->heard ? cnri_push(&w->runs.ns) : cnri_push(&w->runs.raced_ns);
        double *paid = w->heard ? cnri_push(&w->runs.cost) : cnri_push(&w->runs.raced_cost);
        if (slot && paid) {
            *slot = ns;
            *paid = cost;
        } else {
            status = cnri_out_of_memory(&why, "adapt");
        }
        a->answered = status ? NULL : w->session;
    }
    cnri_free(before.at);
    if (status) status = judge_failure(a, w, status, &why);
    if (status) cnri_fail(err, status, why.where, "%s", why.text);
    return status;
}

/* ---- rehearsal: warms a way and compares its outputs before the application gets them ---- */

/* Frees n tensors with their data. */
static void free_tensors(cnr_tensor *at, int32_t n) {
    for (int32_t i = 0; at && i < n; i++) cnri_free(at[i].data);
    cnri_free(at);
}

void cnri_adapt_drop_answers(cnri_adapt *a) {
    free_tensors(a->inputs, a->n_inputs);
    free_tensors(a->answers, cnr_output_count(a->model));
    a->inputs = a->answers = NULL;
    a->judges = false;
}

/* Copies a tensor with its data. False: out of memory. */
static bool copy_tensor(const cnr_tensor *from, cnr_tensor *to) {
    const uint64_t bytes = cnr_dense_bytes(from);
    void *data = cnri_alloc((size_t)bytes + 1);
    if (!data) return false;
    memcpy(data, from->data, (size_t)bytes);
    *to = *from;
    to->data = data;
    to->bytes = bytes;
    return true;
}

cnr_status cnri_adapt_keep_answers(cnri_adapt *a, const cnr_tensor *const *inputs, cnr_error *err) {
    const int32_t n_out = cnr_output_count(a->model);
    cnri_adapt_drop_answers(a);
    a->inputs = cnri_alloc_zero(((size_t)a->n_inputs + 1) * sizeof *a->inputs);
    a->answers = cnri_alloc_zero(((size_t)n_out + 1) * sizeof *a->answers);
    bool good = a->inputs && a->answers;
    for (int32_t i = 0; i < a->n_inputs && good; i++) good = copy_tensor(inputs[i], &a->inputs[i]);
    cnr_status status = good ? CNR_OK : cnri_out_of_memory(err, "adapt");
    for (int32_t i = 0; i < n_out && !status; i++) {
        const cnr_tensor *out;
        status = cnr_session_output(a->answered, i, &out, err);
        if (!status && !copy_tensor(out, &a->answers[i])) status = cnri_out_of_memory(err, "adapt");
    }
    a->judges = !status;
    return status;
}

/* *alike: a way's outputs are those of the default way, within a tolerance. */
static cnr_status compare_answers(const cnri_adapt *a, const way *w, bool *alike, cnr_error *err) {
    cnr_status status = CNR_OK;
    *alike = true;
    for (int32_t i = 0; i < cnr_output_count(a->model) && !status && *alike; i++) {
        const cnr_tensor *got;
        status = cnr_session_output(w->session, i, &got, err);
        if (!status) *alike = cnri_outputs_agree(got, &a->answers[i]);
    }
    return status;
}

/* Decides whether a slow way is still tried in runs of the application. By EDP, each way is tried,
 * since a slower one may take less energy. */
static void judge_rehearsal(const cnri_adapt *a, way *w, double ns) {
    const bool slow = a->limit_ns > 0 && ns > a->limit_ns / a->rules.stop * a->rules.worth;
    const bool races = a->phase == CNRI_ADAPT_CONTEST;
    w->runs.judged = slow && !races && strcmp(a->report.by, "time") == 0;
}

/* Runs a way on the kept inputs and compares; a way that differs is dropped. */
static cnr_status rehearse(cnri_adapt *a, way *w, cnr_error *err) {
    const cnr_tensor **list = cnri_alloc(((size_t)a->n_inputs + 1) * sizeof *list);
    bool alike = true;
    if (!list) return cnri_out_of_memory(err, "adapt");
    for (int32_t i = 0; i < a->n_inputs; i++) list[i] = &a->inputs[i];
    cnr_status status = put_inputs(a, w, list, err);
    if (!status) status = run_limited(a, w, true, err);
    /* a slow way is rehearsed again while it is warm, so that no run of the application has to try
     * it */
    const bool slow = (double)(cnri_now_ns() - a->begun_ns) > 0.7 * a->limit_ns;
    if (!status && slow && a->limit_ns > 0) {
        cnri_profile_reset(w->profile);
        status = put_inputs(a, w, list, err);
        if (!status) status = run_limited(a, w, false, err);
        if (!status) judge_rehearsal(a, w, (double)(cnri_now_ns() - a->begun_ns));
    }
    if (!status) status = compare_answers(a, w, &alike, err);
    cnri_free((void *)list);
    if (status || alike) return status;
    w->runs.failed = true;
    cnri_log(CNR_LOG_WARN, "adapt", "%s: its answers are not the default's: left out", w->name);
    return CNR_OK;
}

bool cnri_adapt_is_tried(const cnri_adapt *a, const way *w) {
    const cnri_adapt_runs *r = &w->runs;
    if (r->failed || r->stopped || r->judged) return true;
    return w->keeps_times ? r->rehearsed : (double)r->ns.n >= a->rules.repeats;
}

/* Opens a way and runs it until its first times can be used. */
static cnr_status open_and_rehearse(cnri_adapt *a, way *w, cnr_error *err) {
    const bool opens = !w->session;
    CNR_TRY(opens ? open_way(a, w, err) : CNR_OK);
    if (is_default(a, w) || (w->runs.rehearsed && !opens)) return CNR_OK;
    CNR_TRY(cnri_adapt_listen(a, w, true, err));
    CNR_TRY(rehearse(a, w, err));
    if (!w->keeps_times && !w->runs.judged && !w->tries) cnri_profile_reset(w->profile);
    cnri_adapt_put_steps(w);
    return CNR_OK;
}

cnr_status cnri_adapt_prepare(cnri_adapt *a, way *w, cnr_error *err) {
    cnr_error why = CNR_ERROR_INIT;
    const uint64_t begin = cnri_now_ns();
    a->cut = false;
    cnr_status status = CNR_OK;
    const bool known = !is_default(a, w) && cnri_adapt_take_record(a, w);
    if (known && a->phase != CNRI_ADAPT_CONTEST && cnri_adapt_is_tried(a, w)) {
        if (!w->runs.failed) status = plan_way(a, w, &why); /* no rehearsal: its times are known */
        cnri_adapt_put_steps(w);
    } else {
        status = open_and_rehearse(a, w, &why);
    }
    w->runs.rehearsed = true;
    a->report.prepare_ms += (double)(cnri_now_ns() - begin) * 1e-6;
    if (status) status = judge_failure(a, w, status, &why);
    if (status) cnri_fail(err, status, why.where, "%s", why.text);
    return status;
}
