/* Online tuning (Hu Wang's thesis, 4.3.1): the first runs that an application makes try kernels,
 * then devices; the cheapest configuration is stored and used. Results stay correct: a cancelled
 * trial is repeated by default, and a way is used only after its outputs agreed with the
 * default's. */
#include "work/adapt.h"
#include <math.h>
#include <pthread.h>

typedef cnri_adapt_way way;

static const char *const phase_names[] =
    {[CNRI_ADAPT_DEFAULT] = "default", [CNRI_ADAPT_KERNELS] = "kernels",
     [CNRI_ADAPT_DEVICES] = "devices", [CNRI_ADAPT_SETS] = "sets",
     [CNRI_ADAPT_CONTEST] = "contest", [CNRI_ADAPT_SETTLED] = "settled"};

/* ---- options of the model ---- */

/* Version of the model's options, to notice changes by others. */
static uint64_t version_of(const cnr_model *m) {
    pthread_mutex_lock(m->rt->lock);
    const uint64_t version = cnri_plans_version(m);
    pthread_mutex_unlock(m->rt->lock);
    return version;
}

/* Gives the model its original options with those of the way, and drops outdated plans. */
static cnr_status set_options(cnri_adapt *a, const way *w, cnr_error *err) {
    const char **words;
    cnri_plan_options options;
    cnr_status status = cnri_adapt_options(a, w, &words, &options, err);
    if (!status) status = cnri_model_set_options(a->model, &options, err); /* copies */
    if (words) cnri_policy_release(options.policy);
    cnri_free((void *)words);
    a->version = version_of(a->model);
    return status;
}

/* Gives the model the options of the stored decision. */
static cnr_status follow_kept(cnri_adapt *a, cnr_error *err) {
    way w = {.placement = a->kept.placement};
    memcpy(&w.kernels, &a->kept.kernels, sizeof w.kernels);
    memcpy(&w.devices, &a->kept.devices, sizeof w.devices);
    return set_options(a, &w, err);
}

/* ---- start ---- */

/* Removes all ways and adds one named `name`. */
static cnr_status start_ways(cnri_adapt *a, const char *name, cnr_error *err) {
    cnri_adapt_free_ways(a);
    a->current = 0;
    return cnri_adapt_add_way(a, name) ? CNR_OK : cnri_out_of_memory(err, "adapt");
}

/* Opens the runtime's meters; a->sampler is NULL if there are none. */
static cnr_status open_meters(cnri_adapt *a, cnr_error *err) {
    cnr_status status = cnri_energy_sampler(a->model->rt, &a->sampler, err);
    if (!status && cnri_sampler_count(a->sampler) == 0) a->sampler = NULL;
    return status;
}

/* Starts (on) or stops reading the energy meters, which are read only before the decision. */
static cnr_status sample(cnri_adapt *a, bool on, cnr_error *err) {
    if (!a->sampler || on == a->sampling) return CNR_OK;
    a->sampling = on;
    if (!on) cnri_sampler_stop(a->sampler);
    return on ? cnri_sampler_start(a->sampler, err) : CNR_OK;
}

/* Forgets what was decided and starts measuring from the beginning; the report has the reason. */
static cnr_status begin_learning(cnri_adapt *a, const char *reason, cnr_error *err) {
    const way none = {0};
    cnri_adapt_forget(&a->kept);
    cnri_adapt_free_nodes(a);
    cnri_adapt_drop_answers(a);
    a->goes_on = false;
    for (int32_t i = 0; i < a->others.n; i++) cnri_free(a->others.at[i]);
    a->others.n = a->racing.n = 0;
    a->phase = CNRI_ADAPT_DEFAULT;
    a->round = a->turn = 0;
    a->limit_ns = 0;
    snprintf(a->reason, sizeof a->reason, "%s", reason);
    a->decided[0] = 0;
    a->report = (cnr_adapt_report){.size = sizeof a->report,
                                   .by = a->sampler ? "edp" : "time",
                                   .learnt = a->report.learnt};
    cnr_status status = set_options(a, &none, err);
    if (!status) status = sample(a, true, err);
    return status ? status : start_ways(a, "default", err);
}

