/* Placement by measuring: the net on each device alone, what a division costs, what a policy makes of
 * that, and what its plan then takes. Where one device alone is better, it is kept. */
#include "core/work/work.h"
#include <math.h>
#include <stdlib.h>

enum { MOST_DEVICES = 16 };

typedef struct job {
    cnr_model *model;
    const cnri_place_options *o;
    const cnr_observer *observer;
    cnri_plan_options usual; /* the model's, before anything was changed */
    const char *names[MOST_DEVICES + 1];
    int32_t n;
    cnr_timing alone[MOST_DEVICES], divided; /* by step */
    CNRI_VEC(char *) words; /* settings of the policy */
    const char *objective;  /* as it says; or NULL */
    cnri_placing *out;
} job;

static cnr_status no_memory(cnr_error *err) {
    return cnri_fail(err, CNR_E_MEMORY, "place", "out of memory");
}

/* ---- which devices ---- */

/* Those that are taken unasked; by a clock that is not the machine's, of the class that has it. */
static cnr_status find_devices(job *j, cnr_error *err) {
    cnri_devices *all = &j->model->rt->devices;
    for (const char *const *at = j->o->devices; at && *at; at++) {
        const cnri_device *found;
        const cnr_status status = cnri_device_find(all, *at, &found, err);
        if (status) return status;
        if (j->n == MOST_DEVICES)
            return cnri_fail(err, CNR_E_ARG, "--devices", "%d at most", (int)MOST_DEVICES);
        j->names[j->n++] = found->name;
    }
    if (j->n) return CNR_OK;
    const cnr_status status = cnri_devices_ask(all, NULL, err);
    for (int32_t i = 0; i < all->n && !status && j->n < MOST_DEVICES; i++) {
        const bool same = cnri_clock_is_real() || all->at[i]->device.cls == all->at[0]->device.cls;
        if (all->at[i]->info.score > 1 && same) j->names[j->n++] = all->at[i]->name;
    }
    return status || j->n ? status
                          : cnri_fail(err, CNR_E_NOT_FOUND, "place", "there is no device to place on");
}

/* ---- measuring ---- */

static void take(cnri_place_row *row, const char *name, const cnr_timing *t) {
    const bool known = t->energy && t->energy->source;
    snprintf(row->name, sizeof row->name, "%s", name);
    row->seconds = t->ms_median * 1e-3;
    row->joules = known ? t->energy->joules : NAN;
    row->watts = known ? row->joules / row->seconds : NAN;
    row->edp = known ? row->joules * row->seconds : NAN;
}

static cnr_status measure(job *j, bool steps, cnr_timing *out, cnr_error *err) {
    const cnr_profile_options p = {.size = sizeof p, .runs = j->o->runs, .steps = steps, .energy = 1,
                                   .batch = j->o->batch};
    *out = (cnr_timing){.size = sizeof *out};
    return cnr_profile(j->model, &p, j->observer, out, err);
}

static cnr_status measure_alone(job *j, int32_t device, cnr_error *err) {
    cnri_plan_options options = j->usual;
    options.device = j->names[device];
    options.devices = NULL;
    options.policy = NULL;
    cnr_status status = cnri_model_set_options(j->model, &options, err);
    if (!status) status = measure(j, true, &j->alone[device], err);
    cnri_place_row *row = status ? NULL : cnri_push(&j->out->alone);
    if (!status && !row) status = no_memory(err);
    if (!status) take(row, j->names[device], &j->alone[device]);
    return status;
}

/* Layers that every device can compute parts of, in equal parts. */
typedef CNRI_VEC(cnri_placement) wishes;
static cnr_status wish_parts(job *j, const cnri_table *t, cnri_part *parts, wishes *out,
                             cnr_error *err) {
    for (int32_t i = 0; i < t->nodes.n; i++) {
        const cnri_table_node *node = &t->nodes.at[i];
        uint32_t can = 0;
        bool taken = false;
        for (int32_t r = node->first; r < node->first + node->n_rows; r++) {
            if (t->rows.at[r].splits) can |= 1u << t->rows.at[r].device;
            taken = taken || t->rows.at[r].by;
        }
        if (!taken || node->axes == 0 || __builtin_popcount(can) < j->n) continue;
        cnri_placement *w = cnri_push(out);
        if (!w) return no_memory(err);
        const int32_t axis = node->axes & 2 ? 1 : __builtin_ctz(node->axes);
        *w = (cnri_placement){(char *)node->name, j->n, axis, parts};
    }
    return CNR_OK;
}

