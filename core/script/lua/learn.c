/* Training in scripts: net:train{...}, net:gradients(batch, labels). */
#include "lua/files.h"
#include "lua/model.h"
#include "lua/tensor.h"
#include "work/work.h"
#include <math.h>
#include <string.h>

/* ---- net:train{...} ---- */

typedef struct options {
    cnr_train_options o;
    const char *policy;
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
              options, policy),
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
    CNRI_LOSS_KEY,
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
               "e.top1, e.best, e.seconds; false ends training",
               "fun(e: { epoch: integer, epochs: integer, loss: number, train_top1: number, "
               "top1: number?, best: number?, seconds: number }): boolean?"),
    {0}};

/* Training with callbacks, which are on the script's stack. The first that fails leaves its
 * error on top and ends training. */
typedef struct training {
    lua_State *L;
    int on_epoch, rate; /* stack indices of the callbacks; 0: none */
    bool failed;
} training;

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
    cnri_lua_set_simulated(L);
    lua_call(L, 1, 1);
    return 1;
}

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

static int32_t policy_of(lua_State *L, const char *word) {
    static const char *const policies[] = {"fixed",  "inverse", "step",
                                           "cosine", "poly",    "multistep"};
    for (int32_t i = 0; i < (int32_t)CNRI_COUNT(policies); i++)
        if (strcmp(word, policies[i]) == 0) return i;
    const char *near = cnri_nearest_word(word, policies, CNRI_COUNT(policies));
    return luaL_error(L,
                      "policy: there is no '%s'%s%s%s: fixed, inverse, step, cosine, poly "
                      "or multistep",
                      word, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

/* Stack index of the function in that field; 0: none. */
static int function_at(lua_State *L, const char *key) {
    const int type = cnri_lua_get(L, 2, key);
    if (type == LUA_TNIL) return 0;
    if (type != LUA_TFUNCTION)
        luaL_error(L, "%s: want a function, got a %s value", key, luaL_typename(L, -1));
    return lua_gettop(L);
}

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

static int push_training(lua_State *L, const cnr_train_result *r) {
    static const char *const ends[] = {NULL, "stopped", "diverged"};
    lua_createtable(L, 0, 9);
    cnri_lua_set_whole(L, "epochs", r->epochs);
    cnri_lua_set_whole(L, "best_epoch", r->best_epoch);
    cnri_lua_set_whole(L, "trained", r->trained);
    cnri_lua_set_whole(L, "validated", r->validated);
    cnri_lua_set_whole(L, "tested", r->tested);
    cnri_lua_set_number(L, "best", r->best);
    cnri_lua_set_number(L, "test", r->test);
    cnri_lua_set_number(L, "seconds", r->seconds);
    cnri_lua_set_simulated(L);
    cnri_lua_set_text(L, "ended", ends[r->ended]);
    cnri_lua_set_energy(L, r->energy);
    return 1;
}

static void free_result(void *r) { cnr_train_result_free(r); }

static int train(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    options o = {.o = {.size = sizeof o.o}};
    training t = {.L = L};
    cnri_lua_loss loss;
    cnri_lua_optimizer optimizer;
    cnri_lua_data data;
    cnri_lua_model *net = cnri_lua_net_at(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    cnr_train_options_default(&o.o);
    cnri_lua_take(L, 2, cnri_train_keys, &o);
    cnri_lua_take_data(L, 2, o.o.split, &data);
    if (o.policy) o.o.policy = policy_of(L, o.policy);
    if (o.o.test) cnri_lua_check_spec(L, o.o.test);
    else o.o.test = "";
    if (o.o.checkpoint) cnri_lua_check_file(L, o.o.checkpoint, true);
    if (o.o.curves) cnri_lua_check_file(L, o.o.curves, true);
    o.o.data = data.spec ? data.spec : "data";
    t.on_epoch = function_at(L, "on_epoch");
    read_rate(L, &o, &t);
    cnri_lua_take_loss(L, 2, &o.o.loss, &loss);
    cnri_lua_take_optimizer(L, 2, &o.o.optimizer, &optimizer);
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

/* ---- net:gradients(batch, labels, options) ---- */

const cnri_lua_key cnri_gradient_keys[] = {CNRI_LOSS_KEY,
                                           CNRI_WHOLE("seed: of dropout (0)", cnr_gradient_options,
                                                      seed, 0, 1e15),
                                           {0}};

/* Reads labels from a list or a tensor into memory that the collector frees. */
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

const cnri_lua_row cnri_learn_methods[] = {
    {"train(options: table)", train,
     "{ epochs: integer, best_epoch: integer, best: number?, trained: integer, validated: integer, "
     "test: number?, tested: integer, seconds: number, ended: string?, energy: table? }",
     "trains it from the weights that it has; those of the best epoch are kept", cnri_train_keys},
    {"gradients(batch: cnnrun.Tensor, labels: integer[]|cnnrun.Tensor, options?: table)", gradients,
     "table<string, cnnrun.Tensor>, number, cnnrun.Tensor",
     "of the loss by each weight, the loss and the scores, for loops of one's own that end in "
     "set_weight",
     cnri_gradient_keys},
    {0}};