/* Continues the measurements of an earlier process. *found: there are some. */
static cnr_status begin_where_it_ended(cnri_adapt *a, bool *found, cnr_error *err) {
    a->report.by = a->sampler ? "edp" : "time";
    CNR_TRY(cnri_adapt_load_records(a, found, err));
    if (!*found) return CNR_OK;
    const cnr_adapt_report kept = a->report;
    CNR_TRY(begin_learning(a, "an earlier start ended before it was settled", err));
    a->report.runs = kept.runs;
    a->report.trials = kept.trials;
    a->report.stopped = kept.stopped;
    a->report.by = kept.by;
    a->goes_on = true;
    return CNR_OK;
}

/* Stores the measurements so far for the next process. Failures, such as a full disk, are
 * logged. */
static void keep_progress(cnri_adapt *a) {
    cnr_error why = CNR_ERROR_INIT;
    const bool learns = a->path && a->phase != CNRI_ADAPT_SETTLED && a->judges && !a->rests;
    if (learns && cnri_adapt_save_records(a, &why))
        cnri_log(CNR_LOG_WARN, "adapt", "what was measured is not kept: %s: %s", why.where,
                 why.text);
}

/* Fills the report from the decision. */
static void tell_kept(cnri_adapt *a) {
    cnr_adapt_report *r = &a->report;
    const cnri_adapt_kept *k = &a->kept;
    snprintf(a->decided, sizeof a->decided, "%s", k->way);
    r->settled = 1;
    r->by = strcmp(k->by, "edp") == 0 ? "edp" : "time";
    r->default_ms = k->default_ns * 1e-6;
    r->chosen_ms = k->chosen_ns * 1e-6;
    r->default_cost = k->default_cost;
    r->chosen_cost = k->chosen_cost;
    r->runs_until_settled = k->runs;
    r->trials = k->trials;
}

/* Uses the stored decision for these shapes if there is one; otherwise starts measuring. */
static cnr_status begin(cnri_adapt *a, cnr_error *err) {
    bool found = false, stale = false;
    cnri_free(a->path);
    a->path = NULL;
    cnri_adapt_forget(&a->kept);
    cnri_adapt_rules_of(a);
    CNR_TRY(cnri_adapt_find_path(a, err));
    CNR_TRY(begin_where_it_ended(a, &found, err));
    if (found) return CNR_OK;
    cnr_status status = cnri_adapt_load(a, &found, &stale, err);
    if (status) return status;
    if (!found && stale) return begin_learning(a, "the environment, or a run's time, changed", err);
    if (!found) return begin_learning(a, "nothing was learnt", err);
    a->phase = CNRI_ADAPT_SETTLED;
    (void)sample(a, false, NULL);
    a->reason[0] = 0;
    a->report = (cnr_adapt_report){.size = sizeof a->report, .followed = 1};
    tell_kept(a);
    status = follow_kept(a, err);
    return status ? status : start_ways(a, a->kept.way, err);
}

/* True if inputs have the types that were learned for. */
static bool same_types(const cnri_adapt *a, const cnr_tensor *types) {
    if (!a->types) return false;
    for (int32_t i = 0; i < a->n_inputs; i++)
        if (!cnr_same_shape(&a->types[i], &types[i]) || a->types[i].dtype != types[i].dtype)
            return false;
    return true;
}

/* Sets the input types; takes ownership of `types`. */
static cnr_status take_types(cnri_adapt *a, cnr_tensor *types, cnr_error *err) {
    cnri_free(a->types);
    cnri_free((void *)a->list);
    a->types = types;
    a->list = cnri_alloc(((size_t)a->n_inputs + 1) * sizeof *a->list);
    if (!a->list) return cnri_out_of_memory(err, "adapt");
    for (int32_t i = 0; i < a->n_inputs; i++) a->list[i] = &types[i];
    return CNR_OK;
}

/* Copies the model's current options as the original ones to adapt, with their version. */
static cnr_status take_options(cnri_adapt *a, cnr_error *err) {
    cnri_plan_options_free(&a->original);
    a->original = (cnri_plan_options){0};
    if (!cnri_plan_options_copy(&a->model->plan_options, &a->original))
        return cnri_out_of_memory(err, "adapt");
    a->version = version_of(a->model);
    return CNR_OK;
}

