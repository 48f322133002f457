/* For applications: open, load, run, top-k, close; and, below, the parts those are made of.
 *
 *     cnr_runtime *rt; cnr_model *net; const cnr_tensor *scores; cnr_top best[5];
 *     cnr_error err = CNR_ERROR_INIT;
 *     cnr_open(&rt, NULL, &err);
 *     cnr_load(rt, "lenet5.cnr", NULL, &net, &err);
 *     cnr_run_picture(net, "three.png", &scores, &err);
 *     int n = cnr_topk(scores, 5, best);
 *     cnr_close(rt);
 */
#ifndef CNNRUN_CNNRUN_H
#define CNNRUN_CNNRUN_H

#include <cnnrun/status.h>
#include <cnnrun/tensor.h>
#include <cnnrun/version.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default) /* shared libraries export these */
#endif

typedef struct cnr_runtime cnr_runtime; /* loaded plugins and open devices */
typedef struct cnr_model cnr_model;     /* a graph with its weights; shared, and left as it is meanwhile */
typedef struct cnr_plan cnr_plan;       /* a model for given shapes and devices; immutable, shared */
typedef struct cnr_session cnr_session; /* memory to run a plan in; one thread at a time */

typedef struct cnr_open_options {
    uint32_t size;
    int32_t threads;                 /* of the CPU; 0: all */
    const char *const *plugin_dirs;  /* searched first; NULL-terminated; NULL: none */
    void (*log)(void *arg, int32_t level, const char *plugin, const char *text);
    void *log_arg;
    int32_t log_level; /* cnr_log_level; more is chattier */
    int32_t no_default_dirs;
    int32_t trust_scripts; /* 1: Lua scripts may use files and time (see --trust) */
    const char *clock; /* (since 1.2) a plugin's, for all of the process; NULL: the machine's */
    /* (since 1.2) folder of what plugins keep between runs (compiled kernels); NULL: the first `cache`
     * of a model, else CNNRUN_CACHE, else ~/.cache/cnnrun */
    const char *cache;
    const char *sysfs_root; /* (since 1.2) where meters and knobs look for /sys and the like; NULL: "/" */
    const char *meter_address; /* (since 1.2) of a meter that is no file there; NULL: none */
    /* (since 1.2) a Lua file that describes the machine, for plugins that ask, and values of it that are
     * to be others: "odroid_xu3" (of the installed boards), "mine.lua,seed=3"; for all of the process */
    const char *board;
    /* (since 1.2) which instruction set the CPU's kernels are of: "avx512", "avx2", "neon", "generic"; for
     * all of the process, so before its first runtime; NULL: CNNRUN_CPU_ISA, else the widest there is */
    const char *cpu_isa;
} cnr_open_options;

typedef struct cnr_load_options {
    uint32_t size;
    int32_t n_symbols;
    const char *weights;         /* files whose weights fill the net, with commas between;
                                    "random:SEED"; NULL: those behind a comma in the path, or its own */
    const char *net;             /* which net of a script that holds several; NULL: the only one */
    const char *const *symbols;  /* names of dimensions ... */
    const int64_t *symbol_values; /* ... bound when a plan is made implicitly; else they are 1 */
    const char *const *no_rewrite; /* names, NULL-terminated; NULL: none */
    const char *device;          /* "cpu", "opencl:0"; NULL: the best */
    uint64_t memory_bound;       /* bytes for prepared weights; 0: none */
    int32_t deterministic;
    const char *cache;           /* folder of stored plans and tuning records; NULL: none */
    uint64_t cache_bytes;        /* most that plans may take in there; 0: 4 GiB */
    /* (since 1.1) "name=value" for the importer, NULL-terminated; NULL: none */
    const char *const *import_options;
    const char *preset; /* (since 1.2) how pictures are prepared: "torchvision"; NULL: as the net says */
    /* (since 1.2) 1: weights of a .cnr are believed; else their digests are compared when the data
     * is first read, and damage is CNR_E_FORMAT */
    int32_t no_verify;
    /* (since 1.2) "NODE=KERNEL" or "OPERATOR=KERNEL", NULL-terminated: what must run there, with
     * "@DEVICE" before the "=" on that device alone ("reference": the operator's own); NULL: none */
    const char *const *kernels;
    /* (since 1.2) most bytes of host memory that a session and its batch may take: activations, inputs,
     * outputs; more is CNR_E_LIMIT before any is. 0: three quarters of what the process may have */
    uint64_t memory_limit;
    /* (since 1.2) a file of Lua that picks among all candidates of the net (scripts/README.md); if it
     * fails, that is logged once and the default plan stands. NULL: the net's own, or none */
    const char *policy;
    const char *const *policy_options; /* (since 1.2) "name=value", NULL-terminated; NULL: none */
    /* (since 1.2) of which candidates are made, NULL-terminated; the first is where nodes go if `device`
     * says nothing; NULL: those that the net and its policy name */
    const char *const *devices;
    const char *labels; /* (since 1.2) a file of the classes' names, one a line; NULL: the net's own */
    /* (since 1.2) devices, NULL-terminated: where one fails (it is lost, out of memory, a kernel does not
     * build), the model goes on on the next of these alone, wholly, and logs a warning; NULL: an error */
    const char *const *fallback;
    /* (since 1.2) "fp16", "bf16": what kernels that can may store prepared weights in; they multiply in
     * f32. NULL, "f32": as they are */
    const char *weights_type;
    /* (since 1.2) "fp16": where a device can and a kernel does, operands are multiplied in f16
     * (CNR_KERNEL_F16_MATH); elsewhere in f32, and a device that can't says so. NULL, "f32": in f32 */
    const char *arithmetic;
} cnr_load_options;

