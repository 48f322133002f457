/* A script's own loss, optimiser and metrics. The first two are functions that are called while the
 * training graph is built, and return values made of operators. Gradients of a loss follow from its
 * operators. An optimiser is called for each weight, and returns the new one and what it remembers;
 * what goes on around it (clipping, sums of gradients, averages) is lib/optimiser.lua. */
#include "lua/files.h"
#include "lua/layer.h"
#include "lua/model.h"
#include "lua/tensor.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a script's loss is built from: the graph, inputs, and where the loss goes. */
typedef struct loss_request {
    cnr_graph *g;
    const cnri_loss_inputs *in;
    cnr_value *loss;
} loss_request;

/* Number of mistakes that the script made so far. */
static lua_Integer count_mistakes(lua_State *L) {
    cnri_lua_push_mistakes(L);
    const lua_Integer n = (lua_Integer)lua_rawlen(L, -1);
    lua_pop(L, 1);
    return n;
}

/* Raises the first mistake behind the `n` entries of the list, and removes the new ones. */
static void raise_mistake(lua_State *L, lua_Integer n) {
    cnri_lua_push_mistakes(L);
    const int list = lua_gettop(L);
    const lua_Integer now = (lua_Integer)lua_rawlen(L, list);
    if (now == n) {
        lua_pop(L, 1);
        return;
    }
    lua_rawgeti(L, list, n + 1);
    lua_rawgeti(L, list, n + 2);
    for (lua_Integer i = now; i > n; i--) {
        lua_pushnil(L);
        lua_rawseti(L, list, i);
    }
    luaL_error(L, "%s: %s", lua_tostring(L, -2), lua_tostring(L, -1));
}

/* Raises an error that names the function's place: it returned something else than `want`. */
static int wrong_answer(lua_State *L, int function, int answer, const char *want) {
    lua_Debug about;
    const char *got = luaL_typename(L, answer);
    lua_pushvalue(L, function);
    lua_getinfo(L, ">S", &about);
    return luaL_error(L, "%s:%d: the function returned a %s value, want %s", about.short_src,
                      about.linedefined, got, want);
}

/* Lua function: calls the script's function (1) and builds the nodes of its answer into the graph
 * of the request (2). */
static int build_loss_nodes(lua_State *L) {
    enum { MADE = 3, ANSWER = 4, LIST = 5 };
    const loss_request *r = lua_touserdata(L, 2);
    const int32_t first = cnri_script_of(L)->n_nodes + 1;
    const lua_Integer mistakes = count_mistakes(L);
    lua_newtable(L);
    lua_pushvalue(L, 1);
    cnri_lua_push_given(L, MADE, r->in->scores);
    cnri_lua_push_given(L, MADE, r->in->labels);
    lua_createtable(L, 0, 4);
    cnri_lua_push_given(L, MADE, r->in->logits);
    lua_setfield(L, -2, "logits");
    cnri_lua_push_given(L, MADE, r->g->inputs.at[0]);
    lua_setfield(L, -2, "pictures");
    cnri_lua_set_whole(L, "batch", r->in->batch);
    cnri_lua_set_whole(L, "classes", r->in->classes);
    lua_call(L, 3, 1);
    raise_mistake(L, mistakes);
    if (!luaL_testudata(L, ANSWER, CNRI_VALUE_TYPE))
        return wrong_answer(L, 1, ANSWER, "one value of layers");
    lua_createtable(L, 1, 0);
    lua_pushvalue(L, ANSWER);
    lua_rawseti(L, LIST, 1);
    cnri_lua_compile_values(L, LIST, MADE, r->g, first);
    *r->loss = cnri_lua_made(L, MADE, ANSWER);
    return 0;
}

/* Implements cnri_own_loss.build: adds the loss that the script's function returns to g. CNR_E_ARG
 * with the script's error. */
