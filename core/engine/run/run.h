/* run: runtimes, models, sessions and the executor; implements cnnrun.h. Emits events, times
 * nothing itself. */
#ifndef CNRI_RUN_H
#define CNRI_RUN_H

#include "data/data.h"
#include "plan/plan.h"
#include "run/load_options.h"
#include <cnnrun/engine.h>

typedef enum cnri_event_kind {
    CNRI_EVENT_RUN_BEGIN,
    CNRI_EVENT_RUN_END,
    CNRI_EVENT_STEP_BEGIN,
    CNRI_EVENT_STEP_END
} cnri_event_kind;
typedef struct cnri_event {
    cnri_event_kind kind;
    int32_t step; /* -1 for run events */
    const cnr_plan *plan;
    uint64_t now_ns;      /* the clock, when some listener is sync; else 0 */
    uint64_t took_ns;     /* of a STEP_END, by the device's own events; 0: untold */
    const char *counters; /* likewise, "cycles=1200 bytes_read=64"; NULL: none */
} cnri_event;
typedef void (*cnri_event_fn)(void *arg, const cnri_event *event);
/* A listener of a session; watch/ uses it. sync: each step is finished before its END, and devices
 * that can time their steps. *id is for cnr_session_unlisten. */
cnr_status cnri_session_listen(cnr_session *s, cnri_event_fn fn, void *arg, bool sync, int32_t *id,
                               cnr_error *err);

cnr_plan *cnri_session_plan(const cnr_session *s);
/* Where set_input copies to: who fills it there saves the copy. NULL: no step reads that input.
 * Until the next run, which may go on elsewhere. */
void *cnri_session_input_buffer(const cnr_session *s, int32_t index);
/* One step alone, as often as that, on what the last run left in memory: for meters, which are
 * slower than steps. Its outputs, and the net's, are nothing to go by afterwards. */
cnr_status cnri_session_repeat(cnr_session *s, int32_t step, int64_t rounds, cnr_error *err);
/* Runs are cancelled while *flag isn't 0, too; it must live as long as it is named. NULL: no
 * more. */
void cnri_session_cancel_by(cnr_session *s, const volatile int32_t *flag);

/* Front ends that turn a path into a graph register here, so that run/ needs neither Lua nor any
 * format: core/script/lua adds ".lua", core/engine/store ".cnr"; plugins' importers come after
 * them. */
typedef struct cnri_loader {
    const char *name;
    int32_t (*accepts)(const char *path, const uint8_t *head, size_t head_bytes); /* > 0 yes */
    cnr_status (*load)(cnr_runtime *rt, const char *path, const cnr_load_options *options,
                       cnr_graph **out, cnr_error *err);
} cnri_loader;
void cnri_loader_add(const cnri_loader *loader); /* the same one twice is one */

/* What a scripting library registers with the engine, which links without one. Every member is
 * required; the struct is constant and outlives every runtime. */
typedef struct cnri_services {
    const cnri_loader *loader; /* nets as scripts */
    /* Reads the file of cnr_open_options.board. *out: cnri_board_free. */
    cnr_status (*board_read)(const char *spec, bool scene, cnri_board **out, cnr_error *err);
    /* Opens a policy that picks among candidates. text NULL: the file's; else `name` is what the
     * text is called. Fails only if the file cannot be read. A policy with another fault reports it
     * when it is asked, and the default plan stands. *out: cnri_policy_release. */
    cnr_status (*policy_open)(const char *name, const char *text, const char *const *options,
                              cnri_policy **out, cnr_error *err);
    /* cnr_adapt, for models that are loaded so. */
    cnr_status (*adapt)(cnr_model *m, int32_t on, cnr_error *err);
} cnri_services;
/* The first registration stays. Any thread. */
void cnri_services_register(const cnri_services *services);
/* The functions of cnri_services; CNR_E_UNSUPPORTED: none are registered. */
cnr_status cnri_board_read(const char *spec, bool scene, cnri_board **out, cnr_error *err);
cnr_status cnri_policy_open(const char *name, const char *text, const char *const *options,
                            cnri_policy **out, cnr_error *err);
