/* For applications that embed the engine: open, load, run, top-k, close; then shapes, plans,
 * sessions, weights and devices. libcnnrun-engine has all of this header.
 *
 *     cnr_runtime *rt; cnr_model *net; const cnr_tensor *scores; cnr_top best[5];
 *     cnr_error err = CNR_ERROR_INIT;
 *     cnr_open(&rt, NULL, &err);
 *     cnr_load(rt, "lenet5.cnr", NULL, &net, &err);
 *     cnr_run_picture(net, "three.png", &scores, &err);
 *     int n = cnr_topk(scores, 5, best);
 *     cnr_close(rt);
 */
#ifndef CNNRUN_ENGINE_H
#define CNNRUN_ENGINE_H

#include <cnnrun/tensor.h>
#include <cnnrun/version.h>

CNR_BEGIN_EXPORTS

typedef struct cnr_runtime cnr_runtime; /* loaded plugins and open devices */
typedef struct cnr_model cnr_model;     /* a graph with its weights; shared between sessions */
typedef struct cnr_plan cnr_plan; /* a model for given shapes and devices; immutable, shared */
typedef struct cnr_session cnr_session; /* memory to run a plan in; one thread at a time */

struct cnr_plugin; /* plugin.h */

/* Every struct begins with its size. A member of 0 or NULL has its default. */
typedef struct cnr_open_options {
    uint32_t size;
    int32_t threads;                /* of the CPU device; 0: one for each core */
    const char *const *plugin_dirs; /* searched before the default folders; ends in NULL */
    void (*log)(void *arg, int32_t level, const char *plugin, const char *text);
    void *log_arg;
    int32_t log_level;       /* CNR_LOG_...: messages up to this level are logged */
    int32_t no_default_dirs; /* 1: search plugin_dirs alone */
    int32_t trust_scripts;   /* 1: Lua scripts may use any file and the clock, as --trust */
    const char *clock;       /* a plugin's clock, for the whole process; NULL: the machine's */
    /* Folder of what plugins keep between runs, such as compiled kernels. NULL: the first `cache`
     * of a model, else CNNRUN_CACHE, else ~/.cache/cnnrun. */
    const char *cache;
    const char *sysfs_root;    /* root below which meters and knobs look for /sys; NULL: "/" */
    const char *meter_address; /* of a meter that is no file below it, such as /dev/ttyUSB0 */
    /* Name or file of a board description, with values to replace behind commas: "odroid_xu3",
     * "mine.lua,seed=3". For the whole process. */
    const char *board;
    /* Instruction set of the CPU device's kernels: "avx512", "avx2", "neon", "generic". For the
     * whole process, before its first runtime. NULL: CNNRUN_CPU_ISA, else the widest that the CPU
     * has. */
    const char *cpu_isa;
    /* Names of plugins that load before all others, in this order, and so win where two bring the
     * same; a score counts among equals alone. Behind them those that come with cnnrun load, then
     * the rest. Ends in NULL; NULL: none. */
    const char *const *plugin_order;
    const char *const *skip_plugins; /* names of plugins that do not load; ends in NULL */
    /* Plugins that are linked into the program, by the function that each has in place of
     * cnr_plugin_query (core/docs/abi.md). They load before any folder is searched. Ends in NULL.
     */
    const struct cnr_plugin *(*const *linked_plugins)(uint32_t host_abi);
} cnr_open_options;