static cnr_status build_loss(void *arg, cnr_graph *g, const cnri_loss_inputs *in, cnr_value *loss,
                             cnr_error *err) {
    const cnri_lua_loss *l = arg;
    lua_State *L = l->L;
    loss_request r = {g, in, loss};
    lua_pushcfunction(L, build_loss_nodes); /* the caller has made space for these three */
    lua_pushvalue(L, l->function);
    lua_pushlightuserdata(L, &r);
    if (lua_pcall(L, 2, 0, 0) == LUA_OK) return CNR_OK;
    const char *text = lua_tostring(L, -1);
    cnri_fail(err, CNR_E_ARG, "loss", "%s", text ? text : "an error that is no text");
    lua_pop(L, 1);
    return CNR_E_ARG;
}

/* Returns an id of a function of the state, which is unique as long as the function exists; the
 * same function has the same id. */
static int64_t id_of(lua_State *L, int function) {
    static char key;
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &key) != LUA_TTABLE) {
        lua_newtable(L);
        lua_createtable(L, 0, 1);
        lua_pushliteral(L, "k");
        lua_setfield(L, -2, "__mode");
        lua_setmetatable(L, -2);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &key);
    }
    const int ids = lua_gettop(L);
    lua_pushvalue(L, function);
    if (lua_rawget(L, ids) == LUA_TNIL) {
        lua_rawgeti(L, ids, 1); /* the last number that was given */
        lua_pushinteger(L, lua_tointeger(L, -1) + 1);
        lua_pushvalue(L, -1);
        lua_rawseti(L, ids, 1);
        lua_pushvalue(L, function);
        lua_pushvalue(L, -2);
        lua_rawset(L, ids);
    }
    const int64_t id = lua_tointeger(L, -1);
    lua_settop(L, ids - 1);
    return id;
}

void cnri_lua_take_loss(lua_State *L, int options, const char **name, cnri_lua_loss *loss) {
    *loss = (cnri_lua_loss){.L = L};
    if (!lua_istable(L, options)) return;
    const int type = cnri_lua_get(L, options, "loss");
    if (type == LUA_TSTRING) {
        size_t n;
        *name = lua_tolstring(L, -1, &n);
        if (strlen(*name) != n) luaL_error(L, "loss: a text with a zero byte in it");
        if (strpbrk(*name, "/.")) cnri_lua_check_file(L, *name, false);
    } else if (type == LUA_TFUNCTION) {
        loss->function = lua_gettop(L);
        loss->own = (cnri_own_loss){build_loss, loss, id_of(L, loss->function)};
        luaL_checkstack(L, 8, NULL);
    } else if (type != LUA_TNIL) {
        luaL_error(L, "loss: want an operator's name or a function, got a %s value",
                   luaL_typename(L, -1));
    }
}

/* ---- an optimiser ---- */

/* Stack indices while nodes are built. */
enum { FUNCTION = 1, REQUEST = 2, MADE = 3, BOX = 4, WRAP = 5 };

/* What a script's optimiser is built from: trainer, graph, gradients, rate and step. */
typedef struct request {
    cnri_trainer *t;
    cnr_graph *g;
    const cnri_backward *b;
    cnr_value rate, step;
} request;

/* Empties the box of the request: a script may keep `state`, and with it make_memory, longer
 * than the request exists. */
static int forget_request(lua_State *L) {
    *(const request **)lua_touserdata(L, 1) = NULL;
    return 0;
}

/* Pushes a box with the request; it is emptied when the function that called this returns. */
static void push_box(lua_State *L, const request *r) {
    const request **box = lua_newuserdatauv(L, sizeof *box, 0);
    *box = r;
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, forget_request);
    lua_setfield(L, -2, "__close");
    lua_setmetatable(L, -2);
    lua_toclose(L, -1);
}

/* memory(i, name) returns a value that stands for a memory of weight i. Upvalues: the box of the
 * request, and the table of values. */
