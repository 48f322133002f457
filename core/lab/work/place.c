/* Placement by measuring: runs the net on each device alone, measures the cost of dividing
 * layers, asks a policy, and measures its plan. If one device alone is better, that is kept. */
#include "work/place.h"
#include <math.h>
#include <stdlib.h>

typedef cnri_place_job job;
enum { MAX_DEVICES = CNRI_PLACE_DEVICES, ROUNDS = 3 };

/* ---- which devices ---- */

/* Finds the devices listed in the options, or those used by default, into the job. Fails if one's
 * time isn't measured by the clock in force. */
static cnr_status find_devices(job *j, cnr_error *err) {
    const cnri_device *listed[MAX_DEVICES];
    cnri_devices *all = &j->model->rt->devices;
    for (const char *const *at = j->o->devices; at && *at; at++) {
        const cnri_device *found;
        const cnr_status status = cnri_device_find(all, *at, &found, err);
        if (status) return status;
        if (j->n == MAX_DEVICES)
            return cnri_fail(err, CNR_E_ARG, "--devices", "%d at most", (int)MAX_DEVICES);
        listed[j->n] = found;
        j->names[j->n++] = found->name;
    }
    if (j->n) return cnri_devices_check_clock(listed, j->n, err);
    const cnr_status status = cnri_devices_ask(all, NULL, err);
    for (int32_t i = 0; i < all->n && !status && j->n < MAX_DEVICES; i++) {
        if (all->at[i]->info.score > 1 && cnri_device_is_timed(&all->at[i]->device))
            j->names[j->n++] = all->at[i]->name;
    }
    return status || j->n
               ? status
               : cnri_fail(err, CNR_E_NOT_FOUND, "place", "there is no device to place on");
}

/* ---- measuring ---- */

/* Fills a row from a timing: seconds, joules, watts, joules times seconds. */
static void take(cnri_place_row *row, const char *name, const cnr_timing *t) {
    const bool known = t->energy && t->energy->source;
    snprintf(row->name, sizeof row->name, "%s", name);
    row->seconds = t->ms_median * 1e-3;
    row->joules = known ? t->energy->joules : NAN;
    row->watts = known ? row->joules / row->seconds : NAN;
    row->edp = known ? row->joules * row->seconds : NAN;
}

/* Times the model with the job's options (steps: each step too), with joules if a meter gives them;
 * the caller frees *out. */
static cnr_status measure(job *j, cnr_model *model, bool steps, cnr_timing *out, cnr_error *err) {
    const cnr_profile_options p = {.size = sizeof p,
                                   .runs = j->o->runs,
                                   .steps = steps,
                                   .energy = 1,
                                   .batch = j->o->batch};
    *out = (cnr_timing){.size = sizeof *out};
    return cnr_profile(model, &p, j->observer, out, err);
}

/* Makes a plan with the model's current options, for what was just measured or is measured next. */
static cnr_status plan_of(job *j, cnr_plan **out, cnr_error *err) {
    cnri_shapes shapes;
    cnr_status status = cnri_input_shapes(j->model, j->o->batch, &shapes, err);
    if (!status) status = cnr_plan_for(j->model, shapes.list, shapes.n, out, err);
    cnri_shapes_free(&shapes);
    return status;
}

/* Times the model on one device alone, with its original options otherwise, into j->alone. */
static cnr_status measure_alone(job *j, int32_t device, cnr_error *err) {
    cnri_plan_options options = j->original_options;
    options.device = j->names[device];
    /* Else times of another device might count as this one's. */
    options.devices = options.fallback = NULL;
    options.policy = NULL;
    cnr_status status = cnri_model_set_options(j->model, &options, err);
    if (!status) status = measure(j, j->model, true, &j->alone[device], err);
    if (!status) status = plan_of(j, &j->plan_alone[device], err);
    cnri_place_row *row = status ? NULL : cnri_push(&j->out->alone);
    if (!status && !row) status = cnri_out_of_memory(err, "place");
    if (!status) take(row, j->names[device], &j->alone[device]);
    return status;
}

/* Placements that divide the layers that every device can compute parts of. Each second device
 * gets twice the share, so that fixed costs can be told from costs of the share. */
typedef CNRI_VEC(cnri_placement) wishes;
/* Appends wishes that each node which all devices can compute a part of be divided as measured. */
static cnr_status wish_parts(job *j, const cnri_table *t, cnri_part parts[2][MAX_DEVICES],
                             wishes *out, cnr_error *err) {
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
        if (!w) return cnri_out_of_memory(err, "place");
        *w = (cnri_placement){(char *)node->name, j->n, cnri_default_axis(node->axes),
                              parts[out->n & 1]};
    }
    return CNR_OK;
}

