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
/* A weight and the value of its gradient. */
typedef struct cnri_gradient {
    cnr_value weight, gradient;
    int32_t index; /* index for the caller's use */
} cnri_gradient;
/* A net with nodes that compute the gradients of its weights. */
typedef struct cnri_backward {
    cnr_value labels, loss, scores; /* scores: the value that the loss reads */
    /* Digest of the nodes of the caller's own loss; zeros: the loss is an operator. */
    uint8_t digest[32];
    CNRI_VEC(cnri_gradient) weights; /* weights that the loss depends on, with their gradients */
} cnri_backward;
/* Finds the loss operator by name; name NULL: the first operator that is a loss. */
cnr_status cnri_train_loss(const char *name, const cnr_op **out, cnr_error *err);
/* A loss of the caller's own: `build` adds nodes to g that compute one number, *loss, from `in`. */
typedef struct cnri_loss_inputs {
    cnr_value scores; /* output of the net */
    /* Input of a softmax at the net's end; without a softmax the same as scores. */
    cnr_value logits;
    cnr_value labels; /* input of the labels, i32 [batch] */
    int64_t batch, classes;
} cnri_loss_inputs;
/* A loss that the caller or a script builds from operators. */
typedef struct cnri_own_loss {
    cnr_status (*build)(void *arg, cnr_graph *g, const cnri_loss_inputs *in, cnr_value *loss,
                        cnr_error *err); /* NULL: the loss is an operator */
    void *arg;
    /* Losses with equal ids are equal, so that a graph built for one can be used again. */
    int64_t id;
} cnri_own_loss;
/* An optimiser of the caller's own: `build` adds nodes that compute new weights from the
 * gradients in b and store them, and the optimiser's memory (cnri_train_memory), in place. */
struct cnri_trainer;
/* An optimiser that the caller or a script builds from operators. */
typedef struct cnri_own_optimizer {
    /* NULL: the optimiser is an operator. */
    cnr_status (*build)(void *arg, struct cnri_trainer *t, cnr_graph *g, const cnri_backward *b,
                        cnr_value rate, cnr_value step, cnr_error *err);
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
    /* name: a path, or the name of a shipped file. CNR_E_NOT_FOUND: there is no such file. */
    cnr_status (*open_loss)(const char *name, cnri_own_loss *out, cnr_error *err);
    void (*close_loss)(cnri_own_loss *loss);
    cnr_status (*open_optimizer)(const char *name, cnri_own_optimizer *out, cnr_error *err);
    void (*close_optimizer)(cnri_own_optimizer *optimizer);
    /* Adds the file's metrics; *file is for close_metrics, which frees them. */
    cnr_status (*open_metrics)(const char *name, cnri_metrics *to, void **file, cnr_error *err);
    void (*close_metrics)(void *file);
} cnri_train_files;
/* Registers who opens losses, optimisers and metrics from files. */
void cnri_train_files_register(const cnri_train_files *files);
/* Opens a loss through the registered functions. `build` stays NULL if there is no such file, or if
 * nothing is registered. Close *out in either case. */
cnr_status cnri_loss_file_open(const char *name, cnri_own_loss *out, cnr_error *err);
void cnri_loss_file_close(cnri_own_loss *loss); /* frees what was opened and zeroes it */
/* Opens an optimiser from a file. *out stays empty if the name is an operator's. */
cnr_status cnri_optimizer_file_open(const char *name, cnri_own_optimizer *out, cnr_error *err);
/* frees what was opened and zeroes it */
void cnri_optimizer_file_close(cnri_own_optimizer *optimizer);
/* Opens the metrics of a file and adds them to `to`. */
cnr_status cnri_metric_file_open(const char *name, cnri_metrics *to, cnr_error *err);
/* Opens the caller's metrics and those of `files`, separated by commas. Fails for a name that is
 * taken or too many metrics. Close *out in any case. */
cnr_status cnri_metrics_open(const char *files, const cnr_metric *const *own, int64_t n_own,
                             cnri_metrics *out, cnr_error *err);
