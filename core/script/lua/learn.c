/* Training in scripts: net:train{...}, net:gradients(batch, labels). */
#include "lua/files.h"
#include "lua/model.h"
#include "lua/tensor.h"
#include "work/work.h"
#include <math.h>
#include <string.h>

/* ---- net:train{...} ---- */

/* Options of net:train: those of the C API, and the name of the rate's policy. */
typedef struct options {
    cnr_train_options o;
} options;

const cnri_lua_key cnri_train_keys[] = {
    CNRI_OTHER("data: pictures with labels: a spec such as \"mnist:DIR\", or samples",
               "string|cnnrun.Samples"),
    CNRI_TEXT("split: of a spec's data (train)", options, o.split),
    CNRI_WHOLE("limit: the first pictures only (all)", options, o.limit, 1, 1e15),
    CNRI_WHOLE("epochs: rounds over the pictures (6)", options, o.epochs, 1, 1e6),
    CNRI_WHOLE("batch: pictures a step (64)", options, o.batch, 1, 65536),
    CNRI_OTHER("rate: the learning rate (0.02), or a function(step, steps) that gives it, step "
               "from 0",
               "number|fun(step: integer, steps: integer): number"),
    CNRI_TEXT("policy: how the rate falls: fixed, inverse, step, cosine, poly, multistep (cosine)",
              options, o.policy),
    CNRI_REAL("gamma: of inverse (1e-4); what step and multistep multiply by (0.1)", options,
              o.gamma, 0, 1000),
    CNRI_REAL("power: of inverse (0.75) and poly (1)", options, o.power, 0, 1000),
    CNRI_TEXT("rate_epochs: when it falls: each so many (step), or at those (multistep: \"10,15\")",
              options, o.rate_epochs),
    CNRI_OTHER("optimizer: sgd, adam or another operator (the first), a shipped file (adamw, "
               "rmsprop), or a function(weight, gradient, state, how) that makes the new weight of "
               "them by layers, and a table of new states; how.rate, how.step",
               "string|fun(weight: cnnrun.Value, gradient: cnnrun.Value, state: table, how: "
               "table): cnnrun.Value, table?"),
    CNRI_REAL("clip: the norm of all gradients together is at most this (no bound)", options,
              o.clip, 0, 1e30),
    CNRI_WHOLE("accumulate: steps whose gradients make one update (1)", options, o.accumulate, 1,
               1e6),
    CNRI_REAL("average: the part of a running mean of the weights that is kept at each update; the "
              "mean is judged and kept (none)",
              options, o.average, 0, 0.9999999),
    CNRI_TEXT("layer_rates: times the rate of weights by name, \"conv*=0.1,ip1=2\"", options,
              o.layer_rates),
    CNRI_TEXT("freeze: patterns of weights that stay as they are, \"conv*,bn*\"", options,
              o.freeze),
    CNRI_REAL("momentum: of sgd (0.9)", options, o.momentum, 0, 0.9999),
    CNRI_FLAG("nesterov: true: momentum that looks ahead", options, o.nesterov),
    CNRI_REAL("weight_decay: of weights with two or more axes (0.0005)", options, o.decay, 0, 1),
    CNRI_REAL("beta1: of adam (0.9)", options, o.beta1, 1e-9, 0.999999),
    CNRI_REAL("beta2: of adam (0.999)", options, o.beta2, 1e-9, 0.999999),
    CNRI_REAL("epsilon: of adam (1e-8)", options, o.epsilon, 1e-30, 1),
    CNRI_TEXT("keep_zeros: a pattern of weights whose zeros stay, beside those that are masked",
              options, o.keep_zeros),
    CNRI_FLAG("local_statistics: true: of several processes, batch normalisation takes the "
              "statistics of each one's part of the batch",
              options, o.local_statistics),
    CNRI_LOSS_KEY,
    CNRI_METRIC_KEY,
    CNRI_TEXT("best_by: the metric that the best epoch is chosen by, \"f1\" the most, \"-mae\" the "
              "least (accuracy)",
              options, o.best_by),
    CNRI_REAL("validation: the part that epochs are judged by, or a number of pictures; 0: the "
              "last "
              "epoch is kept (0.1)",
              options, o.validation, 0, 1e15),
    CNRI_WHOLE("validation_seed: which pictures those are (1)", options, o.validation_seed, 0,
               1e15),
    CNRI_TEXT("test: a spec that the best epoch is tested on, once", options, o.test),
    CNRI_WHOLE("seed: of order and dropout (1)", options, o.seed, 0, 1e15),
    CNRI_TEXT("checkpoint: a file that training is kept in on its way, and goes on from", options,
              o.checkpoint),
    CNRI_REAL("checkpoint_seconds: between two, beside those behind epochs (30)", options,
              o.checkpoint_seconds, 0, 1e9),
    CNRI_TEXT("curves: a .csv with a row an epoch, which lib.curves draws", options, o.curves),
    CNRI_FLAG("energy: true: tell what all of it takes, as c.energy does", options, o.energy),
    CNRI_OTHER("on_epoch: function(e) behind each epoch: e.epoch, e.epochs, e.loss, e.train_top1, "
               "e.top1, e.best, e.seconds, e.metrics by name; false ends training",
               "fun(e: { epoch: integer, epochs: integer, loss: number, train_top1: number, "
               "top1: number?, best: number?, seconds: number, metrics: table<string, number>? }): "
               "boolean?"),
    {0}};

