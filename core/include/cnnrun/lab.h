/* Work on nets: evaluate, profile, place, adapt, train, quantise, sweep; list the kernel candidates
 * of a plan. */
#pragma once

#include <cnnrun/power.h>

CNR_BEGIN_EXPORTS

/* Writes the model as a .cnr, or in the format of the exporter that accepts this file name. */
cnr_status cnr_save(cnr_model *model, const char *path, cnr_error *err);

/* One kernel that could compute a node on a device of the plan, chosen or not. Unknown numbers are
 * 0, unknown texts are NULL. */
typedef struct cnr_candidate {
    uint32_t size;
    int32_t takes; /* number of nodes that it computes: its own and fused ones */
    /* kernel "reference": the operator's reference implementation */
    const char *node, *op, *kernel, *device;
    /* Layouts: "plain", or "c4" for channels in blocks of 4. encodings: those of the weights, such
     * as "sparse-csr". */
    const char *layout_in, *layout_out, *encodings;
    /* Time and energy of these nodes per run; mhz: clock of the device when they were measured. */
    double ns, joules, mhz;
    const char *ns_from, *joules_from; /* source of each: "recorded", "estimate", "guess" */
    /* bytes of inputs, weights and outputs; a multiply-accumulate is two flops */
    uint64_t bytes, flops;
    int32_t score, splits; /* splits 1: the kernel can compute a part of its node */
    /* by: the rule that chose the kernel for the plan ("record", "score", "policy" ...), NULL if it
     * was not chosen. why: the reason. */
    const char *by, *why;
    double share; /* part of the node that this kernel computes; 0: not chosen */
    /* 1: the time is simulated from figures for another class of operators. */
    int32_t extrapolated;
} cnr_candidate;
/* The kernels that could run each node of a net. */
typedef struct cnr_candidate_list {
    uint32_t size;
    int32_t n;
    cnr_candidate *at; /* array of n candidates, in the order of the net */
    /* policy: the policy that was asked; failure: why its plan was not used; notes: what it reports
     * (JSON). */
    const char *policy, *failure, *notes;
    cnr_plan *plan; /* the plan that owns the texts */
} cnr_candidate_list;
/* Lists all candidates of a plan; `shapes` as in cnr_plan_for. The texts live as long as the
 * list. */
cnr_status cnr_candidates(cnr_model *model, const cnr_tensor *const *shapes, int32_t n_shapes,
                          cnr_candidate_list *out, cnr_error *err);
/* Frees the rows and empties the list; the struct is the caller's. NULL: nothing. */
void cnr_candidates_free(cnr_candidate_list *list);

/* Evaluation: accuracy and loss of a net on labelled pictures. */
/* Maximal number of metrics at a time. */
enum { CNR_MAX_METRICS = 8 };
/* A metric of the caller: one number for all evaluated pictures, which need not be a mean over
 * pictures. `compute` is called once per evaluation, on the evaluating thread. scores: f32
 * [pictures, classes], the net's outputs. labels: the class of each picture, -1 if no class
 * corresponds to its label. Both are valid during the call only. NaN or an infinity is reported as
 * no value; an error ends the work. */
typedef struct cnr_metric {
    uint32_t size;
    const char *name;
    cnr_status (*compute)(void *arg, const cnr_tensor *scores, const int32_t *labels, double *value,
                          cnr_error *err);
    void *arg;
} cnr_metric;
/* The value of a metric. */
typedef struct cnr_metric_value {
    char name[64];
    double value; /* NaN: the metric has no value */
} cnr_metric_value;

/* How a net is evaluated on labelled pictures. */
typedef struct cnr_evaluate_options {
    uint32_t size;
    int32_t rows;      /* 1: the result has a row for each picture */
    const char *data;  /* spec of a source: "mnist:DIR", a folder, "images:LIST" */
    const char *split; /* name of the split; NULL: "eval" */
    /* limit: max. number of pictures (0: all); batch: pictures per run (0: 8) */
    int64_t limit, batch;
    /* Label of each class of the net. NULL: the label is the class minus `offset`. */
    const int64_t *labels;
    int64_t n_labels, offset;
    int32_t energy; /* 1: measure energy, if there is a meter */
    /* Not 0: evaluate only the validation part that training with the same two numbers (and limit)
     * uses. */
    double validation;
    uint64_t validation_seed;
    /* Metrics in addition to top-1 accuracy: Lua files or names of installed ones ("f1,mine.lua"),
     * and n_metrics of the caller. NULL: none. With metrics all scores are kept in memory. */
    const char *metric_files;
    const cnr_metric *const *metrics;
    int64_t n_metrics;
} cnr_evaluate_options;
/* Result for one picture. Scores that sum to 1 are probabilities; otherwise their softmax is
 * used. */
