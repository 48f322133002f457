/* Devices in online tuning: chooses those to try alone, then has placement policies plan for sets
 * of them, by the times of each device alone. The sets are run as well, since policies do not know
 * contention and heat. */
#include "work/adapt.h"
#include "work/place.h"
#include <math.h>

typedef cnri_adapt_way way;

/* ---- which devices ---- */

/* Adds a device that may be used too. */
static cnr_status add_device(cnri_adapt *a, const char *name, cnr_error *err) {
    char **slot = cnri_push(&a->others);
    if (!slot || !(*slot = cnri_strdup(name))) return cnri_out_of_memory(err, "adapt");
    return CNR_OK;
}

/* The device that runs all kernels of the plan; NULL: there are several. */
static const char *only_device(const cnr_plan *plan) {
    const char *name = NULL;
    for (int32_t i = 0; i < plan->steps.n; i++) {
        const char *own = plan->devices[plan->steps.at[i].device]->name;
        if (plan->steps.at[i].kind != CNRI_STEP_KERNEL) continue;
        if (name && strcmp(name, own) != 0) return NULL;
        name = own;
    }
    return name;
}

/* Lists the devices to try in a->others. A device that is not listed is tried only if its score is
 * at least half of the best one's. */
cnr_status cnri_adapt_find_devices(cnri_adapt *a, cnr_error *err) {
    const cnr_plan *plan = a->ways.at[0]->plan;
    cnri_devices *all = &a->model->rt->devices;
    const char *const *listed = a->original.devices;
    cnr_status status = CNR_OK;
    const char *own = only_device(plan);
    if (!own) return CNR_OK; /* the net is already placed on several devices */
    if (!listed && a->original.policy) listed = a->original.policy->devices;
    for (; listed && *listed && !status; listed++)
        if (strcmp(own, *listed) != 0) status = add_device(a, *listed, err);
    if (a->others.n || a->original.devices || a->original.device || status) return status;
    status = cnri_devices_ask(all, NULL, err);
    double best = 0;
    for (int32_t i = 0; i < all->n && !status; i++) best = fmax(best, all->at[i]->info.score);
    for (int32_t i = 0; i < all->n && !status; i++) {
        const cnri_device *d = all->at[i];
        if (d->info.score > 1 && d->info.score >= best / 2 && strcmp(own, d->name) != 0 &&
            cnri_device_is_timed(&d->device))
            status = add_device(a, d->name, err);
    }
    return status;
}

/* ---- times of a device alone, in the form that cnri_place uses ---- */

/* Estimates the times of the steps that a cancelled trial did not reach: by the rate so far, per
 * operation or per byte. */
static void fill_up(cnr_timing *t) {
    double ms = 0, flops = 0, bytes = 0;
    for (int32_t i = 0; i < t->n_steps; i++) {
        if (!(t->steps[i].ms > 0)) continue;
        ms += t->steps[i].ms;
        flops += t->steps[i].flops;
        bytes += (double)t->steps[i].bytes;
    }
    for (int32_t i = 0; i < t->n_steps; i++) {
        cnr_step_timing *s = &t->steps[i];
        if (s->ms > 0) continue;
        s->ms = s->flops > 0 && flops > 0 ? ms * s->flops / flops
                                          : ms * (double)s->bytes / fmax(bytes, 1) * 0.1;
    }
}

/* Sum of the steps' milliseconds. */
static double sum_ms(const cnr_timing *t) {
    double ms = 0;
    for (int32_t i = 0; i < t->n_steps; i++) ms += t->steps[i].ms;
    return ms;
}

/* Copies the times of a way's steps from its profile. */
static cnr_status take_steps(const way *w, cnr_timing *t, cnr_error *err) {
    t->steps = cnri_alloc_zero(((size_t)w->plan->steps.n + 1) * sizeof *t->steps);
    if (!t->steps) return cnri_out_of_memory(err, "adapt");
    for (int32_t i = 0; i < w->plan->steps.n; i++) {
        cnr_step_timing *row = &t->steps[i];
        cnri_profile_row(w->profile, i, row);
        row->ms = row->ms_min;
        if (!(row->node = cnri_strdup(row->node))) return cnri_out_of_memory(err, "adapt");
        t->n_steps++;
    }
    return CNR_OK;
}

/* Whether the way ran on `device` alone (NULL: on any one device) and has times. */
static bool is_known(const way *w, const char *device) {
    const char *own = w->plan ? only_device(w->plan) : NULL;
    if (!own || !w->profile || w->runs.failed || (device && strcmp(own, device) != 0)) return false;
    return w->runs.ns.n > 0 || cnri_profile_of(w->profile, 0).runs > 0;
}