void cnri_metrics_close(cnri_metrics *m); /* closes the files' metrics and zeroes *m */
/* Adds a metric, which must outlive m. CNR_E_ARG: no function, no name of 1 to 63 characters, a
 * name that is taken, or more than CNR_MAX_METRICS. */
cnr_status cnri_metrics_add(cnri_metrics *m, const cnr_metric *metric, cnr_error *err);
/* Finds the metric that best_by names: "f1", or "-f1" if its lowest value is best (*least). NULL:
 * *index is -1, for accuracy. */
cnr_status cnri_metrics_best(const cnri_metrics *m, const char *best_by, int32_t *index,
                             bool *least, cnr_error *err);
/* Computes all metrics of n rows of scores into values[m->n]; NaN: not finite. */
cnr_status cnri_metrics_compute(const cnri_metrics *m, float *scores, int64_t n, int64_t classes,
                                const int32_t *labels, double *values, cnr_error *err);
/* Writes names and values into out[m->n], as results have them; values NULL: all are NaN. */
void cnri_metrics_tell(const cnri_metrics *m, const double *values, cnr_metric_value *out);
/* SHA-256 of the nodes of g from number `nodes` on (operators, attributes, inputs) and of the data
 * of values from `values` on, to tell losses and optimisers apart. */
cnr_status cnri_train_digest(const cnr_graph *g, int32_t nodes, int32_t values, uint8_t digest[32],
                             cnr_error *err);
/* Adds the gradients of all weights flagged VARIABLE, except statistics. The outputs become loss
 * and scores. `own` builds the loss; if it is NULL, the operator `loss` does. */
cnr_status cnri_train_backward(cnr_graph *g, const cnr_op *loss, const cnri_own_loss *own,
                               cnri_backward *out, cnr_error *err);
void cnri_backward_free(cnri_backward *b);       /* frees the list; *b may be made anew */
const cnr_op *cnri_train_op_with(uint32_t flag); /* the first operator with this flag; NULL: none */
/* True if some node reads the value through a port with this flag. */
bool cnri_train_fed_as(const cnr_graph *g, cnr_value value, uint32_t flag);
/* Adds an input of this name, or with ".2" and so on if the name is taken; negative: it failed. */
cnr_value cnri_train_input(cnr_graph *g, const char *name, const cnr_tensor *type);

/* ---- weights.c: which constants are weights ---- */
/* True if training can change it: an f32 constant that some layer reads itself at a port for
 * weights, or that is read only as a factor or bias of linear layers. */
bool cnri_train_is_weight(const cnr_graph *g, cnr_value v);
/* True if some node reads the value at a port for weights, or if all that read it are linear layers
 * that could have it as a weight. */
bool cnri_train_fed_as_weight(const cnr_graph *g, cnr_value v);
/* true if input k's port is for weights */
bool cnri_train_is_parameter(const cnri_node *node, int32_t k);
/* True if input k of the node could be a weight of a linear layer that has no ports for weights: it
 * is the second factor of a product, is added by the product's node, or the node adds it to a
 * product by a constant, one element to each channel. */
bool cnri_train_is_linear(const cnr_graph *g, const cnri_node *node, int32_t k);
/* The axis with an entry for each channel, if input k is a bias of such a layer; -1: it is none. */
int32_t cnri_train_bias_axis(const cnr_graph *g, const cnri_node *node, int32_t k);
/* The axis of weight k that has an entry for each channel that the layer computes; -1: none. */
int32_t cnri_train_class_axis(const cnri_node *node, int32_t k);
/* True if a layer's weight is computed of constants by nodes, so that it is no weight itself. */
bool cnri_train_is_turned(const cnr_graph *g, cnr_value v);
/* Gives frozen graphs of other programs, which turn and copy constants by nodes, weights of their
 * own. If no weight could be trained, or only some of linear layers, `net` is rewritten as a plan
 * would be; names change. Else nothing changes. */
cnr_status cnri_train_fold(cnr_graph *net, cnr_error *err);

/* ---- head.c ---- */
/* Replaces *net by a net with that many classes: its last layer with weights is filled at random
 * from the seed. The old graph is freed; after an error it stays. */