typedef struct cnr_evaluated {
    int64_t index; /* index of the picture in the source */
    /* answer: the predicted label; -1: the predicted class has no label */
    int64_t label, answer;
    double share, label_share; /* probabilities (0 to 1) of the answer and of the label */
} cnr_evaluated;
/* Result of an evaluation. */
typedef struct cnr_evaluation {
    uint32_t size;
    /* numbers of pictures: all; correct in the first answer; correct in the first five */
    int64_t n, right, among_top;
    /* fractions of `right` and `among_top`; loss: mean -log(probability of the label) */
    double top1, top5, loss;
    double seconds;
    /* confusion: labels x labels counts, [label][answer]; NULL above 1024 labels */
    int64_t labels, *confusion;
    /* Energy per picture; NULL: not requested. The work is repeated until it is long enough for the
     * sensors. */
    cnr_energy *energy;
    cnr_evaluated *rows; /* results of the n pictures; NULL: not requested */
    cnr_metric_value metrics[CNR_MAX_METRICS];
    int64_t n_metrics;
} cnr_evaluation;
/* Runs the net on labelled pictures. Free *out with cnr_evaluation_free. */
cnr_status cnr_evaluate(cnr_model *model, const cnr_evaluate_options *options,
                        const cnr_observer *observer, cnr_evaluation *out, cnr_error *err);
/* Frees what the evaluation holds; the struct is the caller's. NULL: nothing. */
void cnr_evaluation_free(cnr_evaluation *evaluation);
/* Wilson's 95% interval of a fraction `part` (0 to 1) that was seen among n, for top1, best or
 * test: out[0] to out[1]; NaN if `part` is NaN or n is 0. */
void cnr_wilson_interval(double part, int64_t n, double out[2]);

/* Profiling: time and memory of a net on synthetic inputs, with the weights that it has. */
typedef struct cnr_profile_options {
    uint32_t size;
    int32_t steps; /* 1: also time each step, in separate runs */
    /* batch: pictures per run (0: 1); runs: timed runs (0: 20); warm: runs before them (0: 2, -1:
     * none). */
    int64_t batch, runs, warm;
    /* 1: measure energy, if there is a meter; runs repeat until it can be measured */
    int32_t energy;
    /* 1: measure a step's energy by repeating the step, not by its share of the time */
    int32_t repeat;
    /* File for a trace of one more run with all its steps, for Chrome and Perfetto. NULL: no
     * trace. */
    const char *trace;
} cnr_profile_options;
/* Time of one step over all runs: milliseconds a run, operations, joules and bytes moved. */
typedef struct cnr_step_timing {
    uint32_t size;
    int32_t step;
    /* op "(copy)" or "(layout)": a step that moves data between operators */
    const char *node, *op, *kernel, *device;
    /* mean and minimal time; a multiply-accumulate is two flops */
    double ms, ms_min, flops;
    double joules; /* energy of the step, by the method in cnr_timing.joules_by; NaN: unmeasured */
    const char *from, *to; /* devices of a copy; NULL: the step is no copy */
    /* bytes that a copy moves, or the inputs, weights and outputs of a kernel */
    uint64_t bytes;
    /* Operations that the kernel does. They are fewer than `flops` if its algorithm needs fewer, as
     * Winograd's does. */
    double kernel_flops;
    /* Bytes read that can't still be in the device's caches since their last use. They are all
     * bytes read if the device reports no caches. */
    double memory_bytes;
    const char *arithmetic; /* data type in which the kernel computes: "f32" */
    /* 1: the time is simulated from figures for another class of operators. */
    int32_t extrapolated;
    /* Device counters for the last run, "cycles=1200 bytes_read=64"; NULL: the device has none. */
    const char *counters;
} cnr_step_timing;
/* Time of a net. */
typedef struct cnr_timing {
    uint32_t size;
    /* extrapolated: 1, the time of a step is extrapolated (see cnr_step_timing). */
    int32_t threads, n_steps, extrapolated;
    const char *device; /* first device of the plan */
    int64_t batch, runs;
    double ms_min, ms_median, ms_max, flops; /* times and flops of one run */
    /* peak_rss_bytes: peak resident memory of the whole process. */
    uint64_t arena_bytes, arena_bound_bytes, weight_bytes, peak_rss_bytes;
    cnr_step_timing *steps;
    cnr_energy *energy; /* energy of one run; NULL: not requested */
    /* How the steps' joules were found: "counted" in each step, by counters that are exact at any
     * time (simulated ones); "time": energy of the run, divided in proportion to the steps' times;
     * "repeated": measured by repeating the layer alone for as long as sensors need. NULL: not. */
    const char *joules_by;
    /* Median time of a run until all its work is queued; NaN: no device of the plan is
     * asynchronous. */
    double enqueue_ms;
} cnr_timing;
/* Times a net on made-up inputs. Free *out with cnr_timing_free. */
cnr_status cnr_profile(cnr_model *model, const cnr_profile_options *options,
                       const cnr_observer *observer, cnr_timing *out, cnr_error *err);
