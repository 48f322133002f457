/* Loss and gradients of one batch, for training loops of the caller's own. The trainer is kept
 * with the model, and opened again when batch size, loss, seed or a mask changes. */
#include "train/train.h"
#include "work/work.h"

/* A trainer that only derives gradients. */
typedef struct learner {
    cnri_trainer *t;
    cnr_gradient_options o;
    cnri_own_loss own;
    int64_t batch;
    char *loss;
    const char **names;
    const cnr_tensor **at;
} learner;

/* ---- with the model ---- */

/* Frees a learner and its trainer. */
static void close_learner(void *state) {
    learner *l = state;
    cnri_trainer_free(l->t);
    cnri_free(l->loss);
    cnri_free((void *)l->names);
    cnri_free((void *)l->at);
    cnri_free(l);
}

/* Gives the learner's trainer a weight's new value, which is copied. */
static cnr_status follow(void *state, const char *weight, const cnr_tensor *value, cnr_error *err) {
    return cnri_trainer_set(((learner *)state)->t, weight, value->data, err);
}

/* True for two equal texts, or NULL twice. */
static bool same_text(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* True if the learner was made for the same batch size, seed and loss. */
static bool can_reuse(const learner *l, const cnr_gradient_options *o, const cnri_own_loss *own,
                      int64_t batch) {
    return l && l->batch == batch && l->o.seed == o->seed && same_text(l->loss, o->loss) &&
           l->own.id == own->id;
}

/* Opens the trainer of a learner for gradients alone, on the model's device and limits. */
static cnr_status open_trainer(cnr_model *m, learner *l, cnr_error *err) {
    const cnri_train_options how = {.loss = l->loss,
                                    .own_loss = l->own,
                                    .batch = l->batch,
                                    .epochs = 1,
                                    .seed = l->o.seed,
                                    .device = m->plan_options.device,
                                    .deterministic = m->plan_options.deterministic,
                                    .memory_limit = m->plan_options.memory_limit,
                                    .masked = (const char *const *)m->masked.at,
                                    .n_masked = m->masked.n};
    const cnr_status status = cnri_trainer_open_gradients(m->rt, m->graph, &how, &l->t, err);
    if (status) return status;
    const size_t n = (size_t)l->t->gradients.n + 1;
    l->names = cnri_alloc_zero(n * sizeof *l->names);
    l->at = cnri_alloc_zero(n * sizeof *l->at);
    if (!l->names || !l->at) return cnri_out_of_memory(err, m->graph->name);
    for (int32_t i = 0; i < l->t->gradients.n; i++)
        l->names[i] = l->t->weights.at[l->t->gradients.at[i]].name;
    return CNR_OK;
}

/* Makes a learner for the model, which owns it, in place of an earlier one. */
static cnr_status open_learner(cnr_model *m, const cnr_gradient_options *o,
                               const cnri_own_loss *own, int64_t batch, cnr_error *err) {
    cnri_model_drop_gradients(m);
    learner *l = cnri_alloc_zero(sizeof *l);
    if (!l) return cnri_out_of_memory(err, m->graph->name);
    *l = (learner){.o = *o,
                   .own = *own,
                   .batch = batch,
                   .loss = o->loss ? cnri_strdup(o->loss) : NULL};
    cnr_status status =
        o->loss && !l->loss ? cnri_out_of_memory(err, m->graph->name) : open_trainer(m, l, err);
    if (status) close_learner(l);
    else m->learner = (cnri_learner){l, close_learner, follow};
    return status;
}

/* ---- a batch ---- */

/* Fails unless the input is a batch of `want`, whose open sizes (< 0) may be any. */
static cnr_status check_batch(const cnr_model *m, const cnr_tensor *input, const cnr_tensor *want,
                              cnr_error *err) {
    bool same = input->rank == want->rank && input->dtype == want->dtype && input->rank > 1 &&
                !input->encoding;
    for (int32_t i = 1; same && i < want->rank; i++)
        same = want->dim[i] < 0 || want->dim[i] == input->dim[i];
    if (same) return CNR_OK;
    cnri_text t = {0};
    for (int32_t i = 1; i < want->rank; i++)
        if (want->dim[i] < 0) cnri_text_add(&t, ",?");
        else cnri_text_add(&t, ",%lld", (long long)want->dim[i]);
    cnri_fail(err, CNR_E_SHAPE, cnr_input_name(m, 0), "a batch %s [n%s] is wanted",
              cnr_dtype_name(want->dtype), t.at ? t.at : "");
    cnri_text_free(&t);
    return CNR_E_SHAPE;
}

/* Checks the input's type and the number of labels. */
static cnr_status check(const cnr_model *m, const cnr_tensor *input, int64_t n_labels,
                        cnr_error *err) {
    if (cnr_input_count(m) != 1)
        return cnri_fail(err, CNR_E_UNSUPPORTED, m->graph->name,
                         "gradients are of nets of one input; this one has %d", cnr_input_count(m));
    CNR_TRY(check_batch(m, input, cnr_input_type(m, 0), err));
    if (input->dim[0] == n_labels && n_labels > 0) return CNR_OK;
    return cnri_fail(err, CNR_E_ARG, "labels", "%lld for a batch of %lld", (long long)n_labels,
                     (long long)input->dim[0]);
}

/* Copies the statistics measured on the batch into the model. */
static cnr_status take_statistics(cnr_model *m, const cnri_trainer *t, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < t->weights.n && !status; i++) {
        const cnri_trained *w = &t->weights.at[i];
        const cnr_value v = w->learned ? -1 : cnri_graph_find(m->graph, w->name);
        if (v < 0) continue;
        cnr_tensor now = *m->graph->values.at[v].type;
        if (memcmp(now.data, w->data, (size_t)w->n * sizeof *w->data) == 0) continue;
        now.data = w->data;
        status = cnri_model_idle(m, err);
        if (!status) status = cnri_graph_fill(m->graph, v, &now, err);
    }
    return status;
}

