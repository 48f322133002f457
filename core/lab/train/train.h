/* train: gradients of a graph by its operators' own hooks, optimisers as nodes, and the loop.
 *
 *   net ---copy, bind to the batch---> nodes as training has them, loss, gradient nodes,
 *     |                                the hook's nodes, the optimiser's ---> a plan, run each step
 *     \--copy, bind to the batch---> the net as it is ---> another plan, to judge by
 *
 * Weights are variables: the optimiser's nodes write to them where they are (CNR_ALIAS_UPDATE). On
 * the host that is in the trainer's own arrays, which both graphs read; on a device they stay there
 * and are fetched when somebody judges or keeps them. Nothing here prints. */
#ifndef CNRI_TRAIN_H
#define CNRI_TRAIN_H

#include "group/group.h"
#include "run/run.h"
#include "samples/samples.h"

/* ---- backward.c: a bound graph becomes one that computes loss and gradients ---- */
typedef struct cnri_gradient {
    cnr_value weight, gradient;
    int32_t index; /* the caller's */
} cnri_gradient;
typedef struct cnri_backward {
    cnr_value labels, loss, scores;  /* scores: what the loss reads */
    uint8_t digest[32];              /* of the nodes of a loss of the caller's own; else zeros */
    CNRI_VEC(cnri_gradient) weights; /* those that the loss depends on */
} cnri_backward;
/* The operator that measures: by name, or the first that says it is one. */
cnr_status cnri_train_loss(const char *name, const cnr_op **out, cnr_error *err);
/* A loss of the caller's own: `build` adds nodes to g that make one number, *loss, of the inputs.
 */
typedef struct cnri_loss_inputs {
    cnr_value scores; /* the net's output */
    cnr_value logits; /* the input of a softmax at the net's end; without one: scores */
    cnr_value labels; /* i32 [batch] */
    int64_t batch, classes;
} cnri_loss_inputs;
typedef struct cnri_own_loss {
    cnr_status (*build)(void *arg, cnr_graph *g, const cnri_loss_inputs *in, cnr_value *loss,
                        cnr_error *err); /* NULL: the loss is an operator */
    void *arg;
    int64_t id; /* equal ids: equal losses, so that what was built can be used again */
} cnri_own_loss;
/* An optimiser of the caller's own: `build` adds nodes that make new weights of the gradients in b,
 * and write them and what it remembers (cnri_train_memory) where they are. */
struct cnri_trainer;
typedef struct cnri_own_optimizer {
    cnr_status (*build)(void *arg, struct cnri_trainer *t, cnr_graph *g, const cnri_backward *b,
                        cnr_value rate, cnr_value step, cnr_error *err); /* NULL: an operator */
    void *arg;
} cnri_own_optimizer;
/* Metrics: the caller's, and those of open files. */
typedef struct cnri_metrics {
    const cnr_metric *at[CNR_MAX_METRICS];
    int32_t n, n_files;
    void *files[CNR_MAX_METRICS];
} cnri_metrics;
/* Losses, optimisers and metrics in files. Who runs scripts registers them; any thread. */
typedef struct cnri_train_files {
    /* By a path, or the name of a shipped file; CNR_E_NOT_FOUND: there is no such file. */
    cnr_status (*open_loss)(const char *name, cnri_own_loss *out, cnr_error *err);
    void (*close_loss)(cnri_own_loss *loss);
    cnr_status (*open_optimizer)(const char *name, cnri_own_optimizer *out, cnr_error *err);
    void (*close_optimizer)(cnri_own_optimizer *optimizer);
    /* Adds the file's metrics; *file is for close_metrics, which frees them. */
    cnr_status (*open_metrics)(const char *name, cnri_metrics *to, void **file, cnr_error *err);
    void (*close_metrics)(void *file);
} cnri_train_files;
void cnri_train_files_register(const cnri_train_files *files);
/* build stays NULL where there is no such file, or nobody runs scripts. Close it in any case. */
cnr_status cnri_loss_file_open(const char *name, cnri_own_loss *out, cnr_error *err);
void cnri_loss_file_close(cnri_own_loss *loss);
cnr_status cnri_optimizer_file_open(const char *name, cnri_own_optimizer *out, cnr_error *err);
void cnri_optimizer_file_close(cnri_own_optimizer *optimizer);
cnr_status cnri_metric_file_open(const char *name, cnri_metrics *to, cnr_error *err);
/* Names differ, and there are no more than CNR_MAX_METRICS, or it is an error. Close it in any
 * case. */