/* Frees steps and energy; the struct is the caller's. NULL: nothing. */
void cnr_timing_free(cnr_timing *timing);

/* Placement by measurement: times the net on each device alone, lets a policy make a plan from
 * that, and measures the plan. The model then uses the plan, or the single device that is
 * better. */
typedef struct cnr_share_options {
    uint32_t size;
    int32_t accept_slower_plan; /* 1: use the plan even if a single device is better */
    /* policy: a file, or the name of an installed one such as "best" */
    const char *policy;
    /* options of the policy: "threshold=1"; NULL-terminated; NULL: none */
    const char *const *settings;
    const char *const *devices; /* NULL-terminated; NULL: the devices that nets use by default */
    const char *folder;         /* folder that stores placements for later calls; NULL: none */
    int64_t runs, batch;        /* timed runs of each placement (0: 5); pictures per run (0: 1) */
    int32_t again;              /* 1: measure even if the folder holds a placement */
} cnr_share_options;
/* Measurements of one run. joules, watts and edp (joules * seconds) are NaN if unmeasured. */
typedef struct cnr_share_row {
    char name[32];
    double seconds, joules, watts, edp;
} cnr_share_row;
/* A node's share on a device. */
typedef struct cnr_share_part {
    const char *node, *device;
    double share;
} cnr_share_part;
/* Result of cnr_share: predicted and measured rows of the placement, each device alone, and what
 * was kept. */
typedef struct cnr_sharing {
    uint32_t size;
    /* found: 1, the placement came from the folder, and the single devices were not timed. */
    int32_t n_alone, n_parts, found;
    /* The policy's plan: predicted from the times of the single devices, and measured. */
    cnr_share_row predicted, measured;
    char kept[32]; /* the single device that is better; "": the plan is used */
    /* notes: the policy's steps as JSON; file: the placement's file; each may be NULL */
    const char *notes, *file;
    const cnr_share_row *alone;
    const cnr_share_part *parts; /* parts of each node, in the order of the net */
    void *state;                 /* owns the texts and arrays above */
    /* The way in which the model runs from now on: the plan, or the single device. */
    cnr_share_row chosen;
} cnr_sharing;
/* Times the net on each device and lets a policy place it. Free *out with cnr_sharing_free. */
cnr_status cnr_share(cnr_model *model, const cnr_share_options *options,
                     const cnr_observer *observer, cnr_sharing *out, cnr_error *err);
/* Frees what the result holds and zeroes it, all but its size. NULL: nothing. */
void cnr_sharing_free(cnr_sharing *sharing);
/* Applies the placement for this net that was stored last in the folder. *follows is 1: applied; 0:
 * the folder has none; -1: it is for other devices or drivers. In the last two cases nothing
 * changes. */
cnr_status cnr_follow(cnr_model *model, const char *folder, int32_t *follows, cnr_error *err);

