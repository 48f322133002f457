/* Work on nets: evaluate, profile, place, train, quantise; every candidate of a plan. */
#ifndef CNNRUN_LAB_H
#define CNNRUN_LAB_H

#include <cnnrun/power.h>

CNR_BEGIN_EXPORTS

/* Writes a .cnr, or the format of the exporter that takes this file name. */
cnr_status cnr_save(cnr_model *model, const char *path, cnr_error *err);

/* What a plan is chosen from: a row for each kernel that takes a node on a device of the plan,
 * whether it was taken or not. A number that is not known is 0, a text that is not NULL. */
typedef struct cnr_candidate {
    uint32_t size;
    int32_t takes; /* nodes that it computes: its own and some that follow */
    const char *node, *op, *kernel, *device; /* kernel "reference": the operator's own */
    /* layouts: "plain", "c4" (channels in blocks of 4); encodings of weights: "sparse-csr" */
    const char *layout_in, *layout_out, *encodings;
    double ns, joules, mhz;            /* of these nodes; mhz: of the device when it was measured */
    const char *ns_from, *joules_from; /* "measured", "estimate", "guess" */
    uint64_t bytes, flops; /* inputs, weights and outputs; a multiply-accumulate is two */
    int32_t score, splits; /* 1: it can compute a part of its node */
    /* by: the rule that took it for the plan ("record", "score", "policy" ...), NULL if none did */
    const char *by, *why;
    double share; /* of the node, if it was taken */
    /* extrapolated: 1, the time is simulated from figures for another class of operators */
    int32_t extrapolated;
} cnr_candidate;
typedef struct cnr_candidate_list {
    uint32_t size;
    int32_t n;
    cnr_candidate *at; /* in the order of the net */
    /* the policy that was asked; why it was not followed; what it shows (JSON) */
    const char *policy, *failure, *notes;
    cnr_plan *plan; /* behind the texts */
} cnr_candidate_list;
/* shapes as in cnr_plan_for. Texts live as long as the list. */
cnr_status cnr_candidates(cnr_model *model, const cnr_tensor *const *shapes, int32_t n_shapes,
                          cnr_candidate_list *out, cnr_error *err);
void cnr_candidates_free(cnr_candidate_list *list);

/* How often a net is right on labelled pictures. */
/* A measure of one's own: one number of all that is judged together, so that it need be no mean
 * over pictures. `compute` is called once for each judging, on the thread that judges. scores: f32
 * [pictures, classes], what the net gave; labels: the class of each picture, -1 where no class
 * stands for its label. Both are good during the call alone. A value that is no number is told as
 * none; an error ends the work. At most CNR_MAX_METRICS at a time. */
enum { CNR_MAX_METRICS = 8 };
typedef struct cnr_metric {
    uint32_t size;
    int32_t reserved;
    const char *name;
    cnr_status (*compute)(void *arg, const cnr_tensor *scores, const int32_t *labels, double *value,
                          cnr_error *err);
    void *arg;
} cnr_metric;
typedef struct cnr_metric_value {
    char name[64];
    double value; /* NaN: it is no number */
} cnr_metric_value;

