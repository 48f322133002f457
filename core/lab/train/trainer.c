/* A trainer: its weights, the graphs made from the net, and its two plans. */
#include "initial/initial.h"
#include "train/train.h"

/* ---- which weights ---- */

/* True if the zeros of a weight are to stay. */
static bool is_masked(const cnri_train_options *o, const char *weight) {
    return (o->keep_zeros && cnri_matches_pattern(o->keep_zeros, weight)) ||
           CNRI_INDEX_OF(o->masked, o->n_masked, weight) >= 0;
}

/* Makes the mask of a weight's zeros. False: out of memory. */
static bool mask_zeros(cnri_trained *w) {
    w->mask = cnri_alloc((size_t)w->n * sizeof *w->mask + 1);
    for (int64_t i = 0; w->mask && i < w->n; i++) w->mask[i] = w->data[i] != 0;
    return w->mask != NULL;
}

/* True if a pattern of the list (separated by commas) matches the name. A NULL list matches
 * nothing. */
static bool is_listed(const char *list, const char *name) {
    char pattern[256];
    for (const char *at = list; at && *at; at += strspn(at, ",")) {
        const size_t n = strcspn(at, ",");
        snprintf(pattern, sizeof pattern, "%.*s", (int)n, at);
        if (cnri_matches_pattern(pattern, name)) return true;
        at += n;
    }
    return false;
}

/* Fails unless each pattern of the list matches some weight. */
static cnr_status check_freeze(const cnri_trainer *t, cnr_error *err) {
    char pattern[256];
    for (const char *at = t->options.freeze; at && *at; at += strspn(at, ",")) {
        const size_t n = strcspn(at, ",");
        bool found = false;
        snprintf(pattern, sizeof pattern, "%.*s", (int)n, at);
        for (cnr_value v = 0; v < t->net->values.n && n < sizeof pattern && !found; v++)
            found = cnri_train_is_weight(t->net, v) &&
                    cnri_matches_pattern(pattern, t->net->values.at[v].name);
        if (!found)
            return cnri_fail(err, CNR_E_ARG, "freeze", "the net has no weights called \"%s\"",
                             pattern);
        at += n;
    }
    return CNR_OK;
}

/* Appends the weights to train to t->weights; *frozen rises by how many the options leave out. */
static cnr_status add_weights(cnri_trainer *t, int32_t *frozen, cnr_error *err) {
    for (cnr_value v = 0; v < t->net->values.n; v++) {
        if (!cnri_train_is_weight(t->net, v)) continue;
        if (is_listed(t->options.freeze, t->net->values.at[v].name) &&
            !(t->options.new_head && cnri_train_is_head(t->net, v))) {
            ++*frozen;
            continue;
        }
        const cnr_tensor *type = t->net->values.at[v].type;
        cnri_trained *w = cnri_push(&t->weights);
        if (!w) return cnri_out_of_memory(err, t->net->name);
        w->n = cnr_count(type);
        w->decays = type->rank > 1;
        w->value = -1;
        bool overflow = false;
        const size_t bytes = cnri_mul((size_t)w->n, sizeof(float), &overflow);
        w->name = cnri_strdup(t->net->values.at[v].name);
        w->data = cnri_alloc(bytes + 1);
        w->best = cnri_alloc(bytes + 1);
        w->judged = w->data;
        if (overflow || !w->name || !w->data || !w->best)
            return cnri_out_of_memory(err, t->net->name);
        memcpy(w->data, type->data, bytes);
        memcpy(w->best, type->data, bytes);
        if (is_masked(&t->options, w->name) && !mask_zeros(w))
            return cnri_out_of_memory(err, t->net->name);
    }
    return CNR_OK;
}

/* Warns of weights that are not trained because nodes stand between them and their layer. */
static void tell_of_turned(const cnr_graph *g) {
    for (cnr_value v = 0; v < g->values.n; v++)
        if (cnri_train_is_turned(g, v))
            cnri_log(CNR_LOG_WARN, g->name, "%s is computed of constants: it is not trained",
                     g->values.at[v].name);
}