typedef struct cnr_top {
    int64_t index;
    float score;
} cnr_top;

/* NULL where an object, a name, a list or *out is wanted is CNR_E_INVALID, and so is a tensor whose rank,
 * type or sizes can't be, or whose `bytes` are fewer than its elements take (0: as many as they do);
 * functions that return no status then return 0 or NULL. err may always be NULL. */

/* All plugins are searched for and loaded. On an error *out is NULL. */
cnr_status cnr_open(cnr_runtime **out, const cnr_open_options *options, cnr_error *err);
/* Frees everything made from it, models and sessions included. */
void cnr_close(cnr_runtime *rt);
/* .cnr, .lua, or whatever an importer recognises. Owned by rt; cnr_release lets go earlier.
 * A .cnr of the caller's own stays mapped while the model lives: put another in its place by renaming
 * (as all writers here do), since cutting it short or writing into it would end the process by SIGBUS
 * or change weights. The library installs no signal handlers. A file that others than the caller and
 * root may write is copied, and may then change as it likes. */
cnr_status cnr_load(cnr_runtime *rt, const char *path, const cnr_load_options *options,
                    cnr_model **out, cnr_error *err);
void cnr_release(cnr_model *model);

/* Runs a picture through the net's own preprocessing. *out is output 0, on the host, valid until
 * the model runs again. Not from two threads at once: use sessions for that. */
cnr_status cnr_run_picture(cnr_model *model, const char *path, const cnr_tensor **out,
                           cnr_error *err);
/* Runs tensors (host data); a plan for their shapes is made at the first call and kept. */
cnr_status cnr_run_tensors(cnr_model *model, const cnr_tensor *const *inputs, int32_t n_inputs,
                           const cnr_tensor **outputs, int32_t n_outputs, cnr_error *err);
/* The k largest of a tensor's elements, best first; ties by index; NaN last. Returns how many. */
int32_t cnr_topk(const cnr_tensor *scores, int32_t k, cnr_top *out);
/* The label of class `index`, or NULL. */
const char *cnr_label(const cnr_model *model, int64_t index);

/* ---- what the net takes and gives ---- */

int32_t cnr_input_count(const cnr_model *model);
int32_t cnr_output_count(const cnr_model *model);
const char *cnr_input_name(const cnr_model *model, int32_t index);
const char *cnr_output_name(const cnr_model *model, int32_t index);
const cnr_tensor *cnr_input_type(const cnr_model *model, int32_t index);
const cnr_tensor *cnr_output_type(const cnr_model *model, int32_t index);

/* Layer `index` of the net as it was loaded (since 1.2). CNR_E_NOT_FOUND past the last. */
typedef struct cnr_layer {
    uint32_t size;
    int32_t n_inputs, n_weights, reserved; /* inputs that are computed or given; weights */
    const char *name, *op;
    const cnr_tensor *type; /* of its first output, for one picture where sizes are open */
    double flops;           /* of a run of that size; a multiply-accumulate is two */
    const char *const *inputs, *const *weights; /* their names */
} cnr_layer;
cnr_status cnr_layer_at(cnr_model *model, int32_t index, cnr_layer *out, cnr_error *err);

/* ---- nets that change (since 1.2): while no plan or session of the model is held, else CNR_E_STATE. One
 * thread at a time. ---- */

/* One that goes its own way: weights, placements and all. Owned by the runtime as others. */
cnr_status cnr_copy(const cnr_model *model, cnr_model **out, cnr_error *err);
int32_t cnr_weight_count(const cnr_model *model);
const char *cnr_weight_name(const cnr_model *model, int32_t index);
/* Its data, until it changes; of an encoded one as it is stored. */
cnr_status cnr_weight(const cnr_model *model, const char *name, const cnr_tensor **out,
                      cnr_error *err);
cnr_status cnr_set_weight(cnr_model *model, const char *name, const cnr_tensor *value,
                          cnr_error *err);
/* on 1: what is 0 in the weight stays 0 while the net trains; 0: no more. */
cnr_status cnr_mask(cnr_model *model, const char *weight, int32_t on, cnr_error *err);
/* A .cnr, or what an exporter writes by such a name. */
cnr_status cnr_save(cnr_model *model, const char *path, cnr_error *err);

/* ---- plans and sessions ---- */

/* shapes[i] gives dim of input i (its data counts only where it decides shapes, as the axes of a
 * reduction do: the plan is then for that data, and its sessions take no other); NULL: symbols are
 * bound to 1. Plans are kept by shape and such data, so asking again is cheap. */
cnr_status cnr_plan_for(cnr_model *model, const cnr_tensor *const *shapes, int32_t n_shapes,
                        cnr_plan **out, cnr_error *err);