/* What parts take beside their shares is what a division costs. */
static cnr_status measure_divided(job *j, cnr_error *err) {
    cnri_part parts[MOST_DEVICES];
    wishes all = {0};
    cnr_error why = CNR_ERROR_INIT;
    cnri_plan_options options = j->usual;
    cnr_candidate_list list = {.size = sizeof list};
    memset(parts, 0, sizeof parts);
    for (int32_t i = 0; i < j->n; i++) {
        snprintf(parts[i].device, sizeof parts[i].device, "%s", j->names[i]);
        parts[i].ratio = 1.0 / j->n;
    }
    options.device = j->names[0];
    options.devices = j->names;
    options.policy = NULL;
    cnr_status status = cnri_model_set_options(j->model, &options, err);
    if (!status) status = cnr_candidates(j->model, NULL, 0, &list, err);
    if (!status) status = wish_parts(j, list.plan->table, parts, &all, err);
    options.placements = all.at;
    options.n_placements = all.n;
    if (!status) status = cnri_model_set_options(j->model, &options, err); /* copies */
    cnr_candidates_free(&list);
    cnri_vec_free(&all);
    if (status || !measure(j, true, &j->divided, &why)) return status;
    cnr_timing_free(&j->divided); /* one that can't be divided so */
    j->divided = (cnr_timing){.size = sizeof j->divided};
    if (why.code == CNR_E_MEMORY || why.code == CNR_E_CANCELLED)
        return cnri_fail(err, why.code, why.where, "%s", why.text);
    cnri_log(CNR_LOG_INFO, "place", "%s: what a division costs is not known: %s", why.where, why.text);
    return CNR_OK;
}

static const cnr_step_timing *step_of(const cnr_timing *t, const char *node, const char *device) {
    for (int32_t i = 0; i < t->n_steps; i++)
        if (!t->steps[i].from && strcmp(t->steps[i].node, node) == 0 &&
            strcmp(t->steps[i].device, device) == 0)
            return &t->steps[i];
    return NULL;
}

/* ---- what the policy is told beside its rows ---- */

static cnr_status tell(job *j, const char *what, const char *device, const char *node, double value,
                       cnr_error *err) {
    char number[40];
    if (!(value >= 0)) return CNR_OK; /* not known */
    cnri_print_double(number, sizeof number, value);
    char **slot = cnri_push(&j->words);
    if (slot)
        *slot = cnri_format("%s%s%s%s%s=%s", what, device ? "@" : "", device ? device : "",
                            node ? "@" : "", node ? node : "", number);
    return slot && *slot ? CNR_OK : no_memory(err);
}

static cnr_status tell_device(job *j, int32_t d, cnr_error *err) {
    const cnri_place_row *row = &j->out->alone.at[d];
    const char *name = j->names[d];
    cnr_status status = tell(j, "seconds", name, NULL, row->seconds, err);
    if (!status) status = tell(j, "joules", name, NULL, row->joules, err);
    if (!status) status = tell(j, "watts", name, NULL, row->watts, err);
    for (int32_t i = 0; i < j->alone[d].n_steps && !status; i++) {
        const cnr_step_timing *s = &j->alone[d].steps[i];
        if (s->from || strcmp(s->device, name) != 0) continue;
        status = tell(j, "ns", name, s->node, s->ms * 1e6, err);
        if (!status) status = tell(j, "joules", name, s->node, s->joules, err);
    }
    return status;
}

/* Medians over the layers: a part's time without its share of the whole's. */
static cnr_status tell_division(job *j, int32_t d, cnr_error *err) {
    const cnr_timing *t = &j->divided;
    double *ns = cnri_alloc((size_t)(t->n_steps + 1) * 2 * sizeof *ns), *joules = ns + t->n_steps;
    int32_t n = 0, m = 0;
    if (!ns) return no_memory(err);
    for (int32_t i = 0; i < t->n_steps; i++) {
        const cnr_step_timing *part = &t->steps[i];
        if (part->from || strcmp(part->device, j->names[d]) != 0) continue;
        const cnr_step_timing *whole = step_of(&j->alone[d], part->node, j->names[d]);
        if (!whole || whole->flops <= 0 || part->flops <= 0) continue;
        const double share = part->flops / whole->flops;
        if (share > 0.99) continue;
        ns[n++] = fmax(0, part->ms - share * whole->ms) * 1e6;
        if (part->joules >= 0 && whole->joules >= 0 && t->energy) {
            const double idle = t->energy->idle_watts > 0 ? t->energy->idle_watts : 0;
            const double more = (part->joules - idle * part->ms * 1e-3) -
                                share * (whole->joules - idle * whole->ms * 1e-3);
            joules[m++] = fmax(0, more);
        }
    }
    cnr_status status = n ? tell(j, "split_ns", j->names[d], NULL, cnri_median(ns, n), err) : CNR_OK;
    if (!status && m)
        status = tell(j, "split_joules", j->names[d], NULL, cnri_median(joules, m), err);
    cnri_free(ns);
    return status;
}