/* Lists the candidates for the shapes that are measured. */
static cnr_status candidates(job *j, cnr_candidate_list *list, cnr_error *err) {
    cnri_shapes shapes;
    cnr_status status = cnri_input_shapes(j->model, j->o->batch, &shapes, err);
    if (!status) status = cnr_candidates(j->model, shapes.list, shapes.n, list, err);
    cnri_shapes_free(&shapes);
    return status;
}

/* Runs the divided net; the time of parts beyond their shares is the cost of dividing. */
static cnr_status measure_divided(job *j, cnr_error *err) {
    cnri_part parts[2][MAX_DEVICES];
    wishes all = {0};
    cnr_error why = CNR_ERROR_INIT;
    cnri_plan_options options = j->original_options;
    cnr_candidate_list list = {.size = sizeof list};
    memset(parts, 0, sizeof parts);
    for (int32_t turn = 0; turn < 2; turn++) {
        double sum = 0;
        for (int32_t i = 0; i < j->n; i++) sum += 1 + ((i + turn) & 1);
        for (int32_t i = 0; i < j->n; i++) {
            cnri_part *part = &parts[turn][i];
            snprintf(part->device, sizeof part->device, "%s", j->names[i]);
            part->ratio = (1 + ((i + turn) & 1)) / sum;
        }
    }
    options.device = j->names[0];
    options.devices = j->names;
    options.policy = NULL;
    cnr_status status = cnri_model_set_options(j->model, &options, err);
    if (!status) status = candidates(j, &list, err);
    if (!status) status = wish_parts(j, list.plan->table, parts, &all, err);
    options.placements = all.at;
    options.n_placements = all.n;
    options.fallback = NULL;
    /* The options are copied. */
    if (!status) status = cnri_model_set_options(j->model, &options, err);
    cnr_candidates_free(&list);
    cnri_vec_free(&all);
    if (status) return status;
    if (!measure(j, j->model, true, &j->divided, &why)) return plan_of(j, &j->plan_divided, err);
    cnr_timing_free(&j->divided); /* the net can't be divided that way */
    j->divided = (cnr_timing){.size = sizeof j->divided};
    if (why.code == CNR_E_MEMORY || why.code == CNR_E_CANCELLED)
        return cnri_fail(err, why.code, why.where, "%s", why.text);
    cnri_log(CNR_LOG_INFO, "place", "%s: what a division costs is not known: %s", why.where,
             why.text);
    return CNR_OK;
}

/* ---- the plan ---- */

/* Reads the nodes with their devices and shares from the rows that were picked. */
static cnr_status read_plan(job *j, const cnr_candidate_list *list, cnr_error *err) {
    for (int32_t i = 0; i < list->n;) {
        const char *node = list->at[i].node;
        cnri_place_node *to = cnri_push(&j->out->nodes);
        if (to) to->node = cnri_strdup(node);
        if (to) to->parts = cnri_alloc((size_t)(j->n + 1) * sizeof *to->parts);
        if (!to || !to->node || !to->parts) return cnri_out_of_memory(err, "place");
        for (; i < list->n && strcmp(list->at[i].node, node) == 0; i++) {
            const cnr_candidate *c = &list->at[i];
            if (!c->by || !(c->share > 0) || to->n > j->n) continue;
            cnri_part *part = &to->parts[to->n++];
            snprintf(part->device, sizeof part->device, "%s", c->device);
            part->ratio = c->share;
            to->extrapolated = to->extrapolated || c->extrapolated;
        }
        if (to->n) continue;
        cnri_free(to->node); /* it is computed together with another node */
        cnri_free(to->parts);
        j->out->nodes.n--;
    }
    return CNR_OK;
}

/* Predicts time and joules of the current plan. */
static cnr_status predict(job *j, cnr_error *err) {
    cnr_plan *plan = NULL;
    cnr_status status = plan_of(j, &plan, err);
    if (!status) status = cnri_place_predict(j, plan, &j->out->predicted, err);
    cnr_plan_release(plan);
    return status;
}