/* Collects the weights to train, after constants were folded into them. */
static cnr_status collect_weights(cnri_trainer *t, cnr_error *err) {
    int32_t frozen = 0;
    cnr_status status = cnri_graph_verify_weights(t->net, NULL, false, 0, err);
    if (status == CNR_OK) status = cnri_train_fold(t->net, err);
    if (status == CNR_OK) status = add_weights(t, &frozen, err);
    if (status != CNR_OK) return status;
    if (t->options.freeze && !frozen)
        return cnri_fail(err, CNR_E_ARG, "freeze", "the net has no weights called \"%s\"",
                         t->options.freeze);
    status = check_freeze(t, err);
    if (status == CNR_OK && t->weights.n > 0) tell_of_turned(t->net);
    if (status != CNR_OK || t->weights.n > 0) return status;
    return cnri_fail(err, CNR_E_ARG, t->net->name,
                     "can't be trained because it has no f32 weights%s",
                     frozen ? " but those that are frozen" : "");
}

/* ---- graphs ---- */

/* Copies the net into *out for the training batch, with the trainer's arrays as its weights: those
 * that are judged, or those that are trained. Nothing else in it stays a variable, because such
 * data may lie in a mapped file. */
static cnr_status copy_net(cnri_trainer *t, bool judged, cnr_graph **out, cnr_error *err) {
    cnr_graph *g = cnri_graph_copy(t->net);
    *out = g;
    if (!g) return cnri_out_of_memory(err, t->net->name);
    for (cnr_value v = 0; v < g->values.n; v++)
        g->values.at[v].type->flags &= ~(uint32_t)CNR_TENSOR_VARIABLE;
    for (int32_t i = 0; i < t->weights.n; i++) {
        cnri_value *v = &g->values.at[cnri_graph_find(g, t->weights.at[i].name)];
        v->type->data = judged ? t->weights.at[i].judged : t->weights.at[i].data;
        v->seal = NULL;
        v->type->flags |= CNR_TENSOR_VARIABLE;
    }
    if (t->options.wrap) CNR_TRY(t->options.wrap(t->options.wrap_arg, g, err));
    const int64_t written_for = g->values.at[g->inputs.at[0]].type->dim[0];
    for (int32_t a = 0; a < t->input.rank; a++)
        g->values.at[g->inputs.at[0]].type->dim[a] = t->input.dim[a];
    cnr_error why = CNR_ERROR_INIT;
    const cnr_status status = cnri_graph_bind(g, NULL, 0, &why);
    if (status == CNR_OK) return CNR_OK;
    return cnri_fail(err, status, why.where, "can't be trained in batches of %lld%s because: %s",
                     (long long)t->options.batch,
                     written_for == 1 && t->options.batch > 1 ? " (the net is written for 1)" : "",
                     why.text);
}

/* Opens model, plan and session for the graph, which the model owns, after an error too. */
static cnr_status open_session(cnri_trainer *t, cnr_runtime *rt, cnr_graph *g, cnr_model **model,
                               cnr_plan **plan, cnr_session **session, cnr_error *err) {
    cnr_load_options options;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.device = t->options.device;
    options.deterministic = t->options.deterministic;
    options.memory_limit = t->options.memory_limit;
    cnr_status status = cnri_model_from_graph(rt, g, &options, model, err);
    if (status != CNR_OK) return status;
    (*model)->plan_options.training = true;
    status = cnr_plan_for(*model, NULL, 0, plan, err);
    if (status == CNR_OK) status = cnr_session_open(*plan, session, err);
    if (status == CNR_OK) cnri_session_cancel_by(*session, t->options.cancel);
    return status;
}

/* Number of the net's input with that value; -1: none. */
static int32_t input_index(const cnr_graph *g, cnr_value value) {
    for (int32_t i = 0; i < g->inputs.n; i++)
        if (g->inputs.at[i] == value) return i;
    return -1;
}

/* Arguments of the operators' training hooks; step: the value with the step's number. */
static cnr_training mode_of(const cnri_trainer *t, cnr_value step) {
    cnr_training training = {.size = sizeof training,
                             .step = step,
                             .seed = t->options.seed,
                             .first = t->first,
                             .part = (double)t->options.batch / (double)t->batch};
    const cnr_group *group = t->batch != t->options.batch ? cnri_group_descriptor() : NULL;
    if (!group || t->options.local_statistics) return training;
    training.sum_begin_op = group->sum_begin_op;
    training.sum_wait_op = group->sum_wait_op;
    return training;
}

/* Adds to the copy of the net all that training needs: inputs step and rate, loss, gradients and
 * optimiser. */