void cnr_plan_release(cnr_plan *plan);
uint64_t cnr_plan_arena_bytes(const cnr_plan *plan);
uint64_t cnr_plan_weight_bytes(const cnr_plan *plan);
/* New data for the weight `name`; prepared blobs are renewed. No session of the plan may be
 * running. */
cnr_status cnr_plan_set_weight(cnr_plan *plan, const char *name, const cnr_tensor *value,
                               cnr_error *err);

cnr_status cnr_session_open(cnr_plan *plan, cnr_session **out, cnr_error *err);
void cnr_session_close(cnr_session *session);
/* Copies host data in. */
cnr_status cnr_session_set_input(cnr_session *session, int32_t index, const cnr_tensor *value,
                                 cnr_error *err);
cnr_status cnr_session_run(cnr_session *session, cnr_error *err);
/* start returns when the work is queued; wait when it is done. run is both. */
cnr_status cnr_session_start(cnr_session *session, cnr_error *err);
cnr_status cnr_session_wait(cnr_session *session, cnr_error *err);
/* Output `index` on the host; valid until the session runs again or closes. */
cnr_status cnr_session_output(cnr_session *session, int32_t index, const cnr_tensor **out,
                              cnr_error *err);
/* From any thread or a signal handler: a run under way returns CNR_E_CANCELLED soon. */
void cnr_session_cancel(cnr_session *session);
/* Called after each node with its name and an output on the host (calibration, debugging). */
typedef void (*cnr_tap_fn)(void *arg, const char *node, int32_t output, const cnr_tensor *value);
void cnr_session_tap(cnr_session *session, cnr_tap_fn fn, void *arg);

/* Listeners (since 1.2): called on the thread that runs, as it goes; they may not touch the session. */
typedef enum cnr_run_event_kind {
    CNR_RUN_BEGIN = 1, CNR_RUN_END = 2, CNR_STEP_BEGIN = 3, CNR_STEP_END = 4,
    CNR_RUN_EVENT_FORCE_32_ = 0x7fffffff
} cnr_run_event_kind;
typedef struct cnr_run_event {
    uint32_t size;
    int32_t kind, step, reserved; /* step -1: of the run */
    const char *node, *op, *kernel, *device; /* of a step, valid as long as the plan */
    uint64_t now_ns;  /* with CNR_LISTEN_TIMES */
    uint64_t took_ns; /* of a step that ended, by its device's own events; 0: they tell nothing */
} cnr_run_event;
enum {
    /* Each step ends before the next begins, and devices time theirs. Costs time while it lasts. */
    CNR_LISTEN_TIMES = 1 << 0
};
typedef void (*cnr_run_fn)(void *arg, const cnr_run_event *event);
/* Not while a run is under way. *id, above 0, is for cnr_session_unlisten. */
cnr_status cnr_session_listen(cnr_session *session, uint32_t flags, cnr_run_fn fn, void *arg,
                              int32_t *id, cnr_error *err);
void cnr_session_unlisten(cnr_session *session, int32_t id); /* 0, or one that went: nothing */

const char *cnr_status_text(int32_t status);

/* ---- devices, and who runs what (since 1.2) ---- */

typedef struct cnr_device_entry {
    uint32_t size;
    int32_t concurrency;   /* threads or compute units */
    const char *name;      /* "cpu", "opencl:0": as options and placements take it */
    const char *family, *hardware, *driver; /* "opencl", "Mali-G78", vendor and version */
    const char *plugin;    /* that drives it: the device class */
    uint64_t memory_bytes; /* 0: unknown */
} cnr_device_entry;
/* Device `index` of all that there are, best first: drivers wake up for it. CNR_E_NOT_FOUND past the
 * last. Texts are the runtime's. */
cnr_status cnr_device_at(cnr_runtime *rt, int32_t index, cnr_device_entry *out, cnr_error *err);

/* What its plugin tells of a device: a text or (text NULL) a number; device.h has the names. measure 1: the
 * device is opened and times itself, too. cnr_facts_free. */
typedef struct cnr_fact { const char *name, *text; double value; } cnr_fact;
typedef struct cnr_fact_list { uint32_t size; int32_t n; cnr_fact *at; } cnr_fact_list;
cnr_status cnr_device_facts(cnr_runtime *rt, const char *device, int32_t measure,
                            cnr_fact_list *out, cnr_error *err);
void cnr_facts_free(cnr_fact_list *list);

/* A wish for node `node` ("*": every node that has none of its own): one device, or several that share
 * its output along `axis`, shares[i] of it for devices[i], 1 in all. n_devices 0 takes it back. Plans
 * made afterwards follow. */
typedef struct cnr_place_options {
    uint32_t size;
    int32_t axis, n_devices, reserved;
    const char *node;
    const char *const *devices;
    const double *shares; /* NULL: alike */
    /* (since 1.2) not NULL: no wish but a policy for the whole net, as in cnr_load_options, with its
     * options ("": none any more); node may then be NULL */
    const char *policy;
    const char *const *policy_options;
} cnr_place_options;
cnr_status cnr_place(cnr_model *model, const cnr_place_options *options, cnr_error *err);

/* What a plan is chosen from: a row for each kernel that takes a node on a device of the plan, whether it
 * was taken or not. A number that is not known is 0, a text that is not NULL. */