/* Continues after close_plans, at the settled way, or by learning anew. */
static cnr_status resume(cnri_adapt *a, cnr_error *err) {
    a->rests = false;
    if (a->phase != CNRI_ADAPT_SETTLED) return begin_learning(a, a->reason, err);
    a->version = version_of(a->model);
    return start_ways(a, a->kept.way, err);
}

/* Adapts to the types of `inputs` if they or the model's options have changed. *plain: the net
 * can't adapt to them, so they are run without adaptation. */
static cnr_status take_inputs(cnri_adapt *a, const cnr_tensor *const *inputs, int32_t n,
                              bool *plain, cnr_error *err) {
    const bool rests = a->rests, changed = !rests && a->version != version_of(a->model);
    const way none = {0};
    cnr_tensor *types = cnri_alloc_zero(((size_t)a->n_inputs + 1) * sizeof *types);
    cnr_status status =
        types ? cnri_plan_types(a->model, inputs, n, types, err) : cnri_out_of_memory(err, "adapt");
    *plain = a->original.memory_bound != 0;
    for (int32_t i = 0; i < a->n_inputs && !status; i++) *plain = *plain || types[i].data;
    const bool same = !status && !changed && same_types(a, types);
    if (status || *plain || same) {
        cnri_free(types);
        return status || *plain || !rests ? status : resume(a, err);
    }
    keep_progress(a);
    cnri_adapt_free_ways(a);
    a->rests = false;
    if (!changed) status = set_options(a, &none, err);
    else status = take_options(a, err);
    if (status) cnri_free(types);
    else status = take_types(a, types, err);
    return status ? status : begin(a, err);
}

/* ---- deciding ---- */

/* The way that costs less than the default by at least the margin in the median and won at least 4
 * of 5 turns against it; of several the cheapest. NULL: none. */
static way *winner(cnri_adapt *a, const way *usual) {
    way *best = NULL;
    double least = cnri_adapt_median(usual->runs.raced_cost.at, usual->runs.raced_cost.n);
    least *= 1 - a->rules.margin;
    for (int32_t i = 1; i < a->racing.n; i++) {
        way *w = a->ways.at[a->racing.at[i]];
        const int32_t n = cnr_min(w->runs.raced_cost.n, usual->runs.raced_cost.n);
        int32_t won = 0;
        for (int32_t k = 0; k < n; k++)
            won += w->runs.raced_cost.at[k] < usual->runs.raced_cost.at[k];
        const double cost = cnri_adapt_median(w->runs.raced_cost.at, w->runs.raced_cost.n);
        if (w->runs.failed || w->runs.stopped || 5 * won < 4 * n || !(cost < least)) continue;
        least = cost;
        best = w;
    }
    return best;
}

/* Appends copies of all texts of one vector to another; both are CNRI_VEC(char *). */
static cnr_status copy_words(const void *from_list, void *to_list, cnr_error *err) {
    const CNRI_VEC(char *) *from = from_list;
    CNRI_VEC(char *) *to = to_list;
    for (int32_t i = 0; i < from->n; i++) {
        char **slot = cnri_push(to);
        if (!slot || !(*slot = cnri_strdup(from->at[i]))) return cnri_out_of_memory(err, "adapt");
    }
    return CNR_OK;
}

/* Records the decision. Without a contest, both times are the default's of the first phase. */
static cnr_status write_down(cnri_adapt *a, const way *usual, const way *chosen, cnr_error *err) {
    cnri_adapt_kept *k = &a->kept;
    const bool raced = usual->runs.raced_ns.n > 0;
    cnri_adapt_forget(k);
    snprintf(k->way, sizeof k->way, "%s", chosen->name);
    snprintf(k->by, sizeof k->by, "%s", a->report.by);
    k->default_ns = raced ? cnri_adapt_median(usual->runs.raced_ns.at, usual->runs.raced_ns.n)
                          : cnri_adapt_median(usual->runs.ns.at, usual->runs.ns.n);
    k->default_cost = raced ? cnri_adapt_median(usual->runs.raced_cost.at, usual->runs.raced_cost.n)
                            : cnri_adapt_median(usual->runs.cost.at, usual->runs.cost.n);
    k->chosen_ns = raced ? cnri_adapt_median(chosen->runs.raced_ns.at, chosen->runs.raced_ns.n)
                         : k->default_ns;
    k->chosen_cost = raced
                         ? cnri_adapt_median(chosen->runs.raced_cost.at, chosen->runs.raced_cost.n)
                         : k->default_cost;
    k->runs = a->report.runs;
    k->trials = a->report.trials;
    if (chosen->placement && !(k->placement = cnri_strdup(chosen->placement)))
        return cnri_out_of_memory(err, "adapt");
    cnr_status status = copy_words(&chosen->kernels, &k->kernels, err);
    return status ? status : copy_words(&chosen->devices, &k->devices, err);
}