static cnr_status build(cnri_trainer *t, cnr_graph *g, const cnr_op *loss, cnr_error *err) {
    const cnr_tensor number = {.size = sizeof number, .dtype = CNR_f32};
    const cnr_value step = cnri_train_input(g, "step", &number);
    const bool updates = t->optimizer || t->options.own_optimizer.build;
    const cnr_value rate = updates ? cnri_train_input(g, "rate", &number) : 0;
    cnri_backward b = {0};
    if (step < 0 || rate < 0) return cnri_graph_status(g, false, err);
    const cnr_training training = mode_of(t, step);
    cnr_status status = cnri_train_mode(g, &training, err);
    if (status == CNR_OK) status = cnri_train_backward(g, loss, &t->options.own_loss, &b, err);
    memcpy(t->loss_digest, b.digest, sizeof b.digest);
    for (int32_t i = 0; i < t->weights.n && status == CNR_OK; i++) {
        cnri_trained *w = &t->weights.at[i];
        w->value = cnri_graph_find(g, w->name);
        w->learned = false;
        for (int32_t k = 0; k < b.weights.n; k++)
            if (b.weights.at[k].weight == w->value) {
                b.weights.at[k].index = i;
                w->learned = true;
            }
    }
    if (status == CNR_OK) status = cnri_train_optimise(t, g, &b, rate, step, err);
    t->in_labels = input_index(g, b.labels);
    t->in_step = input_index(g, step);
    t->in_rate = input_index(g, rate);
    cnri_backward_free(&b);
    return status;
}

/* Listener: lets sums over ranks advance behind each operator. */
static void poke(void *arg, const cnri_event *event) {
    (void)arg;
    if (event->kind == CNRI_EVENT_STEP_END) cnri_group_poke();
}

/* Builds loss, gradients and optimiser, and opens the session that trains. */
static cnr_status open_training(cnri_trainer *t, cnr_error *err) {
    const char *name = t->options.loss ? t->options.loss : cnri_graph_meta(t->net, "loss");
    const cnr_op *loss = NULL;
    cnri_own_loss *own = &t->options.own_loss, file = {0};
    cnr_graph *g = NULL;
    cnr_status status = CNR_OK;
    if (!own->build && name && !cnri_op_find(name)) {
        status = cnri_loss_file_open(name, &file, err);
        *own = file;
    }
    /* The loss operator says which operator it absorbs. */
    if (own->build) loss = cnri_train_op_with(CNR_OP_LOSS);
    else if (status == CNR_OK) status = cnri_train_loss(name, &loss, err);
    if (status == CNR_OK) status = copy_net(t, false, &g, err);
    if (status == CNR_OK) status = build(t, g, loss, err);
    *own = (cnri_own_loss){0}; /* it has been built, or never will be */
    t->options.own_optimizer = (cnri_own_optimizer){0};
    cnri_loss_file_close(&file);
    if (status != CNR_OK) {
        cnri_graph_free(g);
        return status;
    }
    status = open_session(t, t->rt, g, &t->model, &t->plan, &t->session, err);
    /* a stop waits for the end of the step, because a checkpoint must not contain half a step */
    if (status == CNR_OK && (t->options.checkpoint || t->batch != t->options.batch))
        cnri_session_cancel_by(t->session, NULL); /* other ranks would wait for this one's sums */
    int32_t listener;
    if (status == CNR_OK && t->batch != t->options.batch)
        status = cnri_session_listen(t->session, poke, NULL, false, &listener, err);
    for (int32_t i = 0; i < t->weights.n && status == CNR_OK; i++)
        t->weights.at[i].prepared = cnri_residency_uses(t->plan, t->weights.at[i].value);
    return status;
}

/* Closes what open_training opened. */
static void close_training(cnri_trainer *t) {
    if (t->session) cnr_session_close(t->session);
    if (t->plan) cnr_plan_release(t->plan);
    if (t->model) cnr_release(t->model);
    t->session = NULL;
    t->plan = NULL;
    t->model = NULL;
}

/* Opens the session that judges: a plan of a copy of the net, and its number of classes. */
static cnr_status open_judge(cnri_trainer *t, cnr_error *err) {
    cnr_graph *g = NULL;
    const cnr_status status = copy_net(t, true, &g, err);
    if (status != CNR_OK) {
        cnri_graph_free(g);
        return status;
    }
    const cnr_tensor *scores = cnri_graph_type(g, g->outputs.at[0]);
    const int64_t count = cnr_count(scores);
    t->classes = count / t->options.batch;
    if (scores->dtype == CNR_f32 && scores->rank > 0 && scores->dim[0] == t->options.batch &&
        count > 0)
        return open_session(t, t->rt, g, &t->judge, &t->judge_plan, &t->judge_session, err);
    cnri_graph_free(g);
    return cnri_fail(err, CNR_E_SHAPE, t->net->name,
                     "can't be trained because its output is no f32 scores of classes");
}