cnr_status cnri_metrics_open(const char *files, const cnr_metric *const *own, int64_t n_own,
                             cnri_metrics *out, cnr_error *err);
void cnri_metrics_close(cnri_metrics *m);
cnr_status cnri_metrics_add(cnri_metrics *m, const cnr_metric *metric, cnr_error *err);
/* Which one "f1" or "-f1" names, and whether the least is best; NULL: -1, accuracy. */
cnr_status cnri_metrics_best(const cnri_metrics *m, const char *best_by, int32_t *index,
                             bool *least, cnr_error *err);
/* Of so many rows of scores; values: m->n. */
cnr_status cnri_metrics_compute(const cnri_metrics *m, float *scores, int64_t n, int64_t classes,
                                const int32_t *labels, double *values, cnr_error *err);
/* Named values, as results have them; values NULL: NaN. */
void cnri_metrics_tell(const cnri_metrics *m, const double *values, cnr_metric_value *out);
/* Identity of the nodes and values of g from those numbers on. */
cnr_status cnri_train_digest(const cnr_graph *g, int32_t nodes, int32_t values, uint8_t digest[32],
                             cnr_error *err);
/* Weights to train are the VARIABLE ones, but for statistics. The outputs become loss and
 * scores. `own` is NULL, or builds the loss; `loss` may then be NULL. */
cnr_status cnri_train_backward(cnr_graph *g, const cnr_op *loss, const cnri_own_loss *own,
                               cnri_backward *out, cnr_error *err);
void cnri_backward_free(cnri_backward *b);
const cnr_op *cnri_train_op_with(uint32_t flag); /* the first operator that has it; NULL: none */
/* Whether some node reads the value through a port of this flag. */
bool cnri_train_fed_as(const cnr_graph *g, cnr_value value, uint32_t flag);
/* An input of this name, or of one like it that is free. */
cnr_value cnri_train_input(cnr_graph *g, const char *name, const cnr_tensor *type);

/* ---- head.c ---- */
/* *net becomes one with that many classes: its last layer with weights begins anew, at random from
 * the seed. The old graph is freed; after an error it stays. */
cnr_status cnri_train_head(cnr_graph **net, int64_t classes, uint64_t seed, cnr_error *err);

/* ---- trainer.c ---- */
typedef enum cnri_rate_policy { /* as CNR_RATE_... in lab.h */
                                CNRI_RATE_FIXED,
                                CNRI_RATE_INVERSE,
                                CNRI_RATE_STEP,
                                CNRI_RATE_COSINE,
                                CNRI_RATE_POLY,
                                CNRI_RATE_MULTISTEP
} cnri_rate_policy;

/* Stands between a gradient and the optimiser: adds nodes that make another one of it (a mask, a
 * sum over machines), while the graph is built. */
typedef cnr_status (*cnri_train_hook)(void *arg, cnr_graph *g, cnr_value weight,
                                      cnr_value *gradient, cnr_error *err);