typedef struct cnr_evaluate_options {
    uint32_t size;
    int32_t rows;         /* 1: the result has a row for each picture */
    const char *data;     /* what a source reads: "mnist:DIR", a folder, "images:LIST" */
    const char *split;    /* NULL: "eval" */
    int64_t limit, batch; /* pictures at most (0: all), at a time (0: 8) */
    /* the label of each class of the net; NULL: a class is its label plus `offset` */
    const int64_t *labels;
    int64_t n_labels, offset;
    int32_t energy; /* 1: energy too, where there is a meter */
    /* Not 0: only the part that training with the same numbers (and limit) judges epochs by. */
    double validation;
    uint64_t validation_seed;
    /* Measures beside top-1: those in files ("f1,mine.lua": shipped ones by name), and the caller's
     * n_metrics. NULL: none. All scores are kept for them. */
    const char *metric_files;
    const cnr_metric *const *metrics;
    int64_t n_metrics;
} cnr_evaluate_options;
/* One picture. Shares are parts of 1: scores that sum to 1, else their softmax. */
typedef struct cnr_evaluated {
    int64_t index;             /* in the source */
    int64_t label, answer;     /* answer -1: a class that no label stands for */
    double share, label_share; /* of the answer; of the label */
} cnr_evaluated;
typedef struct cnr_evaluation {
    uint32_t size;
    int64_t n, right, among_top; /* pictures; the label is the best answer, one of the best five */
    double top1, top5, loss;     /* the same as parts of 1; mean -log of the label's share */
    double seconds;
    int64_t labels, *confusion; /* labels x labels, [label][answer]; NULL above 1024 of them */
    /* of a picture; NULL: not asked for. The work is repeated until sensors can tell */
    cnr_energy *energy;
    cnr_evaluated *rows; /* of the n pictures; NULL: not asked for */
    cnr_metric_value metrics[CNR_MAX_METRICS];
    int64_t n_metrics;
} cnr_evaluation;
cnr_status cnr_evaluate(cnr_model *model, const cnr_evaluate_options *options,
                        const cnr_observer *observer, cnr_evaluation *out, cnr_error *err);
void cnr_evaluation_free(cnr_evaluation *evaluation);

/* Time and memory of a net on made-up inputs, with whatever weights it has. */
typedef struct cnr_profile_options {
    uint32_t size;
    int32_t steps; /* 1: the time of each step too, from runs of their own */
    /* pictures at a time (0: 1), timed runs (0: 20), runs before them (0: 2, -1: none) */
    int64_t batch, runs, warm;
    int32_t energy; /* 1: energy too, where there is a meter; runs go on until it can be told */
    int32_t repeat; /* 1: energy of each step by repeating the step, not by its share of time */
    /* a file to write one more run into, step by step, as Chrome and Perfetto read it */
    const char *trace;
} cnr_profile_options;
typedef struct cnr_step_timing {
    uint32_t size;
    int32_t step;
    const char *node, *op, *kernel, *device; /* op "(copy)", "(layout)": between operators */
    double ms, ms_min, flops;                /* mean and least; a multiply-accumulate is two */
    double joules; /* a share of the run's, as told by cnr_timing.joules_by; NaN: unmeasured */
    const char *from, *to; /* of a copy: devices (NULL: it is none) */
    uint64_t bytes;        /* that it moves; of a kernel: its inputs, weights and outputs */
    /* operations that its kernel does: fewer than `flops` where it computes differently (Winograd)
     */
    double kernel_flops;
    /* bytes that it reads and that the device's caches can't have kept since their last use: all of
     * them on a device that tells of no caches */
    double memory_bytes;
    const char *arithmetic; /* the type that it computes with: "f32" */
    /* extrapolated: 1, the time is simulated from figures for another class of operators */
    int32_t extrapolated;
    /* counters of the device for the last run, "cycles=1200 bytes_read=64"; NULL: it has none */
    const char *counters;
} cnr_step_timing;
enum {
    /* at each step, by counters that are exact at any time (simulated ones) */
    CNR_JOULES_COUNTED = 1,
    CNR_JOULES_BY_TIME = 2, /* the run's, shared out by the time of steps */
    CNR_JOULES_REPEATED = 3 /* by repeating the layer alone until sensors could tell */
};
typedef struct cnr_timing {
    uint32_t size;
    /* extrapolated: 1, a step's time is (cnr_step_timing) */
    int32_t threads, n_steps, extrapolated;
    const char *device; /* the first of the plan's */
    int64_t batch, runs;
    double ms_min, ms_median, ms_max, flops; /* of a run */
    /* peak_rss_bytes is of the whole process */
    uint64_t arena_bytes, arena_bound_bytes, weight_bytes, peak_rss_bytes;
    cnr_step_timing *steps;
    cnr_energy *energy; /* of a run; NULL: not asked for */
    int32_t joules_by;  /* of steps: CNR_JOULES_..., 0: unmeasured */
    /* of a run, until all is queued (the median); NaN: all its devices finish at once */
    double enqueue_ms;
} cnr_timing;
cnr_status cnr_profile(cnr_model *model, const cnr_profile_options *options,
                       const cnr_observer *observer, cnr_timing *out, cnr_error *err);