/* Reads the preprocessing, sets t->input to the type of one batch, and allocates inputs and labels;
 * CNR_E_SHAPE: it is no f32 batch of known size. */
static cnr_status open_inputs(cnri_trainer *t, cnr_error *err) {
    const cnri_value *input = &t->net->values.at[t->net->inputs.at[0]];
    cnr_status status = cnri_preprocess_read(t->net, input->name, &t->preprocess, err);
    if (status) return status;
    t->preprocess.memory_limit = t->options.memory_limit;
    const cnri_sizes sizes = {.batch = 1, .preprocess = &t->preprocess};
    cnri_input_sizes(t->net, 0, &sizes, &t->input);
    cnr_tensor one = t->input;
    if (one.rank > 0) one.dim[0] = 1;
    bool known = true; /* open sizes that nothing gives become 1 */
    for (int32_t a = 1; a < one.rank; a++)
        known = known && (input->type->dim[a] >= 0 || one.dim[a] > 1);
    t->sample = known ? cnr_count(&one) : -1;
    if (t->sample < 1 || one.dtype != CNR_f32 || one.rank < 2)
        return cnri_fail(err, CNR_E_SHAPE, input->name,
                         "can't be trained because its input is no f32 batch of a known size; what "
                         "is open, --resize or --crop says");
    /* A net written for one picture is trained in batches too. */
    t->input.dim[0] = t->options.batch;
    bool overflow = false;
    const size_t n = cnri_mul((size_t)t->sample, (size_t)t->options.batch, &overflow);
    const size_t bytes = cnri_mul(n, sizeof *t->inputs, &overflow);
    status = cnri_memory_fits(overflow ? UINT64_MAX : bytes, t->options.memory_limit, input->name,
                              "a batch", err);
    if (status) return status;
    t->inputs = cnri_alloc_zero(bytes);
    t->labels = cnri_alloc_zero((size_t)t->options.batch * sizeof *t->labels);
    if (!t->inputs || !t->labels) return cnri_out_of_memory(err, t->net->name);
    return CNR_OK;
}

/* Checks the ranges of the options; CNR_E_ARG names the one that is wrong. */
static cnr_status check(const cnri_trainer *t, cnr_error *err) {
    const cnri_train_options *o = &t->options;
    if (o->batch < 1 || o->batch > 1 << 20)
        return cnri_fail(err, CNR_E_ARG, "batch", "1 to 1048576 wanted");
    if (!(o->clip >= 0) || !(o->average >= 0 && o->average < 1) || o->accumulate < 0)
        return cnri_fail(err, CNR_E_ARG, "training",
                         "clip and accumulate must be 0 or more, average below 1");
    if (!(o->rate >= 0) || !(o->momentum < 1) || o->decay != o->decay)
        return cnri_fail(err, CNR_E_ARG, "training",
                         "rate must be 0 or more, momentum below 1, decay a number");
    if (t->net->inputs.n != 1 || t->net->outputs.n != 1)
        return cnri_fail(err, CNR_E_UNSUPPORTED, t->net->name,
                         "can't be trained because it has %d inputs and %d outputs; one of each "
                         "is wanted",
                         t->net->inputs.n, t->net->outputs.n);
    return cnri_rate_check(o, err);
}

/* Finds the optimiser operator; or a file if there is no operator of that name, or if the
 * options ask for more than an operator does. */
static cnr_status find_optimizer(cnri_trainer *t, cnri_own_optimizer *file, cnr_error *err) {
    cnri_train_options *o = &t->options;
    const bool more = o->clip > 0 || o->average > 0 || o->accumulate > 1 || o->layer_rates;
    const char *name = o->optimizer;
    cnr_status status = CNR_OK;
    if (o->own_optimizer.build) return CNR_OK;
    if (more && !name && !(status = cnri_train_optimizer(NULL, &t->optimizer, err)))
        name = t->optimizer->name;
    t->optimizer = NULL;
    if (name && (more || !cnri_op_find(name)) && !status) {
        status = cnri_optimizer_file_open(name, file, err);
        o->own_optimizer = *file;
        if (!status && more && !file->build)
            return cnri_fail(err, CNR_E_NOT_FOUND, name,
                             "clip, accumulate, average and layer rates want an optimiser in a "
                             "file, and there is none of that name");
    }
    return status || file->build ? status : cnri_train_optimizer(name, &t->optimizer, err);
}