cnr_status cnri_adapt_begin(cnr_model *m, cnr_error *err);
bool cnri_can_adapt(void); /* somebody registered */

/* cnr_open without what libraries above the engine do at that moment. */
cnr_status cnri_runtime_open(cnr_runtime **out, const cnr_open_options *options, cnr_error *err);
void cnri_runtime_free(cnr_runtime *rt); /* once its models are gone */

struct cnr_runtime {
    cnri_devices devices;
    cnr_open_options options;
    CNRI_VEC(cnr_model *) models;
    cnri_board *board;                /* that was asked for; or NULL */
    cnri_clock clock;                 /* the plugin's that was asked for; or empty */
    char *sysfs_root, *meter_address; /* NULL: "/"; none */
    struct {
        void *at;
        void (*close)(void *);
    } sampler; /* of watch/: opened when first asked for */
    struct {
        void (*tell)(void *arg, bool begins, const char *device);
        void *arg;
    } passes;             /* who hears of each pass of any
session, before and after it; NULL: nobody */
    int32_t brought_back; /* knobs that a killed process had set */
    void *lock;  /* guards lists and plan caches; held while nothing is planned or compiled */
    int64_t pid; /* a child after fork has none of the devices' threads */
    struct {
        const cnri_loader *loader;
        const char *path;
        void *state;
    } begun; /* this loader has
begun with this file: the next load of it goes on from there, unopened */
};

/* What work keeps with a model between two gradients (work/gradients.c); state NULL: nothing. */
typedef struct cnri_learner {
    void *state;
    void (*free)(void *state);
    cnr_status (*follow)(void *state, const char *weight, const cnr_tensor *value, cnr_error *err);
} cnri_learner;

/* What takes the place of cnr_run_tensors while a model adapts (work/adapt.c); state NULL: it does
 * not. */
typedef struct cnri_adapting {
    void *state;
    cnr_status (*run)(cnr_model *m, const cnr_tensor *const *inputs, int32_t n_inputs,
                      const cnr_tensor **outputs, int32_t n_outputs, cnr_error *err);
    void (*rest)(void *state); /* closes its sessions and plans until the next run */
    void (*free)(void *state);
} cnri_adapting;

struct cnr_model {
    cnr_runtime *rt;
    cnr_graph *graph; /* as loaded, with weights; symbols unbound */
    bool lost;        /* a call that never returns may read its weights: they stay */
    char *path;
    cnri_plan_options plan_options;
    char *cache; /* folder of stored plans; NULL: none */
    uint64_t cache_bytes;
    bool cache_fifo;          /* a hit does not count as a use */
    struct cnri_plans *plans; /* plans.c: those that live, by input shapes */
    CNRI_VEC(cnr_session *) sessions;
    CNRI_VEC(cnr_tensor) input_types; /* bound for a plan made implicitly */
    char **symbols;
    int64_t *symbol_values;
    int32_t n_symbols;
    cnr_session *session; /* of cnr_run_*; made at first use */
    char **labels;
    int32_t n_labels;
    CNRI_VEC(char *) masked; /* weights whose zeros stay while it trains */
    cnr_graph *layers;
    const char **layer_names; /* change.c: for cnr_layer_at; NULL: nobody asked */
    cnri_learner learner;
    cnri_adapting adapting;
};

/* A plan that is wanted: for these shapes, by these options (a copy, which changes of the model's
 * do not reach), on these devices. */
typedef struct cnri_plan_request {
    const cnr_model *model;
    const cnri_plan_options *options;
    const cnri_device_set *set;
    const cnr_tensor *const *types;
    int32_t n;
    bool is_portable; /* the identity leaves the cache's record of times out */
} cnri_plan_request;
/* plans.c: the plans of a model. */
cnr_status cnri_plans_open(cnr_model *m, cnr_error *err);
void cnri_plans_close(cnr_model *m);
/* Plans to come are made anew: those that there are stay good for who has them. Lock held. */
void cnri_plans_invalidate(cnr_model *m);
/* Nobody stores weights, or multiplies, as was asked: no error, but it is told, once a model, or it
 * would seem done. */