/* Training with callbacks, which are on the script's stack. The first that fails leaves its
 * error on top and ends training. */
typedef struct training {
    lua_State *L;
    int on_epoch, rate; /* stack indices of the callbacks; 0: none */
    bool failed;
} training;

/* Lua function: pushes the cnr_epoch at 2 as a table for the script's function at 1. */
static int epoch_table(lua_State *L) {
    const cnr_epoch *e = lua_touserdata(L, 2);
    lua_settop(L, 1);
    lua_createtable(L, 0, 7);
    cnri_lua_set_whole(L, "epoch", e->epoch);
    cnri_lua_set_whole(L, "epochs", e->epochs);
    cnri_lua_set_number(L, "loss", e->loss);
    cnri_lua_set_number(L, "train_top1", e->train_top1);
    cnri_lua_set_number(L, "top1", e->top1);
    cnri_lua_set_number(L, "best", e->best);
    cnri_lua_set_number(L, "seconds", e->seconds);
    cnri_lua_set_metrics(L, "metrics", e->metrics, e->n_metrics);
    cnri_lua_set_simulated(L);
    lua_call(L, 1, 1);
    return 1;
}

/* Calls the script's function for each epoch; nonzero: it wants to stop, or failed (t->failed,
 * error on top). */
static int32_t hear(void *arg, int32_t kind, const void *of) {
    training *t = arg;
    lua_State *L = t->L;
    if (kind != CNR_EVENT_EPOCH || !t->on_epoch || t->failed) return t->failed;
    cnri_lua_clear_progress(cnri_script_of(L));
    lua_pushcfunction(L, epoch_table); /* none of these three allocates: space was made before */
    lua_pushvalue(L, t->on_epoch);
    lua_pushlightuserdata(L, (void *)of);
    t->failed = lua_pcall(L, 2, 1, 0) != LUA_OK;
    if (t->failed) return 1;
    const bool stop = lua_isboolean(L, -1) && !lua_toboolean(L, -1);
    lua_pop(L, 1);
    return stop;
}

/* Lua function: asks the script's function for the rate of a step, and pushes it. Raises an error
 * unless it is a number from 0 on. */
static int ask_rate(lua_State *L) {
    lua_Debug about;
    lua_pushvalue(L, 1);
    lua_insert(L, 1);
    lua_call(L, 2, 1);
    const double rate = lua_tonumber(L, -1);
    if (lua_type(L, -1) == LUA_TNUMBER && rate >= 0 && !isinf(rate)) return 1;
    const char *got = luaL_tolstring(L, -1, NULL);
    lua_pushvalue(L, 1);
    lua_getinfo(L, ">S", &about);
    return luaL_error(L, "%s:%d: rate: the function gave %s, want a number of 0 or more",
                      about.short_src, about.linedefined, got);
}