/* Decides for the best way, or the usual one, stores the decision and gives the model its
 * options. */
static cnr_status settle(cnri_adapt *a, cnr_error *err) {
    const way *usual = a->ways.at[0], *best = winner(a, usual);
    cnr_status status = write_down(a, usual, best ? best : usual, err);
    if (status) return status;
    a->phase = CNRI_ADAPT_SETTLED;
    (void)sample(a, false, NULL);
    a->report.learnt++;
    tell_kept(a);
    cnri_log(CNR_LOG_INFO, "adapt", "settled after %lld runs: %s", (long long)a->kept.runs,
             a->kept.way);
    cnri_adapt_drop_answers(a);
    cnri_adapt_free_nodes(a);
    status = follow_kept(a, err);
    if (!status) status = start_ways(a, a->kept.way, err);
    if (!status) status = cnri_adapt_prepare(a, a->ways.at[0], err);
    cnr_error why = CNR_ERROR_INIT; /* a failure to store, such as a full disk, is only logged */
    if (!status && cnri_adapt_save(a, &why))
        cnri_log(CNR_LOG_WARN, "adapt", "what was learnt is not kept: %s: %s", why.where, why.text);
    return status;
}

/* ---- phases ---- */

/* Adds a way to those that race. */
static cnr_status add_racer(cnri_adapt *a, int32_t index, cnr_error *err) {
    int32_t *slot = cnri_push(&a->racing);
    if (!slot) return cnri_out_of_memory(err, "adapt");
    *slot = index;
    return CNR_OK;
}

/* Index of the cheapest way of devices that is not in the contest yet and costs less than the
 * default; -1: none. */
static int32_t best_left(const cnri_adapt *a) {
    double least = cnri_adapt_median(a->ways.at[0]->runs.cost.at, a->ways.at[0]->runs.cost.n);
    int32_t found = -1;
    for (int32_t i = 1; i < a->ways.n; i++) {
        const way *w = a->ways.at[i];
        bool races = !w->devices.n || w->runs.failed || w->runs.stopped || w->runs.cost.n == 0;
        for (int32_t k = 0; k < a->racing.n; k++) races = races || a->racing.at[k] == i;
        const double cost = races ? INFINITY : cnri_adapt_median(w->runs.cost.at, w->runs.cost.n);
        if (!(cost < least)) continue;
        least = cost;
        found = i;
    }
    return found;
}

/* Chooses the contest's way with the fewest runs. Removes ways that were cancelled or failed;
 * decides when all have run. */
static cnr_status next_turn(cnri_adapt *a, cnr_error *err) {
    for (int32_t i = a->racing.n - 1; i > 0; i--) {
        const way *w = a->ways.at[a->racing.at[i]];
        if (!w->runs.failed && !w->runs.stopped) continue;
        memmove(&a->racing.at[i], &a->racing.at[i + 1],
                (size_t)(--a->racing.n - i) * sizeof a->racing.at[0]);
    }
    int32_t least = 0;
    for (int32_t i = 1; i < a->racing.n; i++)
        if (a->ways.at[a->racing.at[i]]->runs.raced_ns.n <
            a->ways.at[a->racing.at[least]]->runs.raced_ns.n)
            least = i;
    a->current = a->racing.at[least];
    const bool over = (double)a->ways.at[a->current]->runs.raced_ns.n >= a->rules.contest;
    return a->racing.n == 1 || over ? settle(a, err) : CNR_OK;
}