typedef struct cnr_candidate {
    uint32_t size;
    int32_t takes;           /* nodes that it computes: its own and some that follow */
    const char *node, *op, *kernel, *device; /* kernel "reference": the operator's own */
    const char *layout_in, *layout_out, *encodings; /* "plain", "c4": channels in blocks; "sparse-csr" */
    double ns, joules, mhz;  /* of these nodes; mhz: of the device when it was measured */
    const char *ns_from, *joules_from; /* "measured", "estimate", "guess" */
    uint64_t bytes, flops;   /* inputs, weights and outputs; a multiply-accumulate is two */
    int32_t score, splits;   /* 1: it can compute a part of its node */
    const char *by, *why;    /* who took it for the plan: "record", "score", "policy" ...; NULL: nobody */
    double share;            /* of the node, if it was taken */
} cnr_candidate;
typedef struct cnr_candidate_list {
    uint32_t size;
    int32_t n;
    cnr_candidate *at;       /* in the order of the net */
    const char *policy, *failure, *notes; /* that was asked; why it was not followed; what it shows (JSON) */
    cnr_plan *plan;          /* behind the texts */
} cnr_candidate_list;
/* shapes as in cnr_plan_for. Texts live as long as the list. */
cnr_status cnr_candidates(cnr_model *model, const cnr_tensor *const *shapes, int32_t n_shapes,
                          cnr_candidate_list *out, cnr_error *err);
void cnr_candidates_free(cnr_candidate_list *list);

/* ---- pictures one behind the other (since 1.2), to whatever a source plugin writes: "out-%04d.png" ---- */

typedef struct cnr_writer cnr_writer;
cnr_status cnr_writer_open(cnr_runtime *rt, const char *spec, cnr_writer **out, cnr_error *err);
/* u8, H W C with C 1 or 3. name may be NULL; time_ns: when it is to be seen, or CNR_NO_TIME. */
#define CNR_NO_TIME UINT64_MAX
cnr_status cnr_writer_put(cnr_writer *writer, const cnr_tensor *picture, const char *name,
                          uint64_t time_ns, cnr_error *err);
/* Before the first put: what the pictures are made of (a video); its sound and times are kept, from
 * from_ns up to to_ns (0: the end). Writers that have no use for it do nothing. */
cnr_status cnr_writer_from(cnr_writer *writer, const char *spec, uint64_t from_ns, uint64_t to_ns,
                           cnr_error *err);
/* Frees it. What was written stands, unless a put failed: then that status comes back. */
cnr_status cnr_writer_close(cnr_writer *writer, cnr_error *err);

/* ---- meters and knobs (since 1.2): what they read now. A reading is of the whole machine. ---- */

typedef struct cnr_gauge {
    uint32_t size;
    int32_t quantity;         /* of a meter: 1 energy (uJ), 2 power (uW), 3 temperature (m degrees C);
                                 of a knob 0 */
    const char *plugin;       /* the meter's or knob's name */
    char name[64], feeds[64]; /* of the domain; of the device it feeds or clocks ("": unknown) */
    int32_t estimated, period_ms, status; /* not 0: it could not be read, and `why` says why */
    int64_t value;            /* of a meter */
    uint64_t time_ns;
    uint64_t hz, min_hz, max_hz; /* of a knob, and the rest too */
    int32_t writable, load_percent, cores, max_cores, temperature_mc; /* -1, INT32_MIN: not told */
    char why[128];
} cnr_gauge;
typedef struct cnr_gauge_list {
    uint32_t size;
    int32_t n;
    cnr_gauge *at;
} cnr_gauge_list;
/* root: a tree to look in, or NULL: the runtime's; address: NULL, or of what is no file there. */
cnr_status cnr_gauges(cnr_runtime *rt, const char *root, const char *address, cnr_gauge_list *out,
                      cnr_error *err);
void cnr_gauges_free(cnr_gauge_list *list);

/* ---- energy (since 1.2): what the domains of meters took while something ran. Of the whole machine, so
 * nothing else should run. What can't be told is NaN, never 0. ---- */