void cnri_plans_check_stores(const cnr_model *m, const cnri_plan_options *o, const cnr_plan *plan);
cnr_model *cnri_plan_model(const cnr_plan *plan); /* NULL: made without one */
/* Of a model's options, now (the lock is held), and when this plan of it was begun. */
uint64_t cnri_plans_version(const cnr_model *m);
uint64_t cnri_plan_version(const cnr_plan *plan);
void cnri_plan_retain(cnr_plan *plan); /* one more holder; the runtime's lock is held */
bool cnri_plan_options_copy(const cnri_plan_options *from, cnri_plan_options *to);
void cnri_plan_options_free(cnri_plan_options *o); /* after a failed copy, too */
#define CNRI_POLICY_META "plan.policy" /* metadata: a policy's text; its name stands in ".name" */
int32_t cnri_plans_count(const cnr_model *m);

/* The input types of a plan for these shapes: `types` has space for each. */
cnr_status cnri_plan_types(const cnr_model *m, const cnr_tensor *const *shapes, int32_t n_shapes,
                           cnr_tensor *types, cnr_error *err);

/* stored.c: a plan from the model's cache, or made and stored there; without a cache just made.
 * Whether it was a hit, a miss or stale, and why, is logged and stands in (*out)->origin. */
cnr_status cnri_stored_plan(const cnri_plan_request *r, cnr_plan **out, cnr_error *err);
/* A plan that is neither looked up nor kept. */
cnr_status cnri_fresh_plan(const cnri_plan_request *r, cnr_plan **out, cnr_error *err);
struct cnri_cached_blob;
/* Writes the plan and these parts, whose data each row has; `limit` as cache_bytes. */
cnr_status cnri_plan_write(cnr_plan *plan, const char *path, const char *identity,
                           const struct cnri_cached_blob *parts, int32_t n_parts, uint64_t limit,
                           uint32_t flags, cnr_error *err);
/* identity.c: what a stored plan depends on, a line for each thing: "weights 12ab...". */
void cnri_plan_identity(const cnri_plan_request *r, cnri_text *out);
/* kinds: 1 << CNR_KIND_...: a line for each plugin that brings one of them, with a digest of its
 * file. */
void cnri_identity_plugins(cnri_text *out, uint32_t kinds);

#define CNRI_TUNING_FILE "tuning.jsonl"
/* tune.c: the record in a cache folder; none there is none. print: fingerprint of the file, or
 * zeros. */
cnr_status cnri_tuning_load(const char *folder, cnri_tuning *out, uint8_t print[16],
                            cnr_error *err);

/* asked: by the caller; else the net's metadata may. */
cnr_status cnri_adapt_if_wanted(cnr_model *m, bool asked, cnr_error *err);
/* cnr_run_tensors of a model that does not adapt. */
cnr_status cnri_run_plainly(cnr_model *m, const cnr_tensor *const *inputs, int32_t n_inputs,
                            const cnr_tensor **outputs, int32_t n_outputs, cnr_error *err);
/* Takes the graph over. */
cnr_status cnri_model_from_graph(cnr_runtime *rt, cnr_graph *graph, const cnr_load_options *options,
                                 cnr_model **out, cnr_error *err);
/* Planning options other than those of cnr_load (placements, forced kernels, training); copied.
 * Plans already made stay as they are; later ones follow. */
cnr_status cnri_model_set_options(cnr_model *model, const cnri_plan_options *options,
                                  cnr_error *err);
/* `status` came of running on `device`, by the options of `version`. True: the model's options are
 * another device's now, which is logged; plan again. */
bool cnri_fall_back(cnr_model *m, const char *device, uint64_t version, cnr_status status,
                    const cnr_error *why);