/* Sets the batch and this rank's part of it (all unless shared), which is all that its sessions
 * see; fails if it is smaller than the number of ranks. */
static cnr_status take_part(cnri_trainer *t, bool shared, cnr_error *err) {
    int64_t end = t->options.batch;
    t->batch = t->options.batch;
    if (!shared || cnri_group_ranks() == 1) return CNR_OK;
    if (t->batch < cnri_group_ranks())
        return cnri_fail(err, CNR_E_ARG, "batch", "%lld samples can't be shared by %d processes",
                         (long long)t->batch, (int)cnri_group_ranks());
    cnri_group_part(t->batch, &t->first, &end);
    t->options.batch = end - t->first;
    return CNR_OK;
}

/* What a trainer is opened for: training, judging, or gradients alone. */
typedef enum purpose { TO_TRAIN, TO_JUDGE, TO_DERIVE } purpose;

/* Opens a trainer for that purpose into *out, to be freed with cnri_trainer_free. */
static cnr_status open_with(cnr_runtime *rt, cnr_graph *net, const cnri_train_options *options,
                            purpose purpose, cnri_trainer **out, cnr_error *err) {
    const bool training = purpose != TO_JUDGE;
    const int64_t before = cnri_alloc_failures();
    cnri_own_optimizer file = {0};
    cnri_trainer *t = cnri_alloc_zero(sizeof *t);
    *out = NULL;
    if (!t) return cnri_out_of_memory(err, net->name);
    t->rt = rt;
    t->net = net;
    t->options = *options;
    cnr_status status = check(t, err);
    if (status == CNR_OK) status = take_part(t, purpose == TO_TRAIN, err);
    if (status == CNR_OK && purpose == TO_TRAIN) status = find_optimizer(t, &file, err);
    if (status == CNR_OK && training) status = cnri_fill_random(net, options->seed, err);
    if (status == CNR_OK && training) status = collect_weights(t, err);
    if (status == CNR_OK) status = open_inputs(t, err);
    if (status == CNR_OK && training) status = open_training(t, err);
    if (status == CNR_OK && purpose != TO_DERIVE) status = open_judge(t, err);
    cnri_optimizer_file_close(&file);
    status = cnri_alloc_verdict(before, status, net->name, err);
    if (status == CNR_OK) *out = t;
    else cnri_trainer_free(t);
    return status;
}

cnr_status cnri_trainer_open(cnr_runtime *rt, cnr_graph *net, const cnri_train_options *options,
                             cnri_trainer **out, cnr_error *err) {
    return open_with(rt, net, options, TO_TRAIN, out, err);
}

cnr_status cnri_trainer_open_gradients(cnr_runtime *rt, cnr_graph *net,
                                       const cnri_train_options *options, cnri_trainer **out,
                                       cnr_error *err) {
    const cnr_status status = open_with(rt, net, options, TO_DERIVE, out, err);
    if (status) return status;
    const cnr_graph *g = (*out)->plan->graph;
    (*out)->classes = cnr_count(cnri_graph_type(g, cnri_graph_output_at(g, 1))) / options->batch;
    return CNR_OK;
}

cnr_status cnri_trainer_open_judge(cnr_runtime *rt, cnr_graph *net,
                                   const cnri_train_options *options, cnri_trainer **out,
                                   cnr_error *err) {
    return open_with(rt, net, options, TO_JUDGE, out, err);
}

void cnri_trainer_free(cnri_trainer *t) {
    if (!t) return;
    close_training(t);
    if (t->judge_session) cnr_session_close(t->judge_session);
    if (t->judge_plan) cnr_plan_release(t->judge_plan);
    if (t->judge) cnr_release(t->judge);
    for (int32_t i = 0; i < t->weights.n; i++) {
        cnri_trained *w = &t->weights.at[i];
        cnri_free(w->name);
        cnri_free(w->data);
        for (int32_t k = 0; k < w->n_memories; k++) cnri_free(w->memory[k]);
        cnri_free(w->best);
        cnri_free(w->mask);
    }
    cnri_vec_free(&t->weights);
    cnri_vec_free(&t->gradients);
    cnri_preprocess_free(&t->preprocess);
    cnri_free(t->inputs);
    cnri_free(t->labels);
    cnri_free(t);
}