/* Fills the result with loss, scores and gradients in the session's memory, which the learner
 * owns. */
static cnr_status give(const learner *l, double loss, cnr_gradients *out, cnr_error *err) {
    const cnri_trainer *t = l->t;
    cnr_status status = cnr_session_output(t->session, 1, &out->scores, err);
    for (int32_t i = 0; i < t->gradients.n && !status; i++)
        status = cnr_session_output(t->session, i + 2, &l->at[i], err);
    out->n = t->gradients.n;
    out->loss = loss;
    out->names = l->names;
    out->at = l->at;
    return status;
}

/* Derives gradients of the loss on one batch, with the last learner if it fits, into *got. */
static cnr_status derive(cnr_model *m, const cnr_gradient_options *o, const cnri_own_loss *own,
                         const cnr_tensor *input, const int32_t *labels, cnr_gradients *got,
                         cnr_error *err) {
    double loss = 0;
    cnr_status status = CNR_OK;
    if (!can_reuse(m->learner.state, o, own, input->dim[0]))
        status = open_learner(m, o, own, input->dim[0], err);
    if (status) return status;
    learner *l = m->learner.state;
    CNR_TRY(check_batch(m, input, &l->t->input, err)); /* sizes by the preprocessing */
    memcpy(l->t->labels, labels, (size_t)l->batch * sizeof *labels);
    status = cnri_trainer_gradients(l->t, input->data, &loss, err);
    if (!status) status = take_statistics(m, l->t, err);
    return status ? status : give(l, loss, got, err);
}

cnr_status cnri_gradients_of(cnr_model *m, const cnr_gradient_options *options,
                             const cnri_own_loss *own, const cnr_tensor *input,
                             const int32_t *labels, int64_t n_labels, cnr_gradients *out,
                             cnr_error *err) {
    cnr_gradient_options o;
    cnr_gradients got = {.size = sizeof got};
    CNRI_COPY_OPTIONS(o, options);
    cnr_status status =
        cnri_require_arguments(err, "model", m, "input", input, "labels", labels, "out", out, NULL);
    if (!status) status = CNRI_CHECK_RESULT_SIZE(out, got, err);
    if (!status) status = cnri_tensor_check(input, "input", err);
    if (!status) status = cnri_check_process(m->rt, err);
    if (!status) status = check(m, input, n_labels, err);
    if (!status) status = derive(m, &o, own, input, labels, &got, err);
    if (!status) *out = got;
    return status;
}

cnr_status cnr_gradients_of(cnr_model *m, const cnr_gradient_options *options,
                            const cnr_tensor *input, const int32_t *labels, int64_t n_labels,
                            cnr_gradients *out, cnr_error *err) {
    return cnri_gradients_of(m, options, &(cnri_own_loss){0}, input, labels, n_labels, out, err);
}