static int make_memory(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    const request *r = *(const request **)lua_touserdata(L, lua_upvalueindex(1));
    if (!r) return luaL_error(L, "a state is read when the optimiser is built already");
    const lua_Integer i = luaL_checkinteger(L, 1);
    const char *name = luaL_checkstring(L, 2);
    cnr_value v = -1;
    luaL_argcheck(L, i >= 1 && i <= r->b->weights.n, 1, "no such weight");
    if (cnri_train_memory(r->t, r->g, &r->b->weights.at[i - 1], name, &v, &err))
        return cnri_script_raise(L, &err);
    cnri_lua_push_given(L, lua_upvalueindex(2), v);
    return 1;
}

/* Pushes { name, weight, gradient, decays } for each weight. */
static void push_weights(lua_State *L, const request *r) {
    lua_createtable(L, r->b->weights.n, 0);
    for (int32_t i = 0; i < r->b->weights.n; i++) {
        const cnri_gradient *at = &r->b->weights.at[i];
        const cnri_trained *w = &r->t->weights.at[at->index];
        lua_createtable(L, 0, 5);
        cnri_lua_set_text(L, "name", w->name);
        lua_pushboolean(L, w->mask != NULL);
        lua_setfield(L, -2, "masked");
        cnri_lua_push_given(L, MADE, at->weight);
        lua_setfield(L, -2, "weight");
        cnri_lua_push_given(L, MADE, at->gradient);
        lua_setfield(L, -2, "gradient");
        lua_pushboolean(L, w->decays);
        lua_setfield(L, -2, "decays");
        lua_rawseti(L, -2, i + 1);
    }
}

/* Sets a number field, unless it is 0 or less. */
static void set_given(lua_State *L, const char *key, double value) {
    if (value > 0) cnri_lua_set_number(L, key, value);
}

/* Pushes the settings of the training as a table. */
static void push_settings(lua_State *L, const request *r) {
    const cnri_train_options *o = &r->t->options;
    lua_Debug about;
    lua_createtable(L, 0, 16);
    lua_pushvalue(L, FUNCTION);
    lua_setfield(L, -2, "optimizer");
    lua_pushvalue(L, FUNCTION);
    lua_getinfo(L, ">S", &about);
    lua_pushfstring(L, "%s:%d", about.short_src, about.linedefined);
    lua_setfield(L, -2, "written_at");
    cnri_lua_push_given(L, MADE, r->rate);
    lua_setfield(L, -2, "rate");
    cnri_lua_push_given(L, MADE, r->step);
    lua_setfield(L, -2, "step");
    lua_pushvalue(L, BOX);
    lua_pushvalue(L, MADE);
    lua_pushcclosure(L, make_memory, 2);
    lua_setfield(L, -2, "memory");
    if (o->momentum >= 0) cnri_lua_set_number(L, "momentum", o->momentum);
    if (o->decay >= 0) cnri_lua_set_number(L, "weight_decay", o->decay);
    if (o->nesterov > 0) lua_pushboolean(L, 1);
    else lua_pushnil(L);
    lua_setfield(L, -2, "nesterov");
    set_given(L, "beta1", o->beta1);
    set_given(L, "beta2", o->beta2);
    set_given(L, "epsilon", o->epsilon);
    set_given(L, "clip_norm", o->clip);
    set_given(L, "average", o->average);
    if (o->accumulate > 1) cnri_lua_set_whole(L, "accumulate", o->accumulate);
    cnri_lua_set_text(L, "layer_rates", o->layer_rates);
}

/* Pushes the function of lib/optimiser.lua, which builds the nodes. */
static void push_wrap(lua_State *L) {
    char *path = cnri_lua_shipped("lib/optimiser.lua");
    if (!path) luaL_error(L, "lib/optimiser.lua is not among the installed scripts");
    char name[1024];
    snprintf(name, sizeof name, "%s", path);
    cnri_free(path);
    cnri_lua_load_file(L, name, name);
    lua_call(L, 0, 1);
}

/* Lua function: calls the script's optimiser (1) and builds the nodes that it returns into the
 * graph of the request (2). */