void cnr_timing_free(cnr_timing *timing);

/* Placement by measuring: the net on each device alone, what a policy makes of that, what its
 * plan takes. The model then runs so, or on the device alone that is better. */
typedef struct cnr_share_options {
    uint32_t size;
    int32_t accept_slower_plan;  /* 1: keep the plan even where one device alone is better */
    const char *policy;          /* a file, or an installed one's name: "best" */
    const char *const *settings; /* of it: "threshold=1", NULL-terminated; NULL: none */
    const char *const *devices;  /* NULL-terminated; NULL: those that nets are run on unasked */
    const char *folder;          /* where placements are kept and found again; NULL: nowhere */
    int64_t runs, batch;         /* timed runs of each (0: 5), pictures at a time (0: 1) */
    int32_t again;               /* 1: measure, even if one is kept in the folder */
} cnr_share_options;
/* What a run takes; joules, watts and edp are NaN where they are unmeasured. */
typedef struct cnr_share_row {
    char name[32];
    double seconds, joules, watts, edp;
} cnr_share_row;
typedef struct cnr_share_part {
    const char *node, *device;
    double share;
} cnr_share_part;
typedef struct cnr_sharing {
    uint32_t size;
    /* found: 1, the placement was kept in the folder: devices alone were not timed */
    int32_t n_alone, n_parts, found;
    /* the policy's plan; predicted: from the times of the devices alone */
    cnr_share_row predicted, measured;
    char kept[32];            /* the device alone that is better; "": the plan is */
    const char *notes, *file; /* the policy's steps as JSON; in the folder; NULL: none */
    const cnr_share_row *alone;
    const cnr_share_part *parts; /* of each node, in the net's order */
    void *state;                 /* behind all of these */
    /* how the model runs from now on: the plan, or the device alone that is kept */
    cnr_share_row chosen;
} cnr_sharing;
cnr_status cnr_share(cnr_model *model, const cnr_share_options *options,
                     const cnr_observer *observer, cnr_sharing *out, cnr_error *err);
void cnr_sharing_free(cnr_sharing *sharing);
/* The model runs by the placement that was last kept in the folder for this net, whoever made
 * it: *follows is 1. -1: that is for other devices or drivers, 0: none is kept; then nothing is
 * changed. */
cnr_status cnr_follow(cnr_model *model, const char *folder, int32_t *follows, cnr_error *err);

/* Choices that make themselves: after cnr_adapt(model, 1) the first ordinary runs (cnr_run_tensors,
 * cnr_run_picture) try other kernels, then other devices and sets of them. Each answer is right. A
 * trial is stopped past 1.5 times the default's time, and the default then gives the answer. What
 * is better than the default in whole passes by turns is followed from then on; it is kept in the
 * model's cache folder, per net, shapes, options and power state, and followed at the next start.
 * It is learnt anew when the environment or the time of a run changes. The numbers are those of the
 * placement policy's table `adapt` (scripts/place/README.md). By EDP where a meter tells joules,
 * else by time. One thread at a time; with a memory bound nothing is tried. A model that was loaded
 * with cnr_load_options.adapt has begun. on 0: no more; the model stays as it was last. */
cnr_status cnr_adapt(cnr_model *model, int32_t on, cnr_error *err);
typedef struct cnr_adapt_report {
    uint32_t size;
    int32_t settled, followed; /* 1: it is decided; 1: at an earlier start */
    int32_t n_kernels, n_devices;
    int64_t runs, trials;    /* while it learns: so far, by the default and by others */
    int64_t stopped, learnt; /* trials that were cut short; how often this process decided */
    int64_t runs_until_settled;
    double last_ms, prepare_ms; /* of the last run; of planning, packing and warming up before it */
    double default_ms, chosen_ms;     /* medians of whole passes */
    double default_cost, chosen_cost; /* joules times seconds (by "edp"), or ns (by "time") */
    const char *by, *phase;           /* phase: "default", "kernels", "devices", "sets", "contest",
                                         "settled" */
    const char *trying;               /* the way of the last run, while it learns; or NULL */
    const char *decided, *reason; /* the way that is followed; why it learns, or learnt; or NULL */
    const char *const *kernels;   /* n_kernels: "NODE@DEVICE=KERNEL" of the decision */
    const char *const *devices;   /* n_devices; 0: the model's own */
} cnr_adapt_report;
/* Texts are good until the model's next run. CNR_E_STATE: the model does not adapt. */
cnr_status cnr_adapt_state(cnr_model *model, cnr_adapt_report *out, cnr_error *err);

