/* Inside the room: parts that only experiments use: loaded nets, samples, the clock. */
#ifndef CNRI_LUA_MODEL_H
#define CNRI_LUA_MODEL_H

#include "lua/state.h"
#include "train/train.h"
#include "work/work.h"
#include <pthread.h>

#define CNRI_MODEL_TYPE "cnnrun model"
#define CNRI_SAMPLES_TYPE "cnnrun samples"

/* The script of the state; raises an error unless it is an experiment inside its main, with a
 * runtime. */
cnri_script *cnri_lua_experiment(lua_State *L);
/* Makes the types of nets, samples, feeds and workers known to Lua. */
void cnri_lua_open_models(lua_State *L);
/* Functions of the module; methods of nets. */
extern const cnri_lua_row cnri_model_rows[], cnri_model_methods[];
extern const cnri_lua_row cnri_learn_methods[], cnri_judge_methods[], cnri_change_methods[],
    cnri_place_methods[];
extern const cnri_lua_key cnri_train_keys[];

/* ---- handle.c ---- */
/* A net of a script, which belongs to this script alone. */
typedef struct cnri_lua_model {
    cnr_model *model;        /* NULL: closed */
    bool lent;               /* an application's model, which the application releases */
    const char *busy;        /* why it may only be inspected: "trained"; NULL: it is free */
    struct cnri_feed **feed; /* where the feed that runs it is stored by its owner; NULL: none */
    struct cnri_plan_options *unplaced; /* options from before net:place; NULL: it was not placed */
} cnri_lua_model;
/* The net at `i`, for running and changing; raises an error if it is closed or busy. */
cnri_lua_model *cnri_lua_net_at(lua_State *L, int i);
/* The model of the net at `i`, for inspection; raises an error if it is closed. */
cnr_model *cnri_lua_model_at(lua_State *L, int i);
/* Pushes a closed net, to be filled, and returns it; the collector frees it. Collects garbage
 * first, because nets are larger than Lua knows. */
cnri_lua_model *cnri_lua_push_net(lua_State *L);
/* Closes a net; raises an error while it is trained. */
void cnri_lua_close_net(lua_State *L, cnri_lua_model *net);
/* Frees the options that net:unplace would restore; none: nothing. */
void cnri_lua_forget_place(cnri_lua_model *net);
int cnri_lua_load_net(lua_State *L); /* implements c.load(net, options) */
extern const cnri_lua_key cnri_load_keys[];
/* Pushes the options as a table for c.load. */
void cnri_lua_push_load(lua_State *L, const cnr_load_options *o);
int cnri_lua_release_net(lua_State *L); /* implements __gc and __close: frees the model */

/* ---- loss.c ---- */
/* A loss that a script gives. */
typedef struct cnri_lua_loss {
    lua_State *L;
    int function; /* stack index of the function; 0: none */
    cnri_own_loss own;
} cnri_lua_loss;
/* Reads `loss` of the options: the name of an operator into *name, or a function, which stays on
 * the stack. */
void cnri_lua_take_loss(lua_State *L, int options, const char **name, cnri_lua_loss *loss);
#define CNRI_LOSS_KEY \
    CNRI_OTHER("loss: an operator (the net's own, or the first), or a function(scores, labels, " \
               "net) that " \
               "makes one number of them by layers; net.logits, net.batch, net.classes", \
               "string|fun(scores: cnnrun.Value, labels: cnnrun.Value, net: { logits: " \
               "cnnrun.Value, " \
               "batch: integer, classes: integer }): cnnrun.Value")

/* An optimiser that a script gave as a function. */
typedef struct cnri_lua_optimizer {
    lua_State *L;
    int function; /* stack index of the function; 0: none */
    cnri_own_optimizer own;
} cnri_lua_optimizer;
/* Reads `optimizer` of the options: a name into *name, or a function, which stays on the stack. */
void cnri_lua_take_optimizer(lua_State *L, int options, const char **name,
                             cnri_lua_optimizer *optimizer);

/* A file that returns a function, by a path, or by the name of one in a shipped folder; it has a
 * state of its own. */
typedef struct cnri_lua_file_part {
    cnri_script script;
    char *path;
    const char *takes; /* what the function takes, for messages */
    bool or_table;     /* a table of functions will do */
    int function;      /* where it stands in the script's state */
} cnri_lua_file_part;
/* Runs a file of losses, optimisers or metrics, found by name in `folder` of the scripts. */
cnr_status cnri_lua_file_part_open(const char *folder, const char *name, const char *takes,
                                   bool or_table, cnri_lua_file_part **out, cnr_error *err);
void cnri_lua_file_part_close(cnri_lua_file_part *f); /* closes its script and frees f */