typedef struct cnri_train_options {
    const char
        *loss; /* operator or file; NULL: the net's metadata "loss", else the first there is */
    cnri_own_loss own_loss;           /* instead of `loss` */
    const char *optimizer;            /* operator or file; NULL: the first operator there is */
    cnri_own_optimizer own_optimizer; /* instead of `optimizer` */
    /* What an optimiser of one's own or in a file does besides (an operator's name then stands for
     * the file of that name): the norm of all gradients together is at most `clip`; they are
     * summed over so many steps; `average` of the mean of weights is kept each step, which is what
     * is judged and kept. 0: not so. */
    double clip, average;
    int64_t accumulate;
    const char *layer_rates; /* "conv*=0.1,ip1=2": times the rate, the first that fits; NULL */
    const char *freeze;      /* patterns of weights that stay, commas between; NULL: none */
    int64_t batch, epochs;
    int64_t limit; /* samples at most, validation's too; 0: all */
    double rate;
    double momentum, nesterov, decay; /* decay: of weights with two or more axes; < 0: the
                                       * optimiser's own default */
    double beta1, beta2, epsilon;     /* 0: the same */
    cnri_rate_policy policy;
    double gamma, power;     /* of those that have such; 0: their usual one */
    const char *rate_epochs; /* of those that fall at some; NULL: their usual ones */
    double (*schedule)(void *arg, int64_t step,
                       int64_t steps); /* the rate; NULL: rate and policy */
    void *schedule_arg;
    const char *keep_zeros;    /* a pattern of weights whose zeros stay; NULL: none */
    const char *const *masked; /* ... and such by name */
    int32_t n_masked;
    double validation; /* the part of the samples that epochs are judged by (1 and more: as many);
                        * 0: none, so that the last epoch is kept */
    uint64_t validation_seed; /* which they are */
    uint64_t seed;
    const char *device;
    bool deterministic;
    const volatile int32_t *cancel; /* stops a step in its middle; NULL: nobody does */
    const cnri_metrics *metrics;    /* of what is judged; NULL: none */
    const char *best_by;            /* as of cnr_train_options */
    cnri_train_hook hook;           /* NULL: none */
    void *hook_arg;
    /* Adds nodes to the net that is trained and to the one that is judged, before gradients are.
     * Its values have the numbers that they have in the net. NULL: none. */
    cnr_status (*wrap)(void *arg, cnr_graph *g, cnr_error *err);
    void *wrap_arg;
    uint64_t memory_limit; /* as of cnr_load_options */
    /* a file: written on the way, gone on from where it is there; NULL: none */
    const char *checkpoint;
    double checkpoint_seconds; /* between two, beside those behind epochs; 0: 30 */
} cnri_train_options;

enum { CNRI_OPTIMIZER_MEMORY = 4, CNRI_MAX_MEMORIES = 8 }; /* its first input of an optimiser */
#define CNRI_AVERAGE "average" /* the memory that begins as the weight, and is judged and kept */

typedef struct cnri_trained { /* one weight, or what is measured beside */
    char *name;
    int64_t n;
    float *data, *best;
    float *memory[CNRI_MAX_MEMORIES]; /* the optimiser's, n numbers each */
    int32_t n_memories;
    float *judged;                         /* data, or the memory that is judged instead */
    float *mask;                           /* NULL, or n numbers: where 0 the weight stays 0 */
    cnr_value value;                       /* in the training graph; -1 before it is there */
    cnr_value memories[CNRI_MAX_MEMORIES]; /* there, too */
    bool learned;                          /* the loss depends on it; else statistics */
    bool decays;
    bool prepared; /* some kernel's blob is made of it, and again each step */
} cnri_trained;

typedef struct cnri_trainer {
    cnr_graph *net; /* as loaded; gets the best weights in the end */
    cnri_train_options options;
    const cnr_op *optimizer;
    cnr_runtime *rt;
    cnr_model *model, *judge;
    cnr_plan *plan, *judge_plan;
    cnr_session *session, *judge_session;
    CNRI_VEC(cnri_trained) weights;
    cnri_preprocess preprocess;
    cnr_tensor input; /* of one batch: what the net leaves open, its preprocessing says */
    float *inputs;    /* one batch */
    int32_t *labels;
    int64_t sample; /* floats of one */
    /* Samples of a step over all ranks, of which options.batch, from `first` on, are this rank's.
     */
    int64_t batch, first;
    int64_t classes;
    uint8_t loss_digest[32];             /* as in cnri_backward */
    uint8_t own_digest[32];              /* of the nodes of an optimiser of one's own; else zeros */
    int64_t step, steps;                 /* done, in all epochs together */
    double rate;                         /* of the step done last */
    int32_t in_labels, in_step, in_rate; /* which inputs of the training graph they are */
    CNRI_VEC(int32_t)
    gradients; /* of one that computes them: whose they are, by output behind the scores */
    /* weights are newer in the training plan than here; than in the judge's plan */
    bool away, stale;
} cnri_trainer;

/* Whether training can change it: an f32 weight that some layer reads itself. */
bool cnri_train_is_weight(const cnr_graph *g, cnr_value v);
/* Frozen graphs of other programs turn and copy their constants by nodes. Where these leave no
 * weight to train, `net` is rewritten as a plan would be, so that layers have weights of their own,
 * with other names. Else nothing changes. */