cnr_status cnri_train_head(cnr_graph **net, int64_t classes, uint64_t seed, cnr_error *err);
/* True if the value is a weight of the layer that such a call replaces. The net has an output. */
bool cnri_train_is_head(const cnr_graph *g, cnr_value v);

/* ---- trainer.c ---- */
typedef enum cnri_rate_policy { /* as cnr_train_options.policy names them */
                                CNRI_RATE_FIXED,
                                CNRI_RATE_INVERSE,
                                CNRI_RATE_STEP,
                                CNRI_RATE_COSINE,
                                CNRI_RATE_POLY,
                                CNRI_RATE_MULTISTEP
} cnri_rate_policy;
/* Their names, in this order; then another word for one of them; ends with NULL. */
extern const char *const cnri_rate_policies[];
/* Finds a policy by its name (NULL: fixed). CNR_E_ARG: there is none of this name. */
cnr_status cnri_rate_policy_of(const char *name, cnri_rate_policy *out, cnr_error *err);

/* A hook between a gradient and the optimiser, called while the graph is built: it adds nodes
 * that compute another gradient (a mask, a sum over machines). */
typedef cnr_status (*cnri_train_hook)(void *arg, cnr_graph *g, cnr_value weight,
                                      cnr_value *gradient, cnr_error *err);

/* How a net is trained: loss, optimiser, rate, batches, validation, files. Everything is borrowed
 * from the caller. */
typedef struct cnri_train_options {
    const char
        *loss; /* operator or file; NULL: the net's metadata "loss", else the first loss operator */
    cnri_own_loss own_loss;           /* used in place of `loss` if build is set */
    const char *optimizer;            /* operator or file; NULL: the first optimiser operator */
    cnri_own_optimizer own_optimizer; /* used in place of `optimizer` if build is set */
    /* Extras of an optimiser that is the caller's own or in a file; with any of them, an
     * operator's name stands for the file of that name. clip: bound of the norm of all gradients
     * together. accumulate: number of steps whose gradients are summed. average: weight of the
     * old mean in the running mean of the weights, which is then judged and kept. 0: off. */
    double clip, average;
    int64_t accumulate;
    /* Factors of the rate by name pattern, "conv*=0.1,ip1=2", the first match counts; NULL:
     * none. */
    const char *layer_rates;
    /* Patterns of weights that are not trained, separated by commas; NULL: none. */
    const char *freeze;
    int64_t batch, epochs;
    int64_t limit; /* most samples, validation's included; 0: all */
    double rate;
    /* Decay: for weights with two or more axes. < 0: the optimiser's own default. */
    double momentum, nesterov, decay;
    double beta1, beta2, epsilon; /* 0: the optimiser's own default */
    cnri_rate_policy policy;
    double gamma, power; /* for policies that use them; 0: the policy's default */
    /* Epochs at which the rate falls, for policies that use them; NULL: the policy's default. */
    const char *rate_epochs;
    /* Returns the rate of a step; NULL: `rate` and `policy` decide. */
    double (*schedule)(void *arg, int64_t step, int64_t steps);
    void *schedule_arg;
    const char *keep_zeros;    /* pattern of weights whose zeros stay zero; NULL: none */
    const char *const *masked; /* NULL-terminated names of further weights whose zeros stay zero */
    int32_t n_masked;
    /* Share of the samples that epochs are judged by (1 or more: that many samples); 0: none, so
     * the last epoch is kept. */
    double validation;
    uint64_t validation_seed; /* seed that selects these samples */
    uint64_t seed;
    const char *device;
    bool deterministic;
    bool new_head;         /* the last layer is new: `freeze` does not hold for it */
    bool local_statistics; /* of batch normalisation: of this process' part of the batch alone */
    const volatile int32_t *cancel; /* stops a step in its middle; NULL: nobody does */
    const cnri_metrics *metrics;    /* of what is judged; NULL: none */
    /* name of the metric that chooses the best epoch, as in cnr_train_options */
    const char *best_by;
    cnri_train_hook hook; /* called after each step and epoch; NULL: none */
    void *hook_arg;
    /* Adds nodes to the net that is trained and to the one that is judged, before gradients are.
     * Its values have the numbers that they have in the net. NULL: none. */
    cnr_status (*wrap)(void *arg, cnr_graph *g, cnr_error *err);
    void *wrap_arg;
    uint64_t memory_limit; /* bytes, as in cnr_load_options */
    /* a file: written on the way, gone on from where it is there; NULL: none */
    const char *checkpoint;
    /* Seconds between two checkpoints within an epoch; one follows each epoch as well. 0: 30. */
    double checkpoint_seconds;
} cnri_train_options;