/* CNR_E_STATE in a child after fork. */
cnr_status cnri_check_process(const cnr_runtime *rt, cnr_error *err);
/* How sure the loader or importer is that knows a file best; 0: none does. */
int32_t cnri_load_score(const char *path);
/* Loads a graph without making a model (show, convert, check). */
cnr_status cnri_load_graph(cnr_runtime *rt, const char *path, const cnr_load_options *options,
                           cnr_graph **out, cnr_error *err);

/* ---- import.c: what plugins' importers make of files ---- */
typedef struct cnri_head {
    uint8_t at[4096];
    size_t n;
} cnri_head;
/* The first bytes of a file; none of a folder. */
cnr_status cnri_file_head(const char *path, cnri_head *out, cnr_error *err);
/* The importer that is surest of a file, if it is surer than *score, which becomes its own. */
const cnr_importer *cnri_importer_for(const char *path, const cnri_head *head, int32_t *score);
/* The rows of what it takes, NULL-terminated; NULL: it does not say. */
const char *const *cnri_importer_options(const cnr_importer *importer);
/* "name", or "name=value" */
bool cnri_importer_takes(const cnr_importer *importer, const char *name);
/* A graph, or an error that tells all problems. Options that the importer does not have are
 * refused. */
cnr_status cnri_import(const cnr_importer *importer, const cnr_import_args *args, cnr_graph **out,
                       cnr_error *err);
bool cnri_is_native(const char *path);                  /* by its name */
int32_t cnri_count_options(const char *const *options); /* up to a NULL */
/* The files of a word: "net.prototxt,a.bin" is two, unless one is called so. To be freed after an
 * error, too. */
typedef CNRI_VEC(char *) cnri_paths;
cnr_status cnri_paths_add(cnri_paths *paths, const char *word,
                          cnr_error *err); /* behind the others */
void cnri_paths_free(cnri_paths *paths);
/* Whether a file holds weights, or a net with them: it is native, or an importer knows it. */
bool cnri_weights_claimed(const char *path);
/* Weights as users name them: NULL, "none", "random", "random:SEED", or files with commas between.
 * `options` are for its importer; without one they are refused. */
bool cnri_weights_are_file(const char *weights);
cnr_status cnri_weights_fill(cnr_graph *net, const char *weights, const char *const *options,
                             cnr_error *err);
/* Files of any format, by name: native ones, or what an importer makes of others. */
cnr_status cnri_weights_import(cnr_graph *net, const cnr_import_args *files, cnr_error *err);

/* ---- change.c: models that change ---- */
/* Closes the model's own session and outdates its plans. CNR_E_STATE: somebody has one. */
cnr_status cnri_model_idle(cnr_model *model, cnr_error *err);
/* What it keeps of its weights for gradients goes. */
void cnri_model_drop_gradients(cnr_model *model);
/* A model of this graph, which is taken over, with the options and masks of another. */
cnr_status cnri_model_like(const cnr_model *like, cnr_graph *graph, cnr_model **out,
                           cnr_error *err);

/* cnri_input_sizes with the symbols that the model was given. */
void cnri_model_sizes(const cnr_model *m, int32_t index, cnri_sizes from, cnr_tensor *out);
/* Of every input, before any picture is there: preprocessing is the net's own, pictures are of 224
 * x 224 where nothing says better. `shapes` and `list`, which points at them, have space for all.
 */
cnr_status cnri_model_default_sizes(const cnr_model *m, int64_t batch, cnr_tensor *shapes,
                                    const cnr_tensor **list, cnr_error *err);
/* cnri_model_default_sizes with memory of its own: cnri_shapes_free, after an error too. */
typedef struct cnri_shapes {
    cnr_tensor *at;
    const cnr_tensor **list;
    int32_t n;
} cnri_shapes;
cnr_status cnri_input_shapes(const cnr_model *model, int64_t batch, cnri_shapes *out,
                             cnr_error *err);
void cnri_shapes_free(cnri_shapes *s);
/* Values of a sane size, the same every time; 0 in what isn't f32. */
void cnri_fill_made_up(cnr_tensor *t);

#endif