/* Adds the times of a device alone to the job. */
static cnr_status take_alone(const cnri_adapt *a, cnri_place_job *j, way *w, cnr_error *err) {
    cnr_timing *t = &j->alone[j->n];
    const char *name = only_device(w->plan);
    *t = (cnr_timing){.size = sizeof *t, .device = name, .runs = 1, .batch = 1};
    cnr_status status = take_steps(w, t, err);
    if (status) return status;
    fill_up(t);
    const bool whole = w->runs.ns.n > 0;
    t->ms_median = whole ? cnri_adapt_median(w->runs.ns.at, w->runs.ns.n) * 1e-6 : sum_ms(t);
    const double seconds = t->ms_median * 1e-3;
    const bool metered = whole && strcmp(a->report.by, "edp") == 0;
    if (metered && (t->energy = cnri_alloc_zero(sizeof *t->energy))) {
        *t->energy =
            (cnr_energy){.size = sizeof *t->energy,
                         .source = CNR_ENERGY_MEASURED,
                         .seconds = seconds,
                         .joules = cnri_adapt_median(w->runs.cost.at, w->runs.cost.n) / seconds,
                         .idle_watts = NAN};
        t->joules_by = "time";
    }
    for (int32_t i = 0; i < t->n_steps; i++)
        t->steps[i].joules =
            t->energy ? t->energy->joules * t->steps[i].ms / t->ms_median : (double)NAN;
    cnri_place_row *row = cnri_push(&j->out->alone);
    if (!row) return cnri_out_of_memory(err, "adapt");
    snprintf(row->name, sizeof row->name, "%s", name);
    row->seconds = seconds;
    row->joules = t->energy ? t->energy->joules : NAN;
    row->watts = row->joules / seconds;
    row->edp = row->joules * seconds;
    j->plan_alone[j->n] = w->plan;
    j->names[j->n++] = name;
    return CNR_OK;
}

/* Sorts ways by their median cost, the cheapest first. */
static void sort_ways(const way **at, int32_t n) {
    for (int32_t i = 1; i < n; i++)
        for (int32_t k = i; k > 0; k--) {
            const double b = at[k]->runs.cost.n
                                 ? cnri_adapt_median(at[k]->runs.cost.at, at[k]->runs.cost.n)
                                 : INFINITY;
            const double c = at[k - 1]->runs.cost.n ? cnri_adapt_median(at[k - 1]->runs.cost.at,
                                                                        at[k - 1]->runs.cost.n)
                                                    : INFINITY;
            if (!(b < c)) break;
            const way *swap = at[k];
            at[k] = at[k - 1];
            at[k - 1] = swap;
        }
}

/* Adds the times of all devices that ran alone to the job. */
static cnr_status collect(cnri_adapt *a, cnri_place_job *j, cnr_error *err) {
    const way *alone[CNRI_PLACE_DEVICES];
    int32_t n = 0;
    cnr_status status = CNR_OK;
    if (is_known(a->ways.at[0], NULL)) alone[n++] = a->ways.at[0];
    for (int32_t i = 1; i < a->ways.n && n < CNRI_PLACE_DEVICES; i++) {
        const way *w = a->ways.at[i];
        if (w->devices.n == 1 && is_known(w, w->devices.at[0])) alone[n++] = w;
    }
    sort_ways(alone, n);
    for (int32_t i = 0; i < n && !status; i++)
        status = take_alone(a, j, (way *)(uintptr_t)alone[i], err);
    return status;
}

/* ---- cost of dividing layers: a way in which all layers are divided, the larger parts on
 * alternating devices. It is only rehearsed, so its outputs are not used. ---- */

/* Appends to the way's wishes that this node be divided among all devices of the job. */
static cnr_status add_wish(way *w, const cnri_place_job *j, const cnri_table_node *of,
                           cnr_error *err) {
    const int32_t turn = w->wishes.n & 1;
    cnri_placement *to = cnri_push(&w->wishes);
    double sum = 0;
    if (!to) return cnri_out_of_memory(err, "adapt");
    *to = (cnri_placement){.n_parts = j->n, .axis = cnri_default_axis(of->axes)};
    to->node = cnri_strdup(of->name);
    to->parts = cnri_alloc_zero(((size_t)j->n + 1) * sizeof *to->parts);
    if (!to->node || !to->parts) return cnri_out_of_memory(err, "adapt");
    for (int32_t i = 0; i < j->n; i++) sum += 1 + ((i + turn) & 1);
    for (int32_t i = 0; i < j->n; i++) {
        snprintf(to->parts[i].device, sizeof to->parts[i].device, "%s", j->names[i]);
        to->parts[i].ratio = (1 + ((i + turn) & 1)) / sum;
    }
    return CNR_OK;
}

