/* run: runtimes, models, sessions and the executor; implements cnnrun.h. It emits events and
 * measures no time itself. */
#ifndef CNRI_RUN_H
#define CNRI_RUN_H

#include "data/data.h"
#include "plan/plan.h"
#include "run/load_options.h"
#include <cnnrun/engine.h>
#include <cnnrun/placement.h>

/* Kinds of events of a run. */
typedef enum cnri_event_kind {
    CNRI_EVENT_RUN_BEGIN,
    CNRI_EVENT_RUN_END,
    CNRI_EVENT_STEP_BEGIN,
    CNRI_EVENT_STEP_END
} cnri_event_kind;
/* What listeners are told of a run or step. */
typedef struct cnri_event {
    cnri_event_kind kind;
    int32_t step; /* index in the plan; -1 for events of a run */
    const cnr_plan *plan;
    uint64_t now_ns;  /* monotonic ns if any listener is sync, else 0 */
    uint64_t took_ns; /* for STEP_END: ns by the device's own events; 0: not known */
    /* For STEP_END: counters of the device, "cycles=1200 bytes_read=64"; NULL: none. */
    const char *counters;
} cnri_event;
typedef void (*cnri_event_fn)(void *arg, const cnri_event *event);
/* Adds a listener to a session. sync: each step is finished before its END event, and devices
 * that can time their steps do. Pass *id to cnr_session_unlisten. */
cnr_status cnri_session_listen(cnr_session *s, cnri_event_fn fn, void *arg, bool sync, int32_t *id,
                               cnr_error *err);

/* The plan that the session runs. */
cnr_plan *cnri_session_plan(const cnr_session *s);
/* The memory that set_input copies to; filling it directly saves the copy. NULL: no step reads
 * that input. Valid until the next run, which may move to another device. */
void *cnri_session_input_buffer(const cnr_session *s, int32_t index);
/* Runs one step `rounds` times on the data that the last run left, for meters that are slower
 * than a step. The session's outputs are undefined afterwards. */
cnr_status cnri_session_repeat(cnr_session *s, int32_t step, int64_t rounds, cnr_error *err);
/* Also cancels runs while *flag is not 0. The flag must live until replaced; NULL removes it. */
void cnri_session_cancel_by(cnr_session *s, const volatile int32_t *flag);

/* A front end that turns a file into a graph. They register here, so that run/ needs neither Lua
 * nor any format: core/script/lua adds ".lua", core/engine/store ".cnr". Importers of plugins
 * come after these. */
typedef struct cnri_loader {
    const char *name;
    /* > 0: it reads this file. */
    int32_t (*accepts)(const char *path, const uint8_t *head, size_t head_bytes);
    cnr_status (*load)(cnr_runtime *rt, const char *path, const cnr_load_options *options,
                       cnr_graph **out, cnr_error *err);
} cnri_loader;
void cnri_loader_add(const cnri_loader *loader); /* adding the same one again has no effect */

/* Functions that a scripting library registers with the engine, which links without one. Every
 * member is required. The struct is constant and outlives every runtime. */
typedef struct cnri_services {
    const cnri_loader *loader; /* reads nets written as scripts */
    /* Reads the board file of cnr_open_options.board. Free *out with cnri_board_free. */
    cnr_status (*board_read)(const char *spec, bool scene, cnri_board **out, cnr_error *err);
    /* Opens a policy that picks among candidates. text NULL: reads the file `name`; else `name`
     * is the name of the text. Fails only if the file can't be read. A policy with any other
     * fault reports it when it is asked, and the default plan is used. Release *out with
     * cnri_policy_release. */
    cnr_status (*policy_open)(const char *name, const char *text, const char *const *options,
                              cnri_policy **out, cnr_error *err);
    /* Switches adaptation on or off, for models loaded with `adapt`. */
    cnr_status (*adapt)(cnr_model *m, int32_t on, cnr_error *err);
} cnri_services;
/* Registers once; later calls have no effect. Any thread may call it. */
void cnri_services_register(const cnri_services *services);
/* Reads a board (scene: with its scene) by the registered functions; CNR_E_UNSUPPORTED: none are
 * registered. */