/* Lets the policy place the net, with what was measured. */
static cnr_status ask_policy(job *j, const char *policy, cnr_error *err) {
    cnri_plan_options options = j->original_options;
    cnr_candidate_list list = {.size = sizeof list};
    options.device = j->names[0];
    options.devices = j->names;
    options.policy = NULL;
    cnr_status status =
        cnri_policy_open(policy, NULL, (const char *const *)j->words.at, &options.policy, err);
    if (!status) j->objective = options.policy->objective;
    /* The options are copied. */
    if (!status) status = cnri_model_set_options(j->model, &options, err);
    cnri_policy_release(options.policy);
    if (!status) status = candidates(j, &list, err);
    if (status) return status;
    if (list.failure) status = cnri_fail(err, CNR_E_SCRIPT, policy, "%s", list.failure);
    if (!status && list.notes && !(j->out->notes = cnri_strdup(list.notes)))
        status = cnri_out_of_memory(err, "place");
    if (!status) status = read_plan(j, &list, err);
    if (!status && !j->out->found) status = predict(j, err);
    cnr_candidates_free(&list);
    return status;
}

/* The figure to minimise: by the settings, the policy's declaration, else EDP; seconds if no meter
 * gives joules. */
static double objective_of(const job *j, const cnri_place_row *row) {
    const char *what = j->objective ? j->objective : "edp";
    for (const char *const *at = j->o->settings; at && *at; at++)
        if (strncmp(*at, "objective=", 10) == 0) what = *at + 10;
    if (isnan(row->joules) || strcmp(what, "time") == 0) return row->seconds;
    return strcmp(what, "energy") == 0 ? row->joules : row->edp;
}

/* True if the plan is that device alone, so it can't be worse than it. */
static bool is_alone(const cnri_placing *p, const char *device) {
    for (int32_t i = 0; i < p->nodes.n; i++)
        if (p->nodes.at[i].n != 1 || strcmp(p->nodes.at[i].parts[0].device, device) != 0)
            return false;
    return true;
}

/* Fills the row with the median run, by the figure to minimise. */
static void take_median(const job *j, cnri_place_row *row, const char *name, const cnr_timing *t) {
    cnri_place_row rows[ROUNDS];
    for (int32_t i = 0; i < ROUNDS; i++) {
        take(&rows[i], name, &t[i]);
        for (int32_t k = i; k > 0 && objective_of(j, &rows[k]) < objective_of(j, &rows[k - 1]);
             k--) {
            const cnri_place_row swap = rows[k];
            rows[k] = rows[k - 1];
            rows[k - 1] = swap;
        }
    }
    *row = rows[ROUNDS / 2];
}

/* Runs plan and best device in turns, because the machine changes from minute to minute. */
static cnr_status contest(job *j, cnri_place_row *alone, cnr_error *err) {
    cnr_timing t[2][ROUNDS];
    cnr_model *other;
    cnri_plan_options options = j->original_options;
    options.device = alone->name;
    options.devices = options.fallback = NULL;
    options.policy = NULL;
    memset(t, 0, sizeof t);
    cnr_status status = cnr_copy(j->model, &other, err);
    if (status) return status;
    status = cnri_model_set_options(other, &options, err);
    for (int32_t i = 0; i < ROUNDS && !status; i++) {
        status = measure(j, other, false, &t[0][i], err);
        if (!status) status = measure(j, j->model, false, &t[1][i], err);
    }
    if (!status) take_median(j, alone, alone->name, t[0]);
    if (!status) take_median(j, &j->out->measured, "measured", t[1]);
    for (int32_t i = 0; i < 2 * ROUNDS; i++) cnr_timing_free(&t[i / ROUNDS][i % ROUNDS]);
    cnr_release(other);
    return status;
}

/* Tells of a prediction that the measured plan is far from. */
static void judge_prediction(const cnri_placing *p) {
    const double FAR = 1.5;
    const double times = p->measured.seconds / p->predicted.seconds;
    if (!(times > FAR || times < 1 / FAR)) return;
    cnri_log(CNR_LOG_WARN, "place",
             "the plan was predicted to take %.4g ms and took %.4g, %.1f times as long: the "
             "machine was not as it was while single devices were measured, or parts of a layer "
             "don't run at once here",
             p->predicted.seconds * 1e3, p->measured.seconds * 1e3, times);
}