/* "copy_ns@A@B" of any copy, and "byte_ns@A@B" of each byte in it. */
static cnr_status tell_links(job *j, cnr_error *err) {
    enum { FEW = CNRI_TUNING_BYTES_LESS, MANY = CNRI_TUNING_BYTES_MORE };
    const cnr_device *open[MOST_DEVICES];
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < j->n && !status; i++)
        status = cnri_device_open(&j->model->rt->devices, j->names[i], &open[i], err);
    for (int32_t a = 0; a < j->n; a++)
        for (int32_t b = 0; b < j->n && !status; b++) {
            double less, more;
            if (a == b) continue;
            status = cnri_copy_ns(open[a], open[b], FEW, &less, err);
            if (!status) status = cnri_copy_ns(open[a], open[b], MANY, &more, err);
            const double byte = status ? 0 : fmax(0, (more - less) / (MANY - FEW));
            if (!status) status = tell(j, "byte_ns", j->names[a], j->names[b], byte, err);
            if (!status)
                status = tell(j, "copy_ns", j->names[a], j->names[b], fmax(0, less - byte * FEW), err);
        }
    return status;
}

static cnr_status tell_all(job *j, cnr_error *err) {
    const cnr_energy *e = j->alone[0].energy;
    cnr_status status = e && e->source ? tell(j, "idle_watts", NULL, NULL, e->idle_watts, err) : CNR_OK;
    for (int32_t d = 0; d < j->n && !status; d++) status = tell_device(j, d, err);
    if (!status) status = tell_links(j, err);
    for (int32_t d = 0; d < j->n && !status && j->divided.n_steps; d++)
        status = tell_division(j, d, err);
    for (const char *const *at = j->o->settings; at && *at && !status; at++) { /* the last word */
        char **slot = cnri_push(&j->words);
        if (!slot || !(*slot = cnri_strdup(*at))) status = no_memory(err);
    }
    if (!status && !cnri_push(&j->words)) status = no_memory(err); /* the NULL behind them */
    return status;
}

/* ---- the plan ---- */

/* What the rows that were taken say: nodes with their devices and shares, and the expected time. */
static cnr_status read_plan(job *j, const cnr_candidate_list *list, cnr_error *err) {
    double seconds = 0, joules = 0;
    const cnr_energy *e = j->alone[0].energy;
    const double idle = e && e->source && e->idle_watts > 0 ? e->idle_watts : 0;
    for (int32_t i = 0; i < list->n;) {
        const char *node = list->at[i].node;
        double most = 0;
        cnri_place_node *to = cnri_push(&j->out->nodes);
        if (to) to->node = cnri_strdup(node);
        if (to) to->parts = cnri_alloc((size_t)(j->n + 1) * sizeof *to->parts);
        if (!to || !to->node || !to->parts) return no_memory(err);
        for (; i < list->n && strcmp(list->at[i].node, node) == 0; i++) {
            const cnr_candidate *c = &list->at[i];
            if (!c->by || !(c->share > 0) || to->n > j->n) continue;
            int32_t d = 0;
            while (d < j->n && strcmp(j->names[d], c->device) != 0) d++;
            const cnr_step_timing *s = d < j->n ? step_of(&j->alone[d], node, c->device) : NULL;
            const double ms = s ? s->ms * c->share : c->ns * 1e-6 * c->share;
            most = fmax(most, ms);
            if (s) joules += c->share * (s->joules - idle * s->ms * 1e-3);
            cnri_part *part = &to->parts[to->n++];
            snprintf(part->device, sizeof part->device, "%s", c->device);
            part->ratio = c->share;
        }
        seconds += most * 1e-3;
        if (to->n) continue;
        cnri_free(to->node); /* it goes along with another */
        cnri_free(to->parts);
        j->out->nodes.n--;
    }
    j->out->predicted = (cnri_place_row){"predicted", seconds, joules + idle * seconds, 0, 0};
    j->out->predicted.watts = j->out->predicted.joules / seconds;
    j->out->predicted.edp = j->out->predicted.joules * seconds;
    return CNR_OK;
}

static cnr_status ask_policy(job *j, const char *policy, cnr_error *err) {
    cnri_plan_options options = j->usual;
    cnr_candidate_list list = {.size = sizeof list};
    options.device = j->names[0];
    options.devices = j->names;
    options.policy = NULL;
    cnr_status status = cnri_policy_open(policy, NULL, (const char *const *)j->words.at,
                                         &options.policy, err);
    if (!status) j->objective = options.policy->objective;
    if (!status) status = cnri_model_set_options(j->model, &options, err); /* copies */
    cnri_policy_let_go(options.policy);
    if (!status) status = cnr_candidates(j->model, NULL, 0, &list, err);
    if (status) return status;
    if (list.failure)
        status = cnri_fail(err, CNR_E_SCRIPT, policy, "%s", list.failure);
    if (!status && list.notes && !(j->out->notes = cnri_strdup(list.notes))) status = no_memory(err);
    if (!status) status = read_plan(j, &list, err);
    cnr_candidates_free(&list);
    return status;
}