/* Starts the contest of the default, the fastest kernels and at most two ways of devices. */
static cnr_status begin_contest(cnri_adapt *a, cnr_error *err) {
    cnr_status status = add_racer(a, 0, err);
    for (int32_t i = 1; i < a->ways.n && !status; i++)
        if (!a->ways.at[i]->devices.n && !a->ways.at[i]->tries && !a->ways.at[i]->runs.failed)
            status = add_racer(a, i, err);
    for (int32_t i = 0; i < 2 && !status; i++) {
        const int32_t best = best_left(a);
        if (best >= 0) status = add_racer(a, best, err);
    }
    for (int32_t i = 0; i < a->ways.n; i++) {
        bool races = false;
        for (int32_t k = 0; k < a->racing.n; k++) races = races || a->racing.at[k] == i;
        if (!races) cnri_adapt_close_way(a->ways.at[i]);
        else (void)cnri_adapt_take_record(a, a->ways.at[i]);
    }
    a->phase = CNRI_ADAPT_CONTEST;
    return status ? status : next_turn(a, err);
}

/* Chooses the next untried way of a set of devices, or starts the contest. */
static cnr_status next_set(cnri_adapt *a, cnr_error *err) {
    for (int32_t i = 1; i < a->ways.n; i++) {
        const way *w = a->ways.at[i];
        if (!w->placement || w->runs.rehearsed) continue;
        a->current = i;
        return CNR_OK;
    }
    return begin_contest(a, err);
}

/* Adds the way of the next device alone, or goes on to sets of devices. */
static cnr_status next_device(cnri_adapt *a, cnr_error *err) {
    if (a->turn >= a->others.n) {
        a->phase = CNRI_ADAPT_SETS;
        const cnr_status status = a->others.n ? cnri_adapt_add_sets(a, err) : CNR_OK;
        return status ? status : next_set(a, err);
    }
    const char *device = a->others.at[a->turn++];
    way *w = cnri_adapt_add_way(a, device);
    char **slot = w ? cnri_push(&w->devices) : NULL;
    if (!slot || !(*slot = cnri_strdup(device))) return cnri_out_of_memory(err, "adapt");
    a->current = a->ways.n - 1;
    return CNR_OK;
}

/* Goes on to the phase that tries the other devices, with the fastest kernels found. */
static cnr_status begin_devices(cnri_adapt *a, cnr_error *err) {
    cnr_status status = cnri_adapt_best_kernels(a, err);
    if (!status) status = cnri_adapt_find_devices(a, err);
    a->phase = CNRI_ADAPT_DEVICES;
    a->turn = 0;
    return status ? status : next_device(a, err);
}

/* Chooses an untried part of a split round, the next round, or goes on to devices. */
static cnr_status next_kernels(cnri_adapt *a, cnr_error *err) {
    way *w;
    for (int32_t i = 1; i < a->ways.n; i++)
        if (a->ways.at[i]->tries && !a->ways.at[i]->runs.rehearsed && !a->ways.at[i]->runs.failed) {
            a->current = i;
            return CNR_OK;
        }
    const cnr_status status = cnri_adapt_next_round(a, &w, err);
    a->current = a->ways.n - 1;
    return status || w ? status : begin_devices(a, err);
}

/* Ends the current round of runs of a way. */
static cnr_status end_round(cnri_adapt *a, way *w, cnr_error *err) {
    const cnr_status status = cnri_adapt_take_round(a, w, err);
    cnri_adapt_close_way(w);
    return status ? status : next_kernels(a, err);
}

/* Ends the runs of the default way and goes on to kernels. */
static cnr_status end_default(cnri_adapt *a, cnr_error *err) {
    const way *w = a->ways.at[0];
    a->limit_ns = a->rules.stop * cnri_adapt_median(w->runs.ns.at, w->runs.ns.n);
    a->report.default_ms = cnri_adapt_median(w->runs.ns.at, w->runs.ns.n) * 1e-6;
    a->phase = CNRI_ADAPT_KERNELS;
    const cnr_status status = cnri_adapt_find_nodes(a, err);
    return status ? status : next_kernels(a, err);
}

