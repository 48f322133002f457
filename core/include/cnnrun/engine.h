/* For applications that embed the engine: open, load, run, top-k, close; then shapes, weights,
 * plans and sessions. libcnnrun-engine has it, and placement.h.
 *
 *     cnr_runtime *rt; cnr_model *net; const cnr_tensor *scores; cnr_top best[5];
 *     cnr_error err = CNR_ERROR_INIT;
 *     cnr_open(&rt, NULL, &err);
 *     cnr_load(rt, "lenet5.cnr", NULL, &net, &err);
 *     cnr_run_picture(net, "three.png", &scores, &err);
 *     int n = cnr_topk(scores, 5, best);
 *     cnr_close(rt);
 */
#pragma once

#include <cnnrun/tensor.h>
#include <cnnrun/version.h>

CNR_BEGIN_EXPORTS

typedef struct cnr_runtime cnr_runtime; /* holds the loaded plugins and the open devices */
typedef struct cnr_model cnr_model;     /* a graph with its weights; sessions share the model */
typedef struct cnr_plan cnr_plan; /* a model compiled for shapes and devices; immutable, shared */
typedef struct cnr_session cnr_session; /* memory in which a plan runs; one thread at a time */

/* Every struct begins with `size`, its own size in bytes. Members that are 0 or NULL are
 * defaults. */
typedef struct cnr_open_options {
    uint32_t size;
    int32_t threads;                /* threads of the CPU device; 0: one per core */
    const char *const *plugin_dirs; /* searched before the default folders; ends in NULL */
    void (*log)(void *arg, int32_t level, const char *plugin, const char *text);
    void *log_arg;
    int32_t log_level;       /* messages up to this CNR_LOG_... level are logged */
    int32_t no_default_dirs; /* 1: search plugin_dirs only */
    int32_t trust_scripts;   /* 1: Lua scripts may use any file and the clock, as with --trust */
    const char *clock;       /* name of a plugin's clock, for the process; NULL: system clock */
    /* Folder that plugins keep data in between runs, such as compiled kernels. NULL: the `cache` of
     * the first model that has one, else the user's own (see cnr_load_options). */
    const char *cache;
    const char *sysfs_root;    /* meters and knobs look for /sys below it; NULL: "/" */
    const char *meter_address; /* sensor that is not below sysfs_root: "/dev/ttyUSB0" */
    /* Name or file of a board description. Values to replace follow after commas: "odroid_xu3",
     * "mine.lua,seed=3". The description holds for the whole process. */
    const char *board;
    /* Instruction set of the CPU device's kernels: "avx512", "avx2", "neon", "generic". For the
     * whole process; set it before the first runtime opens. NULL: CNNRUN_CPU_ISA, else the CPU's
     * widest. */
    const char *cpu_isa;
    /* Names of plugins that load first, in this order. If two plugins register a name, the first
     * wins; scores count only between equal precedence. Ends in NULL; NULL: none. */
    const char *const *plugin_order;
    const char *const *skip_plugins; /* names of plugins not to load; ends in NULL */
    /* Plugins linked into the program, each by the function that replaces its cnr_plugin_query
     * (core/docs/abi.md). They load before any folder is searched. Ends in NULL. */
    const struct cnr_plugin *(*const *linked_plugins)(uint32_t host_abi);
} cnr_open_options;

/* How a net is loaded and planned: set size to sizeof; zeros and NULLs are the defaults. Lists end
 * with NULL. */