/* ---- loss.c: metrics ---- */
struct cnri_lua_metrics;
/* A metric that a script gave as a function. */
typedef struct cnri_lua_metric {
    cnr_metric metric;
    const struct cnri_lua_metrics *all;
    char name[64];
} cnri_lua_metric;
/* All metrics that a script gave. */
typedef struct cnri_lua_metrics {
    lua_State *L;
    int functions; /* where their list stands; 0: there are none */
    cnri_lua_metric list[CNR_MAX_METRICS];
    const cnr_metric *at[CNR_MAX_METRICS];
    int32_t n;
} cnri_lua_metrics;
/* Reads `metric` of the options and leaves its value on the stack. A text of names and files: sets
 * *files, which else stays as it was, and which lives as long as that value. Functions: sets *m
 * and leaves their list on the stack above (m->functions 0: there are none). Raises an error for
 * anything else, and for a file that the script may not read. */
void cnri_lua_take_metrics(lua_State *L, int options, const char **files, cnri_lua_metrics *m);
/* A table of metrics by name into that field of the table on top. */
void cnri_lua_set_metrics(lua_State *L, const char *key, const cnr_metric_value *values, int64_t n);
#define CNRI_METRIC_KEY \
    CNRI_OTHER("metric: function(scores, labels) that makes a number of all scores that are " \
               "judged ([pictures, classes]) and their classes (from 0), a table of such by " \
               "name, or files: \"f1,mine.lua\"", \
               "string|fun(scores: cnnrun.Tensor, labels: integer[]): number|table<string, fun(" \
               "scores: cnnrun.Tensor, labels: integer[]): number>")

/* ---- learn.c ---- */
int cnri_lua_sweep(lua_State *L); /* implements c.sweep(options) */
extern const cnri_lua_key cnri_sweep_keys[];

/* ---- work.c: long work ---- */
/* Long work that a script started. */
typedef struct cnri_lua_work {
    cnr_observer observer;
    cnri_script *script;
    uint64_t left;
    int64_t failures; /* number of failed allocations before the work */
    int32_t (*event)(void *arg, int32_t kind, const void *of); /* NULL: nobody listens */
    void *arg;
} cnri_lua_work;
/* Begins long work. Nothing may raise an error until cnri_lua_end. The returned observer reports
 * to whoever watches the script, and stops the work when the script is to stop. */
const cnr_observer *cnri_lua_begin(lua_State *L, cnri_lua_work *w);
/* Ends the work: raises its error, or that memory was out; or ends the script if that was
 * requested. */
void cnri_lua_end(lua_State *L, const cnri_lua_work *w, cnr_status status, cnr_error *err);
/* Clears the progress line, because something else is about to be printed. */
void cnri_lua_clear_progress(const cnri_script *s);
/* Pushes and returns zeroed memory for a result; the collector calls `free` on it. */
void *cnri_lua_push_result(lua_State *L, size_t bytes, void (*free)(void *));
/* Makes the type of results known to Lua. */
void cnri_lua_open_work(lua_State *L);
/* Fields of the table on top; what is no number, or NULL, is left out. */
void cnri_lua_set_number(lua_State *L, const char *key, double value);
/* Sets NAME_low and NAME_high: Wilson's 95% interval of a share that was seen among n. */
void cnri_lua_set_interval(lua_State *L, const char *name, double part, int64_t n);
/* Sets a whole-number field of the table on top. */
void cnri_lua_set_whole(lua_State *L, const char *key, int64_t value);
/* Sets a text field of the table on top, unless it is NULL. */
void cnri_lua_set_text(lua_State *L, const char *key, const char *value);
/* Sets `simulated` = true while a plugin's clock is in force. */
void cnri_lua_set_simulated(lua_State *L);
/* Implements c.devices(options): pushes a list of the devices, with properties if measured. */
int cnri_lua_devices(lua_State *L);
/* Implements c.plugins(): pushes a list of the plugins found, refused ones included. */
int cnri_lua_plugins(lua_State *L);

/* ---- prepare.c: net:prepare ---- */
/* Implements net:prepare(pictures, options): pushes the input tensor made of pictures. */
int cnri_lua_prepare(lua_State *L);
extern const cnri_lua_key cnri_prepare_keys[];
/* Pushes which part of a picture an input shows. */
void cnri_lua_push_framing(lua_State *L, const cnri_framing *framing);
/* Called with the steps (which it may take over), the input's type and the first picture, in
 * place of making a batch. */
typedef cnr_status (*cnri_lua_instead)(void *arg, const cnr_model *model, cnri_preprocess *p,
                                       const cnr_tensor *type, const cnr_tensor *picture,
                                       cnr_error *err);
/* Does what net:prepare does, but passes the preprocessing to `instead`. */
int cnri_lua_prepare_with(lua_State *L, cnri_lua_instead instead, void *arg);
/* ---- feed.c, worker.c: stages on threads of their own ---- */
/* Implements c.feed(spec, options): pushes a feed, which reads pictures on threads of its own. */
int cnri_lua_feed(lua_State *L);
/* Implements c.worker(): pushes a worker, a thread that calls objects and writes pictures. */
int cnri_lua_worker(lua_State *L);
/* Makes the type of feeds known to Lua. */
void cnri_lua_open_feeds(lua_State *L);
/* Makes the types of workers and promises known to Lua. */
void cnri_lua_open_workers(lua_State *L);
extern const cnri_lua_row cnri_feed_methods[], cnri_worker_methods[];

