/* The work of a trainer: a step of gradient descent, gradients alone, judging, and keeping the
 * best weights. */
#include "train/train.h"
#include <math.h>

/* ---- a step ---- */

/* Learning rate of the current step: by the caller's schedule, else by the options' policy. */
static double rate_now(const cnri_trainer *t) {
    const cnri_train_options *o = &t->options;
    if (o->schedule) return o->schedule(o->schedule_arg, t->step, t->steps);
    return cnri_rate_at(o, t->step, t->steps);
}

/* Prepares the weight again for kernels that keep a prepared form. */
static cnr_status renew(cnr_plan *plan, const cnri_trained *w, cnr_error *err) {
    const cnr_value v = cnri_graph_find(plan->graph, w->name);
    return v < 0 ? CNR_OK : cnri_residency_renew(plan, v, err);
}

/* Sets an input of a session to data of the input's own type. */
static cnr_status set_input(cnr_session *s, const cnr_plan *plan, int32_t index, void *data,
                            cnr_error *err) {
    cnr_tensor t = *cnri_graph_type(plan->graph, cnri_graph_input_at(plan->graph, index));
    t.data = data;
    return cnr_session_set_input(s, index, &t, err);
}

/* Counts the first n rows of scores whose largest is at the sample's label. */
static int64_t count_correct(const cnri_trainer *t, const cnr_tensor *scores, int64_t n) {
    int64_t correct = 0;
    for (int64_t i = 0; i < n; i++) {
        cnr_tensor row = {.size = sizeof row, .dtype = CNR_f32, .rank = 1, .dim = {t->classes}};
        cnr_top best = {.index = -1};
        row.data = (float *)scores->data + i * t->classes;
        correct += cnr_topk(&row, 1, &best) == 1 && best.index == t->labels[i];
    }
    return correct;
}

/* Fails if a label is missing or not below the number of classes. */
static cnr_status check_labels(const cnri_trainer *t, int64_t n, cnr_error *err) {
    for (int64_t i = 0; i < n; i++)
        if (t->labels[i] == -1)
            return cnri_fail(err, CNR_E_ARG, "samples",
                             "a picture has no label; use folders named by "
                             "class, or images:LIST");
        else if (t->labels[i] < 0 || t->labels[i] >= t->classes)
            return cnri_fail(err, CNR_E_ARG, "samples",
                             "label %d; the net tells %lld classes apart", t->labels[i],
                             (long long)t->classes);
    return CNR_OK;
}

/* Prepares blobs of changed weights again. There are seldom any, because preparing a variable
 * does not pay. */
static cnr_status renew_prepared(cnri_trainer *t, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < t->weights.n && status == CNR_OK; i++) {
        if (!t->weights.at[i].prepared) continue;
        status = cnri_plan_fetch(t->plan, t->weights.at[i].value, err);
        if (status == CNR_OK) status = cnri_residency_renew(t->plan, t->weights.at[i].value, err);
    }
    return status;
}

static double number_of(const cnr_tensor *t) { return cnri_element(t->dtype, t->data, 0); }

cnr_status cnri_trainer_step(cnri_trainer *t, double *loss, int64_t *correct, cnr_error *err) {
    const cnr_tensor *value = NULL, *scores = NULL;
    float step = (float)(t->step + 1), rate = (float)rate_now(t);
    if (!isfinite(rate) || rate < 0)
        return cnri_fail(err, CNR_E_ARG, "schedule",
                         "wanted a rate of 0 or more at step %lld of %lld", (long long)t->step,
                         (long long)t->steps);
    cnr_status status = check_labels(t, t->options.batch, err);
    if (status == CNR_OK) status = set_input(t->session, t->plan, 0, t->inputs, err);
    if (status == CNR_OK) status = set_input(t->session, t->plan, t->in_labels, t->labels, err);
    if (status == CNR_OK) status = set_input(t->session, t->plan, t->in_step, &step, err);
    if (status == CNR_OK) status = set_input(t->session, t->plan, t->in_rate, &rate, err);
    if (status == CNR_OK) status = cnr_session_run(t->session, err);
    t->away = t->stale = true; /* even if it was stopped half-way */
    if (status == CNR_OK) status = cnr_session_output(t->session, 0, &value, err);
    if (status == CNR_OK) status = cnr_session_output(t->session, 1, &scores, err);
    if (status != CNR_OK) return status;
    *loss = number_of(value);
    *correct = count_correct(t, scores, t->options.batch);
    t->step++;
    t->rate = rate;
    return renew_prepared(t, err);
}