static int build_nodes(lua_State *L) {
    const request *r = lua_touserdata(L, REQUEST);
    const int32_t first = cnri_script_of(L)->n_nodes + 1;
    const lua_Integer mistakes = count_mistakes(L);
    lua_newtable(L);
    push_box(L, r);
    push_wrap(L);
    push_weights(L, r);
    push_settings(L, r);
    lua_call(L, 2, 1); /* the list of all that is assigned */
    raise_mistake(L, mistakes);
    cnri_lua_compile_values(L, WRAP, MADE, r->g, first);
    return 0;
}

/* Implements cnri_own_optimizer.build: adds the optimiser that the script's function returns to g.
 * CNR_E_ARG with the script's error. */
static cnr_status build_optimizer(void *arg, cnri_trainer *t, cnr_graph *g, const cnri_backward *b,
                                  cnr_value rate, cnr_value step, cnr_error *err) {
    const cnri_lua_optimizer *o = arg;
    lua_State *L = o->L;
    request r = {t, g, b, rate, step};
    lua_pushcfunction(L, build_nodes); /* the caller has made space for these three */
    lua_pushvalue(L, o->function);
    lua_pushlightuserdata(L, &r);
    if (lua_pcall(L, 2, 0, 0) == LUA_OK) return CNR_OK;
    const char *text = lua_tostring(L, -1);
    cnri_fail(err, CNR_E_ARG, "optimizer", "%s", text ? text : "an error that is no text");
    lua_pop(L, 1);
    return CNR_E_ARG;
}

void cnri_lua_take_optimizer(lua_State *L, int options, const char **name,
                             cnri_lua_optimizer *optimizer) {
    *optimizer = (cnri_lua_optimizer){.L = L};
    const int type = cnri_lua_get(L, options, "optimizer");
    if (type == LUA_TSTRING) {
        size_t n;
        *name = lua_tolstring(L, -1, &n);
        if (strlen(*name) != n) luaL_error(L, "optimizer: a text with a zero byte in it");
        if (strpbrk(*name, "/.")) cnri_lua_check_file(L, *name, false);
    } else if (type == LUA_TFUNCTION) {
        optimizer->function = lua_gettop(L);
        optimizer->own = (cnri_own_optimizer){build_optimizer, optimizer};
        luaL_checkstack(L, 8, NULL);
    } else if (type != LUA_TNIL) {
        luaL_error(L, "optimizer: want a name or a function, got a %s value", luaL_typename(L, -1));
    }
}

/* ---- a loss or an optimiser in a file, which has a state of its own ---- */

/* Lua function: runs a file, which must return a function (or a table of them) */
static int run_file(lua_State *L) {
    const cnri_lua_file_part *f = lua_touserdata(L, 1);
    cnri_lua_load_file(L, f->path, f->path);
    lua_call(L, 0, 1);
    if (!lua_isfunction(L, -1) && !(f->or_table && lua_istable(L, -1)))
        luaL_error(L, "%s:1: it returns a %s value, want function(%s)%s", f->path,
                   luaL_typename(L, -1), f->takes, f->or_table ? " or a table of such" : "");
    luaL_checkstack(L, 8, NULL);
    return 1;
}

/* Closes the script of the file and frees f. */
void cnri_lua_file_part_close(cnri_lua_file_part *f) {
    if (f->script.L) cnri_script_close(&f->script);
    cnri_free(f->path);
    cnri_free(f);
}

/* Path for cnri_free: NAME itself if it has '/' or '.', else the installed FOLDER/NAME.lua; NULL:
 * there is none. */
static char *path_of(const char *folder, const char *name) {
    if (strchr(name, '/') || strchr(name, '.'))
        return access(name, F_OK) == 0 ? cnri_strdup(name) : NULL;
    char *file = cnri_format("%s/%s.lua", folder, name),
         *path = file ? cnri_lua_shipped(file) : NULL;
    cnri_free(file);
    return path;
}