/* Training by gradient descent. The weights of the epoch that is best on a part of the pictures
 * that isn't trained on are written; a file that is there already is replaced by a better net
 * only. */
enum {
    CNR_RATE_FIXED = 0,
    CNR_RATE_INVERSE = 1,   /* rate * (1 + gamma step) ^ -power; 1e-4, 0.75 */
    CNR_RATE_STEP = 2,      /* rate * gamma ^ n, n growing each rate_epochs; 0.1, a third of all */
    CNR_RATE_COSINE = 3,    /* to 0 along half a cosine */
    CNR_RATE_POLY = 4,      /* rate * (1 - part done) ^ power; 1 */
    CNR_RATE_MULTISTEP = 5, /* as step, n growing at each of rate_epochs; half, three quarters */
};
typedef struct cnr_train_options {
    uint32_t size;
    int32_t policy; /* CNR_RATE_... */
    /* specs of samples; test: for the best epoch (NULL: the "eval" split of data; "": no test) */
    const char *data, *test;
    const char *output; /* the .cnr to write */
    /* operators, .lua files or names of shipped ones; NULL: the net's own, or the first there is */
    const char *loss, *optimizer;
    int64_t epochs, batch, limit; /* limit: pictures at most, 0: all */
    double rate, momentum, decay; /* momentum < 0: the optimiser's own */
    double validation; /* the part judged by, or a number of pictures; 0: the last epoch is kept */
    uint64_t seed, validation_seed;
    int32_t nesterov, overwrite;  /* overwrite: even what is better */
    int32_t energy;               /* 1: energy too, where there is a meter */
    double beta1, beta2, epsilon; /* of optimisers that have such; 0: their own */
    const char *split;            /* of data; NULL: "train" */
    /* the rate of step 0, 1 ... of `steps`, instead of rate and policy; NULL: those */
    double (*schedule)(void *arg, int64_t step, int64_t steps);
    void *schedule_arg;
    const char *keep_zeros;  /* a pattern of weights whose zeros stay; NULL: masked ones only */
    double gamma, power;     /* of policies that have such; 0: as told there */
    const char *rate_epochs; /* "10,15"; NULL: as told there */
    /* A file that training is kept in on its way, each so many seconds (0: 30) and behind epochs;
     * where it is there, training goes on from it, to the same end. It goes when the output is
     * written. */
    const char *checkpoint;
    double checkpoint_seconds;
    const char *curves; /* a .csv with a row an epoch; NULL: none */
    /* Around an optimiser in a file (an operator's name then stands for the file of that name): the
     * norm of all gradients together is at most `clip`; weights are updated behind each
     * `accumulate` steps, by the mean of their gradients; `average` is kept of a mean of the
     * weights at each update, which is judged and written. 0: not so. */
    double clip, average;
    int64_t accumulate;
    const char *layer_rates; /* "conv*=0.1,ip1=2": times the rate of such weights; NULL */
    const char *freeze;      /* "conv*,bn*": weights that stay as they are; NULL: none */
    /* cnr_train: the last layer with weights begins anew, with so many classes; 0: it stays */
    int64_t head;
    /* Measures of each epoch's validation part, and of the test: as of cnr_evaluate_options. */
    const char *metric_files;
    const cnr_metric *const *metrics;
    int64_t n_metrics;
    /* The metric by which the best epoch is chosen, and compared with the file that is there: "f1"
     * the most, "-mae" the least. NULL: accuracy. */
    const char *best_by;
} cnr_train_options;
enum {
    CNR_EVENT_EPOCH = 1,    /* cnr_epoch: one is over */
    CNR_EVENT_REPLACES = 2, /* double: what the file that is there gets right, before training */
};
typedef struct cnr_epoch {
    uint32_t size;
    int64_t epoch, epochs; /* from 1 */
    /* top1 and best are of the validation part; NaN: there is none */
    double loss, train_top1, top1, best;
    double seconds;
    const cnr_metric_value *metrics; /* of the validation part */
    int64_t n_metrics;
} cnr_epoch;
enum { CNR_TRAIN_STOPPED = 1, CNR_TRAIN_DIVERGED = 2 };
typedef struct cnr_train_result {
    uint32_t size;
    int32_t ended; /* before the last epoch: CNR_TRAIN_...; else 0 */
    int64_t epochs, best_epoch, trained, validated, tested; /* the last three: pictures */
    double best, test, replaced; /* parts of 1: validation, test, the file that was there; or NaN */
    double seconds;
    cnr_energy *energy; /* of all of it; NULL: not asked for. cnr_train_result_free */
    cnr_metric_value metrics[CNR_MAX_METRICS], test_metrics[CNR_MAX_METRICS]; /* best epoch; test */
    int64_t n_metrics; /* in each of both; values of the test are NaN where there was none */
} cnr_train_result;
void cnr_train_result_free(cnr_train_result *result);
/* Fills all fields that options->size, which the caller sets, has room for. */
void cnr_train_options_default(cnr_train_options *options);
/* load NULL: weights at random from the seed. Where the observer stops it, the best weights so far
 * are kept. */