/* By what the policy was asked for, or says that it is for, else EDP; by time where nothing tells joules. */
static double worth(const job *j, const cnri_place_row *row) {
    const char *what = j->objective ? j->objective : "edp";
    for (const char *const *at = j->o->settings; at && *at; at++)
        if (strncmp(*at, "objective=", 10) == 0) what = *at + 10;
    if (isnan(row->joules) || strcmp(what, "time") == 0) return row->seconds;
    return strcmp(what, "energy") == 0 ? row->joules : row->edp;
}

/* Then it can't be worse than that one, whatever clocks say. */
static bool is_alone(const cnri_placing *p, const char *device) {
    for (int32_t i = 0; i < p->nodes.n; i++)
        if (p->nodes.at[i].n != 1 || strcmp(p->nodes.at[i].parts[0].device, device) != 0) return false;
    return true;
}

static cnr_status measure_plan(job *j, cnr_error *err) {
    cnr_timing t;
    cnr_status status = measure(j, false, &t, err);
    if (!status) take(&j->out->measured, "measured", &t);
    cnr_timing_free(&t);
    const cnri_place_row *best = NULL;
    for (int32_t d = 0; d < j->n && !status; d++)
        if (!best || worth(j, &j->out->alone.at[d]) < worth(j, best)) best = &j->out->alone.at[d];
    if (status || !best || worth(j, &j->out->measured) <= 1.001 * worth(j, best))
        return status;
    if (!j->o->guard || is_alone(j->out, best->name)) return CNR_OK;
    snprintf(j->out->kept, sizeof j->out->kept, "%s", best->name);
    cnri_plan_options options = j->usual;
    options.device = j->out->kept;
    return cnri_model_set_options(j->model, &options, err);
}

/* One that was kept: only its plan is measured. */
static cnr_status take_over(job *j, cnr_error *err) {
    cnr_timing t;
    j->out->found = true;
    cnr_status status = cnri_push(&j->words) ? CNR_OK : no_memory(err); /* the NULL */
    if (!status) status = ask_policy(j, j->out->file, err);
    if (status) return status;
    status = measure(j, false, &t, err);
    if (!status) take(&j->out->measured, "measured", &t);
    cnr_timing_free(&t);
    return status;
}

static cnr_status make(job *j, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t d = 0; d < j->n && !status; d++) status = measure_alone(j, d, err);
    if (!status && j->n > 1) status = measure_divided(j, err);
    if (!status) status = tell_all(j, err);
    if (!status) status = ask_policy(j, j->o->policy, err);
    if (!status) status = measure_plan(j, err);
    if (!status && j->out->file) status = cnri_placing_write(j->out, j->out->file, true, err);
    return status;
}

cnr_status cnri_place(cnr_model *model, const cnri_place_options *options,
                      const cnr_observer *observer, cnri_placing *out, cnr_error *err) {
    job j = {.model = model, .o = options, .observer = observer, .out = out};
    *out = (cnri_placing){0};
    if (!cnri_plan_options_copy(&model->plan_options, &j.usual)) {
        cnri_plan_options_free(&j.usual);
        return no_memory(err);
    }
    cnr_status status = find_devices(&j, err);
    if (!status && options->folder) {
        status = cnri_kept_make(options->folder, err);
        out->file = status ? NULL : cnri_placing_slot(model, options, j.names, options->folder);
        if (!status && !out->file) status = no_memory(err);
    }
    char *kept = NULL; /* is it there, and nobody else's? */
    size_t bytes;
    const bool found = !status && out->file && !options->again &&
                       cnri_read_kept(out->file, 1 << 24, &kept, &bytes, NULL) == CNR_OK;
    cnri_free(kept);
    if (!status) status = found ? take_over(&j, err) : make(&j, err);
    if (status) cnri_model_set_options(model, &j.usual, NULL);
    for (int32_t d = 0; d < j.n; d++) cnr_timing_free(&j.alone[d]);
    cnr_timing_free(&j.divided);
    for (int32_t i = 0; i < j.words.n; i++) cnri_free(j.words.at[i]);
    cnri_vec_free(&j.words);
    cnri_plan_options_free(&j.usual);
    if (status) cnri_placing_free(out);
    return status;
}

void cnri_placing_free(cnri_placing *p) {
    for (int32_t i = 0; i < p->nodes.n; i++) {
        cnri_free(p->nodes.at[i].node);
        cnri_free(p->nodes.at[i].parts);
    }
    cnri_vec_free(&p->nodes);
    cnri_vec_free(&p->alone);
    cnri_free(p->notes);
    cnri_free(p->file);
    *p = (cnri_placing){0};
}