cnr_status cnri_board_read(const char *spec, bool scene, cnri_board **out, cnr_error *err);
/* Opens a policy by script name or text. The caller releases *out. */
cnr_status cnri_policy_open(const char *name, const char *text, const char *const *options,
                            cnri_policy **out, cnr_error *err);
/* Begins to adapt the model to the machine; needs a library above the engine. */
cnr_status cnri_adapt_begin(cnr_model *m, cnr_error *err);
bool cnri_can_adapt(void); /* true if services are registered */

/* Opens a runtime in *out without what libraries above the engine add to cnr_open. */
cnr_status cnri_runtime_open(cnr_runtime **out, const cnr_open_options *options, cnr_error *err);
/* Frees the runtime, whose models must be gone. */
void cnri_runtime_free(cnr_runtime *rt);

/* A runtime: devices, models, board and clock. */
struct cnr_runtime {
    cnri_devices devices;
    cnr_open_options options;
    CNRI_VEC(cnr_model *) models;
    cnri_board *board;                /* the board of the options; NULL: none */
    cnri_clock clock;                 /* the clock of the plugin that the options name; or empty */
    char *sysfs_root, *meter_address; /* NULL: "/"; NULL: none */
    struct {
        void *at;
        void (*close)(void *);
    } sampler; /* of watch/: opened at first use */
    /* Called before and after each run of any session; `tell` NULL: nothing is called. */
    struct {
        void (*tell)(void *arg, bool begins, const char *device);
        void *arg;
    } passes;
    int32_t brought_back; /* number of knobs of a killed process that were restored */
    void *lock;           /* guards lists and plan caches; not held while planning or compiling */
    int64_t pid;          /* the process that opened it; a child after fork has no device threads */
    struct {
        const cnri_loader *loader;
        const char *path;
        void *state;
    } begun; /* this loader has
begun with this file: the next load of it goes on from there, unopened */
};

/* Data that work keeps with a model between two gradients (work/gradients.c); state NULL: none. */
typedef struct cnri_learner {
    void *state;
    void (*free)(void *state);
    cnr_status (*follow)(void *state, const char *weight, const cnr_tensor *value, cnr_error *err);
} cnri_learner;

/* Replace cnr_run_tensors while a model adapts (work/adapt.c); state NULL: it does not. */
typedef struct cnri_adapting {
    void *state;
    cnr_status (*run)(cnr_model *m, const cnr_tensor *const *inputs, int32_t n_inputs,
                      const cnr_tensor **outputs, int32_t n_outputs, cnr_error *err);
    void (*rest)(void *state); /* closes its sessions and plans until the next run */
    void (*free)(void *state);
} cnri_adapting;

/* A model: a net with weights, and how its plans are made. */
struct cnr_model {
    cnr_runtime *rt;
    cnr_graph *graph; /* as loaded, with weights; symbols not bound */
    bool lost;        /* a call that never returns may read its weights, so they are not freed */
    char *path;
    cnri_plan_options plan_options;
    char *cache; /* folder of stored plans; NULL: none */
    uint64_t cache_bytes;
    bool cache_fifo; /* a cache hit does not count as a use */
    /* The folder is the user's own, which nobody named: only plans that take long are stored. */
    bool own_cache;
    char *cache_codec, *cache_key_file; /* as in cnr_load_options */
    struct cnri_plans *plans;           /* plans.c: its plans by input shapes */
    CNRI_VEC(cnr_session *) sessions;
    CNRI_VEC(cnr_tensor) input_types; /* input types that implicit plans are made for */
    char **symbols;
    int64_t *symbol_values;
    int32_t n_symbols;
    cnr_session *session; /* the session of cnr_run_*, made at first use */
    char **labels;
    int32_t n_labels;
    CNRI_VEC(char *) masked; /* names of weights whose zeros stay zero in training */
    cnr_graph *layers;
    const char **layer_names; /* change.c: names for cnr_layer_at; NULL: not requested yet */
    cnri_learner learner;
    cnri_adapting adapting;
};