/* Adaptive selection. After cnr_adapt(model, 1) the ordinary runs (cnr_run_tensors,
 * cnr_run_picture) try other kernels first, then other devices and sets of devices. Every result is
 * correct: a trial stops at 1.5 times the default's time, and the default then computes the result.
 *
 * A choice is used from then on if it beats the default in complete passes that alternate with the
 * default's. It is compared by EDP if a meter measures joules, else by time. It is stored in the
 * model's cache folder, by net, shapes, options and power state, and used at the next start. The
 * model learns again when the environment or the time of a run changes. The constants are in the
 * placement policy's table `adapt` (scripts/place/README.md).
 *
 * One thread at a time. Nothing is tried if there is a memory bound. cnr_load_options.adapt starts
 * this when the model loads. on = 0 ends it: the model keeps its last choice. */
cnr_status cnr_adapt(cnr_model *model, int32_t on, cnr_error *err);
/* How far the adaptation to the machine is. */
typedef struct cnr_adapt_report {
    uint32_t size;
    /* settled 1: a choice is made; followed 1: it was made at an earlier start */
    int32_t settled, followed;
    int32_t n_kernels, n_devices;
    int64_t runs, trials; /* number of runs while it learns: of the default; of other choices */
    /* stopped: number of aborted trials; learnt: choices made by this process */
    int64_t stopped, learnt;
    int64_t runs_until_settled;
    double last_ms, prepare_ms; /* time of the last run; time to plan, pack and warm up before it */
    double default_ms, chosen_ms; /* median times of complete passes */
    /* joules times seconds if `by` is "edp", nanoseconds if it is "time" */
    double default_cost, chosen_cost;
    /* by: "edp" or "time"; phase: "default", "kernels", "devices", "sets", "contest", "settled" */
    const char *by, *phase;
    const char *trying; /* choice of the last run while learning, or NULL */
    /* decided: the choice in use; reason: why the model learns or learnt; each may be NULL */
    const char *decided, *reason;
    const char *const *kernels; /* n_kernels entries "NODE@DEVICE=KERNEL" of the choice */
    const char *const *devices; /* n_devices names; 0 of them: the model's own devices */
} cnr_adapt_report;
/* Reports the state of adaptive selection. The texts are valid until the model's next run.
 * CNR_E_STATE: the model does not adapt. */
cnr_status cnr_adapt_state(cnr_model *model, cnr_adapt_report *out, cnr_error *err);

/* Training by gradient descent. The weights of the epoch with the best validation result are
 * written. An existing file is replaced only by a better net. */