/* Measures the policy's plan and chooses between it and the best single device. */
static cnr_status measure_plan(job *j, cnr_error *err) {
    cnr_timing t = {.size = sizeof t};
    cnri_place_row *best = NULL;
    for (int32_t d = 0; d < j->n; d++)
        if (!best || objective_of(j, &j->out->alone.at[d]) < objective_of(j, best))
            best = &j->out->alone.at[d];
    const bool single = is_alone(j->out, best->name), real = cnri_clock_is_real();
    cnr_status status = real && !single && j->o->guard ? contest(j, best, err)
                                                       : measure(j, j->model, false, &t, err);
    if (!status && t.runs) take(&j->out->measured, "measured", &t);
    cnr_timing_free(&t);
    if (!status) judge_prediction(j->out);
    j->out->chosen = j->out->measured;
    snprintf(j->out->chosen.name, sizeof j->out->chosen.name, "chosen");
    /* The plan is that device, which is measured already. */
    if (!status && single) j->out->chosen = *best;
    if (status || !j->o->guard || single ||
        objective_of(j, &j->out->measured) <= objective_of(j, best))
        return status;
    j->out->chosen = *best;
    snprintf(j->out->kept, sizeof j->out->kept, "%s", best->name);
    cnri_plan_options options = j->original_options;
    options.device = j->out->kept;
    return cnri_model_set_options(j->model, &options, err);
}

/* Follows a placement that was kept: only its plan is measured. */
static cnr_status take_over(job *j, cnr_error *err) {
    cnr_timing t;
    j->out->found = true;
    cnr_status status =
        cnri_push(&j->words) ? CNR_OK : cnri_out_of_memory(err, "place"); /* the final NULL */
    if (!status) status = ask_policy(j, j->out->file, err);
    if (status) return status;
    status = measure(j, j->model, false, &t, err);
    if (!status) take(&j->out->measured, "measured", &t);
    if (!status) take(&j->out->chosen, "chosen", &t);
    cnr_timing_free(&t);
    return status ? status : cnri_placing_keep(j->out, j->model, j->o->folder, err);
}

/* Fails if there is no such policy: a mistake is told before anything is measured. */
static cnr_status check_policy(const job *j, cnr_error *err) {
    cnri_plan_options options = {0};
    const cnr_status status =
        cnri_policy_open(j->o->policy, NULL, j->o->settings, &options.policy, err);
    cnri_policy_release(options.policy);
    return status;
}

/* Measures alone and divided, asks the policy, and measures its plan. */
static cnr_status make(job *j, cnr_error *err) {
    cnr_status status = check_policy(j, err);
    for (int32_t d = 0; d < j->n && !status; d++) status = measure_alone(j, d, err);
    if (!status && j->n > 1) status = measure_divided(j, err);
    if (!status) status = cnri_place_tell(j, err);
    if (!status) status = ask_policy(j, j->o->policy, err);
    if (!status) status = measure_plan(j, err);
    if (!status && j->out->file) status = cnri_placing_write(j->out, j->out->file, true, err);
    if (!status && j->out->file) status = cnri_placing_keep(j->out, j->model, j->o->folder, err);
    return status;
}

cnr_status cnri_place(cnr_model *model, const cnri_place_options *options,
                      const cnr_observer *observer, cnri_placing *out, cnr_error *err) {
    job j = {.model = model, .o = options, .observer = observer, .out = out};
    *out = (cnri_placing){0};
    if (!cnri_plan_options_copy(&model->plan_options, &j.original_options)) {
        cnri_plan_options_free(&j.original_options);
        return cnri_out_of_memory(err, "place");
    }
    cnr_status status = find_devices(&j, err);
    memcpy(out->devices, j.names, sizeof j.names);
    /* The measured frequencies depend on the policy that sets them. */
    const bool governed = model->rt->passes.tell != NULL;
    if (governed && options->folder)
        cnri_log(CNR_LOG_WARN, "place",
                 "under a governor a placement is neither kept nor taken over");
    if (!status && options->folder && !governed) {
        status = cnri_kept_create(options->folder, err);
        if (!status) status = cnri_placing_path(model, options, j.names, &out->file, err);
    }
    char *kept = NULL; /* the file exists and belongs to this user only */
    size_t bytes;
    const bool found = !status && out->file && !options->again &&
                       cnri_read_kept(out->file, 1 << 24, &kept, &bytes, NULL) == CNR_OK;
    cnri_free(kept);
    if (!status) status = found ? take_over(&j, err) : make(&j, err);
    if (status) cnri_model_set_options(model, &j.original_options, NULL);
    for (int32_t d = 0; d < j.n; d++) {
        cnr_timing_free(&j.alone[d]);
        cnr_plan_release(j.plan_alone[d]);
        cnri_free(j.raw_ns[d]);
    }
    cnr_plan_release(j.plan_divided);
    cnr_timing_free(&j.divided);
    for (int32_t i = 0; i < j.words.n; i++) cnri_free(j.words.at[i]);
    cnri_vec_free(&j.words);
    cnri_plan_options_free(&j.original_options);
    if (status) cnri_placing_free(out);
    return status;
}

/* Frees its lists and texts, and zeroes it. */
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