/* A request for a plan: for these shapes, with these options (a copy that later changes of the
 * model do not reach), on these devices. */
typedef struct cnri_plan_request {
    const cnr_model *model;
    const cnri_plan_options *options;
    const cnri_device_set *set;
    const cnr_tensor *const *types;
    int32_t n;
    bool is_portable; /* the identity does not contain the record of times in the cache */
} cnri_plan_request;
/* plans.c: makes the empty list of a model's plans. */
cnr_status cnri_plans_open(cnr_model *m, cnr_error *err);
void cnri_plans_close(cnr_model *m); /* frees all plans and the list; none: nothing */
/* Makes later plans anew; users of existing plans keep them. The lock is held. */
void cnri_plans_invalidate(cnr_model *m);
/* Warns, once for each model, if no kernel of the plan stores or computes as options ask. */
void cnri_plans_check_stores(const cnr_model *m, const cnri_plan_options *o, const cnr_plan *plan);
/* The model that the plan was made for; NULL: none. */
cnr_model *cnri_plan_model(const cnr_plan *plan);
/* The version of a model's options now (its lock is held), and the one its plan was made with. */
uint64_t cnri_plans_version(const cnr_model *m);
/* Version of the model's options that a plan was made with; 0: of no model. */
uint64_t cnri_plan_version(const cnr_plan *plan);
void cnri_plan_retain(cnr_plan *plan); /* adds a user; the runtime's lock is held */
/* Copies options with all texts; false: out of memory, free the copy anyway. */
bool cnri_plan_options_copy(const cnri_plan_options *from, cnri_plan_options *to);
void cnri_plan_options_free(cnri_plan_options *o); /* call it after a failed copy too */
/* Metadata key of a policy's text; its name is under this key with ".name". */
#define CNRI_POLICY_META "plan.policy"
/* Number of plans that the model keeps. */
int32_t cnri_plans_count(const cnr_model *m);

/* Fills `types`, with room for every input, with a plan's input types for these shapes. */
cnr_status cnri_plan_types(const cnr_model *m, const cnr_tensor *const *shapes, int32_t n_shapes,
                           cnr_tensor *types, cnr_error *err);

typedef cnr_status (*cnri_plan_keeper)(const cnri_plan_request *r, cnr_plan **out, cnr_error *err);
/* Registers who finds and stores plans in place of making each anew (keep/ of common). */
void cnri_plan_keeper_register(cnri_plan_keeper keeper);

/* asked: by the caller; else the net's metadata may. */
cnr_status cnri_adapt_if_wanted(cnr_model *m, bool asked, cnr_error *err);
/* Makes a model in *out and takes ownership of the graph, also on failure. */
cnr_status cnri_model_from_graph(cnr_runtime *rt, cnr_graph *graph, const cnr_load_options *options,
                                 cnr_model **out, cnr_error *err);
/* Sets planning options beyond those of cnr_load (placements, forced kernels, training); they
 * are copied. Existing plans stay as they are. */
cnr_status cnri_model_set_options(cnr_model *model, const cnri_plan_options *options,
                                  cnr_error *err);
/* Call after a run on `device` failed with `status`, with options of `version`. True: the
 * options now name the next fallback device, which is logged, so plan again. */
bool cnri_fall_back(cnr_model *m, const char *device, uint64_t version, cnr_status status,
                    const cnr_error *why);
/* Fails with CNR_E_STATE in a child process after fork. */
cnr_status cnri_check_process(const cnr_runtime *rt, cnr_error *err);
/* The score of the loader or importer that knows a file best; 0: none does. */
int32_t cnri_load_score(const char *path);
/* Loads a graph into *out without making a model (for show, convert, check). */
cnr_status cnri_load_graph(cnr_runtime *rt, const char *path, const cnr_load_options *options,
                           cnr_graph **out, cnr_error *err);