/* How a net is trained; cnr_train_options_default fills it. */
typedef struct cnr_train_options {
    uint32_t size;
    int32_t nesterov, overwrite; /* overwrite 1: replace the output even if it is better */
    /* How the learning rate falls. "fixed" (NULL). "inverse": rate * (1 + gamma step) ^ -power;
     * gamma 1e-4, power 0.75. "step": rate * gamma ^ n; n grows every rate_epochs; 0.1, a third of
     * all epochs. "cosine": to 0 along half a cosine. "poly": rate * (1 - part done) ^ power;
     * power 1. "multistep": as step, but n grows at each of rate_epochs; 1/2 and 3/4 of all. */
    const char *policy;
    /* Specs of the samples. test: samples on which the best epoch is tested (NULL: the "eval" split
     * of `data`; "": no test). */
    const char *data, *test;
    const char *output; /* the .cnr file to write */
    /* Operators, .lua files or names of installed ones. NULL: the net's own, or the first one
     * registered. */
    const char *loss, *optimizer;
    int64_t epochs, batch, limit; /* limit: max. number of pictures; 0: all */
    double rate, momentum, decay; /* momentum < 0: the optimiser's default */
    double validation; /* validation part (below 1) or number of pictures; 0: keep the last epoch */
    uint64_t seed, validation_seed;
    int32_t energy;               /* 1: measure energy, if there is a meter */
    double beta1, beta2, epsilon; /* optimiser parameters; 0: the optimiser's defaults */
    const char *split;            /* split of `data`; NULL: "train" */
    /* Returns the learning rate of step 0, 1 ... of `steps`; replaces rate and policy. NULL: not
     * used. */
    double (*schedule)(void *arg, int64_t step, int64_t steps);
    void *schedule_arg;
    /* name pattern of weights whose zeros stay; NULL: only masked weights */
    const char *keep_zeros;
    double gamma, power;     /* schedule parameters; 0: the defaults of `policy` */
    const char *rate_epochs; /* such as "10,15"; NULL: the defaults of `policy` */
    /* File for the state of training, written every checkpoint_seconds (0: 30) and after each
     * epoch. If the file exists, training resumes from it, with the same result as without a break.
     * It is deleted when the output is written. NULL: no checkpoint. */
    const char *checkpoint;
    double checkpoint_seconds;
    const char *curves; /* .csv file with one row per epoch; NULL: none */
    /* Only with an optimiser in a file; an operator's name then selects the file of that name.
     * clip: maximal norm of all gradients together. average: decay of a moving average of the
     * weights, updated at each step; the average is validated and written. accumulate: number of
     * steps whose mean gradient makes one update. 0: not used. */
    double clip, average;
    int64_t accumulate;
    /* factors of the rate for such weights: "conv*=0.1,ip1=2"; NULL: none */
    const char *layer_rates;
    /* name patterns of weights that do not change, but those of a new head: "conv*,bn*"; NULL: none
     */
    const char *freeze;
    /* cnr_train only: number of classes of a new last layer with weights; 0: keep the last
     * layer. */
    int64_t head;
    /* Metrics of each epoch's validation part and of the test, as in cnr_evaluate_options. */
    const char *metric_files;
    const cnr_metric *const *metrics;
    int64_t n_metrics;
    /* Metric that selects the best epoch and is compared with the existing file. "f1": largest is
     * best; "-mae": smallest is best. NULL: accuracy. */
    const char *best_by;
    /* For processes that share a batch: 1: batch normalisation takes the statistics of each
     * process' part; 0: those of the whole batch. */
    int32_t local_statistics;
} cnr_train_options;
enum {
    CNR_EVENT_EPOCH = 1,    /* an epoch has ended; `of` is a cnr_epoch */
    CNR_EVENT_REPLACES = 2, /* before training: `of` is a double, the result of the existing file */
};
/* Result of one epoch of training, for the progress callback; borrowed during the call. */
typedef struct cnr_epoch {
    uint32_t size;
    int64_t epoch, epochs; /* epoch counts from 1 */
    /* top1 (this epoch) and best (so far) are of the validation part; NaN: there is none. */
    double loss, train_top1, top1, best;
    double seconds;
    const cnr_metric_value *metrics; /* metrics of the validation part */
    int64_t n_metrics;
} cnr_epoch;
/* Why training ended early: the observer stopped it; the loss was not finite, or above 100 times
 * its first value. */
enum { CNR_TRAIN_STOPPED = 1, CNR_TRAIN_DIVERGED = 2 };
/* Result of a training. */
typedef struct cnr_train_result {
    uint32_t size;
    int32_t ended; /* reason to end before the last epoch, CNR_TRAIN_...; else 0 */
    /* trained, validated, tested: numbers of pictures */
    int64_t epochs, best_epoch, trained, validated, tested;
    /* validation; test; the existing file's result: parts of 1, or NaN */
    double best, test, replaced;
    double seconds;
    /* energy of the whole training; NULL: not requested. cnr_train_result_free frees it */
    cnr_energy *energy;
    /* metrics of the best epoch; metrics of the test */
    cnr_metric_value metrics[CNR_MAX_METRICS], test_metrics[CNR_MAX_METRICS];
    int64_t n_metrics; /* number of values in each of the two; test values are NaN without a test */
} cnr_train_result;
/* Frees the energy; the struct is the caller's. NULL: nothing. */
void cnr_train_result_free(cnr_train_result *result);
/* Sets all fields to their defaults, up to options->size, which the caller sets. */
void cnr_train_options_default(cnr_train_options *options);
/* Trains a net from a file. load NULL: the weights start at random from the seed. If the observer
 * stops the training, the best weights so far are kept. */
cnr_status cnr_train(cnr_runtime *rt, const char *net, const cnr_load_options *load,
                     const cnr_train_options *options, const cnr_observer *observer,
                     cnr_train_result *out, cnr_error *err);
/* Trains a model further, from its present weights; masks stay in force. options->output NULL: no
 * file is written. */
cnr_status cnr_train_model(cnr_model *model, const cnr_train_options *options,
                           const cnr_observer *observer, cnr_train_result *out, cnr_error *err);

/* Loss and gradients of one batch, for a training loop in the application, which ends in
 * cnr_set_weight. Layers behave as in training: dropout drops values, and batch statistics update
 * the model's. */