typedef struct cnr_load_options {
    uint32_t size;
    int32_t n_symbols; /* number of entries of `symbols` and `symbol_values` */
    /* Files with weights for the net, separated by commas, or "random:SEED". NULL: the files that
     * follow a comma in the path, else the net's own weights. */
    const char *weights;
    const char *net; /* selects a net in a script that holds several; NULL: the only one */
    const char *const *symbols;   /* names of open dimensions */
    const int64_t *symbol_values; /* their sizes in implicit plans; others are 1 */
    /* Names of rewrites to skip; "all" for all of them, "inplace" and "share" for the two ways in
     * which values share memory. Ends in NULL. */
    const char *const *no_rewrite;
    const char *device;    /* such as "cpu" or "opencl:0"; NULL: the best device */
    uint64_t memory_bound; /* max. bytes of weights and arena; 0: no limit */
    int32_t deterministic; /* 1: measured times are not used to select kernels */
    /* Folder of plans and tuning records. NULL: the user's own ($CNNRUN_CACHE, else
     * $XDG_CACHE_HOME/cnnrun, else ~/.cache/cnnrun), where plans are stored that take more than 50
     * ms to make, or that devices compile for. */
    const char *cache;
    /* Max. bytes of the files in `cache`. 0: MODEL_CACHE_MAXSIZE, else 4 GiB. */
    uint64_t cache_bytes;
    const char *const *import_options; /* "name=value" for the importer; ends in NULL */
    const char *preset; /* how pictures are prepared: "torchvision"; NULL: the net's own way */
    /* 1: the weights of a .cnr are not compared with their checksums. 0: damaged weights are
     * CNR_E_FORMAT when they are first read. */
    int32_t no_verify;
    /* Kernels that must run: "NODE=KERNEL" or "OPERATOR=KERNEL". "@DEVICE" before the "=" limits an
     * entry to one device. "reference" names the operator's reference. "*=KERNEL" is for all nodes
     * whose operators have that kernel, and "*=" cancels such a wish of the net. Ends in NULL. */
    const char *const *kernels;
    /* Max. host memory for the activations, inputs and outputs of a session, in bytes. More is
     * CNR_E_LIMIT before memory is allocated. 0: three quarters of what the process may use. */
    uint64_t memory_limit;
    /* Lua file of a placement policy (scripts/README.md). If the policy fails, one message is
     * logged and the default plan is used. NULL: the net's own policy, or none. */
    const char *policy;
    const char *const *policy_options; /* "name=value"; ends in NULL */
    /* Devices whose kernels are candidates. The first one runs all nodes without a placement,
     * unless `device` names another. Ends in NULL. NULL: those that the net and its policy name. */
    const char *const *devices;
    const char *labels; /* file of class names, one per line; NULL: the net's own names */
    /* Devices to use when one fails: the whole model moves to the next of the list, and a warning
     * is logged. Ends in NULL. NULL: a failed device is an error. */
    const char *const *fallback;
    /* Type of stored packed weights: "fp16" or "bf16"; kernels multiply in f32. NULL: "f32". */
    const char *weights_type;
    /* Type in which kernels multiply where the device can, "fp16" or "bf16"; devices that can't log
     * a warning. With "bf16" other kernels may store packed weights in bf16. NULL: "f32". */
    const char *arithmetic;
    const char *cache_policy; /* plans to evict first: least recently used "lru" (NULL), "fifo" */
    /* Milliseconds after which a call of a device other than the CPU has timed out: the run fails
     * with CNR_E_DEVICE, or moves to `fallback`, and the process no longer uses the device. Runs
     * are then made on another thread (about 30 us each). 0: 100 times the estimated time of a run,
     * at least 10,000 ms; without `fallback` a call that times out is logged and waited for. */
    uint64_t hang_ms;
    /* 1: the model tries kernels and devices in ordinary runs (cnr_adapt in lab.h; not in
     * libcnnrun-engine). The net can request this by "plan.adapt". CNR_E_ARG with
     * `deterministic`. */
    int32_t adapt;
    /* "NAME=MIN..MAX": sizes that a named dimension may have in any plan. Kernels see the range
     * (cnr_tensor.dim_range) and may serve all its sizes at once. A plan of another size is
     * CNR_E_SHAPE. Ends in NULL. NULL: the net's metadata "symbol.NAME.range" = "1,16", or none. */
    const char *const *symbol_ranges;
    /* 1: no plan or measured time is stored or taken, whatever `cache` names. The variable
     * MODEL_CACHE_DISABLE=1 has the same effect. */
    int32_t no_cache;
    /* Names of codecs, separated by commas, that stored plans pass through when they are written:
     * "zstd,sodium". NULL: none. Plans that were stored by other codecs are made anew. Under a
     * memory bound plans pass through none, and none is stored if one of them needs a key. */
    const char *cache_codec;
    /* File with the key of a codec that encrypts. NULL: the text of CNNRUN_CACHE_KEY. */
    const char *cache_key_file;
} cnr_load_options;

/* One class and its score. */
typedef struct cnr_top {
    int64_t index;
    float score;
} cnr_top;

/* NULL for a required object, name, list or `out` is CNR_E_ARG in all functions below. So is a
 * tensor with an impossible rank, type or size, or with too few `bytes` (0: computed from the
 * shape). Functions that return no status return 0 or NULL then. err may be NULL. */

/* Finds and loads all plugins. After an error *out is NULL. */
cnr_status cnr_open(cnr_runtime **out, const cnr_open_options *options, cnr_error *err);
/* Frees the runtime and everything that was made from it, models and sessions included. */
void cnr_close(cnr_runtime *rt);
/* Loads a .cnr, a .lua or a file that an importer recognises. rt owns the model; cnr_release frees
 * it earlier. A .cnr that only the caller may write stays mapped while the model lives: replace it
 * by renaming, since truncation ends the process by SIGBUS. Other files are copied. */