cnr_status cnr_train(cnr_runtime *rt, const char *net, const cnr_load_options *load,
                     const cnr_train_options *options, const cnr_observer *observer,
                     cnr_train_result *out, cnr_error *err);
/* From the weights that the model has to better ones; masks hold. options->output NULL: no
 * file is written. */
cnr_status cnr_train_model(cnr_model *model, const cnr_train_options *options,
                           const cnr_observer *observer, cnr_train_result *out, cnr_error *err);

/* Loss and gradients of one batch, for loops of one's own: they end in cnr_set_weight. Layers
 * behave as in training: dropout drops, and statistics of batches become the model's. */
typedef struct cnr_gradient_options {
    uint32_t size;
    const char *loss; /* an operator; NULL: the net's own, or the first there is */
    uint64_t seed;    /* of dropout */
} cnr_gradient_options;
typedef struct cnr_gradients {
    uint32_t size;
    int32_t n;
    double loss;
    const char *const *names;    /* of the n weights that the loss depends on */
    const cnr_tensor *const *at; /* their gradients; 0 where a mask holds a 0 */
    const cnr_tensor *scores;    /* what the loss is of */
} cnr_gradients;
/* `input` of the net's only one, its first size the batch's; a label for each of the batch. *out is
 * good until the next call for the model, or its release. */
cnr_status cnr_gradients_of(cnr_model *model, const cnr_gradient_options *options,
                            const cnr_tensor *input, const int32_t *labels, int64_t n_labels,
                            cnr_gradients *out, cnr_error *err);