/* The optimiser operator's first memory input, and the most memories. */
enum { CNRI_OPTIMIZER_MEMORY = 4, CNRI_MAX_MEMORIES = 8 };
/* Name of the memory that starts as the weight, and is judged and kept. */
#define CNRI_AVERAGE "average"

typedef struct cnri_trained { /* a weight, or a statistic that is measured */
    char *name;
    int64_t n;
    float *data, *best;
    float *memory[CNRI_MAX_MEMORIES]; /* the optimiser's memories, n numbers each */
    int32_t n_memories;
    float *judged;   /* `data`, or the memory that is judged in its place */
    float *mask;     /* n numbers, the weight stays 0 where they are 0; NULL: none */
    cnr_value value; /* value in the training graph; -1 until it is made */
    cnr_value memories[CNRI_MAX_MEMORIES]; /* values of the memories there */
    bool learned; /* true: the loss depends on it; false: it is a statistic */
    bool decays;
    bool prepared; /* a kernel keeps a blob of it, which is prepared again in each step */
} cnri_trained;

/* A net that is being trained, its plans and sessions. */
typedef struct cnri_trainer {
    cnr_graph *net; /* as loaded; gets the best weights at the end */
    cnri_train_options options;
    const cnr_op *optimizer;
    cnr_runtime *rt;
    cnr_model *model, *judge;
    cnr_plan *plan, *judge_plan;
    cnr_session *session, *judge_session;
    CNRI_VEC(cnri_trained) weights;
    cnri_preprocess preprocess;
    /* Type for one batch; the preprocessing gives sizes that the net leaves open. */
    cnr_tensor input;
    float *inputs; /* data of one batch */
    int32_t *labels;
    int64_t sample; /* floats of one sample */
    /* batch: samples of a step over all ranks. This rank has options.batch of them, from `first`
     * on. */
    int64_t batch, first;
    int64_t classes;
    uint8_t loss_digest[32]; /* SHA-256 of the loss's nodes, as in cnri_backward */
    /* Digest of the nodes of the caller's own optimiser; zeros: it is an operator. */
    uint8_t own_digest[32];
    int64_t step, steps;                 /* steps done, and steps in all epochs together */
    double rate;                         /* rate of the last step */
    int32_t in_labels, in_step, in_rate; /* numbers of these inputs in the training graph */
    /* For a trainer of gradients: index of the weight whose gradient each output has, behind the
     * scores. */
    CNRI_VEC(int32_t)
    gradients;
    /* away: the weights in the training plan are newer than `data`. stale: newer than in the
     * judge's plan. */
    bool away, stale;
} cnri_trainer;

/* Unfilled weights are filled at random from the seed. `net` must outlive the trainer. */
cnr_status cnri_trainer_open(cnr_runtime *rt, cnr_graph *net, const cnri_train_options *options,
                             cnri_trainer **out, cnr_error *err);
/* Opens a trainer whose plan only computes loss, scores and gradients; it does not update or
 * judge. */
cnr_status cnri_trainer_open_gradients(cnr_runtime *rt, cnr_graph *net,
                                       const cnri_train_options *options, cnri_trainer **out,
                                       cnr_error *err);
/* Opens a trainer that only judges the weights as they are. */
cnr_status cnri_trainer_open_judge(cnr_runtime *rt, cnr_graph *net,
                                   const cnri_train_options *options, cnri_trainer **out,
                                   cnr_error *err);
