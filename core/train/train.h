/* train: gradients of a graph by its operators' own hooks, and stochastic gradient descent.
 *
 *   net ---copy, bind to the batch---> forward nodes, loss, gradient nodes ---> a plan, run each step
 *     \--copy, bind to the batch---> the net as it is ---> another plan, to judge by
 *
 * Both graphs read the weights from the trainer's own arrays, which each step changes in place. */
#ifndef CNRI_TRAIN_H
#define CNRI_TRAIN_H

#include "core/run/run.h"

/* ---- backward.c: a bound graph becomes one that computes loss and gradients ---- */
typedef struct cnri_gradient { cnr_value weight, gradient; } cnri_gradient;
typedef struct cnri_backward {
    cnr_value labels, loss, scores; /* scores: what the loss reads */
    CNRI_VEC(cnri_gradient) weights; /* those that the loss depends on */
} cnri_backward;
/* The operator that measures: by name, or the first that says it is one. */
cnr_status cnri_train_loss(const char *name, const cnr_op **out, cnr_error *err);
/* Weights to train are the VARIABLE ones. The outputs become loss, scores, then the gradients. */
cnr_status cnri_train_backward(cnr_graph *g, const cnr_op *loss, cnri_backward *out,
                               cnr_error *err);
void cnri_backward_free(cnri_backward *b);

/* ---- trainer.c ---- */
typedef enum cnri_train_policy {
    CNRI_RATE_FIXED,
    CNRI_RATE_INVERSE, /* rate * (1 + 1e-4 step) ^ -0.75 */
    CNRI_RATE_STEP,    /* a tenth after each third */
    CNRI_RATE_COSINE   /* to 0 along half a cosine */
} cnri_train_policy;

typedef struct cnri_train_options {
    const char *loss; /* operator; NULL: the net's metadata "loss", else the first there is */
    int64_t batch, epochs;
    double rate, momentum, decay; /* decay: of weights with two or more axes */
    cnri_train_policy policy;
    uint64_t seed;
    const char *device;
    bool deterministic;
} cnri_train_options;

typedef struct cnri_trained { /* one weight */
    char *name;
    int64_t n;
    float *data, *velocity, *best;
    uint8_t *mask;  /* NULL, or n bytes: where 0 the weight stays 0 */
    int32_t output; /* of the training graph: its gradient */
    bool decays;
} cnri_trained;

typedef struct cnri_trainer {
    cnr_graph *net; /* as loaded; gets the best weights in the end */
    cnri_train_options options;
    cnr_model *model, *judge;
    cnr_plan *plan, *judge_plan;
    cnr_session *session, *judge_session;
    CNRI_VEC(cnri_trained) weights;
    cnri_preprocess preprocess;
    float *inputs;   /* one batch */
    int32_t *labels;
    int64_t sample;  /* floats of one */
    int64_t classes;
    int64_t step, steps; /* done, in all epochs together */
} cnri_trainer;

/* Unfilled weights are filled at random from the seed. `net` must outlive the trainer. */
cnr_status cnri_trainer_open(cnr_runtime *rt, cnr_graph *net, const cnri_train_options *options,
                             cnri_trainer **out, cnr_error *err);
/* One that can only judge, by the weights as they are. */
cnr_status cnri_trainer_open_judge(cnr_runtime *rt, cnr_graph *net,
                                   const cnri_train_options *options, cnri_trainer **out,
                                   cnr_error *err);
void cnri_trainer_free(cnri_trainer *t);
/* One step on t->inputs and t->labels: forward, backward, update. */
cnr_status cnri_trainer_step(cnri_trainer *t, double *loss, int64_t *correct, cnr_error *err);
/* How many of the first n samples of t->inputs the net gets right. */
cnr_status cnri_trainer_judge(cnri_trainer *t, int64_t n, int64_t *correct, cnr_error *err);
/* Keeps the weights as the best so far; or goes back to them and puts them into the net. */
void cnri_trainer_keep(cnri_trainer *t);
cnr_status cnri_trainer_finish(cnri_trainer *t, cnr_error *err);
/* Pins the weight's elements to 0 where mask is 0. */
cnr_status cnri_trainer_mask(cnri_trainer *t, const char *weight, const uint8_t *mask,
                             cnr_error *err);

/* ---- loop.c: epochs over samples ---- */
typedef struct cnri_train_progress {
    int64_t epoch, epochs, step, steps; /* steps of this epoch */
    double loss, accuracy;  /* of this epoch's training samples so far */
    double judged, best;    /* accuracy on the other samples; -1: not yet */
    int64_t best_epoch;     /* from 1 on; 0: none yet */
    double seconds, left;
    bool epoch_done;
    bool stopped, diverged; /* why training ended before its time */
} cnri_train_progress;
/* After each step and each epoch; false stops, keeping the best. */
typedef bool (*cnri_train_fn)(void *arg, const cnri_train_progress *progress);
/* The best weights by `judge`'s samples are in the net afterwards. Stopped before an epoch was judged
 * it is CNR_E_CANCELLED, diverging before that CNR_E_STATE: the net is then as it was. */
cnr_status cnri_train_run(cnri_trainer *t, cnri_samples *samples, cnri_samples *judge,
                          cnri_train_fn fn, void *arg, cnri_train_progress *last, cnr_error *err);
/* The share of samples that another net, weights and all, is right on: by the same preprocessing
 * and in the same batches as one that is trained. `stop` (may be NULL) is asked between batches. */
cnr_status cnri_train_score(cnr_runtime *rt, cnr_graph *net, const cnri_train_options *options,
                            cnri_samples *samples, bool (*stop)(void), double *score,
                            cnr_error *err);

#endif