/* Whole numbers instead of floats, where a picture's answer stays good enough. */
typedef struct cnr_quantize_options {
    uint32_t size;
    int32_t all;          /* 1: layers that are slower here than in floats, too */
    const char *data;     /* calibrated on its "train" part, checked on "eval" */
    const char *layers;   /* a pattern of names: only those; NULL: all */
    int64_t limit, check; /* pictures (0: 100); to compare both nets on (0: as limit, -1: none) */
    /* decibels: a layer with less signal to noise stays float (0: 10, or none with max_drop) */
    double least;
    const char *method; /* ranges: NULL or "minmax", "percentile", "mse", "kl"; "auto": the one with
                           the least noise */
    /* the noisiest layers stay float until no more points of top-1 (without labels: of agreement)
     * are lost on a quarter of the `limit` pictures, which is then held back: nothing else is made
     * of those (0: no bound; less than 0: none may be lost) */
    double max_drop;
    /* 1: before, channels between two layers are made alike in the weights of both; 1: afterwards,
     * biases lose what outputs are off by on average, where that makes less noise */
    int32_t equalize, correct_bias;
    /* Not 0: the layers that become whole numbers are then trained for so many epochs as if they
     * were (on data's "train" part, a tenth of which judges), and the best net is quantised: the
     * one before if none is better. batch 0: 32; rate, which falls by a cosine, 0: 0.001; seed of
     * order and dropout, 0: 1; keep_zeros: a pattern of weights whose zeros stay, NULL: none. */
    int64_t epochs, batch;
    double rate;
    uint64_t seed;
    const char *keep_zeros;
} cnr_quantize_options;
enum { /* why a layer stays float */
       CNR_FLOAT_FOR_NOISE = 1,
       CNR_FLOAT_FOR_ACCURACY = 2, /* max_drop */
       CNR_FLOAT_FOR_TIME = 3
};
typedef struct cnr_quantized_layer {
    const char *name;
    double low, high, decibels; /* what its output was seen to hold; signal to noise */
    int32_t quantized, float_for;
} cnr_quantized_layer;
typedef struct cnr_quantizing {
    uint32_t size;
    int32_t n_layers, n_quantized;
    int64_t checked;       /* pictures; the next three are of those: before, after */
    double top1[2], ms[2]; /* parts of 1 (NaN without labels); of a picture */
    double agree;          /* part with the same answer; NaN: answers are no classes */
    cnr_quantized_layer *layers;
    double decibels; /* signal to noise of the output with the most noise; NaN: not compared */
    char **warnings; /* slower here, less accurate, other answers: as the program tells them */
    int32_t n_warnings;
    int32_t n_float;    /* layers that could be quantised and were not */
    const char *method; /* of the ranges; static */
    /* two a layer, float and quantised, each with what stands between it and the next: how long
     * they were seen to take here; NaN: not timed */
    double *layer_ms;
    double lost;       /* points, on the pictures that were held back; NaN: without max_drop */
    double bias_gain;  /* decibels of the outputs by correct_bias, kept above 0; NaN: not asked */
    int64_t held_back; /* pictures; of less than eight all, which are calibrated on, too */
    /* of training: its best epoch (0: the net stayed as it was); what is right of the part that
     * judges, as if quantised, before and after; NaN: not trained */
    int64_t best_epoch;
    double trained[2];
} cnr_quantizing;
/* *net is a model of its own; the one given stays as it is. CNR_E_STATE: both were compared, and
 * outputs have nothing in common. */
cnr_status cnr_quantize(cnr_model *model, const cnr_quantize_options *options,
                        const cnr_observer *observer, cnr_model **net, cnr_quantizing *out,
                        cnr_error *err);
void cnr_quantizing_free(cnr_quantizing *quantizing);

/* A study at many points, each in a process of its own: the program's command sweep, which has to
 * be there. All strings are borrowed for the call. */
typedef struct cnr_sweep_options {
    uint32_t size;
    int32_t resume;           /* 1: only points that the folder has no results of */
    const char *study;        /* a .lua file that returns a function of a point */
    const char *const *words; /* what the study gets as p[1], p[2] ... */
    int64_t n_words;
    const char *const *grid; /* "keep=.05,.1", "rate=log:1e-3:1e-1:5", "width=lin:8:64:8" */
    int64_t n_grid;
    const char *seeds;  /* "1..5", "1,2,7"; NULL: 1 */
    const char *output; /* folder of results.jsonl, results.csv, summary.csv, pictures */
    int64_t jobs,
        random; /* processes at a time (0: 1); points drawn from the grid (0: all of it) */
    uint64_t random_seed;    /* 0: 1 */
    double seconds, joules;  /* no more points begin after so much; 0: no bound */
    const char *pictures;    /* "png", "svg" or "pdf"; NULL: png */
    const char *program;     /* NULL: this one if it is cnnrun, else cnnrun of PATH */
    int32_t trust, reserved; /* 1: the study may use all files */
} cnr_sweep_options;
typedef struct cnr_sweep_result {
    uint32_t size;
    int32_t reserved;
    int64_t points, done, failed, left; /* failed ones lie in output/failed */
    double seconds;
} cnr_sweep_result;
/* Points that failed are no error. Stopped by the observer: CNR_E_CANCELLED; resume goes on. */
cnr_status cnr_sweep(const cnr_sweep_options *options, const cnr_observer *observer,
                     cnr_sweep_result *out, cnr_error *err);

CNR_END_EXPORTS
#endif