void cnri_trainer_free(cnri_trainer *t); /* frees all of it; NULL: nothing */
/* ---- rate.c: checks the rate's options; the learning rate at step `step` of `steps` ---- */
/* Fails if the learning rate's epochs are no ascending list, or its other options don't fit the
 * policy. */
cnr_status cnri_rate_check(const cnri_train_options *o, cnr_error *err);
/* Learning rate in step `step` (from 0) of `steps`, by o->policy. */
double cnri_rate_at(const cnri_train_options *o, int64_t step, int64_t steps);

/* ---- step.c ---- */
/* Does one step on t->inputs and t->labels: forward, backward, update. */
cnr_status cnri_trainer_step(cnri_trainer *t, double *loss, int64_t *correct, cnr_error *err);
/* Computes loss and gradients of `input` and t->labels. The batch's statistics are in the
 * weights' arrays afterwards. */
cnr_status cnri_trainer_gradients(cnri_trainer *t, const float *input, double *loss,
                                  cnr_error *err);
/* Sets the data of a weight, also in the plan. */
cnr_status cnri_trainer_set(cnri_trainer *t, const char *weight, const float *data, cnr_error *err);
/* *correct: how many of the first n samples of t->inputs the net gets right. kept: takes their n *
 * classes scores; NULL: not. */
cnr_status cnri_trainer_judge(cnri_trainer *t, int64_t n, int64_t *correct, float *scores,
                              cnr_error *err);
/* Copies the weights, if a step changed them on a device, to their arrays on the host. */
cnr_status cnri_trainer_fetch(cnri_trainer *t, cnr_error *err);
/* Stores the weights as judged as the best so far; cnri_trainer_finish restores these and puts them
 * into the net. */
cnr_status cnri_trainer_keep(cnri_trainer *t, cnr_error *err);
/* Gives the net and the trainer the best weights that were stored. */
cnr_status cnri_trainer_finish(cnri_trainer *t, cnr_error *err);

/* ---- optimise.c ---- */
/* Replaces each node whose operator has a `training` hook by its training form, unless it has
 * parameters and all are frozen. `shared` is what all hooks get, but each node another seed. After
 * a failure g may be partly changed. */
cnr_status cnri_train_mode(cnr_graph *g, const cnr_training *shared, cnr_error *err);
/* Finds an optimiser operator; name NULL: the first there is. */
cnr_status cnri_train_optimizer(const char *name, const cnr_op **out, cnr_error *err);
/* Adds nodes behind the gradients: hook, masks, optimiser. Without an optimiser the gradients
 * become outputs. */
cnr_status cnri_train_optimise(cnri_trainer *t, cnr_graph *g, cnri_backward *b, cnr_value rate,
                               cnr_value step, cnr_error *err);
/* Adds a memory for weight b->weights.at[i]. It starts as zeros; the one named CNRI_AVERAGE
 * starts as the weight. */
cnr_status cnri_train_memory(cnri_trainer *t, cnr_graph *g, const cnri_gradient *at,
                             const char *name, cnr_value *out, cnr_error *err);

/* ---- share.c: training on several processes; with one process these functions do nothing ---- */
/* Replaces gradients by their means over all ranks. They are sent in buckets, each as soon as
 * its last gradient is computed. */
cnr_status cnri_train_share(cnri_trainer *t, cnr_graph *g, cnri_backward *b, cnr_error *err);
/* Replaces statistics that were measured in training (of batch normalisation) by their means
 * over all ranks. */
cnr_status cnri_train_share_statistics(cnri_trainer *t, cnr_error *err);
/* Fails on a rank whose key (SHA-256 of net, data and options) differs from that of rank 0. All
 * ranks call it. */
cnr_status cnri_train_share_check(const uint8_t key[32], cnr_error *err);

/* ---- loop.c: epochs over samples ---- */
/* One epoch, as curves show it; shares of right answers -1: not measured. */
typedef struct cnri_train_row {
    int64_t epoch;
    double loss, accuracy, judged, rate, seconds;
    double metrics[CNR_MAX_METRICS];
} cnri_train_row;
typedef CNRI_VEC(cnri_train_row) cnri_train_rows;
/* How far a training is, and what the last epoch gave: loss, accuracies from 0 to 1 and seconds. */
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
    bool stopped, diverged;     /* why training ended early */
    const cnri_train_row *rows; /* the finished epochs, those before a checkpoint included */
    int32_t n_rows;
} cnri_train_progress;
/* Called after each step and each epoch. Returning false stops training and keeps the best
 * weights. */