/* Chooses the way of the next run, after a run of the current one, by the phase. */
static cnr_status advance(cnri_adapt *a, cnr_error *err) {
    way *w = a->ways.at[a->current];
    const bool enough = cnri_adapt_is_tried(a, w);
    switch (a->phase) {
    case CNRI_ADAPT_DEFAULT: return enough ? end_default(a, err) : CNR_OK;
    case CNRI_ADAPT_KERNELS: return enough ? end_round(a, w, err) : CNR_OK;
    case CNRI_ADAPT_DEVICES: return enough ? next_device(a, err) : CNR_OK;
    case CNRI_ADAPT_SETS: return enough ? next_set(a, err) : CNR_OK;
    case CNRI_ADAPT_CONTEST: return next_turn(a, err);
    case CNRI_ADAPT_SETTLED: break;
    }
    return CNR_OK;
}

/* ---- runs ---- */

/* Compares the median of a full window of runs with that of the first window. True: it changed by
 * more than the rule allows and by more than the window's halves differ. */
static bool is_changed(cnri_adapt *a) {
    cnri_adapt_kept *k = &a->kept;
    const int32_t n = k->window.n, half = n / 2;
    const double first = cnri_adapt_median(k->window.at, half);
    const double second = cnri_adapt_median(k->window.at + half, n - half);
    const double now = cnri_adapt_median(k->window.at, n);
    k->window.n = 0;
    if (k->window_ns <= 0) {
        k->window_ns = now;
        return false;
    }
    const double change = fabs(now - k->window_ns);
    if (change <= a->rules.change * k->window_ns || change <= fabs(first - second)) return false;
    snprintf(a->reason, sizeof a->reason, "a run takes %.4g ms, it took %.4g", now * 1e-6,
             k->window_ns * 1e-6);
    return true;
}

/* Runs the decided configuration and notes its time, to see whether it still holds. */
static cnr_status run_settled(cnri_adapt *a, const cnr_tensor *const *inputs, cnr_error *err) {
    way *w = a->ways.at[0];
    const bool cold = !w->runs.rehearsed;
    cnr_status status = cnri_adapt_prepare(a, w, err);
    if (!status) status = cnri_adapt_listen(a, w, false, err);
    if (!status) status = cnri_adapt_run_way(a, w, inputs, err);
    if (status) return status;
    const double ns = w->runs.raced_ns.at[w->runs.raced_ns.n - 1];
    w->runs.raced_ns.n = w->runs.raced_cost.n = 0;
    double *slot = cold ? NULL : cnri_push(&a->kept.window);
    if (slot) *slot = ns;
    if ((double)a->kept.window.n < a->rules.window || !is_changed(a)) return CNR_OK;
    cnri_log(CNR_LOG_INFO, "adapt", "learns anew: %s", a->reason);
    a->relearns = true;             /* in the next run: the caller still reads this one's outputs */
    return cnri_adapt_save(a, err); /* marked as changed */
}

/* Drops the time of the default's first run, which is cold. */
static void warm_up(way *w) {
    if (w->runs.ns.n != 1 || w->warm) return;
    w->warm = true;
    w->runs.ns.n = w->runs.cost.n = 0;
    cnri_profile_reset(w->profile);
}

/* Runs the default after a trial without a result. */
static cnr_status answer_by_default(cnri_adapt *a, const cnr_tensor *const *inputs,
                                    cnr_error *err) {
    way *w = a->ways.at[0];
    const double tried = a->report.last_ms;
    const cnr_status status = cnri_adapt_run_way(a, w, inputs, err);
    a->report.last_ms += tried;
    return status;
}

/* Finds the next way that can run. *out NULL with CNR_OK: the decision was made. */
static cnr_status find_way(cnri_adapt *a, way **out, cnr_error *err) {
    cnr_status status = CNR_OK;
    *out = NULL;
    while (!status && a->phase != CNRI_ADAPT_SETTLED) {
        way *w = a->ways.at[a->current];
        status = cnri_adapt_prepare(a, w, err);
        const bool races = a->phase == CNRI_ADAPT_CONTEST;
        const bool over = races ? w->runs.failed || w->runs.stopped : cnri_adapt_is_tried(a, w);
        if (!status && !over) {
            *out = w;
            return CNR_OK;
        }
        if (!status) status = advance(a, err);
    }
    return status;
}