typedef struct cnr_energy_domain {
    uint32_t size;
    int32_t quantity;         /* 1: a counter's difference; 2: power, integrated */
    const char *meter;
    char name[64], feeds[64]; /* as cnr_gauge */
    int32_t estimated, period_ms;
    int32_t within;           /* 1 + the domain of this list that holds this one's energy too; 0: none */
    int32_t summed;           /* 1: counted in the whole's joules */
    int32_t status, reserved; /* not 0: unmeasured, and `why` says why */
    double joules, joules_net, watts, edp; /* of a round; net of what was drawn before it began */
    double idle_watts, idle_spread;        /* before it began: mean and standard deviation */
    int64_t samples;                       /* readings in all rounds */
    char why[128];            /* at status 0 not empty: why joules_net and idle_watts are not told */
} cnr_energy_domain;
enum { CNR_ENERGY_UNMEASURED = 0, CNR_ENERGY_MEASURED = 1, CNR_ENERGY_ESTIMATED = 2 };
typedef struct cnr_energy {
    uint32_t size;
    int32_t source;  /* CNR_ENERGY_...: of the sums. What was measured is never summed with estimates */
    int32_t n, unmeasured; /* domains (0: there is no meter), and those of them that can't be told */
    int64_t rounds, samples; /* all numbers are of one round, but samples */
    double seconds, joules, joules_net, watts, idle_watts, edp; /* edp: joules * seconds */
    double sampler_share;    /* of a processor, that taking the samples took */
    cnr_energy_domain *at;
    char why[80];            /* unmeasured though domains are told: "no meter feeds cpu"; else why joules_net
                              * isn't told though joules are: the baseline was under load; or "" */
} cnr_energy;
void cnr_energy_free(cnr_energy *energy);
typedef struct cnr_energy_options {
    uint32_t size;
    int32_t no_idle;  /* 1: what is drawn before isn't asked (else a second or so, once a runtime) */
    int64_t rounds;   /* of cnr_energy_of, at least (0: 1) */
    double idle_watts;   /* of all that is summed, as the caller knows it: nothing is asked then; 0 */
    int32_t idle_behind, reserved; /* 1: asked behind the region, too: who draws less then wasn't idle before */
} cnr_energy_options;
/* Begins to take samples; to be ended on any thread. Several may be open. */
typedef struct cnr_energy_region cnr_energy_region;
struct cnr_observer;
cnr_status cnr_energy_begin(cnr_runtime *rt, const cnr_energy_options *options,
                            const struct cnr_observer *observer, cnr_energy_region **out,
                            cnr_error *err);
/* Whether it lasted 20 periods of the slowest sensor by now; below that it tells little. NULL: 0. */
int32_t cnr_energy_long_enough(cnr_energy_region *region);
/* Frees the region; out (NULL: not told) by cnr_energy_free. rounds: how often the same was done. */
cnr_status cnr_energy_end(cnr_energy_region *region, int64_t rounds, cnr_energy *out, cnr_error *err);
/* Does `work` as often as it takes to be long enough. Its error is the result's. */
typedef cnr_status (*cnr_work_fn)(void *arg, cnr_error *err);
cnr_status cnr_energy_of(cnr_runtime *rt, cnr_work_fn work, void *arg,
                         const cnr_energy_options *options, const struct cnr_observer *observer,
                         cnr_energy *out, cnr_error *err);

/* ---- long work (since 1.2): options, an observer (may be NULL), a result. Options of 0 and NULL are
 * the usual ones. What a result points at is freed by its function. ---- */

typedef struct cnr_progress {
    uint32_t size;
    int32_t reserved;
    const char *what;    /* "evaluating" */
    int64_t done, total; /* total 0: unknown */
    int64_t epoch;       /* of training, from 1; else 0 */
    double top1, loss;   /* so far; NaN: none */
} cnr_progress;

typedef struct cnr_observer {
    uint32_t size;
    int32_t reserved;
    void *arg;
    /* (optional) now and then, on the caller's thread; not 0 stops the work */
    int32_t (*progress)(void *arg, const cnr_progress *progress);
    /* (optional) something is finished: kind is a cnr_event_kind, `of` its struct; not 0 stops */
    int32_t (*event)(void *arg, int32_t kind, const void *of);
    /* (optional) stops the work while not 0, a run in its middle too; any thread or a signal handler
     * may set it */
    const volatile int32_t *cancel;
} cnr_observer;

/* How often a net is right on labelled pictures. */
typedef struct cnr_evaluate_options {
    uint32_t size;
    int32_t reserved;
    const char *data;      /* what a source reads: "mnist:DIR", a folder, "images:LIST" */
    const char *split;     /* NULL: "eval" */
    int64_t limit, batch;  /* pictures at most (0: all), at a time (0: 8) */
    const int64_t *labels; /* of each class of the net; NULL: its class is the label plus `offset` */
    int64_t n_labels, offset;
    int32_t energy, reserved2; /* 1: energy too, where there is a meter */
    /* (since 1.2) Not 0: only the part that training with the same numbers (and limit) judges epochs by. */
    double validation;
    uint64_t validation_seed;
} cnr_evaluate_options;
typedef struct cnr_evaluation {
    uint32_t size;
    int32_t reserved;
    int64_t n, right, among_top; /* pictures; the label is the best answer, one of the best five */
    double top1, top5, loss;     /* the same as parts of 1; mean -log of the label's share */
    double seconds;
    int64_t labels, *confusion; /* labels x labels, [label][answer]; NULL above 1024 of them */
    cnr_energy *energy; /* of a picture; NULL: not asked for. All is repeated until sensors can tell */
} cnr_evaluation;
cnr_status cnr_evaluate(cnr_model *model, const cnr_evaluate_options *options,
                        const cnr_observer *observer, cnr_evaluation *out, cnr_error *err);
void cnr_evaluation_free(cnr_evaluation *evaluation);