/* ---- import.c: importers of plugins ---- */
/* The first bytes of a file. */
typedef struct cnri_head {
    uint8_t at[4096];
    size_t n;
} cnri_head;
/* Reads the first bytes of a file; none of a folder. */
cnr_status cnri_file_head(const char *path, cnri_head *out, cnr_error *err);
/* The importer that accepts a file with a score over *score, which is then updated; NULL: none. */
const cnr_importer *cnri_importer_for(const char *path, const cnri_head *head, int32_t *score);
/* The options that it accepts, NULL-terminated; NULL: it does not say. */
const char *const *cnri_importer_options(const cnr_importer *importer);
/* True if the importer accepts the option; `name` is "name" or "name=value". */
bool cnri_importer_takes(const cnr_importer *importer, const char *name);
/* Builds a graph, or an error that lists all problems. Options that the importer does not have
 * are refused. bounded: large weights go to a temporary file (graph/aside.c). */
cnr_status cnri_import(const cnr_importer *importer, const cnr_import_args *args, bool bounded,
                       cnr_graph **out, cnr_error *err);
/* True for a .cnr file, by its name. */
bool cnri_is_native(const char *path);
int32_t cnri_count_options(const char *const *options); /* number of entries before the NULL */
/* The files that a word names: "net.prototxt,a.bin" names two, unless a file has that very name.
 * Free them after an error too. */
typedef CNRI_VEC(char *) cnri_paths;
/* Appends a copy of each path in `word`: that file if it exists, else those between commas. */
cnr_status cnri_paths_add(cnri_paths *paths, const char *word, cnr_error *err);
void cnri_paths_free(cnri_paths *paths); /* frees the paths and the list */
/* True if the weights are files, not "none", "random" or "random:SEED". */
bool cnri_weights_are_file(const char *weights);
/* Fills weights from files, or by "random:SEED"; "none" leaves them out. */
cnr_status cnri_weights_fill(cnr_graph *net, const char *weights, const char *const *options,
                             cnr_error *err);
/* Fills every unfilled weight by its initialiser from `seed`. */
typedef cnr_status (*cnri_random_fill)(cnr_graph *net, uint64_t seed, cnr_error *err);
/* Registers who does it (initial/ of common). */
void cnri_random_fill_register(cnri_random_fill own);
/* Fills weights by name from files of any format: native ones, or those that an importer reads. */
cnr_status cnri_weights_import(cnr_graph *net, const cnr_import_args *files, cnr_error *err);

/* Frees the data that is kept for gradients of this model. */
void cnri_model_drop_gradients(cnr_model *model);
/* cnri_input_sizes with the symbols that the model was given. */
void cnri_model_sizes(const cnr_model *m, int32_t index, cnri_sizes from, cnr_tensor *out);
/* The shapes of all inputs before a picture is known: with the net's own preprocessing, and
 * pictures of 224 x 224 if nothing gives a size. `shapes`, and `list` that points at them, have
 * room for all inputs. */
cnr_status cnri_model_default_sizes(const cnr_model *m, int64_t batch, cnr_tensor *shapes,
                                    const cnr_tensor **list, cnr_error *err);
/* The same in memory of its own; free it with cnri_shapes_free, after an error too. */
typedef struct cnri_shapes {
    cnr_tensor *at;
    const cnr_tensor **list;
    int32_t n;
} cnri_shapes;
/* Types of all inputs for a batch size; *out has to be freed by cnri_shapes_free, also on failure.
 */
cnr_status cnri_input_shapes(const cnr_model *model, int64_t batch, cnri_shapes *out,
                             cnr_error *err);
/* Frees the members and zeroes *s; the struct stays the caller's. s must not be NULL. */
void cnri_shapes_free(cnri_shapes *s);

#endif