/* Learning rate of a step by the script's function; NaN: it failed, with the error on the stack. */
static double schedule(void *arg, int64_t step, int64_t steps) {
    training *t = arg;
    lua_State *L = t->L;
    if (t->failed) return NAN;
    lua_pushcfunction(L, ask_rate);
    lua_pushvalue(L, t->rate);
    lua_pushinteger(L, step);
    lua_pushinteger(L, steps);
    t->failed = lua_pcall(L, 3, 1, 0) != LUA_OK;
    if (t->failed) return NAN;
    const double rate = lua_tonumber(L, -1);
    lua_pop(L, 1);
    return rate;
}

/* Stack index of the function in that field; 0: none. */
static int function_at(lua_State *L, const char *key) {
    const int type = cnri_lua_get(L, 2, key);
    if (type == LUA_TNIL) return 0;
    if (type != LUA_TFUNCTION)
        luaL_error(L, "%s: want a function, got a %s value", key, luaL_typename(L, -1));
    return lua_gettop(L);
}

/* Reads the rate: a number or a function. */
static void read_rate(lua_State *L, options *o, training *t) {
    const int type = cnri_lua_get(L, 2, "rate");
    if (type == LUA_TFUNCTION) {
        t->rate = lua_gettop(L);
        o->o.schedule = schedule;
        o->o.schedule_arg = t;
    } else if (type == LUA_TNUMBER && lua_tonumber(L, -1) >= 0 && lua_tonumber(L, -1) <= 1000) {
        o->o.rate = lua_tonumber(L, -1);
    } else if (type != LUA_TNIL) {
        luaL_error(L, "rate: want a number from 0 to 1000, or a function, got %s",
                   luaL_tolstring(L, -1, NULL));
    }
}

/* Pushes the result of a training as a table; returns 1. */
static int push_training(lua_State *L, const cnr_train_result *r) {
    static const char *const ends[] = {NULL, "stopped", "diverged"};
    lua_createtable(L, 0, 13);
    cnri_lua_set_whole(L, "epochs", r->epochs);
    cnri_lua_set_whole(L, "best_epoch", r->best_epoch);
    cnri_lua_set_whole(L, "trained", r->trained);
    cnri_lua_set_whole(L, "validated", r->validated);
    cnri_lua_set_whole(L, "tested", r->tested);
    cnri_lua_set_number(L, "best", r->best);
    cnri_lua_set_number(L, "test", r->test);
    cnri_lua_set_interval(L, "best", r->best, r->validated);
    cnri_lua_set_interval(L, "test", r->test, r->tested);
    cnri_lua_set_number(L, "seconds", r->seconds);
    cnri_lua_set_simulated(L);
    cnri_lua_set_text(L, "ended", ends[r->ended]);
    cnri_lua_set_metrics(L, "metrics", r->metrics, r->n_metrics);
    cnri_lua_set_metrics(L, "test_metrics", r->test_metrics, r->n_metrics);
    cnri_lua_set_energy(L, r->energy);
    return 1;
}

static void free_result(void *r) { cnr_train_result_free(r); }

/* Implements net:train(options): trains the net and pushes a table with the result. Raises errors,
 * those of the script's functions too. */