/* Time and memory of a net on made-up inputs, with whatever weights it has. */
typedef struct cnr_profile_options {
    uint32_t size;
    int32_t steps;    /* 1: the time of each step too, from runs of their own */
    int64_t batch, runs, warm; /* pictures at a time (0: 1), timed runs (0: 20), others before them
                                  (0: 2, -1: none) */
    int32_t energy; /* 1: energy too, where there is a meter; runs go on until it can be told */
    int32_t repeat; /* 1: that of each step by repeating it until it can be told, not by its time */
    const char *trace; /* a file to write one more run into, step by step, as Chrome and Perfetto read it */
} cnr_profile_options;
typedef struct cnr_step_timing {
    uint32_t size;
    int32_t step;
    const char *node, *op, *kernel, *device; /* op "(copy)", "(layout)": between operators */
    double ms, ms_min, flops; /* mean and least; a multiply-accumulate is two */
    double joules; /* a share of the run's, as told by cnr_timing.joules_by; NaN: unmeasured */
    const char *from, *to; /* of a copy: devices (NULL: it is none) */
    uint64_t bytes;        /* that it moves; of a kernel: its inputs, weights and outputs */
    double kernel_flops;   /* that its kernel does: fewer than `flops` where its way is another (Winograd) */
    double memory_bytes;   /* that it reads and that the device's caches can't have kept since they were last
                              used: all of them on a device that tells of no caches */
    const char *arithmetic; /* the type that it computes with: "f32" */
} cnr_step_timing;
enum {
    CNR_JOULES_COUNTED = 1, /* at each step, by counters that are exact at any time (simulated ones) */
    CNR_JOULES_BY_TIME = 2, /* the run's, shared out by the time of steps */
    CNR_JOULES_REPEATED = 3 /* by repeating the layer alone until sensors could tell */
};
typedef struct cnr_timing {
    uint32_t size;
    int32_t threads, n_steps, reserved;
    const char *device; /* the first of the plan's */
    int64_t batch, runs;
    double ms_min, ms_median, ms_max, flops; /* of a run */
    uint64_t arena_bytes, arena_bound_bytes, weight_bytes, peak_rss_bytes; /* the last: the process's */
    cnr_step_timing *steps;
    cnr_energy *energy; /* of a run; NULL: not asked for */
    int32_t joules_by, reserved2; /* of steps: CNR_JOULES_..., 0: unmeasured */
    double enqueue_ms; /* of a run, until all is queued (the median); NaN: all its devices finish at once */
} cnr_timing;
cnr_status cnr_profile(cnr_model *model, const cnr_profile_options *options,
                       const cnr_observer *observer, cnr_timing *out, cnr_error *err);
void cnr_timing_free(cnr_timing *timing);

/* Placement by measuring (since 1.2): the net on each device alone, what a policy makes of that, what its
 * plan takes. The model then runs so, or on the device alone that is better. */
typedef struct cnr_share_options {
    uint32_t size;
    int32_t unguarded;           /* 1: by the plan, even where one device alone is better */
    const char *policy;          /* a file, or an installed one's name: "best" */
    const char *const *settings; /* of it: "threshold=1", NULL-terminated; NULL: none */
    const char *const *devices;  /* NULL-terminated; NULL: those that nets are run on unasked */
    const char *folder;          /* where placements are kept and found again; NULL: nowhere */
    int64_t runs, batch;         /* timed runs of each (0: 5), pictures at a time (0: 1) */
    int32_t again, reserved;     /* 1: measure, even if one is kept in the folder */
} cnr_share_options;
typedef struct cnr_share_row { char name[32]; double seconds, joules, watts, edp; } cnr_share_row; /* of a
                                run; the last three NaN: unmeasured */
typedef struct cnr_share_part { const char *node, *device; double share; } cnr_share_part;
typedef struct cnr_sharing {
    uint32_t size;
    int32_t n_alone, n_parts, found; /* found: kept in the folder, so nothing is known of devices alone */
    cnr_share_row predicted, measured; /* of the policy's plan; predicted from the devices alone, and a division */
    char kept[32];               /* the device alone that is better; "": the plan is */
    const char *notes, *file;    /* the policy's steps as JSON; in the folder; NULL: none */
    const cnr_share_row *alone;
    const cnr_share_part *parts; /* of each node, in the net's order */
    void *state;                 /* behind all of these */
    cnr_share_row chosen;        /* how the model runs from now on: the plan, or the device alone that is kept */
} cnr_sharing;
cnr_status cnr_share(cnr_model *model, const cnr_share_options *options,
                     const cnr_observer *observer, cnr_sharing *out, cnr_error *err);
void cnr_sharing_free(cnr_sharing *sharing);
/* (since 1.2) The model runs by the placement that was last kept in the folder for this net, whoever made
 * it: *follows is 1. -1: that is for other devices or drivers, 0: none is kept; then nothing is changed. */
cnr_status cnr_follow(cnr_model *model, const char *folder, int32_t *follows, cnr_error *err);

/* Training by gradient descent. The weights of the epoch that is best on a part of the pictures that
 * isn't trained on are written; a file that is there already is replaced by a better net only. */