typedef struct cnr_load_options {
    uint32_t size;
    int32_t n_symbols;
    /* Weights that fill the net: files with commas between, or "random:SEED". NULL: the files
     * behind a comma in the path, or the net's own. */
    const char *weights;
    const char *net; /* which net of a script that holds several; NULL: the only one */
    /* names of n_symbols open dimensions, and their sizes in the plan */
    const char *const *symbols;
    const int64_t *symbol_values;      /* that is made implicitly; others are 1 */
    const char *const *no_rewrite;     /* rewrites to leave out; ends in NULL */
    const char *device;                /* "cpu", "opencl:0"; NULL: the best */
    uint64_t memory_bound;             /* bytes of weights and arena, at most; 0: no bound */
    int32_t deterministic;             /* 1: no measured time decides */
    const char *cache;                 /* folder of stored plans and tuning records; NULL: none */
    uint64_t cache_bytes;              /* size of what is kept there, at most; 0: 4 GiB */
    const char *const *import_options; /* "name=value" for the importer; ends in NULL */
    const char *preset; /* preparation of pictures, such as "torchvision"; NULL: the net's own */
    /* 1: weights of a .cnr are not compared with their fingerprints. 0: damage is CNR_E_FORMAT when
     * the data is first read. */
    int32_t no_verify;
    /* Kernels that must run: "NODE=KERNEL" or "OPERATOR=KERNEL", on one device alone with "@DEVICE"
     * before the "=". "reference" is the operator's own. Ends in NULL. */
    const char *const *kernels;
    /* Bytes of host memory for activations, inputs and outputs of a session, at most; more is
     * CNR_E_LIMIT before anything is allocated. 0: three quarters of what the process may have. */
    uint64_t memory_limit;
    /* Lua file of a placement policy (scripts/README.md). If it fails, that is logged once and the
     * default plan stands. NULL: the net's own policy, or none. */
    const char *policy;
    const char *const *policy_options; /* "name=value"; ends in NULL */
    /* Devices that candidates are made for. The first one runs what nothing places, unless `device`
     * names another. Ends in NULL. NULL: those that the net and its policy name. */
    const char *const *devices;
    const char *labels; /* file of class names, one a line; NULL: the net's own */
    /* Devices to go on with when one fails: the whole model moves to the next of these, and a
     * warning is logged. Ends in NULL. NULL: a failure is an error. */
    const char *const *fallback;
    /* "fp16" or "bf16": kernels that can store prepared weights so and multiply in f32. NULL:
     * "f32". */
    const char *weights_type;
    /* "fp16", "bf16": kernels multiply so where the device can (CNR_KERNEL_F16_MATH, _BF16_MATH); a
     * device that cannot logs a warning. With "bf16" others may store weights so. NULL: "f32". */
    const char *arithmetic;
    /* Which stored plans go first where cache_bytes are taken: "lru", used longest ago, or "fifo",
     * kept longest ago. NULL: "lru". */
    const char *cache_policy;
    /* Milliseconds after which a call of a device that is not the CPU counts as one that hangs: the
     * run fails with CNR_E_DEVICE, or goes on on `fallback`, and the device is lost to the process.
     * Runs are then made on another thread, which costs some 30 us each. 0: 100 times the estimate
     * of a run, at least 10,000; without `fallback` a call that hangs is logged and waited for. */
    uint64_t hang_ms;
    /* 1: the model adapts (cnr_adapt in lab.h; the engine alone can't), also where the net itself
     * asks for it by "plan.adapt". CNR_E_ARG together with `deterministic`. */
    int32_t adapt;
    /* "NAME=LEAST..LARGEST": sizes that a named dimension may have in any plan. Kernels and regions
     * see them (cnr_tensor.dim_range), and may be made for all of the sizes at once; a plan of
     * another size is CNR_E_SHAPE. Ends in NULL. NULL: metadata of the net,
     * "symbol.NAME.range" = "1,16", or none. */
    const char *const *symbol_ranges;
} cnr_load_options;

typedef struct cnr_top {
    int64_t index;
    float score;
} cnr_top;

/* NULL for a required object, name, list or *out is CNR_E_INVALID. So is a tensor with an
 * impossible rank, type or size, or with fewer `bytes` than its elements take (0: as many as they
 * take). Functions that return no status then return 0 or NULL. err may always be NULL. */

/* Finds and loads all plugins. After an error *out is NULL. */
cnr_status cnr_open(cnr_runtime **out, const cnr_open_options *options, cnr_error *err);
/* Frees the runtime and everything made from it, models and sessions included. */
void cnr_close(cnr_runtime *rt);
/* Loads .cnr, .lua, or what an importer recognises. rt owns the model; cnr_release frees it
 * earlier. A .cnr that only the caller may write stays mapped while the model lives: replace it by
 * renaming another file over it. Cutting it short would end the process by SIGBUS, since the
 * library installs no signal handlers. A file that others may write is copied instead. */
cnr_status cnr_load(cnr_runtime *rt, const char *path, const cnr_load_options *options,
                    cnr_model **out, cnr_error *err);
void cnr_release(cnr_model *model);

/* Runs a picture through the net's own preprocessing. *out is output 0 on the host, valid until the
 * model runs again. One thread at a time; use sessions for more. */
cnr_status cnr_run_picture(cnr_model *model, const char *path, const cnr_tensor **out,
                           cnr_error *err);
/* Runs tensors on the host. The first call with new shapes makes a plan, which is kept. */
cnr_status cnr_run_tensors(cnr_model *model, const cnr_tensor *const *inputs, int32_t n_inputs,
                           const cnr_tensor **outputs, int32_t n_outputs, cnr_error *err);
/* The k largest elements of a tensor, best first; ties by index; NaN last. Returns their number. */
int32_t cnr_topk(const cnr_tensor *scores, int32_t k, cnr_top *out);
/* Name of class `index`, or NULL. */
const char *cnr_label(const cnr_model *model, int64_t index);
const char *cnr_status_text(int32_t status);

/* ---- inputs, outputs and layers ---- */