static int train(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    options o = {.o = {.size = sizeof o.o}};
    training t = {.L = L};
    cnri_lua_loss loss;
    cnri_lua_optimizer optimizer;
    cnri_lua_metrics metrics;
    cnri_lua_data data;
    cnri_lua_model *net = cnri_lua_net_at(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    cnr_train_options_default(&o.o);
    cnri_lua_take(L, 2, cnri_train_keys, &o);
    cnri_lua_take_data(L, 2, o.o.split, &data);
    if (o.o.test) cnri_lua_check_spec(L, o.o.test);
    else o.o.test = "";
    if (o.o.checkpoint) cnri_lua_check_file(L, o.o.checkpoint, true);
    if (o.o.curves) cnri_lua_check_file(L, o.o.curves, true);
    o.o.data = data.spec ? data.spec : "data";
    t.on_epoch = function_at(L, "on_epoch");
    read_rate(L, &o, &t);
    cnri_lua_take_loss(L, 2, &o.o.loss, &loss);
    cnri_lua_take_optimizer(L, 2, &o.o.optimizer, &optimizer);
    cnri_lua_take_metrics(L, 2, &o.o.metric_files, &metrics);
    o.o.metrics = metrics.at;
    o.o.n_metrics = metrics.n;
    cnr_train_result *r = cnri_lua_push_result(L, sizeof *r, free_result);
    r->size = sizeof *r;
    luaL_checkstack(L, 8, NULL);
    cnri_lua_work w = {.arg = &t, .event = hear};
    net->busy = "trained";
    cnri_lua_hold_samples(&data, 1);
    const cnr_status status = cnri_train_model(net->model, data.samples, &loss.own, &optimizer.own,
                                               &o.o, cnri_lua_begin(L, &w), r, &err);
    cnri_lua_hold_samples(&data, -1);
    net->busy = NULL;
    if (!t.failed) cnri_lua_end(L, &w, status, &err);
    if (!t.failed) return push_training(L, r);
    w.failures = cnri_alloc_failures(); /* the callback's error goes before */
    cnri_lua_end(L, &w, CNR_OK, &err);
    return lua_error(L);
}

/* ---- net:trainable() ---- */

/* Implements net:trainable(): pushes a list with the names of the weights that training changes. */
static int trainable(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    const cnri_lua_model *net = cnri_lua_net_at(L, 1);
    const char *name;
    cnri_lua_work w = {0};
    (void)cnri_lua_begin(L, &w);
    cnri_lua_end(L, &w, cnri_train_weights(net->model, &err), &err);
    lua_newtable(L);
    for (int32_t i = 0; (name = cnri_train_weight_name(net->model, i)); i++) {
        lua_pushstring(L, name);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* ---- net:gradients(batch, labels, options) ---- */

const cnri_lua_key cnri_gradient_keys[] = {CNRI_LOSS_KEY,
                                           CNRI_WHOLE("seed: of dropout (0)", cnr_gradient_options,
                                                      seed, 0, 1e15),
                                           {0}};

/* Reads labels from a list or a tensor into memory that the collector frees and the stack holds;
 * *n: how many. */
static int32_t *take_labels(lua_State *L, int at, int64_t *n) {
    const cnr_tensor *t = luaL_testudata(L, at, CNRI_TENSOR_TYPE);
    if (!t) luaL_checktype(L, at, LUA_TTABLE);
    *n = t ? cnr_count(t) : (int64_t)lua_rawlen(L, at);
    int32_t *labels = lua_newuserdatauv(L, ((size_t)*n + 1) * sizeof *labels, 0);
    cnri_script_charge(L, *n);
    for (int64_t i = 0; i < *n; i++) {
        if (t) lua_pushnumber(L, cnri_element(t->dtype, t->data, i));
        else lua_rawgeti(L, at, i + 1);
        const double x = lua_tonumber(L, -1);
        if (lua_type(L, -1) != LUA_TNUMBER || !(x >= 0 && x <= INT32_MAX) || x != floor(x))
            luaL_error(L, "labels[%I]: want a whole number from 0 on, got %s", (LUAI_UACINT)i + 1,
                       luaL_tolstring(L, -1, NULL));
        labels[i] = (int32_t)x;
        lua_pop(L, 1);
    }
    return labels;
}

/* Implements net:gradients(batch, labels, options): pushes a table of gradients by weight, the loss
 * and the scores. */
static int gradients(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_gradient_options o = {.size = sizeof o};
    cnr_gradients g = {.size = sizeof g};
    cnri_lua_loss loss;
    int64_t n;
    const cnri_lua_model *net = cnri_lua_net_at(L, 1);
    const cnr_tensor *batch = cnri_lua_tensor_at(L, 2);
    lua_settop(L, 4);
    cnri_lua_take(L, 4, cnri_gradient_keys, &o);
    cnri_lua_take_loss(L, 4, &o.loss, &loss);
    const int32_t *labels = take_labels(L, 3, &n);
    cnri_lua_work w = {0};
    (void)cnri_lua_begin(L, &w);
    const cnr_status status =
        cnri_gradients_of(net->model, &o, &loss.own, batch, labels, n, &g, &err);
    cnri_lua_end(L, &w, status, &err);
    lua_createtable(L, 0, g.n);
    for (int32_t i = 0; i < g.n; i++) {
        cnri_lua_push_copy(L, g.at[i]);
        lua_setfield(L, -2, g.names[i]);
    }
    lua_pushnumber(L, g.loss);
    cnri_lua_push_copy(L, g.scores);
    return 3;
}

/* ---- c.sweep{...} ---- */

enum { MOST_SWEEP_WORDS = 4096 };

const cnri_lua_key cnri_sweep_keys[] =
    {CNRI_TEXT("study: a file that returns a function(point)", cnr_sweep_options, study),
     CNRI_OTHER("words: what the study gets as point[1], point[2] ...", "string[]"),
     CNRI_OTHER("grid: values by name, { keep = { 0.05, 0.1 }, rate = \"log:1e-3:1e-1:5\" }, or a "
                "list of \"NAME=VALUES\" in the order that pictures follow",
                "table<string, string|any[]>|string[]"),
     CNRI_TEXT("seeds: each point with these: \"1..5\" (1)", cnr_sweep_options, seeds),
     CNRI_TEXT("output: the folder of results", cnr_sweep_options, output),
     CNRI_WHOLE("jobs: processes at a time (1)", cnr_sweep_options, jobs, 1, 256),
     CNRI_WHOLE("random: so many points drawn from the grid, not all of it", cnr_sweep_options,
                random, 1, 1e6),
     CNRI_WHOLE("random_seed: other points (1)", cnr_sweep_options, random_seed, 1, 1e15),
     CNRI_REAL("seconds: begin no more points after so long", cnr_sweep_options, seconds, 1e-3,
               1e9),
     CNRI_REAL("joules: begin no more once results named joules add up to this", cnr_sweep_options,
               joules, 1e-9, 1e15),
     CNRI_TEXT("pictures: png, svg or pdf (png)", cnr_sweep_options, pictures),
     CNRI_FLAG("resume: true: only points without results", cnr_sweep_options, resume),
     {0}};

/* Reads the texts of the list at `at` into *out, memory of the collector's; returns how many. The
 * texts stay in the list. Raises errors, with `key` in the text. */
static int64_t take_texts(lua_State *L, int at, const char *key, const char ***out) {
    const lua_Integer n = (lua_Integer)lua_rawlen(L, at);
    if (n > MOST_SWEEP_WORDS) luaL_error(L, "%s: want at most %d", key, MOST_SWEEP_WORDS);
    *out = lua_newuserdatauv(L, ((size_t)n + 1) * sizeof **out, 0);
    for (lua_Integer i = 1; i <= n; i++) {
        if (lua_rawgeti(L, at, i) != LUA_TSTRING)
            luaL_error(L, "%s[%I]: want a text, got a %s value", key, (LUAI_UACINT)i,
                       luaL_typename(L, -1));
        (*out)[i - 1] = lua_tostring(L, -1);
        lua_pop(L, 1);
    }
    return n;
}

/* "NAME=VALUES" of the key below the value on top, which it replaces. */
static void push_axis(lua_State *L) {
    const int value = lua_gettop(L);
    const char *name = lua_type(L, value - 1) == LUA_TSTRING ? lua_tostring(L, value - 1) : NULL;
    if (!name) luaL_error(L, "grid: want values by name, or a list of texts");
    const bool is_list = lua_istable(L, value);
    const lua_Integer n = is_list ? (lua_Integer)lua_rawlen(L, value) : 1;
    if (n == 0) luaL_error(L, "grid.%s: want a value at least", name);
    if (n > MOST_SWEEP_WORDS) luaL_error(L, "grid.%s: want at most %d", name, MOST_SWEEP_WORDS);
    lua_pushfstring(L, "%s=", name);
    for (lua_Integer i = 1; i <= n; i++) {
        if (is_list) lua_rawgeti(L, value, i);
        else lua_pushvalue(L, value);
        if (!lua_isstring(L, -1))
            luaL_error(L, "grid.%s: want numbers or texts, got a %s value", name,
                       luaL_typename(L, -1));
        if (i > 1) {
            lua_pushliteral(L, ",");
            lua_insert(L, -2);
        }
        lua_concat(L, i > 1 ? 3 : 2);
    }
    lua_replace(L, value);
}

/* Pushes a list of "NAME=VALUES", sorted by name, of a table by name; a list stays as it is.
 * Returns the stack index. */
static int push_grid(lua_State *L, int grid) {
    lua_pushvalue(L, grid);
    if (lua_rawlen(L, grid) > 0) return lua_gettop(L);
    lua_newtable(L);
    const int list = lua_gettop(L);
    lua_pushnil(L);
    while (lua_next(L, grid)) {
        push_axis(L);
        lua_Integer at = (lua_Integer)lua_rawlen(L, list) + 1;
        for (; at > 1; at--) { /* sorted: tables have no order */
            lua_rawgeti(L, list, at - 1);
            const bool before = strcmp(lua_tostring(L, -1), lua_tostring(L, -2)) <= 0;
            if (!before) lua_rawseti(L, list, at);
            else lua_pop(L, 1);
            if (before) break;
        }
        lua_rawseti(L, list, at);
    }
    return list;
}

int cnri_lua_sweep(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_sweep_options o = {.size = sizeof o};
    cnr_sweep_result r = {.size = sizeof r};
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    o.trust = cnri_lua_experiment(L)->trust;
    cnri_lua_take(L, 1, cnri_sweep_keys, &o);
    if (!o.study || !o.output) return luaL_error(L, "study, output: want both");
    cnri_lua_check_file(L, o.study, false);
    cnri_lua_check_file(L, o.output, true);
    if (cnri_lua_get(L, 1, "words") == LUA_TTABLE)
        o.n_words = take_texts(L, lua_gettop(L), "words", (const char ***)(void *)&o.words);
    else if (!lua_isnil(L, -1)) return luaL_error(L, "words: want a list of texts");
    if (cnri_lua_get(L, 1, "grid") == LUA_TTABLE)
        o.n_grid =
            take_texts(L, push_grid(L, lua_gettop(L)), "grid", (const char ***)(void *)&o.grid);
    else if (!lua_isnil(L, -1)) return luaL_error(L, "grid: want a table");
    cnri_lua_work w = {0};
    const cnr_status status = cnr_sweep(&o, cnri_lua_begin(L, &w), &r, &err);
    cnri_lua_end(L, &w, status, &err);
    lua_createtable(L, 0, 5);
    cnri_lua_set_whole(L, "points", r.points);
    cnri_lua_set_whole(L, "done", r.done);
    cnri_lua_set_whole(L, "failed", r.failed);
    cnri_lua_set_whole(L, "left", r.left);
    cnri_lua_set_number(L, "seconds", r.seconds);
    return 1;
}

const cnri_lua_row cnri_learn_methods[] = {
    {"train(options: table)", train,
     "{ epochs: integer, best_epoch: integer, best: number?, trained: integer, validated: integer, "
     "test: number?, tested: integer, best_low: number?, best_high: number?, test_low: number?, "
     "test_high: number?, seconds: number, ended: string?, metrics: table<string, "
     "number>?, test_metrics: table<string, number>?, energy: table? }",
     "trains it from the weights that it has; those of the best epoch are kept", cnri_train_keys},
    {"trainable()", trainable, "string[]",
     "names of the weights that training changes; where a net computes these from constants by "
     "nodes of their own, its layers get weights of their own first",
     NULL},
    {"gradients(batch: cnnrun.Tensor, labels: integer[]|cnnrun.Tensor, options?: table)", gradients,
     "table<string, cnnrun.Tensor>, number, cnnrun.Tensor",
     "of the loss by each weight, the loss and the scores, for loops of one's own that end in "
     "set_weight",
     cnri_gradient_keys},
    {0}};