typedef enum cnr_rate_policy {
    CNR_RATE_FIXED = 0,
    CNR_RATE_INVERSE = 1,   /* rate * (1 + gamma step) ^ -power; 1e-4, 0.75 */
    CNR_RATE_STEP = 2,      /* rate * gamma ^ n, n growing each rate_epochs; 0.1, a third of all */
    CNR_RATE_COSINE = 3,    /* to 0 along half a cosine */
    CNR_RATE_POLY = 4,      /* (since 1.2) rate * (1 - part done) ^ power; 1 */
    CNR_RATE_MULTISTEP = 5, /* (since 1.2) as step, n growing at each of rate_epochs; half, three quarters */
    CNR_RATE_FORCE_32_ = 0x7fffffff
} cnr_rate_policy;
typedef struct cnr_train_options {
    uint32_t size;
    int32_t policy;              /* a cnr_rate_policy */
    const char *data, *test;     /* specs; what the best epoch is tested on (NULL: data's "eval"; "": none) */
    const char *output;          /* the .cnr to write */
    const char *loss, *optimizer; /* operators; NULL: the net's own, or the first there is */
    int64_t epochs, batch, limit; /* limit: pictures at most, 0: all */
    double rate, momentum, decay; /* momentum < 0: the optimiser's own */
    double validation;           /* the part judged by, or a number of pictures; 0: the last epoch is kept */
    uint64_t seed, validation_seed;
    int32_t nesterov, overwrite; /* overwrite: even what is better */
    int32_t energy, reserved; /* 1: energy too, where there is a meter */
    double beta1, beta2, epsilon; /* (since 1.2) of optimisers that have such; 0: their own */
    const char *split;            /* (since 1.2) of data; NULL: "train" */
    /* (since 1.2) the rate of step 0, 1 ... of `steps`, instead of rate and policy; NULL: those */
    double (*schedule)(void *arg, int64_t step, int64_t steps);
    void *schedule_arg;
    const char *keep_zeros; /* (since 1.2) a pattern of weights whose zeros stay; NULL: masked ones only */
    double gamma, power;     /* (since 1.2) of policies that have such; 0: as told there */
    const char *rate_epochs; /* (since 1.2) "10,15"; NULL: as told there */
    /* (since 1.2) A file that training is kept in on its way, each so many seconds (0: 30) and behind epochs;
     * where it is there, training goes on from it, to the same end. It goes when the output is written. */
    const char *checkpoint;
    double checkpoint_seconds;
    const char *curves;      /* (since 1.2) a .csv with a row an epoch; NULL: none */
} cnr_train_options;
typedef enum cnr_event_kind {
    CNR_EVENT_EPOCH = 1,    /* cnr_epoch: one is over */
    CNR_EVENT_REPLACES = 2, /* double: what the file that is there gets right, before training */
    CNR_EVENT_FORCE_32_ = 0x7fffffff
} cnr_event_kind;
typedef struct cnr_epoch {
    uint32_t size;
    int32_t reserved;
    int64_t epoch, epochs; /* from 1 */
    double loss, train_top1, top1, best; /* the last two on the validation part; NaN: there is none */
    double seconds;
} cnr_epoch;
enum { CNR_TRAIN_STOPPED = 1, CNR_TRAIN_DIVERGED = 2 };
typedef struct cnr_train_result {
    uint32_t size;
    int32_t ended; /* before the last epoch: CNR_TRAIN_...; else 0 */
    int64_t epochs, best_epoch, trained, validated, tested; /* the last three: pictures */
    double best, test, replaced; /* parts of 1: validation, test, the file that was there; or NaN */
    double seconds;
    cnr_energy *energy; /* of all of it; NULL: not asked for. cnr_train_result_free */
} cnr_train_result;
void cnr_train_result_free(cnr_train_result *result);
void cnr_train_usual(cnr_train_options *options); /* fills all, by its size, which is set */
/* load NULL: weights at random from the seed. An observer that stops it has the best so far kept. */
cnr_status cnr_train(cnr_runtime *rt, const char *net, const cnr_load_options *load,
                     const cnr_train_options *options, const cnr_observer *observer,
                     cnr_train_result *out, cnr_error *err);
/* (since 1.2) From the weights that the model has to better ones; masks hold. options->output NULL: no
 * file is written. */
cnr_status cnr_train_model(cnr_model *model, const cnr_train_options *options,
                           const cnr_observer *observer, cnr_train_result *out, cnr_error *err);

/* Loss and gradients of one batch (since 1.2), for loops of one's own: they end in cnr_set_weight. Layers
 * behave as in training: dropout drops, and statistics of batches become the model's. */
typedef struct cnr_gradient_options {
    uint32_t size;
    int32_t reserved;
    const char *loss; /* an operator; NULL: the net's own, or the first there is */
    uint64_t seed;    /* of dropout */
} cnr_gradient_options;
typedef struct cnr_gradients {
    uint32_t size;
    int32_t n;
    double loss;
    const char *const *names;     /* of the n weights that the loss depends on */
    const cnr_tensor *const *at;  /* their gradients; 0 where a mask holds a 0 */
    const cnr_tensor *scores;     /* what the loss is of */
} cnr_gradients;
/* `input` of the net's only one, its first size the batch's; a label for each of the batch. *out is good
 * until the next call for the model, or its release. */
cnr_status cnr_gradients_of(cnr_model *model, const cnr_gradient_options *options,
                            const cnr_tensor *input, const int32_t *labels, int64_t n_labels,
                            cnr_gradients *out, cnr_error *err);