/* Appends a wish to divide each node of which every device can compute a part. */
static cnr_status add_wishes(way *w, const cnri_place_job *j, const cnri_table *t, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < t->nodes.n && !status; i++) {
        const cnri_table_node *of = &t->nodes.at[i];
        uint32_t can = 0;
        bool taken = false;
        for (int32_t r = of->first; r < of->first + of->n_rows; r++) {
            if (t->rows.at[r].splits) can |= 1u << t->rows.at[r].device;
            taken = taken || t->rows.at[r].by;
        }
        if (taken && of->axes && __builtin_popcount(can) >= j->n) status = add_wish(w, j, of, err);
    }
    return status;
}

/* Rehearses the net with divided layers. *out: the way with its times; NULL: no layer can be
 * divided. */
static cnr_status run_divided(cnri_adapt *a, const cnri_place_job *j, way **out, cnr_error *err) {
    cnri_plan_options options = a->original;
    cnr_plan *plan = NULL;
    way *w = cnri_adapt_add_way(a, "divided");
    *out = NULL;
    options.device = j->names[0];
    options.devices = j->names;
    options.candidates = true;
    options.policy = NULL;
    if (!w) return cnri_out_of_memory(err, "adapt");
    cnr_status status = cnri_plan_make(a->model->graph, &a->model->rt->devices, &options, a->list,
                                       a->n_inputs, &plan, err);
    if (!status) status = add_wishes(w, j, plan->table, err);
    cnri_plan_free(plan);
    for (int32_t i = 0; i < j->n && !status; i++) {
        char **slot = cnri_push(&w->devices);
        if (!slot || !(*slot = cnri_strdup(j->names[i]))) status = cnri_out_of_memory(err, "adapt");
    }
    w->keeps_times = true;
    if (!status && w->wishes.n) status = cnri_adapt_prepare(a, w, err);
    if (!status && w->profile && !w->runs.failed) *out = w;
    return status;
}

/* Adds the times of the divided net's steps to the job, without those that did not run. */
static cnr_status take_divided(const way *w, cnri_place_job *j, cnr_error *err) {
    cnr_timing *t = &j->divided;
    *t = (cnr_timing){.size = sizeof *t, .runs = 1, .batch = 1};
    cnr_status status = take_steps(w, t, err);
    int32_t n = 0;
    for (int32_t i = 0; i < t->n_steps; i++) {
        if (t->steps[i].ms > 0) t->steps[n++] = t->steps[i];
        else cnri_free((void *)t->steps[i].node);
    }
    t->n_steps = n;
    t->ms_median = 0; /* steps ran one after another, so it would not show waits */
    for (int32_t i = 0; i < n; i++) t->steps[i].joules = NAN;
    return status;
}

/* ---- plans of the policy ---- */

/* Reads the placement that the policy chose: devices and shares of each node. */
static cnr_status read_nodes(const cnri_table *t, cnri_placing *out, cnr_error *err) {
    for (int32_t i = 0; i < t->nodes.n; i++) {
        const cnri_table_node *from = &t->nodes.at[i];
        cnri_place_node node = {0};
        for (int32_t r = from->first; r < from->first + from->n_rows; r++) {
            const cnri_table_row *row = &t->rows.at[r];
            if (!row->by || !(row->share > 0)) continue;
            cnri_part *part =
                cnri_vec_push((void **)&node.parts, &node.n, &node.capacity, sizeof *part);
            if (!part) return cnri_out_of_memory(err, "adapt");
            snprintf(part->device, sizeof part->device, "%s", t->devices.at[row->device].name);
            part->ratio = row->share;
        }
        if (!node.n) continue;
        node.node = cnri_strdup(from->name);
        cnri_place_node *slot = node.node ? cnri_push(&out->nodes) : NULL;
        if (!slot) return cnri_out_of_memory(err, "adapt");
        *slot = node;
    }
    return CNR_OK;
}

/* Whether the placement uses one device. */
static bool is_alone(const cnri_placing *p) {
    for (int32_t i = 0; i < p->nodes.n; i++)
        if (p->nodes.at[i].n != 1 ||
            strcmp(p->nodes.at[i].parts[0].device, p->nodes.at[0].parts[0].device) != 0)
            return false;
    return true;
}

/* Whether a way has this placement. */
static bool is_there(const cnri_adapt *a, const char *placement) {
    for (int32_t i = 0; i < a->ways.n; i++)
        if (a->ways.at[i]->placement && strcmp(a->ways.at[i]->placement, placement) == 0)
            return true;
    return false;
}