cnr_status cnr_load(cnr_runtime *rt, const char *path, const cnr_load_options *options,
                    cnr_model **out, cnr_error *err);
/* Frees the model and closes its sessions; NULL: does nothing. */
void cnr_release(cnr_model *model);

/* Runs a picture through the net's own preprocessing. *out is output 0 on the host, valid until the
 * model runs again. One thread at a time may run a model; use sessions for more. */
cnr_status cnr_run_picture(cnr_model *model, const char *path, const cnr_tensor **out,
                           cnr_error *err);
/* Runs tensors on the host. The first call with new shapes makes a plan, which the model keeps. */
cnr_status cnr_run_tensors(cnr_model *model, const cnr_tensor *const *inputs, int32_t n_inputs,
                           const cnr_tensor **outputs, int32_t n_outputs, cnr_error *err);
/* Writes the k largest elements, best first, and returns their number. Ties by index; NaN last. */
int32_t cnr_topk(const cnr_tensor *scores, int32_t k, cnr_top *out);
/* Returns the name of class `index`, which the model owns; NULL: it has none. */
const char *cnr_label(const cnr_model *model, int64_t index);
/* Text of a status; "unknown status" for other numbers. */
const char *cnr_status_text(int32_t status);

/* ---- inputs, outputs and layers ---- */

int32_t cnr_input_count(const cnr_model *model);  /* Number of inputs; 0 for NULL. */
int32_t cnr_output_count(const cnr_model *model); /* Number of outputs; 0 for NULL. */
/* Names of inputs and outputs, valid as long as the model; NULL: there is none. */
const char *cnr_input_name(const cnr_model *model, int32_t index);
/* Returns the name of output i, owned by the model; NULL: no such output. */
const char *cnr_output_name(const cnr_model *model, int32_t index);
/* Types and shapes; open dimensions are negative. NULL: there is none. */
const cnr_tensor *cnr_input_type(const cnr_model *model, int32_t index);
/* Returns the type of output i, owned by the model; NULL: no such output. */
const cnr_tensor *cnr_output_type(const cnr_model *model, int32_t index);

/* Description of a node of the net, for listings. Texts and lists are owned by the model. */
typedef struct cnr_layer {
    uint32_t size;
    int32_t n_inputs, n_weights; /* number of activations; number of weights */
    const char *name, *op;
    const cnr_tensor *type; /* type of the first output; open dimensions are 1 */
    double flops;           /* per run at these sizes; a multiply-accumulate is two */
    const char *const *inputs, *const *weights; /* names of both */
} cnr_layer;
/* Describes layer `index` of the net as loaded. CNR_E_NOT_FOUND: there is no such layer. */
cnr_status cnr_layer_at(cnr_model *model, int32_t index, cnr_layer *out, cnr_error *err);

/* ---- weights: changing them while a plan or session of the model is held is CNR_E_STATE. One
 * thread at a time. ---- */

/* Copies a model with its weights and placements. The runtime owns the copy. */
cnr_status cnr_copy(const cnr_model *model, cnr_model **out, cnr_error *err);
int32_t cnr_weight_count(const cnr_model *model); /* Number of weights; 0 for NULL. */
/* Name of weight `index`, from 0; NULL: there are no more. */
const char *cnr_weight_name(const cnr_model *model, int32_t index);
/* Gives the data of a weight, valid until the weight changes. An encoded weight stays encoded. */
cnr_status cnr_weight(const cnr_model *model, const char *name, const cnr_tensor **out,
                      cnr_error *err);
/* Replaces a weight by a copy of `value`, which must have its type and shape. */
cnr_status cnr_set_weight(cnr_model *model, const char *name, const cnr_tensor *value,
                          cnr_error *err);
/* Masks a weight: with on = 1 its zeros stay 0 in training; with on = 0 they may change again. */
cnr_status cnr_mask(cnr_model *model, const char *weight, int32_t on, cnr_error *err);

/* ---- plans and sessions ---- */

/* Makes a plan; the model keeps it, so repeated calls are cheap. shapes[i] gives the dimensions of
 * input i; NULL: open dimensions are 1. Its data is used only if it determines shapes, as axes of a
 * reduction do: sessions of the plan then accept only that data. */
cnr_status cnr_plan_for(cnr_model *model, const cnr_tensor *const *shapes, int32_t n_shapes,
                        cnr_plan **out, cnr_error *err);