/* Whole numbers instead of floats (since 1.2), where a picture's answer stays good enough. */
typedef struct cnr_quantize_options {
    uint32_t size;
    int32_t reserved;
    const char *data;     /* calibrated on its "train" part, checked on "eval" */
    const char *layers;   /* a pattern of names: only those; NULL: all */
    int64_t limit, check; /* pictures (0: 100); to compare both nets on (0: as limit, -1: none) */
    double least;         /* decibels: a layer with less signal to noise stays float (0: 10) */
} cnr_quantize_options;
typedef struct cnr_quantized_layer {
    const char *name;
    double low, high, decibels; /* what its output was seen to hold; signal to noise */
    int32_t quantized, reserved;
} cnr_quantized_layer;
typedef struct cnr_quantizing {
    uint32_t size;
    int32_t n_layers, n_quantized, reserved;
    int64_t checked;       /* pictures; the next three are of those: before, after */
    double top1[2], ms[2]; /* parts of 1 (NaN without labels); of a picture */
    double agree;          /* part with the same answer; NaN: answers are no classes */
    cnr_quantized_layer *layers;
    double decibels;       /* signal to noise of the output with the most noise; NaN: not compared */
    char **warnings;       /* slower here, less accurate, other answers: as the program tells them */
    int32_t n_warnings, reserved2;
} cnr_quantizing;
/* *net is a model of its own; the one given stays as it is. CNR_E_STATE: both were compared, and outputs have
 * nothing in common. */
cnr_status cnr_quantize(cnr_model *model, const cnr_quantize_options *options,
                        const cnr_observer *observer, cnr_model **net, cnr_quantizing *out,
                        cnr_error *err);
void cnr_quantizing_free(cnr_quantizing *quantizing);

/* ---- objects (since 1.2): what plugins bring with a state and methods on tensors: a tracker ---- */

typedef struct cnr_instance cnr_instance; /* one thread at a time */
/* options: "name=value", NULL-terminated, or NULL; a value is a number, numbers with commas between, true,
 * false or a text. plugin.h (cnr_object) says what tensors stand for numbers, lists and texts. */
cnr_status cnr_object_make(cnr_runtime *rt, const char *name, const char *const *options,
                           cnr_instance **out, cnr_error *err);
/* The method whose signature begins with that name. Results are the object's until its next call. */
cnr_status cnr_object_call(cnr_instance *object, const char *method, const cnr_tensor *const *inputs,
                           int32_t n_inputs, const cnr_tensor **outputs, int32_t n_outputs,
                           cnr_error *err);
void cnr_object_free(cnr_instance *object); /* before cnr_close */

/* ---- frequencies by a policy (since 1.2): a Lua file, evaluated every 0.1 s beside what runs, on a
 * recording or on a played machine. governors/README.md is what it sees and may answer. ---- */

typedef struct cnr_govern_options {
    uint32_t size;
    int32_t keep_ticks;        /* 1: the result has them */
    const char *policy;        /* a file, or an installed one's name, with options: "fixed,at=lowest"; NULL:
                                  nothing is set, only looked at */
    const char *board, *scene; /* a played machine and what it does; as cnr_open_options.board takes them */
    const char *replay;        /* a recording: CSV */
    const char *const *traces; /* recordings to learn from, up to a NULL; NULL: the installed ones */
    const char *record, *note; /* CSV to be written, and the lines of its head */
    double seconds;            /* at most; 0: 60 of a scene, all of a recording, live until stopped */
    double period, limit;      /* seconds between ticks (0: 0.1); degrees that are kept whatever a policy
                                  wishes (0: none) */
    double late_after;         /* of a played scene: passes that take longer are late; 0: none is */
} cnr_govern_options;
typedef struct cnr_tick {
    uint32_t size;
    int32_t reserved;
    double seconds, hz, load, watts, temperature; /* of the knob that matters; NaN: not told */
} cnr_tick;
typedef struct cnr_governed {
    uint32_t size;
    int32_t off, advises;      /* turned off after three faults; knobs could not be set: it was advice */
    int32_t n_ticks;
    const cnr_tick *ticks_at;
    int64_t runs, late, ticks, switches, faults;
    double seconds, joules, watts, fps;   /* NaN: there is no meter, or no pass */
    double run_seconds, run_joules, edp;  /* of a pass: seconds and joules by passes; their product */
    double load, hz;           /* means over ticks, where they are kept */
    double switches_a_minute, cpu_seconds, longest_tick; /* the last two: of the policy's thread */
    double limited_share, hot_share, longest_run; /* ticks that the limit held down; time that the played
                                  hardware did; seconds */
    char knob[64], why[80], fault[256]; /* that matters; what the policy last said; the first fault */
} cnr_governed;
void cnr_governed_free(cnr_governed *governed);
/* Plays, replays, or governs this machine until then. out may be NULL. */
cnr_status cnr_govern(cnr_runtime *rt, const cnr_govern_options *options, const cnr_observer *observer,
                      cnr_governed *out, cnr_error *err);
/* Beside what runs in rt: begun before, ended (and freed, all put back) after. One at a time. */
typedef struct cnr_governing cnr_governing;
cnr_status cnr_govern_begin(cnr_runtime *rt, const cnr_govern_options *options, cnr_governing **out,
                            cnr_error *err);
cnr_status cnr_govern_end(cnr_governing *governing, cnr_governed *out, cnr_error *err);
/* Puts back what a process that was killed had set; cnr_open does so, too. *brought: how many knobs. */
cnr_status cnr_knobs_restore(cnr_runtime *rt, int32_t *brought, cnr_error *err);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
