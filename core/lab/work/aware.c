/* Training for whole numbers: the layers that are quantised compute in floats, on weights and
 * outputs that hold only what 8 bits hold, with the ranges of the calibration. Gradients pass the
 * rounding. */
#include "train/train.h"
#include "work/calibrate.h"
#include <math.h>

/* What round_output needs: how values are quantised, and the operator that rounds. */
typedef struct wrapping {
    const cnri_answers *answers;
    const cnr_op *rounds;
} wrapping;

/* Adds a node that rounds a value as quantising would, before node `before`. */
static cnr_status add_rounding(cnr_graph *g, const cnr_op *op, int32_t before, cnr_value v,
                               const cnr_attr *const *attrs, int32_t n, cnr_error *err) {
    cnr_value rounded;
    cnri_graph_insert_before(g, before);
    cnr_status status = cnri_graph_node(g, op->name, NULL, NULL, &v, 1, attrs, n, &rounded, 1);
    cnri_graph_insert_before(g, -1);
    if (!status) status = cnri_graph_replace(g, v, rounded);
    return status ? cnri_fail(err, status, g->values.at[v].name, "can't be rounded in training")
                  : CNR_OK;
}

/* Rounds the output of a layer to its quantised steps. */
static cnr_status round_output(const wrapping *w, cnr_graph *g, const cnri_quantised_value *as,
                               cnr_error *err) {
    const cnr_attr scale = {.name = "step", .type = CNR_ATTR_FLOAT, .set = 1, .f = as->scale},
                   low = {.name = "low", .type = CNR_ATTR_FLOAT, .set = 1, .f = as->low};
    const cnr_attr *const attrs[] = {&scale, &low};
    return add_rounding(g, w->rounds, g->values.at[as->real].producer + 1, as->real, attrs, 2, err);
}

/* Lets the layer's weight be rounded as it trains, with one scale for each output channel; nothing
 * if the layer has no weight, or a node makes it. */
static cnr_status round_weight(const wrapping *w, cnr_graph *g, int32_t node, cnr_error *err) {
    const cnri_node *layer = g->nodes.at[node];
    cnr_linear ports;
    if (!CNRI_HAS(layer->view.desc, linear) ||
        layer->view.desc->linear(&layer->view, &ports) != 1 || ports.weight_port < 0)
        return CNR_OK;
    const cnr_value v = layer->in[ports.weight_port];
    const cnr_attr axis = {.name = "axis", .type = CNR_ATTR_INT, .set = 1, .i = ports.weight_axis};
    const cnr_attr *const attrs[] = {&axis};
    if (v < 0 || g->values.at[v].producer >= 0) return CNR_OK; /* or of another layer before */
    return add_rounding(g, w->rounds, node, v, attrs, 1, err);
}

/* Adds a rounding node behind each value that is quantised, from the last layer back, so that the
 * places of those before stay. */
static cnr_status wrap(void *arg, cnr_graph *g, cnr_error *err) {
    const wrapping *w = arg;
    cnr_status status = CNR_OK;
    for (int32_t i = w->answers->n - 1; i >= 0 && !status; i--) {
        const cnri_quantised_value *as = &w->answers->at[i].as;
        if (!cnri_is_quantised(&w->answers->at[i])) continue;
        status = round_output(w, g, as, err);
        if (!status) status = round_weight(w, g, cnri_answer_node(g, &w->answers->at[i]), err);
    }
    return status;
}

/* Passes the progress of training on to the observer; false: it wants to stop. */
static bool tell(void *arg, const cnri_train_progress *p) {
    const cnr_progress now = {.size = sizeof now,
                              .what = "training for 8 bits",
                              .done = p->epoch * p->steps + p->step,
                              .total = p->steps * p->epochs,
                              .epoch = p->epoch + 1,
                              .top1 = p->accuracy,
                              .loss = p->loss};
    return cnri_notify_progress(arg, &now);
}

enum { BATCH = 32 };

/* Which pictures judge the epochs. */
#define VALIDATION .validation = 0.1, .validation_seed = 1

cnr_status cnri_unseen_by_training(int64_t count, int64_t **order, int64_t *n, cnr_error *err) {
    const cnri_train_options how = {VALIDATION};
    return cnri_train_parts(&how, count, order, n, err);
}

cnr_status cnri_train_for_bytes(const cnri_calibration *c, const cnri_quantise_options *o,
                                const cnri_answers *answers, cnr_graph *net, int64_t *best_epoch,
                                double trained[2], cnr_error *err) {
    wrapping w = {answers, cnri_train_op_with(CNR_OP_ROUNDS)};
    const cnri_train_options how = {.batch = o->batch > 0 ? o->batch : BATCH,
                                    .epochs = o->epochs,
                                    .rate = o->rate > 0 ? o->rate : 0.001,
                                    .momentum = -1,
                                    .policy = CNRI_RATE_COSINE,
                                    VALIDATION,
                                    .seed = o->seed,
                                    .keep_zeros = o->keep_zeros,
                                    .device = c->how.device,
                                    .deterministic = c->how.deterministic,
                                    .memory_limit = c->how.memory_limit,
                                    .wrap = wrap,
                                    .wrap_arg = &w};
    cnri_train_progress last = {.best = -1};
    cnri_judged before;
    cnri_trainer *t = NULL;
    cnr_graph *own = NULL;
    if (!w.rounds)
        return cnri_fail(err, CNR_E_NOT_FOUND, net->name,
                         "no loaded plugin has an operator to train for 8 bits with");
    cnr_status status = cnri_train_score(c->rt, net, &how, c->samples, true, &before, err);
    if (!status) status = cnri_graph_clone(net, &own, err);
    if (!status) status = cnri_trainer_open(c->rt, own, &how, &t, err);
    if (!status)
        status = cnri_train_run(t, c->samples, tell, (void *)(uintptr_t)c->observer, &last, err);
    if (!status && last.stopped) status = cnri_fail(err, CNR_E_CANCELLED, net->name, "stopped");
    trained[0] = status ? (double)NAN : before.share;
    trained[1] = status ? (double)NAN : fmax(before.share, last.best);
    *best_epoch = !status && last.best > before.share ? last.best_epoch : 0;
    for (int32_t i = 0; *best_epoch > 0 && i < t->weights.n && !status; i++) {
        const cnr_value v = cnri_graph_find(net, t->weights.at[i].name);
        cnr_tensor type = *net->values.at[v].type;
        type.data = t->weights.at[i].best;
        status = cnri_graph_fill(net, v, &type, err);
    }
    cnri_trainer_free(t);
    cnri_graph_free(own);
    return status;
}