cnr_status cnri_train_fold(cnr_graph *net, cnr_error *err);
/* Unfilled weights are filled at random from the seed. `net` must outlive the trainer. */
cnr_status cnri_trainer_open(cnr_runtime *rt, cnr_graph *net, const cnri_train_options *options,
                             cnri_trainer **out, cnr_error *err);
/* One that neither updates nor judges: loss, scores and the gradients are what its plan gives. */
cnr_status cnri_trainer_open_gradients(cnr_runtime *rt, cnr_graph *net,
                                       const cnri_train_options *options, cnri_trainer **out,
                                       cnr_error *err);
/* One that can only judge, by the weights as they are. */
cnr_status cnri_trainer_open_judge(cnr_runtime *rt, cnr_graph *net,
                                   const cnri_train_options *options, cnri_trainer **out,
                                   cnr_error *err);
void cnri_trainer_free(cnri_trainer *t);
/* ---- rate.c: options' rate and policy, at a step of so many ---- */
cnr_status cnri_rate_check(const cnri_train_options *o, cnr_error *err);
double cnri_rate_at(const cnri_train_options *o, int64_t step, int64_t steps);

/* ---- step.c ---- */
/* One step on t->inputs and t->labels: forward, backward, update. */
cnr_status cnri_trainer_step(cnri_trainer *t, double *loss, int64_t *correct, cnr_error *err);
/* Of t->labels and `input`; statistics of the batch are in the weights' arrays afterwards. */
cnr_status cnri_trainer_gradients(cnri_trainer *t, const float *input, double *loss,
                                  cnr_error *err);
/* New data for a weight, which its plan follows. */
cnr_status cnri_trainer_set(cnri_trainer *t, const char *weight, const float *data, cnr_error *err);
/* How many of the first n samples of t->inputs the net gets right. scores: room for theirs; NULL.
 */
cnr_status cnri_trainer_judge(cnri_trainer *t, int64_t n, int64_t *correct, float *scores,
                              cnr_error *err);
/* Copies the weights, if a step changed them on a device, to their arrays on the host. */
cnr_status cnri_trainer_fetch(cnri_trainer *t, cnr_error *err);
/* Keeps the weights as the best so far; or goes back to them and puts them into the net. */
cnr_status cnri_trainer_keep(cnri_trainer *t, cnr_error *err);
cnr_status cnri_trainer_finish(cnri_trainer *t, cnr_error *err);

/* ---- optimise.c ---- */
/* Replaces nodes by what their operators have in training; `step`: its number, a value of g. */
cnr_status cnri_train_mode(cnr_graph *g, cnr_value step, uint64_t seed, int64_t first,
                           cnr_error *err);
cnr_status cnri_train_optimizer(const char *name, const cnr_op **out, cnr_error *err);
/* Behind the gradients: hook, masks, optimiser; without one they become outputs. */
cnr_status cnri_train_optimise(cnri_trainer *t, cnr_graph *g, cnri_backward *b, cnr_value rate,
                               cnr_value step, cnr_error *err);
/* A memory of weight b->weights.at[i], which begins as zeros; one called CNRI_AVERAGE as the
 * weight. */
cnr_status cnri_train_memory(cnri_trainer *t, cnr_graph *g, const cnri_gradient *at,
                             const char *name, cnr_value *out, cnr_error *err);

/* ---- share.c: one training on several processes; with one of them nothing of it is there ---- */
/* Gradients become their means over the ranks' parts of the batch. They travel in buckets, each as
 * soon as its last one is computed. */
cnr_status cnri_train_share(cnri_trainer *t, cnr_graph *g, cnri_backward *b, cnr_error *err);
/* What is measured in training (statistics of batch normalisation) becomes its mean over the ranks.
 */
cnr_status cnri_train_share_statistics(cnri_trainer *t, cnr_error *err);
/* An error on a rank whose net, data or options are not those of rank 0. */
cnr_status cnri_train_share_check(const uint8_t key[32], cnr_error *err);