int32_t cnr_input_count(const cnr_model *model);
int32_t cnr_output_count(const cnr_model *model);
const char *cnr_input_name(const cnr_model *model, int32_t index);
const char *cnr_output_name(const cnr_model *model, int32_t index);
const cnr_tensor *cnr_input_type(const cnr_model *model, int32_t index);
const cnr_tensor *cnr_output_type(const cnr_model *model, int32_t index);

typedef struct cnr_layer {
    uint32_t size;
    int32_t n_inputs, n_weights; /* inputs that are activations; weights */
    const char *name, *op;
    const cnr_tensor *type; /* of its first output, with 1 for open dimensions */
    double flops;           /* of a run at these sizes; a multiply-accumulate is two */
    const char *const *inputs, *const *weights; /* their names */
} cnr_layer;
/* Layer `index` of the net as it was loaded. CNR_E_NOT_FOUND past the last. */
cnr_status cnr_layer_at(cnr_model *model, int32_t index, cnr_layer *out, cnr_error *err);

/* ---- weights: changes while a plan or session of the model is held are CNR_E_STATE. One thread at
 * a time. ---- */

/* A model of its own, with its own weights and placements. The runtime owns it. */
cnr_status cnr_copy(const cnr_model *model, cnr_model **out, cnr_error *err);
int32_t cnr_weight_count(const cnr_model *model);
const char *cnr_weight_name(const cnr_model *model, int32_t index);
/* The weight's data, valid until it changes; an encoded weight as it is stored. */
cnr_status cnr_weight(const cnr_model *model, const char *name, const cnr_tensor **out,
                      cnr_error *err);
cnr_status cnr_set_weight(cnr_model *model, const char *name, const cnr_tensor *value,
                          cnr_error *err);
/* on 1: elements of the weight that are 0 stay 0 while the net trains. 0: they may change again. */
cnr_status cnr_mask(cnr_model *model, const char *weight, int32_t on, cnr_error *err);

/* ---- plans and sessions ---- */

/* shapes[i] gives the dimensions of input i; NULL: open dimensions are 1. Its data counts only
 * where it decides shapes, as the axes of a reduction do: the plan is then for that data, and its
 * sessions take no other. Plans are kept by shape and such data, so asking again is cheap. */
cnr_status cnr_plan_for(cnr_model *model, const cnr_tensor *const *shapes, int32_t n_shapes,
                        cnr_plan **out, cnr_error *err);
void cnr_plan_release(cnr_plan *plan);
uint64_t cnr_plan_arena_bytes(const cnr_plan *plan);
/* Bytes of all weights as devices hold them: prepared blobs and plain constants, if all are
 * resident; plan NULL: 0. */
uint64_t cnr_plan_weight_bytes(const cnr_plan *plan);
/* Replaces the data of weight `name` and prepares it again. No session of the plan may be
 * running. */
cnr_status cnr_plan_set_weight(cnr_plan *plan, const char *name, const cnr_tensor *value,
                               cnr_error *err);

cnr_status cnr_session_open(cnr_plan *plan, cnr_session **out, cnr_error *err);
void cnr_session_close(cnr_session *session);
/* Copies host data in. */
cnr_status cnr_session_set_input(cnr_session *session, int32_t index, const cnr_tensor *value,
                                 cnr_error *err);
/* Without a copy: each run reads input `index` from, or writes output `index` to, the caller's own
 * memory, from now on until value is NULL. The memory must outlive that, and is not touched between
 * runs. value->data: host memory, aligned to 64 bytes, where the plan keeps it on the host. Else
 * value->mem: memory of the device where the plan keeps it, in class 0, of which all work by others
 * has finished. CNR_E_UNSUPPORTED: the plan would have to copy; the text says why. A session
 * with such memory does not go on on another device. */
cnr_status cnr_session_bind_input(cnr_session *session, int32_t index, const cnr_tensor *value,
                                  cnr_error *err);
cnr_status cnr_session_bind_output(cnr_session *session, int32_t index, const cnr_tensor *value,
                                   cnr_error *err);
/* start returns when the work is queued, wait when it is done; run does both. */
cnr_status cnr_session_run(cnr_session *session, cnr_error *err);
cnr_status cnr_session_start(cnr_session *session, cnr_error *err);
cnr_status cnr_session_wait(cnr_session *session, cnr_error *err);
/* Output `index` on the host, valid until the session runs again or closes. */
cnr_status cnr_session_output(cnr_session *session, int32_t index, const cnr_tensor **out,
                              cnr_error *err);
/* From any thread or a signal handler: a run under way returns CNR_E_CANCELLED soon. */
void cnr_session_cancel(cnr_session *session);
/* Called after each node with its name and an output on the host, for calibration and debugging. */
typedef void (*cnr_tap_fn)(void *arg, const char *node, int32_t output, const cnr_tensor *value);
void cnr_session_tap(cnr_session *session, cnr_tap_fn fn, void *arg);