/* Prepares to continue the measurements of an earlier process: runs the default to warm it up and
 * to copy its outputs, then restores its stored times. */
static cnr_status recall(cnri_adapt *a, const cnr_tensor *const *inputs, cnr_error *err) {
    way *w = a->ways.at[0];
    a->goes_on = false;
    CNR_TRY(cnri_adapt_prepare(a, w, err));
    CNR_TRY(cnri_adapt_listen(a, w, true, err));
    CNR_TRY(cnri_adapt_run_way(a, w, inputs, err));
    CNR_TRY(cnri_adapt_keep_answers(a, inputs, err));
    a->report.prepare_ms += a->report.last_ms;
    w->warm = true;
    w->runs.ns.n = w->runs.cost.n = 0;
    cnri_profile_reset(w->profile);
    (void)cnri_adapt_take_record(a, w);
    w->runs.rehearsed = true;
    cnri_adapt_put_steps(w);
    return CNR_OK;
}

/* Runs one way for the application, measures it, and chooses the next. */
static cnr_status learn(cnri_adapt *a, const cnr_tensor *const *inputs, cnr_error *err) {
    way *w;
    cnr_status status = a->goes_on ? recall(a, inputs, err) : CNR_OK;
    if (!status) status = find_way(a, &w, err);
    if (status || !w) return status ? status : run_settled(a, inputs, err);
    snprintf(a->trying, sizeof a->trying, "%s", w->name);
    a->report.trying = a->trying;
    a->report.phase = phase_names[a->phase];
    status = cnri_adapt_listen(a, w, a->phase != CNRI_ADAPT_CONTEST, err);
    if (!status) status = cnri_adapt_run_way(a, w, inputs, err);
    a->report.runs++;
    a->report.trials += w != a->ways.at[0];
    if (!status && !a->answered) status = answer_by_default(a, inputs, err);
    if (!status && !a->judges) status = cnri_adapt_keep_answers(a, inputs, err);
    if (!status && a->phase == CNRI_ADAPT_DEFAULT) warm_up(w);
    return status;
}

/* Evaluates the last run. This is done before the next run, as the caller reads the outputs until
 * then. */
static cnr_status go_on(cnri_adapt *a, cnr_error *err) {
    cnr_status status = CNR_OK;
    a->report.prepare_ms = 0;
    a->report.last_ms = 0;
    if (a->relearns) {
        char reason[sizeof a->reason];
        a->relearns = false;
        snprintf(reason, sizeof reason, "%s", a->reason);
        return begin_learning(a, reason, err);
    }
    const uint64_t begin = cnri_now_ns();
    if (a->phase != CNRI_ADAPT_SETTLED && a->report.runs > 0) status = advance(a, err);
    a->report.prepare_ms += (double)(cnri_now_ns() - begin) * 1e-6;
    return status;
}

/* Runs the model once: by a way that is being learned, or as settled; a->report tells which. */
static cnr_status run(cnri_adapt *a, const cnr_tensor *const *inputs, cnr_error *err) {
    cnr_status status = go_on(a, err);
    a->report.trying = NULL;
    if (!status)
        status =
            a->phase == CNRI_ADAPT_SETTLED ? run_settled(a, inputs, err) : learn(a, inputs, err);
    if (!a->report.trying) a->report.phase = phase_names[a->phase];
    return status;
}

cnr_status cnri_adapt_run(cnr_model *m, const cnr_tensor *const *inputs, int32_t n,
                          cnr_session **answered, cnr_error *err) {
    cnri_adapt *a = m->adapting.state;
    bool plain;
    *answered = NULL;
    cnr_status status = take_inputs(a, inputs, n, &plain, err);
    if (status || plain) return status;
    status = run(a, inputs, err);
    *answered = a->answered;
    return status;
}

/* Implements the engine's hook in place of cnr_run_tensors; inputs that can't be adapted to are run
 * plainly. */