typedef struct cnr_gradient_options {
    uint32_t size;
    const char *loss; /* operator; NULL: the net's own, or the first one registered */
    uint64_t seed;    /* seed of dropout */
} cnr_gradient_options;
/* Loss and gradients, valid until the next call on the model. */
typedef struct cnr_gradients {
    uint32_t size;
    int32_t n;
    double loss;
    const char *const *names;    /* names of the n weights that the loss depends on */
    const cnr_tensor *const *at; /* gradients of these weights; 0 where a mask keeps a 0 */
    const cnr_tensor *scores;    /* input of the loss: the net's output */
} cnr_gradients;
/* Computes gradients. `input` is for the net's single input; its first dimension is the batch size,
 * n_labels. labels: the class of each sample. *out is valid until the next call for the model, or
 * the model's release. */
cnr_status cnr_gradients_of(cnr_model *model, const cnr_gradient_options *options,
                            const cnr_tensor *input, const int32_t *labels, int64_t n_labels,
                            cnr_gradients *out, cnr_error *err);

/* Quantisation to integers, limited by noise or by loss of accuracy. */
typedef struct cnr_quantize_options {
    uint32_t size;
    int32_t all;        /* 1: also quantise layers that are slower so on this machine */
    const char *data;   /* samples: calibration uses the "train" split, the check uses "eval" */
    const char *layers; /* name pattern of the layers to quantise; NULL: all */
    /* pictures for calibration (0: 100); for comparison of both nets (0: as limit, -1: none) */
    int64_t limit, check;
    /* Minimal signal-to-noise ratio of a layer in decibels; below it the layer stays float (0: 10,
     * or none with max_drop). */
    double least;
    /* How ranges are chosen: "minmax" (NULL), "percentile", "mse", "kl"; "auto": the method with
     * the least noise. */
    const char *method;
    /* Maximal loss in percentage points of top-1 accuracy (of agreement, without labels). The
     * layers with the most noise stay float until this holds. The loss is measured on a quarter of
     * the `limit` pictures, which calibration does not use. 0: no bound; negative: no loss
     * allowed. */
    double max_drop;
    /* equalize 1: first scale the channels between pairs of layers to similar ranges. The mean
     * error of the outputs is subtracted from the biases where that reduces noise; correct_bias 1:
     * as judged on pictures that are held back as for max_drop. */
    int32_t equalize, correct_bias;
    /* Quantisation-aware training: number of epochs, 0 for none. It uses data's "train" split, of
     * which a tenth is for validation. The best net is quantised, or the original if none is
     * better. batch 0: 32. rate 0: 0.001; it falls along a cosine. seed of order and dropout, 0: 1.
     * keep_zeros: name pattern of weights whose zeros stay, NULL: none. */
    int64_t epochs, batch;
    double rate;
    uint64_t seed;
    const char *keep_zeros;
} cnr_quantize_options;
/* A layer that could be quantised. */
typedef struct cnr_quantized_layer {
    const char *name;
    double low, high, decibels; /* range observed at the output; signal-to-noise ratio */
    int32_t quantized;
    /* why it stays float: "noise", "accuracy" (limit max_drop), "time"; NULL: it is quantised */
    const char *float_for;
} cnr_quantized_layer;
/* Result of cnr_quantize. */
typedef struct cnr_quantizing {
    uint32_t size;
    int32_t n_layers, n_quantized;
    int64_t checked; /* number of pictures for top1, ms and agree */
    /* [0] float, [1] quantised: accuracy, 0 to 1 (NaN without labels); time per picture */
    double top1[2], ms[2];
    /* part of the pictures with the same answer; NaN: outputs are not classes */
    double agree;
    cnr_quantized_layer *layers;
    double decibels; /* signal-to-noise ratio of the worst output; NaN: not compared */
    char **warnings; /* messages for users: slower here, less accurate, different answers */
    int32_t n_warnings;
    int32_t n_float;    /* number of layers that could be quantised and stay float */
    const char *method; /* method that chose the ranges; static text */
    /* Two times per layer, float and quantised, measured here. Each includes the operators up to
     * the next layer. NaN: not timed. */
    double *layer_ms;
    /* accuracy lost on the held-back pictures, in points; NaN: without max_drop */
    double lost;
    /* decibels gained at the outputs by correct_bias, at least 0; NaN: not requested */
    double bias_gain;
    /* pictures held back from calibration; fewer than eight pictures in all serve for both */
    int64_t held_back;
    /* Quantisation-aware training: best epoch (0: the original net); validation accuracy as if
     * quantised, before and after, NaN without training. */
    int64_t best_epoch;
    double trained[2];
    /* 95% intervals (low, high) of `top1`, both nets', and of `agree`; NaN where those are */
    double top1_range[2][2], agree_range[2];
} cnr_quantizing;
/* Quantises a copy: *net is a new model, and `model` stays unchanged. CNR_E_STATE: the comparison
 * shows that the outputs of both nets are unrelated. */
