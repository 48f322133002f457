/* work: the work of the commands, without parsing or printing. Each piece has a struct of
 * options, an observer (reports progress and events, can stop it: cnnrun.h) and a result with a
 * function that frees it. Programs, scripts and applications call the same functions. */
#ifndef CNRI_WORK_H
#define CNRI_WORK_H

#include "embed/embed.h"
#include "files/files.h"
#include "run/run.h"
#include "samples/samples.h"
#include "show/show.h"
#include "train/train.h"

/* ---- observe.c ---- */
/* Copies a caller's options. The struct may be older and shorter, or NULL; what is missing
 * becomes 0. */
#define CNRI_COPY_OPTIONS(to, from) \
    do { \
        (to) = (__typeof__(to)){.size = sizeof(to)}; \
        if (from) memcpy(&(to), (from), (from)->size < sizeof(to) ? (from)->size : sizeof(to)); \
    } while (0)
/* Checks that the caller set the size of its result. */
#define CNRI_CHECK_RESULT_SIZE(out, got, err) \
    ((out)->size >= sizeof(got) \
         ? CNR_OK \
         : cnri_fail(err, CNR_E_ARG, #out, "its size is to be set before the call"))
/* Copies a result to the caller's struct, which may be older and lack the last fields. */
#define CNRI_COPY_RESULT(out, got) \
    do { \
        const uint32_t capacity = cnr_min((out)->size, (uint32_t)sizeof(got)); \
        memcpy((out), &(got), capacity); \
        (out)->size = capacity; \
    } while (0)
/* True if the observer's cancel flag is set. */
bool cnri_stopped(const cnr_observer *o);
/* Report progress or an event; false: stop now. */
bool cnri_notify_progress(const cnr_observer *o, const cnr_progress *p);
/* Calls the observer's event function; false: it wants to stop. */
bool cnri_notify_event(const cnr_observer *o, int32_t kind, const void *of);
/* Reports that `what` ("evaluating") is at `done` of `total`; CNR_E_CANCELLED: stop now. */
cnr_status cnri_report_progress(const cnr_observer *o, const char *what, int64_t done,
                                int64_t total, cnr_error *err);

/* Events inside the library, beside CNR_EVENT_..., and the struct that each brings. */
enum {
    CNRI_EVENT_CASE = 1000, /* cnri_compared */
    CNRI_EVENT_PICTURE,     /* cnri_recognised */
    CNRI_EVENT_ENERGY,      /* cnri_energy_row */
    /* Without a struct: a script is about to print, so a progress line must be cleared. */
    CNRI_EVENT_CLEAR_PROGRESS,
};

/* ---- runner.c: a net run on pictures, in batches ---- */
/* A net that runs on pictures. `input` is the memory of its only input, on the host. */
typedef struct cnri_runner {
    const cnr_observer *observer;
    cnr_model *model;
    cnr_plan *plan;
    cnr_session *session;
    cnri_preprocess preprocess;
    cnr_tensor input;           /* in the session's memory, or in `own` */
    cnr_tensor requested_shape; /* as requested when plan and session were made */
    int64_t requested_batch;
    void *own;
    int32_t axis; /* axis of the input that counts pictures: 0, or -1: none */
    int64_t batch;
    bool adapts; /* the model adapts: its runs choose the session */
} cnri_runner;
/* Prepares to run a model of one input on pictures. */
cnr_status cnri_runner_open(cnri_runner *r, cnr_model *model, const cnr_observer *observer,
                            cnr_error *err);
void cnri_runner_close(cnri_runner *r); /* closes session and plan */
/* Makes plan and session for `batch` pictures of this one's size; quick if nothing changed. A net
 * made for one batch size keeps it: see r->batch. */
cnr_status cnri_runner_shape(cnri_runner *r, int64_t batch, const cnr_tensor *picture,
                             cnr_error *err);
/* Preprocesses a picture into place `slot` of the batch. */
cnr_status cnri_runner_put(cnri_runner *r, int64_t slot, const cnr_tensor *picture, cnr_error *err);
/* Runs the batch. *ns (may be NULL): time from passing the input to having the outputs on the
 * host. */
cnr_status cnri_runner_run(cnri_runner *r, uint64_t *ns, cnr_error *err);
/* Makes *out a view of sample `slot` in an output. False: the output does not have one entry for
 * each sample. */
bool cnri_runner_slice(const cnri_runner *r, const cnr_tensor *whole, int64_t slot,
                       cnr_tensor *out);
/* ---- score.c: what an answer says, for all who count ---- */
/* True if all axes of a sample but one are 1, so that it holds scores of classes. */
bool cnri_is_classes(const cnr_tensor *sample);
/* True if the scores are shares that sum to 1. */
bool cnri_are_shares(const cnr_tensor *sample);
/* Index of the largest score of a sample; -1: it does not hold scores of classes. */
int64_t cnri_best_class(const cnr_tensor *sample);

/* Least, largest and mean of all elements; NaN: there are none. */
typedef struct cnri_extent {
    double low, high, mean;
} cnri_extent;
/* Smallest, largest and mean element; NAN: there are none. */
cnri_extent cnri_extent_of(const cnr_tensor *t);

/* ---- recognise.c ---- */
/* What a net says of one picture: its classes, or an error; borrowed during the event. */
typedef struct cnri_recognised {
    const char *picture;
    double seconds;       /* position in a video; NaN: not a video */
    const cnr_error *err; /* why the picture could not be read; NULL: it was read */
    double ms;
    bool classes, shares; /* output 0 holds scores of classes; these are shares of 1 */
    const cnr_top *top;   /* the best classes */
    int32_t n;
    cnr_session *session; /* holds all outputs until the next run */
} cnri_recognised;
/* Runs the model on the chosen pictures of each spec. The observer gets a CNRI_EVENT_PICTURE for
 * each, with up to `top` classes. A picture or spec that can't be read is reported the same way,
 * and the work goes on. Fails if a run fails, if the choice is wrong, or if the observer stops
 * it. */
cnr_status cnri_recognise(cnr_model *model, const char *const *specs, int32_t n,
                          const cnr_selection *choice, int32_t top, const cnr_observer *observer,
                          cnr_error *err);

/* ---- feed.c: samples read, prepared and run ahead, each on a thread of its own ---- */
typedef struct cnri_feed cnri_feed;
/* A picture on its way through a feed. */
typedef struct cnri_fed {
    cnr_sample sample;
    /* Number: of the sample, from 0; lost: samples of a live source dropped so far. */
    int64_t number, lost;
    bool ran; /* its size was the one the feed is attached for, so `outputs` are valid */
    int32_t n_outputs, turn;
    cnr_tensor input, *outputs;
    cnri_framing framing;
    /* Ns by the machine's clock: sample read; run begun and ended. */
    uint64_t came_ns, begun_ns, ended_ns;
} cnri_fed;
/* Opens a feed in *out, which owns the samples, after an error too. With a live source the latest
 * sample goes first, and older ones are dropped. */
cnr_status cnri_feed_open(cnri_samples *samples, cnri_feed **out, cnr_error *err);
/* From now on pictures of that size are prepared for an input of that type and run, in a session
 * of the feed's own. On success the feed owns `preprocess`. The model must live until
 * cnri_feed_detach or cnri_feed_close. */
cnr_status cnri_feed_attach(cnri_feed *feed, cnr_model *model, cnri_preprocess *preprocess,
                            const cnr_tensor *type, const cnr_tensor *picture, cnr_error *err);
/* Closes the session and plan; waits until no picture is run. */
void cnri_feed_detach(cnri_feed *feed);
/* Returns the next sample; free it with cnri_fed_free. CNR_E_NOT_FOUND with the place "feed": it
 * has ended; CNR_E_CANCELLED: `cancelled` (may be NULL) returned true. *out NULL with CNR_OK:
 * nothing came until `until_ns` of the machine's clock (0: waits without bound). */
cnr_status cnri_feed_next(cnri_feed *feed, uint64_t until_ns, bool (*cancelled)(void),
                          cnri_fed **out, cnr_error *err);
/* True if the source is a camera or stream. */
bool cnri_feed_is_live(const cnri_feed *feed);
void cnri_fed_free(cnri_fed *fed);     /* NULL: nothing */
void cnri_feed_close(cnri_feed *feed); /* stops threads, frees all; NULL: nothing */

/* ---- evaluate.c ---- */
/* cnr_evaluate on open samples; `data` in the options names them in messages. */
cnr_status cnri_evaluate(cnr_model *model, cnri_samples *samples,
                         const cnr_evaluate_options *options, const cnr_observer *observer,
                         cnr_evaluation *out, cnr_error *err);

/* classes.c: reads a file with one line for each class of the net: the number of a label, or a
 * name, which stands for its place in sorted order. Free *out with cnri_free. */
cnr_status cnri_class_map_read(const char *path, const cnr_model *model, int64_t **out, int64_t *n,
                               cnr_error *err);

/* ---- profile.c ---- */
/* Sums the steps by operator, longest first. `out` has room for n. Returns the number of
 * operators. */
typedef struct cnri_op_timing {
    const char *op;
    double ms;
    int32_t steps;
} cnri_op_timing;
/* Sums steps by operator, the slowest first; returns how many. `out` has room for n. */
int32_t cnri_sum_by_operator(const cnr_step_timing *steps, int32_t n, cnri_op_timing *out);

/* ---- trace.c ---- */
/* Runs the session once and writes the trace as JSON for Chrome's tracing and Perfetto, one row
 * for each device. */
cnr_status cnri_trace_run(cnr_session *s, const char *path, cnr_error *err);

/* ---- energy.c ---- */
/* Returns the runtime's energy sampler, which is opened at first use; the runtime closes it. */
struct cnri_sampler;
/* *out: the runtime's sampler of meters, opened at first use; the runtime closes it. */
cnr_status cnri_energy_sampler(cnr_runtime *rt, struct cnri_sampler **out, cnr_error *err);
/* Brackets of work that measures energy on request. `requested_shape` 0: *region stays NULL, and
 * closing it does nothing. Closing fills *out with the energy of the region, counted in
 * `rounds`, unless `status` is an error. Returns `status`, or an error of its own. */
cnr_status cnri_energy_begin_if(cnr_runtime *rt, int32_t requested_shape,
                                const cnr_observer *observer, cnr_energy_region **region,
                                cnr_error *err);
/* Ends a region. *out: what was measured, for cnri_energy_drop; status: of the work, and
 * returned. */
cnr_status cnri_energy_close(cnr_energy_region *region, cnr_status status, int64_t rounds,
                             cnr_energy **out, cnr_error *err);
/* If a device that runs the plan's kernels has no meter, the sums become unmeasured, and e->why
 * says so. e may be NULL. */
void cnri_energy_check_plan(cnr_energy *e, const cnr_plan *plan);
/* Frees a measurement and sets it to NULL. */
void cnri_energy_drop(cnr_energy **energy);
/* The observer's cancel flag; NULL: it has none. */
const volatile int32_t *cnri_cancel_of(const cnr_observer *o);

/* ---- follow.c: reads every domain, each 50 ms, until the time is over or the observer stops it
 * ---- */
/* Options of following all domains over time. */
typedef struct cnri_follow_options {
    double seconds; /* 0: until the observer stops it, which is no error */
    /* File for one line at each reading: time, watts and joules of each domain. NULL: none. */
    const char *csv;
    /* File with the joules of each domain so far, for other processes. NULL: none. */
    const char *counter;
    /* Files that the two above must not overwrite; NULL-terminated; NULL: none. */
    const char *const *taken;
} cnri_follow_options;
/* Present power of the domains; NaN: could not be read. */
typedef struct cnri_energy_row {
    double seconds; /* since the beginning of the work */
    int32_t n;
    const double *watts, *joules;
    const char *const *names;
} cnri_energy_row;
/* Follows the meters. out: the energy in all. CNR_E_NOT_FOUND: no plugin finds a meter. */
cnr_status cnri_energy_follow(cnr_runtime *rt, const cnri_follow_options *options,
                              const cnr_observer *observer, cnr_energy *out, cnr_error *err);

/* ---- command.c: energy while a command runs, with all processes that it starts ---- */
/* argv ends in NULL. *exit_code: the command's; 128 plus the number of the signal that ended it;
 * or 127 if it can't be started (CNR_E_NOT_FOUND). When the observer stops it, the signal is
 * passed on, and the command's end awaited. */
cnr_status cnri_energy_command(cnr_runtime *rt, char *const *argv,
                               const cnr_energy_options *options, const cnr_observer *observer,
                               cnr_energy *out, int *exit_code, cnr_error *err);

/* ---- tune.c ---- */
/* Times kernels that have no times in `t`, for these shapes, on each device that the model's
 * options name, and copies between devices; then plans by these times. The caller owns the plan.
 * energy: measures joules too, if there is a meter. Nothing is timed if the options ask for
 * determinism. */
cnr_status cnri_tune(cnr_model *model, const cnr_tensor *const *types, int32_t n, bool energy,
                     cnri_tuning *t, const cnr_observer *observer, cnr_plan **out, cnr_error *err);
/* How kernels are timed: for which batch size, how often, where times are kept, and the limit in
 * ms. */
typedef struct cnri_tune_options {
    const char *folder;    /* folder whose record is read and written */
    int64_t batch, repeat; /* batch: pictures at a time; repeat: how often everything is measured */
    bool again;            /* also times what is on record */
    bool no_energy;        /* measures no joules even if there is a meter */
    int64_t hang_ms;       /* a kernel that runs longer is never timed again, in ms (0: a minute) */
} cnri_tune_options;
/* Result of timing kernels: how many rows were measured, and how well repeats agree. */
typedef struct cnri_tuned {
    int32_t repeats, rows; /* rows: in the record now */
    int32_t joules;        /* number of rows with joules */
    int64_t choices;       /* layers that several kernels accept */
    double agreement;      /* share of all choices that were the most frequent one */
    double spread;         /* spread of the sums of chosen times, relative to their median */
    bool hung;             /* a kernel hung: after CNR_E_DEVICE another process can go on */
} cnri_tuned;
/* True if floats are as close to each other as the answers of two kernels. Other types always
 * agree. */
bool cnri_outputs_agree(const cnr_tensor *got, const cnr_tensor *want);
/* Times all kernels of a model, in a group shared among the ranks. */
cnr_status cnri_tune_model(cnr_model *model, const cnri_tune_options *options,
                           const cnr_observer *observer, cnri_tuned *out, cnr_error *err);

/* ---- warm.c ---- */
/* Plans for the default sizes at `batch`, in *out; `table`: keeps the table. The caller frees the
 * plan with cnri_plan_free. */
cnr_status cnri_plan_default_sizes(const cnr_model *model, int64_t batch, bool table,
                                   cnr_plan **out, cnr_error *err);
/* How a plan was warmed up: where it came from, milliseconds, and blobs in bytes. */
typedef struct cnri_warmed {
    int64_t batch;
    char origin[1024]; /* "hit", or "miss" or "stale" with the reason */
    double ms;
    int32_t blobs; /* number of blobs, prepared now or earlier */
    /* Bytes of all blobs; prepared, taken_over: number of blobs made now, and found. */
    uint64_t blob_bytes, prepared, taken_over;
} cnri_warmed;
/* Plans, prepares weights, and stores both in the model's cache. */
cnr_status cnri_warm(cnr_model *model, int64_t batch, cnri_warmed *out, cnr_error *err);

/* ---- compile.c ---- */
/* What was compiled for one batch size: milliseconds, blobs and programs, sizes in bytes. */
typedef struct cnri_compiled {
    int64_t batch;
    /* Device of all nodes that are not placed elsewhere; the runtime owns the text. */
    const char *device;
    double ms;
    /* Blobs of prepared weights; programs that plugins compiled for devices. */
    int32_t blobs, programs;
    uint64_t model_bytes, blob_bytes, program_bytes;
} cnri_compiled;
/* Writes a compiled model to `path`, whole or not at all: the net, the plan made for it here at
 * its default sizes for `batch`, and the programs that plugins compile for that. The model is
 * run once, on made-up inputs. `policy`: file of a policy that is not the net's own; NULL: none.
 * The options are stored in the model's metadata, which changes. */
cnr_status cnri_compile(cnr_model *model, int64_t batch, const char *policy, const char *path,
                        cnri_compiled *out, cnr_error *err);

/* copies.c: median time in ns of a few copies of `bytes` from one device to another. */
cnr_status cnri_copy_ns(const cnr_device *from, const cnr_device *to, uint64_t bytes, double *ns,
                        cnr_error *err);

/* ---- adapt.c ---- */
/* Runs a model that adapts. *answered: the session that has the outputs; NULL: these inputs
 * can't be adapted to, so run them with cnri_run_plainly. */
cnr_status cnri_adapt_run(cnr_model *m, const cnr_tensor *const *inputs, int32_t n,
                          cnr_session **answered, cnr_error *err);

/* ---- place.c ---- */
/* Options of placing a net by a policy. */
typedef struct cnri_place_options {
    const char *policy;          /* a file, or the name of an installed policy */
    const char *const *settings; /* "threshold=1", NULL-terminated; NULL: none */
    const char *const *devices;  /* NULL-terminated; NULL: those used by default */
    int64_t runs, batch;
    int32_t guard;      /* 1: keeps one device alone if the policy's plan is worse */
    int32_t again;      /* 1: measures even if the folder has a placement */
    const char *folder; /* folder where placements are stored and found; NULL: nowhere */
} cnri_place_options;
typedef cnr_share_row cnri_place_row;
/* A node and its parts among devices. */
typedef struct cnri_place_node {
    char *node;
    cnri_part *parts;
    int32_t n, capacity;
    bool extrapolated;
} cnri_place_node;
enum { CNRI_MAX_PLACED = 16 };
/* A placement, with what it was made from. */
typedef struct cnri_placing {
    /* Devices among which it is placed; the runtime owns the texts. */
    const char *devices[CNRI_MAX_PLACED + 1];
    CNRI_VEC(cnri_place_row) alone; /* the net on each device alone; joules NaN: not measured */
    CNRI_VEC(cnri_place_node) nodes;
    /* The policy's plan: as predicted from single devices and a divided run, and as measured. */
    cnri_place_row predicted, measured;
    cnri_place_row chosen; /* the plan, or the single device that is kept */
    char kept[32];         /* name of a single device that is better; "": the plan is kept */
    char *notes;           /* the policy's steps as JSON; NULL: none */
    char *file;            /* path in the folder; NULL: none */
    bool found;            /* it was found in the folder, so single devices were not measured */
} cnri_placing;
/* Finds a placement and applies it to the model. */
cnr_status cnri_place(cnr_model *model, const cnri_place_options *options,
                      const cnr_observer *observer, cnri_placing *out, cnr_error *err);
void cnri_placing_free(cnri_placing *placing); /* frees lists and texts, zeroes it */
/* placed.c: prints the placement as a policy of its own, made for the devices `made_for` (NULL:
 * not stated). */
void cnri_placing_print(const cnri_placing *p, const char *made_for, cnri_text *out);
/* Writes it to a file. own: into the cache folder, readable by this user only. */
cnr_status cnri_placing_write(const cnri_placing *p, const char *path, bool own, cnr_error *err);
/* Whether a model without placements of its own follows the last one kept for its net, which it
 * does if the devices are still those that it was made for. */
typedef enum cnri_follows {
    CNRI_FOLLOWS_NOTHING,
    CNRI_FOLLOWS_PLACEMENT,
    CNRI_FOLLOWS_NONE_STALE
} cnri_follows;
/* Keeps a placement in the folder, for the model's next loads. */
cnr_status cnri_placing_keep(const cnri_placing *p, const cnr_model *m, const char *folder,
                             cnr_error *err);
/* Gives the model the placement that is kept for it, if the devices are the same. */
cnr_status cnri_placing_follow(cnr_model *m, const char *folder, cnri_follows *out, cnr_error *err);
/* Path of the placement in o->folder, which depends on everything that decides the answer. Free
 * with cnri_free. */
cnr_status cnri_placing_path(const cnr_model *m, const cnri_place_options *o,
                             const char *const *devices, char **path, cnr_error *err);

/* ---- quantise.c ---- */
/* Options of quantising a net: pictures, layers, method and limits. 0 and NULL are the defaults. */
typedef struct cnri_quantise_options {
    const char *data;      /* spec: calibrates on its split "train", checks on "eval" */
    cnri_samples *samples; /* replaces `data` for both; NULL: none */
    const char *layers;    /* only layers whose name matches this pattern; NULL: all */
    /* Pictures to calibrate on (0: 100); to compare both nets on (-1: as many, 0: none). */
    int64_t limit, check;
    /* Decibels: layers with less signal to noise stay float. NaN: 10, or no bound if max_drop is
     * given. */
    double least;
    double max_drop;    /* points that may be lost on the pictures that are held back: of top-1, or,
                           without labels, of agreement; NaN: no bound */
    bool all;           /* layers that are slower here, too */
    bool equalise;      /* channels between layers, by what they were seen to hold */
    bool correct_bias;  /* the correction of biases is judged on the pictures that are held back */
    const char *method; /* how ranges are made of what was seen; NULL: minmax */
    /* Not 0: the layers that become whole numbers are trained for so many epochs as if they were,
     * and the best of these nets, by a tenth of the pictures that is not trained on, is quantised.
     */
    int64_t epochs, batch; /* batch 0: 32 */
    double rate;           /* learning rate; 0: 0.001 */
    uint64_t seed;
    const char *keep_zeros;      /* a pattern of weights whose zeros stay; NULL: none */
    const cnr_load_options *how; /* of all nets that are run; NULL: as they come */
} cnri_quantise_options;
/* Restores the settings that a killed process left; cnr_open does this, too. *brought: number of
 * knobs restored. */
cnr_status cnri_govern_restore(cnr_runtime *rt, int32_t *brought, cnr_error *err);
/* A layer that could be quantised. */
typedef struct cnri_quantised_layer {
    const char *name;
    double low, high, decibels; /* measured range of its output; signal to noise */
    bool quantised;
    double ms[2]; /* float, quantised, with the steps up to the next layer; NaN: not timed */
    const char *float_for; /* static, as in cnr_quantized_layer */
} cnri_quantised_layer;
/* A quantised net and how good it is. */
typedef struct cnri_quantising {
    cnr_graph *quantized;         /* borrows from `net`, which borrows from the caller's net */
    cnr_graph *net;               /* rewritten as plans do */
    cnri_quantised_layer *layers; /* layers that could be quantised; `net` owns the names */
    int32_t n_layers, n_quantised;
    int64_t checked; /* pictures compared; the next three members are of those: before, after */
    double top1[2], ms[2]; /* parts of 1 (NaN without labels); of a picture, the median */
    double agree;          /* share of pictures with the same answer; NaN: answers are no classes */
    double decibels;    /* signal to noise of the output with the most noise; NaN: not compared */
    const char *method; /* of the ranges, static: minmax, percentile, mse or kl */
    int32_t n_float;    /* layers that could have been quantised */
    /* intervals of 95%, low and high, before and after; NaN as top1 and agree */
    double top1_range[2][2], agree_range[2];
    int64_t bytes[2]; /* of all weights, before and after */
    double bias_gain; /* decibels of the outputs by bias correction, kept above 0; NaN: not asked */
    double lost;      /* points, on the pictures that were held back; NaN: there is no bound */
    /* number of pictures kept for checking; of less than eight all are checked and calibrated on */
    int64_t held_back;
    /* Of training: the best epoch (0: the net as it was), and what it and the net as it was were
     * right on, as if quantised; NaN without training. */
    int64_t best_epoch;
    double trained[2]; /* accuracy on the validation part, before and after training */
} cnri_quantising;     /* what a person should hear of: quantized->warnings */
/* CNR_E_STATE: both nets were compared, and their outputs have nothing in common. */
/* Quantises a net; *out must be freed by cnri_quantising_free, also on failure. */
cnr_status cnri_quantise(cnr_runtime *rt, const cnr_graph *net,
                         const cnri_quantise_options *options, const cnr_observer *observer,
                         cnri_quantising *out, cnr_error *err);
void cnri_quantising_free(cnri_quantising *q); /* frees both nets, zeroes it */

/* ---- conversions.c: conversions between floats and 8-bit integers ---- */
/* How many conversions between floats and 8-bit integers a net has. */
typedef struct cnri_conversions {
    /* N: nodes that convert; pairs: nodes that undo the conversion of the node before. */
    int32_t n, pairs;
} cnri_conversions;
/* Counts the conversions of a net. */
cnri_conversions cnri_conversions_of(const cnr_graph *g);
int32_t cnri_converts(const cnri_node *node); /* 1: to 8 bits, -1: to floats, 0: does not convert */

/* ---- nets.c ---- */
/* cnr_quantize on open samples; NULL: the options' data. `least` and `max_drop` are NaN if not
 * given. */
cnr_status cnri_quantize_model(cnr_model *model, cnri_samples *samples,
                               const cnr_quantize_options *options, const cnr_observer *observer,
                               cnr_model **net, cnr_quantizing *out, cnr_error *err);

/* ---- prune.c ---- */
/* Keeps the share `keep` of a tensor's elements with the largest magnitude and sets the others
 * to 0. Magnitudes are those of `by`, a tensor of the same shape (NULL: of t). block > 1: that
 * many consecutive rows of axis 0 are kept or removed together, for each element of a row. */
cnr_status cnri_prune(cnr_tensor *t, const cnr_tensor *by, int64_t block, double keep,
                      cnr_error *err);

/* ---- compare.c: runs models on given inputs and compares outputs with given ones (compare.c
 * describes the folders) ---- */
/* How a comparison ended. */
typedef enum cnri_outcome { CNRI_CASE_RIGHT, CNRI_CASE_WRONG, CNRI_CASE_SKIPPED } cnri_outcome;
/* A difference between an output and the given one. */
typedef struct cnri_difference {
    const char *output;
    cnr_tensor got, want;
    bool type; /* type or shape differ; the other fields are then 0 */
    /* Number of elements; of those that differ too much; index of the largest difference. */
    int64_t n, wrong, worst;
    double got_value, want_value; /* values at that index */
} cnri_difference;
/* A case that was compared. */
typedef struct cnri_compared {
    const char *name;
    cnri_outcome outcome;
    const cnr_error *err; /* why it could not be compared; NULL: it was */
    const cnri_difference *differences;
    int32_t n_differences;
} cnri_compared;
/* How outputs are compared: relative and absolute tolerance. */
typedef struct cnri_compare_options {
    double rtol, atol;
    const cnr_load_options *how;
} cnri_compare_options;
/* Number of cases by outcome (right, wrong, skipped) */
typedef struct cnri_comparison {
    int32_t n[3];
} cnri_comparison; /* number of cases by outcome */
/* Compares a case or a folder of cases; CNR_E_NOT_FOUND: there is none. */
cnr_status cnri_compare_models(cnr_runtime *rt, const char *path,
                               const cnri_compare_options *options, const cnr_observer *observer,
                               cnri_comparison *out, cnr_error *err);

/* ---- convert.c ---- */
/* How weights are encoded. */
typedef struct cnri_encode_options {
    const cnr_encoding *encoding;
    const cnr_attr *const *settings; /* in the order of the encoding's schema */
    /* Only layers whose name matches this pattern; NULL: all that then take fewer bytes. */
    const char *layers;
} cnri_encode_options;
/* A weight that was encoded, or why it was not. */
typedef struct cnri_encoded_layer {
    const char *layer, *weight; /* the graph owns the texts */
    uint64_t before, after;     /* bytes: dense, and encoded */
    double kept;        /* share of the numbers that are stored; NaN: the encoding does not say */
    bool encoded;       /* false: it would not take fewer bytes */
    const char *kernel; /* the kernel that reads it in stored form; NULL: it is decoded first */
    const char *pays;   /* what encoding saves: "bytes", "bytes and time", "nothing" ... */
} cnri_encoded_layer;
/* All weights that were encoded. */
typedef struct cnri_encoded {
    int32_t encoded, n_layers;
    uint64_t before, after; /* bytes of the encoded weights */
    cnri_encoded_layer *layers;
} cnri_encoded;
/* Encodes the weights that some kernel reads in this encoding. Free *out after an error too.
 * CNR_E_NOT_FOUND: there are none. */
cnr_status cnri_encode_weights(cnr_graph *g, const cnri_encode_options *options, cnri_encoded *out,
                               cnr_error *err);
/* Finds the kernels that a plan of the graph uses for the encoded weights, and so whether time
 * is saved. */
void cnri_encoded_judge(cnri_encoded *e, const cnr_plan *plan);
void cnri_encoded_free(cnri_encoded *e); /* Frees the list of layers; the struct is zero then. */
/* Encodes weights of a model that nobody has a plan of; `encoding` is "NAME:OPTION=VALUE".
 * (nets.c) */
cnr_status cnri_encode_model(cnr_model *m, const char *encoding, const char *layers,
                             cnri_encoded *out, cnr_error *err);
/* Writes the graph with the exporter that best fits the file name. */
cnr_status cnri_export(cnr_graph *g, const char *path, cnr_error *err);

/* ---- import.c ---- */
/* Options of importing a model. */
typedef struct cnri_import_options {
    const char *const *paths; /* the model, then files of weights */
    int32_t n_paths, n_settings;
    const char *const *settings; /* "name=value", for the importer */
    const char *format;          /* name of the importer; NULL: found by the content */
    const char *weights;         /* as in cnri_weights_fill */
    const char *labels;          /* file with one name on each line; NULL: the model's own */
    const char *mean; /* file: a mean image in the importer's format, or a picture; NULL: none */
    bool no_verify;
} cnri_import_options;
/* Number of elements of all weights that have data. */
int64_t cnri_parameters_of(const cnr_graph *g);
/* Imports a net with all its weights into *out. *mean_taken: the mean image was in the importer's
 * format and is set; else it is a picture that the caller still has to use. */
cnr_status cnri_import_model(const cnri_import_options *options, cnr_graph **out, bool *mean_taken,
                             cnr_error *err);

/* ---- judge.c: judges a plugin file alone, and then beside its neighbours, which load after it.
 * `tell` is called in another process with the plugin (NULL: none) and the reason why it is
 * refused (NULL: it is not); *code is what it returns. CNR_E_STATE: the process did not survive
 * opening the file. ---- */
/* A plugin file that is judged, and its neighbours. */
typedef struct cnri_judged_plugin {
    const char *path;
    cnri_plugin_search neighbours;
    int (*tell)(void *arg, const cnri_plugin *p, const char *refused);
    void *arg;
} cnri_judged_plugin;
/* Judges a plugin in a process of its own; *code: what it exited with. */
cnr_status cnri_judge_plugin(const cnri_judged_plugin *j, const cnr_observer *observer, int *code,
                             cnr_error *err);

/* ---- train.c ---- */
/* cnr_train on a graph with initial weights, which has the best weights afterwards. */
typedef struct cnri_train_task {
    cnr_runtime *rt;
    cnr_graph *net;
    const cnr_load_options *how;
    cnri_samples *samples;     /* NULL: the options' data */
    const char *const *masked; /* names of weights whose zeros stay zero */
    int32_t n_masked;
    cnri_own_loss own_loss; /* replaces the options' loss */
    cnri_own_optimizer own_optimizer;
} cnri_train_task;
/* Trains a net and writes it, as the options say. */
cnr_status cnri_train_net(const cnri_train_task *task, const cnr_train_options *options,
                          const cnr_observer *observer, cnr_train_result *out, cnr_error *err);
/* Gives layers weights of their own where the net turns or copies its constants by nodes, as
 * training does. Then the names of those that training changes, in order; NULL behind the last. */
cnr_status cnri_train_weights(cnr_model *model, cnr_error *err);
/* Name of weight `index` that training changes; NULL: there are no more. */
const char *cnri_train_weight_name(const cnr_model *model, int32_t index);
/* As cnr_train_model, on samples that are open (NULL: the options' data), with a loss and an
 * optimiser of the caller's own (NULL: the options'). */
cnr_status cnri_train_model(cnr_model *model, cnri_samples *samples, const cnri_own_loss *own_loss,
                            const cnri_own_optimizer *own_optimizer,
                            const cnr_train_options *options, const cnr_observer *observer,
                            cnr_train_result *out, cnr_error *err);
/* cnr_gradients_of with a loss of the caller's own (build NULL: the options' loss). */
cnr_status cnri_gradients_of(cnr_model *model, const cnr_gradient_options *options,
                             const cnri_own_loss *own_loss, const cnr_tensor *input,
                             const int32_t *labels, int64_t n_labels, cnr_gradients *out,
                             cnr_error *err);

/* profile.c */
/* Fails if the clock in force does not measure the device. */
cnr_status cnri_device_check_timed(const cnr_device *device, cnr_error *err);

#endif
