/* work: what a person asks for, without a word printed or parsed: each is a struct of options, an
 * observer (how far, what happened, when to stop: cnnrun.h) and a result with a function that frees
 * it. Programs, scripts and applications call the same. */
#ifndef CNRI_WORK_H
#define CNRI_WORK_H

#include "files/files.h"
#include "run/run.h"
#include "samples/samples.h"
#include "show/show.h"
#include "train/train.h"

/* ---- observe.c ---- */
/* The caller's structs may be older and shorter, or NULL: what is missing is 0. */
#define CNRI_COPY_OPTIONS(to, from) \
    do { \
        (to) = (__typeof__(to)){.size = sizeof(to)}; \
        if (from) memcpy(&(to), (from), (from)->size < sizeof(to) ? (from)->size : sizeof(to)); \
    } while (0)
/* The caller says how large its result is. */
#define CNRI_CHECK_RESULT_SIZE(out, got, err) \
    ((out)->size >= sizeof(got) \
         ? CNR_OK \
         : cnri_fail(err, CNR_E_INVALID, #out, "its size is to be set before the call"))
/* Copies as much of a result as the caller's struct has, who may be older than its last fields. */
#define CNRI_COPY_RESULT(out, got) \
    do { \
        const uint32_t capacity = cnr_min((out)->size, (uint32_t)sizeof(got)); \
        memcpy((out), &(got), capacity); \
        (out)->size = capacity; \
    } while (0)
bool cnri_stopped(const cnr_observer *o);
/* Progress and events on their way; false: stop now. */
bool cnri_notify_progress(const cnr_observer *o, const cnr_progress *p);
bool cnri_notify_event(const cnr_observer *o, int32_t kind, const void *of);
/* "evaluating" is at `done` of `total`; CNR_E_CANCELLED: stop now. */
cnr_status cnri_report_progress(const cnr_observer *o, const char *what, int64_t done,
                                int64_t total, cnr_error *err);

/* Events inside the library, beside CNR_EVENT_..., and the struct that each brings. */
enum {
    CNRI_EVENT_CASE = 1000,    /* cnri_compared */
    CNRI_EVENT_PICTURE,        /* cnri_recognised */
    CNRI_EVENT_ENERGY,         /* cnri_energy_row */
    CNRI_EVENT_CLEAR_PROGRESS, /* NULL: a script prints now, so a progress line is to be wiped */
};

/* ---- runner.c: a net run on pictures, in batches ---- */
/* model -> plan for the batch's shape -> session; `input` is the host side of the only input. */
typedef struct cnri_runner {
    const cnr_observer *observer;
    cnr_model *model;
    cnr_plan *plan;
    cnr_session *session;
    cnri_preprocess preprocess;
    cnr_tensor input;           /* the session's, or `own` */
    cnr_tensor requested_shape; /* the shape that plan and session were made for */
    int64_t requested_batch;
    void *own;
    int32_t axis; /* of the input, that counts pictures: 0, or -1 */
    int64_t batch;
    bool adapts; /* runs are the model's that adapts, whose sessions come and go */
} cnri_runner;
cnr_status cnri_runner_open(cnri_runner *r, cnr_model *model, const cnr_observer *observer,
                            cnr_error *err);
void cnri_runner_close(cnri_runner *r);
/* Makes plan and session for `batch` pictures like this one; cheap when nothing changed. A net made
 * for one batch size keeps it: r->batch tells. */
cnr_status cnri_runner_shape(cnri_runner *r, int64_t batch, const cnr_tensor *picture,
                             cnr_error *err);
cnr_status cnri_runner_put(cnri_runner *r, int64_t slot, const cnr_tensor *picture, cnr_error *err);
/* *ns (may be NULL): from handing the input over to having the outputs on the host. */
cnr_status cnri_runner_run(cnri_runner *r, uint64_t *ns, cnr_error *err);
/* Sample `slot` of an output: a view into `whole`. False when the output isn't one per sample. */
bool cnri_runner_slice(const cnri_runner *r, const cnr_tensor *whole, int64_t slot,
                       cnr_tensor *out);
/* ---- score.c: what an answer says, for all who count ---- */
/* All but one axis are 1, behind the batch: scores of classes. */
bool cnri_is_classes(const cnr_tensor *sample);
/* Scores that a net's end has made into shares of 1. */
bool cnri_are_shares(const cnr_tensor *sample);
/* The best of a sample's scores; -1: they aren't scores of classes. */
int64_t cnri_best_class(const cnr_tensor *sample);

/* The least, the greatest and the mean of all elements; NaN: there are none. */
typedef struct cnri_extent {
    double low, high, mean;
} cnri_extent;
cnri_extent cnri_extent_of(const cnr_tensor *t);

/* ---- recognise.c ---- */
typedef struct cnri_recognised {
    const char *picture;
    double seconds;       /* of a video; NaN: there are no times */
    const cnr_error *err; /* why it could not be read; NULL: it was */
    double ms;
    bool classes, shares; /* output 0 is scores of classes, which are parts of 1 */
    const cnr_top *top;   /* the best of them */
    int32_t n;
    cnr_session *session; /* with all outputs */
} cnri_recognised;
/* Runs the model on the chosen pictures of each spec. The observer gets one CNRI_EVENT_PICTURE for
 * each, with up to `top` classes or with the error of a picture or spec that can't be read; the
 * work goes on. Fails if a run fails, the choice is wrong or the observer stops it. */
cnr_status cnri_recognise(cnr_model *model, const char *const *specs, int32_t n,
                          const cnr_selection *choice, int32_t top, const cnr_observer *observer,
                          cnr_error *err);

/* ---- feed.c: samples read, prepared and run ahead, each on a thread of its own ---- */
typedef struct cnri_feed cnri_feed;
typedef struct cnri_fed {
    cnr_sample sample;
    int64_t number, lost; /* of the sample, from 0; of a live source, in all so far */
    bool ran;             /* it had the size that the feed is set for: outputs are of it */
    int32_t n_outputs, turn;
    cnr_tensor input, *outputs;
    cnri_framing framing;
    uint64_t came_ns, begun_ns, ended_ns; /* by the machine's clock: read; the run */
} cnri_fed;
/* Takes the samples over, after an error too. Of a live source the latest goes before the rest. */
cnr_status cnri_feed_open(cnri_samples *samples, cnri_feed **out, cnr_error *err);
/* From now on pictures of that size are prepared so for an input of that type, and run, in a
 * session of the feed's own. Takes `preprocess` over where it succeeds. The model stays until
 * cnri_feed_detach or close. */
cnr_status cnri_feed_attach(cnri_feed *feed, cnr_model *model, cnri_preprocess *preprocess,
                            const cnr_tensor *type, const cnr_tensor *picture, cnr_error *err);
void cnri_feed_detach(cnri_feed *feed);
/* The next: cnri_fed_free. CNR_E_NOT_FOUND of "feed": it has ended; CNR_E_CANCELLED: `cancelled`
 * (may be NULL) said so. *out NULL with CNR_OK: nothing came until `until_ns` of the machine's
 * clock (0: no bound). */
cnr_status cnri_feed_next(cnri_feed *feed, uint64_t until_ns, bool (*cancelled)(void),
                          cnri_fed **out, cnr_error *err);
bool cnri_feed_is_live(const cnri_feed *feed);
void cnri_fed_free(cnri_fed *fed);
void cnri_feed_close(cnri_feed *feed);

/* ---- evaluate.c ---- */
/* As cnr_evaluate, on samples that are open; `data` names them in messages. */
cnr_status cnri_evaluate(cnr_model *model, cnri_samples *samples,
                         const cnr_evaluate_options *options, const cnr_observer *observer,
                         cnr_evaluation *out, cnr_error *err);
/* Wilson's 95% interval, low and high, of a part that was seen among n; NaN where `part` is, or n
 * is 0. */
void cnri_wilson_interval(double part, int64_t n, double out[2]);

/* classes.c: a line for each class of the net: a label's number, or a name, which stands for its
 * place in sorted order. *out: cnri_free. */
cnr_status cnri_class_map_read(const char *path, const cnr_model *model, int64_t **out, int64_t *n,
                               cnr_error *err);

/* ---- profile.c ---- */
/* Sums of steps by operator, longest first; `out` has space for n. Returns how many. */
typedef struct cnri_op_timing {
    const char *op;
    double ms;
    int32_t steps;
} cnri_op_timing;
int32_t cnri_sum_by_operator(const cnr_step_timing *steps, int32_t n, cnri_op_timing *out);

/* ---- trace.c ---- */
/* One run of the session, a line a device, as JSON that Chrome's tracing and Perfetto read. */
cnr_status cnri_trace_run(cnr_session *s, const char *path, cnr_error *err);

/* ---- energy.c ---- */
/* The runtime's sampler, opened when first asked for; rt closes it. */
struct cnri_sampler;
cnr_status cnri_energy_sampler(cnr_runtime *rt, struct cnri_sampler **out, cnr_error *err);
/* Work that tells energy when it is asked to: `requested_shape` 0 leaves *region NULL, which ends
 * as nothing. *out is made of what the region was, in `rounds`, unless `status` is an error, which
 * comes back. */
cnr_status cnri_energy_begin_if(cnr_runtime *rt, int32_t requested_shape,
                                const cnr_observer *observer, cnr_energy_region **region,
                                cnr_error *err);
cnr_status cnri_energy_close(cnr_energy_region *region, cnr_status status, int64_t rounds,
                             cnr_energy **out, cnr_error *err);
/* Sums that miss a device on which the plan's kernels run are no sums: unmeasured, and e->why says
 * so. e may be NULL. */
void cnri_energy_check_plan(cnr_energy *e, const cnr_plan *plan);
void cnri_energy_drop(cnr_energy **energy);
/* The observer's flag, or NULL. */
const volatile int32_t *cnri_cancel_of(const cnr_observer *o);

/* ---- follow.c: every domain, each 50 ms, until the time is over or the observer stops it ---- */
typedef struct cnri_follow_options {
    double seconds; /* 0: until it is stopped, which is no error */
    /* a line for each reading of all: time, watts of each, joules of each; or NULL */
    const char *csv;
    /* a file that holds the joules of each so far, for whoever reads it; or NULL */
    const char *counter;
    const char *const *taken; /* files that those must not be, NULL-terminated; or NULL */
} cnri_follow_options;
/* What the domains draw now; NaN where one can't be read. */
typedef struct cnri_energy_row {
    double seconds; /* since the beginning */
    int32_t n;
    const double *watts, *joules;
    const char *const *names;
} cnri_energy_row;
/* out: what it came to in all. CNR_E_NOT_FOUND: no plugin finds a meter. */
cnr_status cnri_energy_follow(cnr_runtime *rt, const cnri_follow_options *options,
                              const cnr_observer *observer, cnr_energy *out, cnr_error *err);

/* ---- command.c: what a command takes, with all that it starts ---- */
/* argv ends in NULL. *exit_code: the command's, 128 and the signal that ended it, or 127 when it
 * can't be started (CNR_E_NOT_FOUND). Stopping passes the signal on, and waits. */
cnr_status cnri_energy_command(cnr_runtime *rt, char *const *argv,
                               const cnr_energy_options *options, const cnr_observer *observer,
                               cnr_energy *out, int *exit_code, cnr_error *err);

/* ---- tune.c ---- */
/* Times kernels where `t` has no times yet, for these shapes, on each device that the model's
 * options name, and copies between them; plans by that. The plan is the caller's, not the model's.
 * energy: joules too, if there is a meter. Options that ask for determinism leave clocks alone. */
cnr_status cnri_tune(cnr_model *model, const cnr_tensor *const *types, int32_t n, bool energy,
                     cnri_tuning *t, const cnr_observer *observer, cnr_plan **out, cnr_error *err);
typedef struct cnri_tune_options {
    const char *folder;    /* whose record is read and written */
    int64_t batch, repeat; /* pictures at a time; times that all of it is measured */
    bool again;            /* what is on record too */
    bool no_energy;        /* times alone, though there is a meter */
    int64_t hang_ms;       /* a kernel that runs longer is left out, for good (0: a minute) */
} cnri_tune_options;
typedef struct cnri_tuned {
    int32_t repeats, rows; /* rows: on record now */
    int32_t joules;        /* those of them with joules */
    int64_t choices;       /* layers that several kernels take */
    double agreement;      /* part of all choices that were the usual one */
    double spread;         /* how far the sums of the chosen times lie apart, of their median */
    bool hung;             /* a kernel did: after CNR_E_DEVICE another process can go on */
} cnri_tuned;
/* Floats that are as near to each other as two kernels' answers; of other types any are. */
bool cnri_outputs_agree(const cnr_tensor *got, const cnr_tensor *want);
cnr_status cnri_tune_model(cnr_model *model, const cnri_tune_options *options,
                           const cnr_observer *observer, cnri_tuned *out, cnr_error *err);

/* ---- warm.c ---- */
/* For the usual sizes at `batch`, with its table if that is wanted; the caller's (cnri_plan_free),
 * not the model's. */
cnr_status cnri_plan_default_sizes(const cnr_model *model, int64_t batch, bool table,
                                   cnr_plan **out, cnr_error *err);
typedef struct cnri_warmed {
    int64_t batch;
    char origin[1024]; /* hit, or miss or stale and why */
    double ms;
    int32_t blobs;                             /* prepared weights, now or then */
    uint64_t blob_bytes, prepared, taken_over; /* the last two: blobs made now, and found */
} cnri_warmed;
/* Plans, and prepares weights, into the model's cache. */
cnr_status cnri_warm(cnr_model *model, int64_t batch, cnri_warmed *out, cnr_error *err);

/* ---- compile.c ---- */
typedef struct cnri_compiled {
    int64_t batch;
    const char *device; /* that runs what nobody places elsewhere; lives as long as the runtime */
    double ms;
    int32_t blobs, programs; /* prepared weights; what plugins compiled for the devices */
    uint64_t model_bytes, blob_bytes, program_bytes;
} cnri_compiled;
/* Writes a compiled model to `path`, whole or not at all: the model's net, the plan that is made
 * for it here, at its usual sizes for `batch`, and what plugins compile for that. It is run once,
 * on made-up inputs. `policy`: the file of the model's policy that does not come with the net;
 * NULL: there is none. The model's metadata is changed: it brings its options along. */
cnr_status cnri_compile(cnr_model *model, int64_t batch, const char *policy, const char *path,
                        cnri_compiled *out, cnr_error *err);

/* copies.c: what so many bytes take from one device to another: the median of some copies. */
cnr_status cnri_copy_ns(const cnr_device *from, const cnr_device *to, uint64_t bytes, double *ns,
                        cnr_error *err);

/* ---- adapt.c ---- */
/* One run of a model that adapts. *answered: the session that has the outputs; NULL: these inputs
 * can't be adapted to, so cnri_run_plainly is to run them. */
cnr_status cnri_adapt_run(cnr_model *m, const cnr_tensor *const *inputs, int32_t n,
                          cnr_session **answered, cnr_error *err);

/* ---- place.c ---- */
typedef struct cnri_place_options {
    const char *policy;          /* a file, or the name of an installed one */
    const char *const *settings; /* "threshold=1", NULL-terminated; NULL: none */
    const char *const *devices;  /* NULL-terminated; NULL: those that are taken unasked */
    int64_t runs, batch;
    int32_t guard;      /* 1: one device alone is kept where the policy's plan is worse */
    int32_t again;      /* 1: even if one is kept in the folder */
    const char *folder; /* where placements are kept and found again; NULL: nowhere */
} cnri_place_options;
typedef cnr_share_row cnri_place_row;
typedef struct cnri_place_node {
    char *node;
    cnri_part *parts;
    int32_t n, capacity;
    bool extrapolated;
} cnri_place_node;
enum { CNRI_MAX_PLACED = 16 };
typedef struct cnri_placing {
    const char *devices[CNRI_MAX_PLACED + 1]; /* among which it is placed; the runtime's texts */
    CNRI_VEC(cnri_place_row) alone;           /* the net on each device; joules NaN: unmeasured */
    CNRI_VEC(cnri_place_node) nodes;
    /* of the policy's plan; predicted from the devices alone, and a division */
    cnri_place_row predicted, measured;
    cnri_place_row chosen; /* the plan, or the device alone that is kept */
    char kept[32];         /* a device alone that is better; "": the plan is */
    char *notes;           /* JSON: the policy's steps; NULL */
    char *file;            /* in the folder; NULL: none */
    bool found;            /* it was kept there: then nothing is known of the devices alone */
} cnri_placing;
/* The model is then placed so. */
cnr_status cnri_place(cnr_model *model, const cnri_place_options *options,
                      const cnr_observer *observer, cnri_placing *out, cnr_error *err);
void cnri_placing_free(cnri_placing *placing);
/* placed.c: as a policy of its own, made for `made_for` (NULL: not told). */
void cnri_placing_print(const cnri_placing *p, const char *made_for, cnri_text *out);
/* The same in a file. own: into the cache folder, for this user alone. */
cnr_status cnri_placing_write(const cnri_placing *p, const char *path, bool own, cnr_error *err);
/* For other commands, the last one that was made of the net: kept, and followed by a model that has
 * no wishes of its own, if the devices are still those that it was made for. */
typedef enum cnri_follows {
    CNRI_FOLLOWS_NOTHING,
    CNRI_FOLLOWS_PLACEMENT,
    CNRI_FOLLOWS_NONE_STALE
} cnri_follows;
cnr_status cnri_placing_keep(const cnri_placing *p, const cnr_model *m, const char *folder,
                             cnr_error *err);
cnr_status cnri_placing_follow(cnr_model *m, const char *folder, cnri_follows *out, cnr_error *err);
/* Its path in o->folder, which follows from all that the answer does; cnri_free. */
cnr_status cnri_placing_path(const cnr_model *m, const cnri_place_options *o,
                             const char *const *devices, char **path, cnr_error *err);

/* ---- quantise.c ---- */
typedef struct cnri_quantise_options {
    const char *data;      /* calibrated on its "train" part, checked on "eval" */
    cnri_samples *samples; /* for both, instead; NULL: none */
    const char *layers;    /* a pattern of names: only those; NULL: all */
    int64_t limit, check;  /* pictures (0: 100); to compare both nets on (-1: as limit, 0: don't) */
    /* decibels: a layer with less signal to noise stays float. NaN: 10, or none with max_drop */
    double least;
    double max_drop;    /* points that may be lost on the pictures that are held back: of top-1, or,
                           without labels, of agreement; NaN: no bound */
    bool all;           /* layers that are slower here, too */
    bool equalise;      /* channels between layers, by what they were seen to hold */
    bool correct_bias;  /* what outputs are off by on average is taken off the layers' biases,
                           where that makes less noise on the pictures that are held back */
    const char *method; /* how ranges are made of what was seen; NULL: minmax */
    /* Not 0: the layers that become whole numbers are trained for so many epochs as if they were,
     * and the best of these nets, by a tenth of the pictures that is not trained on, is quantised.
     */
    int64_t epochs, batch; /* batch 0: 32 */
    double rate;           /* 0: 0.001 */
    uint64_t seed;
    const char *keep_zeros;      /* a pattern of weights whose zeros stay; NULL: none */
    const cnr_load_options *how; /* of all nets that are run; NULL: as they come */
} cnri_quantise_options;
typedef struct cnri_quantised_layer {
    const char *name;
    double low, high, decibels; /* what its output was seen to hold; signal to noise */
    bool quantised;
    double ms[2]; /* float, quantised, with what stands between it and the next; NaN: not timed */
    int32_t float_for; /* CNR_FLOAT_FOR_...; 0: it is quantised */
} cnri_quantised_layer;
typedef struct cnri_quantising {
    cnr_graph *quantized;         /* borrows from `net`, which borrows from what was given */
    cnr_graph *net;               /* as plans would have it */
    cnri_quantised_layer *layers; /* those that could be; names are net's */
    int32_t n_layers, n_quantised;
    int64_t checked;       /* pictures; the next three are of those: before, after */
    double top1[2], ms[2]; /* parts of 1 (NaN without labels); of a picture, the median */
    double agree;          /* part with the same answer; NaN: answers are no classes */
    double decibels;    /* signal to noise of the output with the most noise; NaN: not compared */
    const char *method; /* of the ranges, static: minmax, percentile, mse or kl */
    int32_t n_float;    /* layers that could have been quantised */
    double top1_range[2][2], agree_range[2]; /* intervals of 95%, low and high; NaN as those */
    int64_t bytes[2];                        /* of all weights, before and after */
    double bias_gain; /* decibels of the outputs by bias correction, kept above 0; NaN: not asked */
    double lost;      /* points, on the pictures that were held back; NaN: there is no bound */
    int64_t held_back; /* so many; of less than eight all, which are calibrated on, too */
    /* Of training: the best epoch (0: the net as it was), and what it and the net as it was were
     * right on, as if quantised; NaN without training. */
    int64_t best_epoch;
    double trained[2]; /* before, after */
} cnri_quantising;     /* what a person should hear of: quantized->warnings */
/* CNR_E_STATE: both nets were compared, and their outputs have nothing in common. */
const char *cnri_float_reason(int32_t float_for); /* "noise"; NULL of 0 */
cnr_status cnri_quantise(cnr_runtime *rt, const cnr_graph *net,
                         const cnri_quantise_options *options, const cnr_observer *observer,
                         cnri_quantising *out, cnr_error *err);
void cnri_quantising_free(cnri_quantising *q);

/* ---- conversions.c: between floats and whole numbers of 8 bits ---- */
typedef struct cnri_conversions {
    int32_t n, pairs; /* nodes that convert; those that take back what the node before has done */
} cnri_conversions;
cnri_conversions cnri_conversions_of(const cnr_graph *g);
int32_t cnri_converts(const cnri_node *node); /* 1: to 8 bits, -1: to floats, 0: it does not */

/* ---- nets.c ---- */
/* As cnr_quantize, on samples that are open; NULL: the options' data. What is not given of `least`
 * and `max_drop` is NaN. */
cnr_status cnri_quantize_model(cnr_model *model, cnri_samples *samples,
                               const cnr_quantize_options *options, const cnr_observer *observer,
                               cnr_model **net, cnr_quantizing *out, cnr_error *err);

/* ---- prune.c ---- */
/* Of a tensor's elements the part `keep` that is largest in size stays, the others become 0. What
 * is large is told by `by`, of the same shape (NULL: itself). block > 1: so many rows of axis 0
 * that follow each other stay or go together, each element of them by itself. */
cnr_status cnri_prune(cnr_tensor *t, const cnr_tensor *by, int64_t block, double keep,
                      cnr_error *err);

/* ---- compare.c: models on given inputs, compared with given outputs (the layout stands there)
 * ---- */
typedef enum cnri_outcome { CNRI_CASE_RIGHT, CNRI_CASE_WRONG, CNRI_CASE_SKIPPED } cnri_outcome;
typedef struct cnri_difference {
    const char *output;
    cnr_tensor got, want;
    bool type;                    /* type or shape differ; the rest is then 0 */
    int64_t n, wrong, worst;      /* elements; those that differ too much; where the most */
    double got_value, want_value; /* there */
} cnri_difference;
typedef struct cnri_compared {
    const char *name;
    cnri_outcome outcome;
    const cnr_error *err; /* why it could not be compared; NULL: it was */
    const cnri_difference *differences;
    int32_t n_differences;
} cnri_compared;
typedef struct cnri_compare_options {
    double rtol, atol;
    const cnr_load_options *how;
} cnri_compare_options;
typedef struct cnri_comparison {
    int32_t n[3];
} cnri_comparison; /* cases by outcome */
/* A case or a folder of such; CNR_E_NOT_FOUND: there is none. */
cnr_status cnri_compare_models(cnr_runtime *rt, const char *path,
                               const cnri_compare_options *options, const cnr_observer *observer,
                               cnri_comparison *out, cnr_error *err);

/* ---- convert.c ---- */
typedef struct cnri_encode_options {
    const cnr_encoding *encoding;
    const cnr_attr *const *settings; /* resolved, in the order of the encoding's schema */
    const char *layers; /* a pattern of names: only those; NULL: all where it takes fewer bytes */
} cnri_encode_options;
typedef struct cnri_encoded_layer {
    const char *layer, *weight; /* the graph's */
    uint64_t before, after;     /* bytes: dense, in the encoding */
    double kept;        /* of the numbers, those that are stored; NAN: the encoding does not say */
    bool encoded;       /* false: it would take no fewer bytes */
    const char *kernel; /* that reads it as it is stored; NULL: none, it is decoded first */
    const char *pays;   /* "bytes", "bytes and time", "nothing" ... */
} cnri_encoded_layer;
typedef struct cnri_encoded {
    int32_t encoded, n_layers;
    uint64_t before, after; /* of those that were encoded */
    cnri_encoded_layer *layers;
} cnri_encoded;
/* The weights that some kernel reads so; to be freed in any event. CNR_E_NOT_FOUND: there are
 * none. */
cnr_status cnri_encode_weights(cnr_graph *g, const cnri_encode_options *options, cnri_encoded *out,
                               cnr_error *err);
/* Finds which kernels a plan of the graph takes for them, and with that whether time is saved. */
void cnri_encoded_judge(cnri_encoded *e, const cnr_plan *plan);
void cnri_encoded_free(cnri_encoded *e);
/* cnri_encode_weights by words, "NAME:OPTION=VALUE", in a model that nobody has a plan of.
 * (nets.c) */
cnr_status cnri_encode_model(cnr_model *m, const char *encoding, const char *layers,
                             cnri_encoded *out, cnr_error *err);
/* By the exporter that knows the name best. */
cnr_status cnri_export(cnr_graph *g, const char *path, cnr_error *err);

/* ---- import.c ---- */
typedef struct cnri_import_options {
    const char *const *paths; /* the model, then files of weights */
    int32_t n_paths, n_settings;
    const char *const *settings; /* "name=value", for the importer */
    const char *format;          /* the importer; NULL: told by the content */
    const char *weights;         /* as cnri_weights_fill takes them */
    const char *labels;          /* a file of names, one a line; NULL: the model's own */
    const char *mean; /* a file: a mean image of the importer's, or a picture; NULL: none */
    bool no_verify;
} cnri_import_options;
int64_t cnri_parameters_of(const cnr_graph *g); /* elements of all weights that are there */
/* A net with all its weights. *mean_taken: the mean image was the importer's, and is in it; else it
 * is a picture, and yet to be used. */
cnr_status cnri_import_model(const cnri_import_options *options, cnr_graph **out, bool *mean_taken,
                             cnr_error *err);

/* ---- judge.c: a plugin's file by itself, and then beside its neighbours, which load after it.
 * `tell` hears in another process which plugin it is (NULL: none) and why it is refused (NULL: it
 * is not); *code is what that returns. CNR_E_STATE: it did not come out of its opening alive. ----
 */
typedef struct cnri_judged_plugin {
    const char *path;
    cnri_plugin_search neighbours;
    int (*tell)(void *arg, const cnri_plugin *p, const char *refused);
    void *arg;
} cnri_judged_plugin;
cnr_status cnri_judge_plugin(const cnri_judged_plugin *j, const cnr_observer *observer, int *code,
                             cnr_error *err);

/* ---- train.c ---- */
/* As cnr_train, on a graph with weights to begin with, which has the best ones afterwards. */
typedef struct cnri_train_task {
    cnr_runtime *rt;
    cnr_graph *net;
    const cnr_load_options *how;
    cnri_samples *samples;     /* NULL: the options' data */
    const char *const *masked; /* weights whose zeros stay */
    int32_t n_masked;
    cnri_own_loss own_loss; /* instead of the options' loss */
    cnri_own_optimizer own_optimizer;
} cnri_train_task;
cnr_status cnri_train_net(const cnri_train_task *task, const cnr_train_options *options,
                          const cnr_observer *observer, cnr_train_result *out, cnr_error *err);
/* Gives layers weights of their own where the net turns or copies its constants by nodes, as
 * training does. Then the names of those that training changes, in order; NULL behind the last. */
cnr_status cnri_train_weights(cnr_model *model, cnr_error *err);
const char *cnri_train_weight_name(const cnr_model *model, int32_t index);
/* As cnr_train_model, on samples that are open (NULL: the options' data), with a loss and an
 * optimiser of the caller's own (NULL: the options'). */
cnr_status cnri_train_model(cnr_model *model, cnri_samples *samples, const cnri_own_loss *own_loss,
                            const cnri_own_optimizer *own_optimizer,
                            const cnr_train_options *options, const cnr_observer *observer,
                            cnr_train_result *out, cnr_error *err);
/* As cnr_gradients_of, with a loss of the caller's own (build NULL: the options'). */
cnr_status cnri_gradients_of(cnr_model *model, const cnr_gradient_options *options,
                             const cnri_own_loss *own_loss, const cnr_tensor *input,
                             const int32_t *labels, int64_t n_labels, cnr_gradients *out,
                             cnr_error *err);

#endif