/* Gives a plan back to its model; NULL: does nothing. */
void cnr_plan_release(cnr_plan *plan);
/* Bytes of a session's intermediate results; 0: plan is NULL. */
uint64_t cnr_plan_arena_bytes(const cnr_plan *plan);
/* Bytes of all weights as devices hold them: prepared blobs and plain constants, if all are
 * resident; plan NULL: 0. */
uint64_t cnr_plan_weight_bytes(const cnr_plan *plan);
/* Replaces the data of weight `name` and packs it again. No session of the plan may be running. */
cnr_status cnr_plan_set_weight(cnr_plan *plan, const char *name, const cnr_tensor *value,
                               cnr_error *err);

/* Opens a session. Close *out with cnr_session_close. */
cnr_status cnr_session_open(cnr_plan *plan, cnr_session **out, cnr_error *err);
/* Closes a session, which must not be running, and frees it; NULL: nothing. */
void cnr_session_close(cnr_session *session);
/* Copies data from the host into input `index`. */
cnr_status cnr_session_set_input(cnr_session *session, int32_t index, const cnr_tensor *value,
                                 cnr_error *err);
/* Binds memory of the caller: each run reads input `index` from it, or writes output `index` to it,
 * without a copy. The binding lasts until a call with value NULL. The memory must live as long and
 * is not accessed between runs. value->data: host memory, aligned to 64 bytes, if the plan keeps
 * the value on the host. Otherwise value->mem: memory of the plan's device, class 0, with no
 * pending work. CNR_E_UNSUPPORTED: the plan would have to copy; the text says why. A session with
 * bound memory can't move to a fallback device. */
cnr_status cnr_session_bind_input(cnr_session *session, int32_t index, const cnr_tensor *value,
                                  cnr_error *err);
/* Like cnr_session_bind_input, for an output: results are written to value->data. */
cnr_status cnr_session_bind_output(cnr_session *session, int32_t index, const cnr_tensor *value,
                                   cnr_error *err);
/* start returns when the work is queued, wait when it is done; run does both. */
cnr_status cnr_session_run(cnr_session *session, cnr_error *err);
/* Queues a run; CNR_E_STATE: one is under way. */
cnr_status cnr_session_start(cnr_session *session, cnr_error *err);
/* Waits for the run that was started, and returns its status. On a lost device it may repeat it on
 * the fallback. */
cnr_status cnr_session_wait(cnr_session *session, cnr_error *err);
/* Gives output `index` on the host, valid until the session runs again or closes. */
cnr_status cnr_session_output(cnr_session *session, int32_t index, const cnr_tensor **out,
                              cnr_error *err);
/* Stops a run from any thread or a signal handler: it soon returns CNR_E_CANCELLED. */
void cnr_session_cancel(cnr_session *session);
/* Called after each node with its name and one output on the host, to calibrate and debug. */
typedef void (*cnr_tap_fn)(void *arg, const char *node, int32_t output, const cnr_tensor *value);
/* Calls fn for each value that a run computes; fn NULL: no longer. */
void cnr_session_tap(cnr_session *session, cnr_tap_fn fn, void *arg);

/* Listeners are called on the thread that runs, and must not use the session. */
enum { CNR_RUN_BEGIN = 1, CNR_RUN_END = 2, CNR_STEP_BEGIN = 3, CNR_STEP_END = 4 };
/* What a listener is told of a run or step. All pointers are valid only during the call. */
typedef struct cnr_run_event {
    uint32_t size;
    int32_t kind, step;                      /* step -1: event of the whole run */
    const char *node, *op, *kernel, *device; /* of the step; valid as long as the plan */
    uint64_t now_ns;                         /* time of the event with CNR_LISTEN_TIMES; else 0 */
    uint64_t took_ns; /* duration of an ended step by device events; 0: unknown */
} cnr_run_event;
/* Each step ends before the next begins, and devices time their steps. This slows the run. */
enum { CNR_LISTEN_TIMES = 1 << 0 };
typedef void (*cnr_run_fn)(void *arg, const cnr_run_event *event);
/* Calls fn(arg) at the events of each run until cnr_session_unlisten(*id). Must not be called
 * during a run. *id is above 0; id may be NULL. Unknown flags are ignored. */
cnr_status cnr_session_listen(cnr_session *session, uint32_t flags, cnr_run_fn fn, void *arg,
                              int32_t *id, cnr_error *err);
void cnr_session_unlisten(cnr_session *session, int32_t id); /* an unknown id is ignored */

CNR_END_EXPORTS