/* ---- object.c: c.object(name, options) ---- */
/* Implements c.object(name, options): pushes a new object of a plugin. */
int cnri_lua_object(lua_State *L);
/* An object of a plugin that a script made. */
typedef struct cnri_lua_instance {
    const cnr_object *about;
    void *state;
    bool open;
    pthread_mutex_t lock;      /* held during calls, which workers make on threads of their own */
    const cnri_limits *limits; /* limits of the script that made it; NULL: it is trusted */
} cnri_lua_instance;
/* Calls a method, with the object's limits; any thread may. */
cnr_status cnri_lua_object_call(cnri_lua_instance *o, int32_t method, const cnr_tensor *const *in,
                                int32_t n_in, cnr_tensor *const *out, int32_t n_out,
                                cnr_error *err);
/* The open object at index i of the stack; raises an error otherwise. */
cnri_lua_instance *cnri_lua_object_at(lua_State *L, int i);
/* Number of the method `word`, or an error; and the number of results of a method. */
int32_t cnri_lua_object_method(lua_State *L, const cnri_lua_instance *o, const char *word);
/* Number of results that method number `method` returns. */
int32_t cnri_lua_object_results(const cnri_lua_instance *o, int32_t method);
/* Implements c.writer(spec, options): opens a sequence of pictures for writing and pushes it. */
int cnri_lua_writer(lua_State *L);
extern const cnri_lua_key cnri_samples_keys[], cnri_writer_keys[]; /* samples.c */
/* Reads which samples the table at i chooses: { every =, from =, to = }. */
void cnri_lua_take_choice(lua_State *L, int i, cnr_selection *out);
/* A writer of a script, with the lock that a worker's thread shares. */
typedef struct cnri_lua_writer_box {
    cnr_writer *at;       /* NULL: closed */
    pthread_mutex_t lock; /* held by the thread that writes */
} cnri_lua_writer_box;
/* The open writer at index i of the stack; raises an error otherwise. */
cnri_lua_writer_box *cnri_lua_writer_at(lua_State *L, int i);
/* Implements c.gauges(options): pushes a list of the sensors and clocks of this machine. */
int cnri_lua_gauges(lua_State *L);
/* Implements c.govern(options): governs clocks for a time, scene or recording, and pushes the
 * result. */
int cnri_lua_govern(lua_State *L);
/* Implements c.governing(policy): governs clocks while the script goes on; pushes the object that
 * ends it. */
int cnri_lua_governing(lua_State *L);
/* Makes the type of governings known to Lua. */
void cnri_lua_open_governing(lua_State *L);
extern const cnri_lua_row cnri_governing_methods[];
/* Implements c.dtw(a, b, options): pushes the distance of two series by dynamic time warping. */
int cnri_lua_dtw(lua_State *L);
extern const cnri_lua_key cnri_govern_keys[], cnri_dtw_keys[];
extern const cnri_lua_key cnri_gauge_keys[];
/* energy.c */
int cnri_lua_energy(lua_State *L); /* implements c.energy(work, options) */
extern const cnri_lua_key cnri_energy_keys[];
/* Sets t.energy of the table on top; NULL: nothing. */
void cnri_lua_set_energy(lua_State *L, const cnr_energy *energy);
/* Makes the type of objects known to Lua. */
void cnri_lua_open_objects(lua_State *L);

/* ---- samples.c ---- */
/* A source of samples as an option of a script names it. */
typedef struct cnri_lua_data {
    const char *spec, *split;
    cnri_samples *samples; /* NULL: of the spec */
    struct cnri_lua_source *source;
} cnri_lua_data;
/* `data` of the table at `options`, which stays on the stack. Raises. */
void cnri_lua_take_data(lua_State *L, int options, const char *split, cnri_lua_data *out);
/* Raises unless the script may read what the spec names; unless it is a split, or NULL. */
void cnri_lua_check_spec(lua_State *L, const char *spec);
/* Raises an error unless split is NULL, "train" or "eval". */
void cnri_lua_check_split(lua_State *L, const char *split);
/* the samples at `i`; raises an error if they are closed */
cnri_samples *cnri_lua_samples_at(lua_State *L, int i);
/* Marks the samples as in use (`by` 1), so that they can't be closed, or as free again (-1). */
void cnri_lua_hold_samples(const cnri_lua_data *data, int by);
int cnri_lua_samples(lua_State *L); /* implements c.samples(spec, split) */
int cnri_lua_picture(lua_State *L); /* implements c.picture(path) */
/* Makes the types of samples and writers known to Lua. */
void cnri_lua_open_samples(lua_State *L);
extern const cnri_lua_row cnri_samples_methods[], cnri_writer_methods[];

#endif