/* Listeners are called on the thread that runs, and must not touch the session. */
enum { CNR_RUN_BEGIN = 1, CNR_RUN_END = 2, CNR_STEP_BEGIN = 3, CNR_STEP_END = 4 };
typedef struct cnr_run_event {
    uint32_t size;
    int32_t kind, step;                      /* step -1: of the whole run */
    const char *node, *op, *kernel, *device; /* of a step; valid as long as the plan */
    uint64_t now_ns;                         /* with CNR_LISTEN_TIMES; else 0 */
    uint64_t took_ns; /* of a step that ended, by the device's own events; 0: unknown */
} cnr_run_event;
enum {
    /* Each step ends before the next begins, and devices time their steps. Slows the run down. */
    CNR_LISTEN_TIMES = 1 << 0
};
typedef void (*cnr_run_fn)(void *arg, const cnr_run_event *event);
/* Calls fn(arg) at the events of each run, until cnr_session_unlisten(*id). Not during a run. *id
 * is above 0; id may be NULL. Unknown flags are ignored. */
cnr_status cnr_session_listen(cnr_session *session, uint32_t flags, cnr_run_fn fn, void *arg,
                              int32_t *id, cnr_error *err);
void cnr_session_unlisten(cnr_session *session, int32_t id); /* an id that is not there: nothing */

/* ---- devices and placement ---- */

typedef struct cnr_device_entry {
    uint32_t size;
    int32_t concurrency; /* threads or compute units */
    const char *name;    /* "cpu", "opencl:0": as options and placements take it */
    const char *family, *hardware, *driver; /* "opencl"; "Mali-G78"; vendor and version */
    const char *plugin;                     /* the device class that drives it */
    uint64_t memory_bytes;                  /* 0: unknown */
} cnr_device_entry;
/* Device `index` of all devices, best first. Initialises drivers. CNR_E_NOT_FOUND past the last.
 * The runtime owns the texts. */
cnr_status cnr_device_at(cnr_runtime *rt, int32_t index, cnr_device_entry *out, cnr_error *err);

/* An object of the device's driver, which stays the device's: of OpenCL "context" and "device",
 * for memory that sessions are bound to. Opens the device. CNR_E_NOT_FOUND: it has none. */
cnr_status cnr_device_native(cnr_runtime *rt, const char *device, const char *name, void **out,
                             cnr_error *err);

/* Whether `device` is the default: it runs what neither an option nor the net places. Of the
 * plugins with the highest precedence (cnr_open_options.plugin_order, then those that come with
 * cnnrun, then all others) it is the device with the highest score that opens. `reason` (may be
 * NULL) receives at most `room` bytes of text that says why, or why it is not. */
cnr_status cnr_device_default(cnr_runtime *rt, const char *device, int32_t *is_default,
                              char *reason, size_t room, cnr_error *err);

/* A plugin that was found: name and version as it says, why it was refused (NULL: it is loaded). */
typedef struct cnr_plugin_entry {
    uint32_t size;
    const char *name, *version, *file, *summary, *refused;
} cnr_plugin_entry;
/* Plugin `index` of all that were found by the process. CNR_E_NOT_FOUND past the last. The texts
 * live as long as the process. */
cnr_status cnr_plugin_at(cnr_runtime *rt, int32_t index, cnr_plugin_entry *out, cnr_error *err);

/* A property that a plugin reports of its device: a text, or a number if text is NULL. device.h
 * lists the names. measure 1: the device is opened and measures itself, too. Free by
 * cnr_facts_free. */
typedef struct cnr_fact {
    const char *name, *text;
    double value;
} cnr_fact;
typedef struct cnr_fact_list {
    uint32_t size;
    int32_t n;
    cnr_fact *at;
} cnr_fact_list;
cnr_status cnr_device_facts(cnr_runtime *rt, const char *device, int32_t measure,
                            cnr_fact_list *out, cnr_error *err);
void cnr_facts_free(cnr_fact_list *list);

typedef struct cnr_place_options {
    uint32_t size;
    int32_t axis, n_devices;
    const char *node; /* "*": every node without a placement of its own */
    const char *const *devices;
    const double *shares; /* of the output along `axis`, 1 in all; NULL: equal shares */
    /* Not NULL: a policy places the whole net, as in cnr_load_options; "" removes it. `node` may
     * then be NULL. */
    const char *policy;
    const char *const *policy_options;
} cnr_place_options;
/* Places a node on one device, or on several that share its output. n_devices 0 removes the
 * placement. Plans made afterwards follow. */
cnr_status cnr_place(cnr_model *model, const cnr_place_options *options, cnr_error *err);

CNR_END_EXPORTS
#endif