cnr_status cnri_lua_file_part_open(const char *folder, const char *name, const char *takes,
                                   bool or_table, cnri_lua_file_part **out, cnr_error *err) {
    cnri_lua_file_part *f = cnri_alloc_zero(sizeof *f);
    *out = f;
    if (!f) return cnri_out_of_memory(err, name);
    f->takes = takes;
    f->or_table = or_table;
    f->path = path_of(folder, name);
    cnr_status status = f->path ? CNR_OK : cnri_fail(err, CNR_E_NOT_FOUND, name, "no such file");
    if (!status) status = cnri_script_open(&f->script, NULL, f->path, false, err);
    if (!status) status = cnri_script_guard(&f->script, run_file, f, 1, err);
    if (!status) f->function = lua_gettop(f->script.L);
    else cnri_lua_file_part_close(f);
    return status;
}

/* A loss from a file, with the script that keeps it alive. */
typedef struct loss_file {
    cnri_lua_loss loss;
    cnri_lua_file_part *file;
} loss_file;

cnr_status cnri_lua_loss_open(const char *name, cnri_own_loss *out, cnr_error *err) {
    loss_file *f = cnri_alloc_zero(sizeof *f);
    *out = (cnri_own_loss){0};
    if (!f) return cnri_out_of_memory(err, name);
    const cnr_status status =
        cnri_lua_file_part_open("losses", name, "scores, labels, net", false, &f->file, err);
    if (status) {
        cnri_free(f);
        return status;
    }
    f->loss = (cnri_lua_loss){.L = f->file->script.L, .function = f->file->function};
    *out = (cnri_own_loss){build_loss, &f->loss, 0};
    return CNR_OK;
}

/* Closes the script of the loss and frees it. */
void cnri_lua_loss_close(cnri_own_loss *loss) {
    loss_file *f = (loss_file *)(void *)((char *)loss->arg - offsetof(loss_file, loss));
    cnri_lua_file_part_close(f->file);
    cnri_free(f);
}

/* An optimiser from a file, with the script that keeps it alive. */
typedef struct optimizer_file {
    cnri_lua_optimizer optimizer;
    cnri_lua_file_part *file;
} optimizer_file;

cnr_status cnri_lua_optimizer_open(const char *name, cnri_own_optimizer *out, cnr_error *err) {
    optimizer_file *f = cnri_alloc_zero(sizeof *f);
    *out = (cnri_own_optimizer){0};
    if (!f) return cnri_out_of_memory(err, name);
    const cnr_status status =
        cnri_lua_file_part_open("optimisers", name, "weight, gradient, state, how", false, &f->file,
                                err);
    if (status) {
        cnri_free(f);
        return status;
    }
    f->optimizer = (cnri_lua_optimizer){.L = f->file->script.L, .function = f->file->function};
    *out = (cnri_own_optimizer){build_optimizer, &f->optimizer};
    return CNR_OK;
}

/* Closes the script of the optimiser and frees it. */
void cnri_lua_optimizer_close(cnri_own_optimizer *optimizer) {
    optimizer_file *f =
        (optimizer_file *)(void *)((char *)optimizer->arg - offsetof(optimizer_file, optimizer));
    cnri_lua_file_part_close(f->file);
    cnri_free(f);
}

/* ---- metrics: numbers of all scores that were judged, and of their labels ---- */

enum { SCORES = 2, LABELS = 3 }; /* behind FUNCTION */

/* Lua function: calls a metric with copies of scores and labels (light userdata), and pushes its
 * number; raises an error for other answers. */