cnr_status cnr_quantize(cnr_model *model, const cnr_quantize_options *options,
                        const cnr_observer *observer, cnr_model **net, cnr_quantizing *out,
                        cnr_error *err);
/* Frees layers, warnings and times; the struct is the caller's. Not NULL. */
void cnr_quantizing_free(cnr_quantizing *quantizing);

/* Runs a study at many points of a parameter grid, each in its own process. It starts the program's
 * command `sweep`, so the program must be installed. The call only borrows all strings. */
typedef struct cnr_sweep_options {
    uint32_t size;
    int32_t resume;           /* 1: only run points without results in the folder */
    const char *study;        /* .lua file that returns a function of a point */
    const char *const *words; /* arguments of the study: p[1], p[2] ... */
    int64_t n_words;
    const char *const *grid; /* "keep=.05,.1", "rate=log:1e-3:1e-1:5", "width=lin:8:64:8" */
    int64_t n_grid;
    const char *seeds;  /* "1..5" or "1,2,7"; NULL: 1 */
    const char *output; /* folder for results.jsonl, results.csv, summary.csv and charts */
    /* jobs: processes at a time (0: 1); random: points drawn from the grid (0: all) */
    int64_t jobs, random;
    uint64_t random_seed;   /* seed of that draw; 0: 1 */
    double seconds, joules; /* after this time or energy no more points start; 0: no limit */
    const char *pictures;   /* format of charts: "png", "svg" or "pdf"; NULL: png */
    /* path of cnnrun; NULL: this program if it is cnnrun, else from PATH */
    const char *program;
    int32_t trust; /* trust 1: the study may use all files */
} cnr_sweep_options;
/* Result of cnr_sweep: number of points, done ones, failed ones and those left. */
typedef struct cnr_sweep_result {
    uint32_t size;
    int64_t points, done, failed, left; /* logs of failed points are in output/failed */
    double seconds;
} cnr_sweep_result;
/* Runs all points. Failed points are not an error. CNR_E_CANCELLED: the observer stopped the sweep;
 * `resume` continues it. */
cnr_status cnr_sweep(const cnr_sweep_options *options, const cnr_observer *observer,
                     cnr_sweep_result *out, cnr_error *err);

/* ---- scripts that an application calls, such as the installed ones for detection and pruning
 * ---- */

/* A Lua state whose script has run at top level. One thread at a time. */
typedef struct cnr_script cnr_script;
/* Opens a script. path: a file, or an installed script such as "calls/detect.lua". The script must
 * return a function. It may use all files and devices that the application may use. model (may be
 * NULL) is passed to the function as a net. It must live as long as the script, and the application
 * must not run it during a call. */
cnr_status cnr_script_open(cnr_runtime *rt, const char *path, cnr_model *model, cnr_script **out,
                           cnr_error *err);
/* Calls function(text, tell, net, tensors...). text may be NULL. The script gets copies of the
 * tensors, which must be dense and on the host. tell(text) calls the observer's event with
 * CNR_EVENT_SCRIPT and the text. *out (may be NULL): the text that the function returned, "" if
 * none, valid until the next call. The observer (may be NULL) gets the progress of long work; if it
 * stops the work, the call returns CNR_E_CANCELLED. */
cnr_status cnr_script_call(cnr_script *script, const char *text, const cnr_tensor *const *tensors,
                           int32_t n_tensors, const cnr_observer *observer, const char **out,
                           cnr_error *err);
/* Closes a script; NULL: nothing. Call it before cnr_close. */
void cnr_script_close(cnr_script *script);
/* Kind of an observer's event, `of` is the text. */
enum { CNR_EVENT_SCRIPT = 64 };

CNR_END_EXPORTS