/* ---- loop.c: epochs over samples ---- */
typedef struct cnri_train_row { /* an epoch, as curves have it; shares -1: there is none */
    int64_t epoch;
    double loss, accuracy, judged, rate, seconds;
    double metrics[CNR_MAX_METRICS];
} cnri_train_row;
typedef CNRI_VEC(cnri_train_row) cnri_train_rows;
typedef struct cnri_train_progress {
    int64_t epoch, epochs, step, steps; /* steps of this epoch */
    double loss, accuracy;              /* of this epoch's training samples so far */
    double judged, best;        /* accuracy on the validation part; -1: not yet, or there is none */
    int64_t best_epoch;         /* from 1 on; 0: none yet */
    int64_t trained, validated; /* samples of either kind */
    double by;                  /* what the best epoch was chosen by: the more the better */
    double metrics[CNR_MAX_METRICS];      /* of the validation part of the last epoch */
    double best_metrics[CNR_MAX_METRICS]; /* of the best one */
    double seconds, left;
    bool epoch_done;
    bool stopped, diverged;     /* why training ended before its time */
    const cnri_train_row *rows; /* epochs that are over, those before a checkpoint too */
    int32_t n_rows;
} cnri_train_progress;
/* After each step and each epoch; false stops, keeping the best. */
typedef bool (*cnri_train_fn)(void *arg, const cnri_train_progress *progress);
/* Which of `count` samples epochs are judged by, and which are trained on: the first *held of
 * `order`, and the rest, drawn by options' validation_seed. cnri_free. */
cnr_status cnri_train_parts(const cnri_train_options *o, int64_t count, int64_t **order,
                            int64_t *held, cnr_error *err);
/* The weights of the best epoch, by the validation part, are in the net afterwards. Stopped before
 * an epoch was judged it is CNR_E_CANCELLED, diverging before that CNR_E_STATE: the net is then as
 * it was. No other samples are looked at: those of a test stay unseen. */
cnr_status cnri_train_run(cnri_trainer *t, cnri_samples *samples, cnri_train_fn fn, void *arg,
                          cnri_train_progress *last, cnr_error *err);
/* What judging a net gave. */
typedef struct cnri_judged {
    double share; /* that it is right on */
    double by;    /* what options->best_by names: the more the better; without it the share */
    double metrics[CNR_MAX_METRICS];
    int64_t n; /* samples */
} cnri_judged;
/* Of a net, weights and all: on all samples, or on the part that training with these options judges
 * by. In batches as when training. */
cnr_status cnri_train_score(cnr_runtime *rt, cnr_graph *net, const cnri_train_options *options,
                            cnri_samples *samples, bool validation, cnri_judged *out,
                            cnr_error *err);

/* ---- checkpoint.c: a loop between two of its steps, on file ---- */
typedef struct cnri_train_state {
    int64_t epoch, step, taken;  /* of cnri_train_progress; steps in all */
    int64_t best_epoch, correct; /* correct, loss: sums of this epoch */
    double loss, judged, best, start, rate, seconds;
    double by, metrics[CNR_MAX_METRICS]; /* of the best epoch */
} cnri_train_state;
/* What the trained net follows from; before the first step. */
void cnri_checkpoint_key(const cnri_trainer *t, const cnri_samples *samples, uint8_t key[32]);
cnr_status cnri_checkpoint_save(cnri_trainer *t, const char *path, uint8_t key[32],
                                cnri_train_state *state, cnri_train_rows *rows, cnr_error *err);
/* Nothing changes where there is no such file. Rank 0 reads it for all. */
cnr_status cnri_checkpoint_load(cnri_trainer *t, const char *path, const uint8_t key[32],
                                cnri_train_state *state, cnri_train_rows *rows, cnr_error *err);
void cnri_checkpoint_drop(const char *path); /* it is of no more use */

/* ---- resize.c ---- */
/* New data of any shape for a weight, or a whole number for an attribute of a node; of a
 * clone. All sizes are worked out again: CNR_E_SHAPE tells what does not fit together any more. */
typedef struct cnri_resizing {
    const char *name;       /* a weight's, or a node's */
    const cnr_tensor *data; /* of the weight */
    const char *attribute;  /* of the node; NULL: it is a weight */
    int64_t value;
} cnri_resizing;
cnr_status cnri_graph_resize(cnr_graph *g, const cnri_resizing *list, int32_t n, cnr_error *err);
/* A copy with such changes. */
cnr_status cnri_model_resized(const cnr_model *m, const cnri_resizing *list, int32_t n,
                              cnr_model **out, cnr_error *err);

#endif