static int call_metric(lua_State *L) {
    lua_Debug about;
    const cnr_tensor *scores = lua_touserdata(L, SCORES);
    const int32_t *labels = lua_touserdata(L, LABELS);
    const int64_t n = scores->dim[0];
    lua_pushvalue(L, FUNCTION);
    cnri_lua_push_copy(L, scores);
    lua_createtable(L, (int)n, 0);
    for (int64_t i = 0; i < n; i++) {
        lua_pushinteger(L, labels[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_call(L, 2, 1);
    if (lua_type(L, -1) == LUA_TNUMBER) return 1;
    lua_pushvalue(L, FUNCTION);
    lua_getinfo(L, ">S", &about);
    return luaL_error(L, "%s:%d: the metric gave a %s value, want a number", about.short_src,
                      about.linedefined, luaL_typename(L, -1));
}

/* Implements cnr_metric.compute: *value by the script's function. CNR_E_ARG with the script's
 * error. */
static cnr_status compute_metric(void *arg, const cnr_tensor *scores, const int32_t *labels,
                                 double *value, cnr_error *err) {
    const cnri_lua_metric *m = arg;
    lua_State *L = m->all->L;
    lua_pushcfunction(L, call_metric); /* the caller has made space for these */
    lua_rawgeti(L, m->all->functions, (lua_Integer)(m - m->all->list) + 1);
    lua_pushlightuserdata(L, (void *)(uintptr_t)scores);
    lua_pushlightuserdata(L, (void *)(uintptr_t)labels);
    const bool good = lua_pcall(L, 3, 1, 0) == LUA_OK;
    const char *text = good ? NULL : lua_tostring(L, -1);
    if (good) *value = lua_tonumber(L, -1);
    else cnri_fail(err, CNR_E_ARG, m->name, "%s", text ? text : "an error that is no text");
    lua_pop(L, 1);
    return good ? CNR_OK : CNR_E_ARG;
}

/* The function on top goes to the end of the list. */
static void add_metric(lua_State *L, cnri_lua_metrics *m, const char *name) {
    if (!lua_isfunction(L, -1))
        luaL_error(L, "metric: want a function for \"%s\", got a %s value", name,
                   luaL_typename(L, -1));
    if (m->n == CNR_MAX_METRICS) luaL_error(L, "metric: want at most %d", CNR_MAX_METRICS);
    if (!*name || strlen(name) >= sizeof m->list[0].name || strpbrk(name, ",\"\n"))
        luaL_error(L, "metric: want a name of 1 to 63 characters without commas, got \"%s\"", name);
    cnri_lua_metric *to = &m->list[m->n];
    snprintf(to->name, sizeof to->name, "%s", name);
    to->all = m;
    to->metric = (cnr_metric){.size = sizeof to->metric,
                              .name = to->name,
                              .compute = compute_metric,
                              .arg = to};
    m->at[m->n++] = &to->metric;
    lua_rawseti(L, m->functions, m->n);
}

/* Compares two names, for qsort. */
static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* In the order of their names: tables have none. */
static void add_metrics(lua_State *L, cnri_lua_metrics *m, int table) {
    const char *names[CNR_MAX_METRICS];
    size_t n = 0;
    lua_pushnil(L);
    while (lua_next(L, table)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            luaL_error(L, "metric: want functions by name, got one without");
        if (n == CNR_MAX_METRICS) luaL_error(L, "metric: want at most %d", CNR_MAX_METRICS);
        names[n++] = lua_tostring(L, -2);
        lua_pop(L, 1);
    }
    if (n == 0) luaL_error(L, "metric: the table has no function");
    qsort(names, n, sizeof *names, by_name);
    for (size_t i = 0; i < n; i++) {
        lua_getfield(L, table, names[i]);
        add_metric(L, m, names[i]);
    }
}

/* Functions of the value at `at`, their list behind it. `name` is of one that stands alone. */
static void take_metrics(lua_State *L, int at, const char *name, cnri_lua_metrics *m) {
    lua_createtable(L, 1, 0);
    m->functions = lua_gettop(L);
    if (lua_istable(L, at)) add_metrics(L, m, at);
    else {
        lua_pushvalue(L, at);
        add_metric(L, m, name);
    }
    luaL_checkstack(L, 12, NULL);
}

void cnri_lua_take_metrics(lua_State *L, int options, const char **files, cnri_lua_metrics *m) {
    *m = (cnri_lua_metrics){.L = L};
    const int type = cnri_lua_get(L, options, "metric");
    if (type == LUA_TSTRING) {
        size_t n;
        *files = lua_tolstring(L, -1, &n);
        if (strlen(*files) != n) luaL_error(L, "metric: a text with a zero byte in it");
        for (const char *at = *files; *at; at += strspn(at, ",")) {
            const size_t length = strcspn(at, ",");
            const char *name = lua_pushlstring(L, at, length);
            if (strpbrk(name, "/.")) cnri_lua_check_file(L, name, false);
            lua_pop(L, 1);
            at += length;
        }
    } else if (type == LUA_TFUNCTION || type == LUA_TTABLE)
        take_metrics(L, lua_gettop(L), "metric", m);
    else if (type != LUA_TNIL)
        luaL_error(L, "metric: want a function, a table of such or files' names, got a %s value",
                   luaL_typename(L, -1));
}

void cnri_lua_set_metrics(lua_State *L, const char *key, const cnr_metric_value *values,
                          int64_t n) {
    if (n == 0) return;
    lua_createtable(L, 0, (int)n);
    for (int64_t i = 0; i < n; i++) cnri_lua_set_number(L, values[i].name, values[i].value);
    lua_setfield(L, -2, key);
}

/* ---- metrics in a file ---- */

/* Metrics from a file, with the script that keeps them alive, and the name of a single one. */
typedef struct metric_file {
    cnri_lua_metrics metrics;
    cnri_lua_file_part *part;
    char name[64]; /* of one without a name of its own: the file's */
} metric_file;

/* Lua function: takes the metrics that the file returned, and pushes the list of their
 * functions. */
static int take_file(lua_State *L) {
    metric_file *f = lua_touserdata(L, 1);
    lua_settop(L, 0);
    lua_rawgetp(L, LUA_REGISTRYINDEX, f);
    take_metrics(L, 1, f->name, &f->metrics);
    lua_pushvalue(L, f->metrics.functions);
    return 1;
}

/* Names a single metric after its file, without folder and ending. */
static void name_after(metric_file *f, const char *path) {
    const char *slash = strrchr(path, '/'), *start = slash ? slash + 1 : path;
    snprintf(f->name, sizeof f->name, "%s", start);
    f->name[strcspn(f->name, ".")] = 0;
}

/* Closes the script of the metrics and frees them. */
void cnri_lua_metrics_close(void *file) {
    metric_file *f = file;
    if (f->part) cnri_lua_file_part_close(f->part);
    cnri_free(f);
}

cnr_status cnri_lua_metrics_open(const char *name, cnri_metrics *to, void **file, cnr_error *err) {
    metric_file *f = cnri_alloc_zero(sizeof *f);
    if (!f) return cnri_out_of_memory(err, name);
    cnri_lua_file_part *part = NULL;
    cnr_status status =
        cnri_lua_file_part_open("metrics", name, "scores, labels", true, &part, err);
    if (status == CNR_E_NOT_FOUND)
        cnri_fail(err, status, name,
                  "no such metric, nor among the installed ones of scripts/metrics; want a .lua "
                  "file that returns a function(scores, labels), or a table of such by name");
    if (status) {
        cnri_free(f);
        return status;
    }
    f->part = part;
    lua_State *L = part->script.L;
    f->metrics.L = L;
    name_after(f, name);
    lua_pushvalue(L, part->function);
    lua_rawsetp(L, LUA_REGISTRYINDEX, f);
    status = cnri_script_guard(&part->script, take_file, f, 1, err);
    f->metrics.functions = lua_gettop(L); /* where the list stands now */
    for (int32_t i = 0; i < f->metrics.n && !status; i++)
        status = cnri_metrics_add(to, f->metrics.at[i], err);
    if (status) cnri_lua_metrics_close(f);
    else *file = f;
    return status;
}