cnr_status cnri_trainer_gradients(cnri_trainer *t, const float *input, double *loss,
                                  cnr_error *err) {
    const cnr_tensor *value = NULL;
    float step = (float)(t->step + 1);
    cnr_status status = check_labels(t, t->options.batch, err);
    if (status == CNR_OK) status = set_input(t->session, t->plan, 0, (void *)input, err);
    if (status == CNR_OK) status = set_input(t->session, t->plan, t->in_labels, t->labels, err);
    if (status == CNR_OK) status = set_input(t->session, t->plan, t->in_step, &step, err);
    if (status == CNR_OK) status = cnr_session_run(t->session, err);
    if (status == CNR_OK) status = cnr_session_output(t->session, 0, &value, err);
    for (int32_t i = 0; i < t->weights.n && status == CNR_OK; i++)
        if (!t->weights.at[i].learned)
            status = cnri_plan_fetch(t->plan, t->weights.at[i].value, err);
    if (status != CNR_OK) return status;
    *loss = number_of(value);
    t->step++;
    return CNR_OK;
}

cnr_status cnri_trainer_set(cnri_trainer *t, const char *weight, const float *data,
                            cnr_error *err) {
    for (int32_t i = 0; i < t->weights.n; i++) {
        const cnri_trained *w = &t->weights.at[i];
        if (strcmp(w->name, weight) != 0) continue;
        memcpy(w->data, data, (size_t)w->n * sizeof *data);
        return renew(t->plan, w, err);
    }
    return cnri_fail(err, CNR_E_NOT_FOUND, weight, "no such weight to train");
}

/* ---- judging and keeping ---- */

cnr_status cnri_trainer_fetch(cnri_trainer *t, cnr_error *err) {
    cnr_status status = CNR_OK;
    if (!t->away) return CNR_OK;
    for (int32_t i = 0; i < t->weights.n && status == CNR_OK; i++)
        status = cnri_plan_fetch(t->plan, t->weights.at[i].value, err);
    t->away = status != CNR_OK;
    return status;
}

/* Gives the judge's plan the weights that changed since it last ran (t->stale). */
static cnr_status renew_judge(cnri_trainer *t, cnr_error *err) {
    if (!t->stale) return CNR_OK;
    cnr_status status = cnri_trainer_fetch(t, err);
    for (int32_t i = 0; i < t->weights.n && status == CNR_OK; i++) {
        const cnri_trained *w = &t->weights.at[i];
        for (int32_t k = 0; k < w->n_memories && status == CNR_OK; k++)
            if (w->memory[k] == w->judged) status = cnri_plan_fetch(t->plan, w->memories[k], err);
        if (status == CNR_OK) status = renew(t->judge_plan, w, err);
    }
    t->stale = status != CNR_OK;
    return status;
}

cnr_status cnri_trainer_judge(cnri_trainer *t, int64_t n, int64_t *correct, float *kept,
                              cnr_error *err) {
    const cnr_tensor *scores = NULL;
    cnr_status status = check_labels(t, n, err);
    if (status == CNR_OK) status = renew_judge(t, err);
    if (status == CNR_OK) status = set_input(t->judge_session, t->judge_plan, 0, t->inputs, err);
    if (status == CNR_OK) status = cnr_session_run(t->judge_session, err);
    if (status == CNR_OK) status = cnr_session_output(t->judge_session, 0, &scores, err);
    if (status != CNR_OK) return status;
    *correct = count_correct(t, scores, n);
    if (kept) memcpy(kept, scores->data, (size_t)(n * t->classes) * sizeof *kept);
    return CNR_OK;
}

cnr_status cnri_trainer_keep(cnri_trainer *t, cnr_error *err) {
    const cnr_status status = renew_judge(t, err);
    for (int32_t i = 0; i < t->weights.n && status == CNR_OK; i++)
        memcpy(t->weights.at[i].best, t->weights.at[i].judged,
               (size_t)t->weights.at[i].n * sizeof(float));
    return status;
}

/* Gives the net, and the trainer's own copies, the best weights that were stored. */
cnr_status cnri_trainer_finish(cnri_trainer *t, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < t->weights.n && status == CNR_OK; i++) {
        const cnri_trained *w = &t->weights.at[i];
        const cnr_value v = cnri_graph_find(t->net, w->name);
        cnr_tensor type = *t->net->values.at[v].type;
        memcpy(w->data, w->best, (size_t)w->n * sizeof(float));
        type.data = w->best;
        status = cnri_graph_fill(t->net, v, &type, err);
    }
    return status;
}