typedef bool (*cnri_train_fn)(void *arg, const cnri_train_progress *progress);
/* Divides `count` samples at random, by the options' validation_seed: the first *held of *order
 * judge epochs, the rest is trained on. Free *order with cnri_free. */
cnr_status cnri_train_parts(const cnri_train_options *o, int64_t count, int64_t **order,
                            int64_t *held, cnr_error *err);
/* Trains. Afterwards the net has the weights of the epoch that was best on the validation part.
 * CNR_E_CANCELLED if it was stopped, CNR_E_STATE if it diverged, before any epoch was judged;
 * then the net is unchanged. Only `samples` are read, so test samples stay unseen. */
cnr_status cnri_train_run(cnri_trainer *t, cnri_samples *samples, cnri_train_fn fn, void *arg,
                          cnri_train_progress *last, cnr_error *err);
/* Result of judging a net: share of right answers, the figure to choose by, and metrics. */
typedef struct cnri_judged {
    double share; /* that it is right on */
    double by;    /* what options->best_by names: the more the better; without it the share */
    double metrics[CNR_MAX_METRICS];
    int64_t n; /* number of samples that were judged */
} cnri_judged;
/* Judges a net with its weights on all samples or, with `validation`, on the part that training
 * with these options holds back. In batches as when training. */
cnr_status cnri_train_score(cnr_runtime *rt, cnr_graph *net, const cnri_train_options *options,
                            cnri_samples *samples, bool validation, cnri_judged *out,
                            cnr_error *err);

/* ---- checkpoint.c: the state of a loop between two steps, in a file ---- */
/* The state of a training loop between two steps, as a checkpoint keeps it. */
typedef struct cnri_train_state {
    int64_t epoch, step, taken;  /* epoch, step: as in cnri_train_progress; taken: steps in all */
    int64_t best_epoch, correct; /* correct, loss: sums of this epoch */
    double loss, judged, best, start, rate, seconds;
    double by, metrics[CNR_MAX_METRICS]; /* of the best epoch */
} cnri_train_state;
/* Digest of all that the trained net depends on; call it before the first step. */
void cnri_checkpoint_key(const cnri_trainer *t, const cnri_samples *samples, uint8_t key[32]);
/* Writes state, weights and curves to a checkpoint with its key. */
cnr_status cnri_checkpoint_save(cnri_trainer *t, const char *path, uint8_t key[32],
                                cnri_train_state *state, cnri_train_rows *rows, cnr_error *err);
/* Loads weights, state and rows of a checkpoint with this key; nothing changes if there is no such
 * file. Rank 0 reads it for all ranks. */
cnr_status cnri_checkpoint_load(cnri_trainer *t, const char *path, const uint8_t key[32],
                                cnri_train_state *state, cnri_train_rows *rows, cnr_error *err);
void cnri_checkpoint_drop(const char *path); /* removes the file; errors are ignored */

/* ---- resize.c ---- */
/* New data of any shape for a weight, or a whole number for an attribute of a node; of a
 * clone. All sizes are worked out again: CNR_E_SHAPE tells what does not fit together any more. */
typedef struct cnri_resizing {
    const char *name;       /* a weight's, or a node's */
    const cnr_tensor *data; /* new data of the weight */
    const char *attribute;  /* of the node; NULL: it is a weight */
    int64_t value;
} cnri_resizing;
/* Gives weights and attributes new sizes and infers all shapes again. */
cnr_status cnri_graph_resize(cnr_graph *g, const cnri_resizing *list, int32_t n, cnr_error *err);
/* *out: a copy of the model in which the weights of the list have new data and shapes; shapes
 * behind them are inferred anew. */
cnr_status cnri_model_resized(const cnr_model *m, const cnri_resizing *list, int32_t n,
                              cnr_model **out, cnr_error *err);

#endif