static cnr_status run_tensors(cnr_model *m, const cnr_tensor *const *inputs, int32_t n_inputs,
                              const cnr_tensor **outputs, int32_t n_outputs, cnr_error *err) {
    cnr_session *answered;
    cnr_status status = cnri_adapt_run(m, inputs, n_inputs, &answered, err);
    if (!status && !answered) return cnri_run_plainly(m, inputs, n_inputs, outputs, n_outputs, err);
    for (int32_t i = 0; i < n_outputs && !status; i++)
        status = cnr_session_output(answered, i, &outputs[i], err);
    return status;
}

/* ---- hooks of the model, and the public functions ---- */

/* Saves what was learned, as far as that is possible, and frees everything of the adaptation. */
static void free_state(void *state) {
    cnri_adapt *a = state;
    if (a->phase == CNRI_ADAPT_SETTLED && a->kept.way[0] && !a->relearns)
        (void)cnri_adapt_save(a, NULL);
    keep_progress(a);
    cnri_adapt_free_records(a);
    cnri_adapt_free_ways(a);
    cnri_adapt_free_nodes(a);
    cnri_adapt_drop_answers(a);
    cnri_adapt_forget(&a->kept);
    (void)sample(a, false, NULL);
    for (int32_t i = 0; i < a->others.n; i++) cnri_free(a->others.at[i]);
    cnri_vec_free(&a->others);
    cnri_vec_free(&a->racing);
    cnri_plan_options_free(&a->original);
    cnri_free(a->types);
    cnri_free((void *)a->list);
    cnri_free(a->path);
    cnri_free(a);
}

/* Closes plans before weights change. A decision stays; unfinished measurements start again. */
static void close_plans(void *state) {
    cnri_adapt *a = state;
    cnri_adapt_free_ways(a);
    cnri_adapt_drop_answers(a);
    a->answered = NULL;
    a->rests = true;
}

/* Applies the stored decision for the net's default input sizes, if there is one. */
static cnr_status follow_usual_sizes(cnri_adapt *a, cnr_error *err) {
    cnri_shapes shapes;
    bool plain;
    cnr_status status = cnri_input_shapes(a->model, 1, &shapes, err);
    if (!status) status = take_inputs(a, shapes.list, shapes.n, &plain, err);
    cnri_shapes_free(&shapes);
    return status;
}

cnr_status cnr_adapt(cnr_model *m, int32_t on, cnr_error *err) {
    cnr_status status = cnri_require_arguments(err, "model", m, NULL);
    if (status) return status;
    if (on && m->plan_options.deterministic)
        return cnri_fail(err, CNR_E_ARG, "adapt",
                         "it measures times, which a deterministic model never goes by");
    if (!on && m->adapting.state) m->adapting.free(m->adapting.state);
    if (!on) m->adapting = (cnri_adapting){0};
    if (!on || m->adapting.state) return CNR_OK;
    cnri_adapt *a = cnri_alloc_zero(sizeof *a);
    if (!a) return cnri_out_of_memory(err, "adapt");
    a->model = m;
    a->n_inputs = m->graph->inputs.n;
    m->adapting = (cnri_adapting){a, run_tensors, close_plans, free_state};
    status = take_options(a, err);
    if (!status) status = open_meters(a, err);
    if (!status) status = follow_usual_sizes(a, err);
    if (status) cnr_adapt(m, 0, NULL);
    return status;
}

cnr_status cnr_adapt_state(cnr_model *m, cnr_adapt_report *out, cnr_error *err) {
    cnr_adapt_report got = {.size = sizeof got};
    cnr_status status = cnri_require_arguments(err, "model", m, "out", out, NULL);
    if (!status) status = CNRI_CHECK_RESULT_SIZE(out, got, err);
    if (status) return status;
    cnri_adapt *a = m->adapting.state;
    if (!a) return cnri_fail(err, CNR_E_STATE, "model", "it does not adapt: see cnr_adapt");
    got = a->report;
    got.size = sizeof got;
    got.decided = a->decided[0] ? a->decided : NULL;
    got.reason = a->reason[0] ? a->reason : NULL;
    got.n_kernels = a->kept.kernels.n;
    got.kernels = (const char *const *)a->kept.kernels.at;
    got.n_devices = a->kept.devices.n;
    got.devices = (const char *const *)a->kept.devices.at;
    *out = got;
    return CNR_OK;
}