/* Adds a way for the policy's placement, unless it uses one device or some way has it already. */
static cnr_status add_way(cnri_adapt *a, const cnri_place_job *j, const char *policy,
                          const cnri_table *t, cnr_error *err) {
    cnri_text name = {0}, text = {0};
    cnri_placing placing = {0};
    memcpy(placing.devices, j->names, sizeof placing.devices);
    cnr_status status = read_nodes(t, &placing, err);
    for (int32_t i = 0; i < j->n; i++) cnri_text_add(&name, i ? " and %s" : "%s", j->names[i]);
    cnri_text_add(&name, " (%s)", policy);
    cnri_placing_print(&placing, NULL, &text);
    if (!status && (name.failed || text.failed)) status = cnri_out_of_memory(err, "adapt");
    if (!status && !is_alone(&placing) && !is_there(a, text.at)) {
        way *w = cnri_adapt_add_way(a, name.at);
        if (w) w->placement = cnri_strdup(text.at);
        if (!w || !w->placement) status = cnri_out_of_memory(err, "adapt");
        for (int32_t i = 0; i < j->n && !status; i++) {
            char **slot = cnri_push(&w->devices);
            if (!slot || !(*slot = cnri_strdup(j->names[i])))
                status = cnri_out_of_memory(err, "adapt");
        }
    }
    cnri_placing_free(&placing);
    cnri_text_free(&name);
    cnri_text_free(&text);
    return status;
}

/* Plans with this policy and the times in the job; adds its placement as a way. */
static cnr_status ask_policy(cnri_adapt *a, const cnri_place_job *j, const char *name,
                             cnr_error *err) {
    cnri_plan_options options = a->original;
    cnr_plan *plan = NULL;
    options.device = j->names[0];
    options.devices = j->names;
    options.candidates = true;
    options.policy = NULL;
    cnr_status status =
        cnri_policy_open(name, NULL, (const char *const *)j->words.at, &options.policy, err);
    if (!status)
        status = cnri_plan_make(a->model->graph, &a->model->rt->devices, &options, a->list,
                                a->n_inputs, &plan, err);
    cnri_policy_release(options.policy);
    if (!status && !plan->policy_failed) status = add_way(a, j, name, plan->table, err);
    cnri_plan_free(plan);
    return status;
}

/* Frees what was measured for a placement. */
static void free_job(cnri_place_job *j) {
    cnr_timing_free(&j->divided);
    for (int32_t d = 0; d < CNRI_PLACE_DEVICES; d++) {
        cnr_timing_free(&j->alone[d]);
        cnri_free(j->raw_ns[d]);
    }
    for (int32_t i = 0; i < j->words.n; i++) cnri_free(j->words.at[i]);
    cnri_vec_free(&j->words);
    cnri_placing_free(j->out);
}

/* Adds ways for the best `most` devices together: one by the policy that weighs layers and copies,
 * and one by the policy that divides each layer by the devices' speeds. */
static cnr_status add_set(cnri_adapt *a, int32_t most, cnr_error *err) {
    static const char *const policies[] = {"best", "edp_set"};
    static const char *const settings[] = {"threshold=1e30", NULL}; /* excludes no device */
    const cnri_place_options o = {.runs = 1, .batch = 1, .settings = settings};
    cnri_placing out = {0};
    cnr_error why = CNR_ERROR_INIT;
    cnri_place_job *j = cnri_alloc_zero(sizeof *j);
    if (!j) return cnri_out_of_memory(err, "adapt");
    j->model = a->model;
    j->o = &o;
    j->out = &out;
    cnr_status status = collect(a, j, &why);
    if (!status && !a->divided) status = run_divided(a, j, &a->divided, &why);
    if (!status && a->divided) status = take_divided(a->divided, j, &why);
    for (; j->n > most; j->n--) { /* the last ones are left out */
        j->names[j->n - 1] = NULL;
        cnr_timing_free(&j->alone[j->n - 1]);
        out.alone.n--;
    }
    if (!status && j->n == most) status = cnri_place_tell(j, &why);
    for (size_t i = 0; i < CNRI_COUNT(policies) && !status && j->n == most; i++)
        status = ask_policy(a, j, policies[i], &why);
    free_job(j);
    cnri_free(j);
    if (!status || status == CNR_E_MEMORY)
        return status ? cnri_out_of_memory(err, "adapt") : status;
    cnri_log(CNR_LOG_INFO, "adapt", "no plan for %d devices: %s: %s", (int)most, why.where,
             why.text);
    return CNR_OK;
}

cnr_status cnri_adapt_add_sets(cnri_adapt *a, cnr_error *err) {
    cnr_status status = CNR_OK;
    a->divided = NULL;
    for (int32_t most = 2; most <= a->others.n + 1 && !status; most++)
        status = add_set(a, most, err);
    return status;
}
