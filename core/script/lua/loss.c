/* A script's own loss and optimiser: functions that are called while the training graph is
 * built, and that return values made of operators. Gradients of a loss follow from its
 * operators. An optimiser is called for each weight, and returns the new weight and its memory;
 * clipping, summed gradients and averages are in lib/optimiser.lua. */
#include "lua/files.h"
#include "lua/layer.h"
#include "lua/model.h"
#include <string.h>
#include <unistd.h>

typedef struct loss_request {
    cnr_graph *g;
    const cnri_loss_inputs *in;
    cnr_value *loss;
} loss_request;

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

static int wrong_answer(lua_State *L, int function, int answer, const char *want) {
    lua_Debug about;
    const char *got = luaL_typename(L, answer);
    lua_pushvalue(L, function);
    lua_getinfo(L, ">S", &about);
    return luaL_error(L, "%s:%d: the function returned a %s value, want %s", about.short_src,
                      about.linedefined, got, want);
}

/* Builds the nodes of a loss. Arguments: the function and a request. */
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

/* Id of a function of the state, which is unique as long as the function exists. */
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

static void set_given(lua_State *L, const char *key, double value) {
    if (value > 0) cnri_lua_set_number(L, key, value);
}

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

static void push_wrap(lua_State *L) {
    char *path = cnri_lua_shipped("lib/optimiser.lua");
    if (!path) luaL_error(L, "lib/optimiser.lua is not among the installed scripts");
    char name[1024];
    snprintf(name, sizeof name, "%s", path);
    cnri_free(path);
    cnri_lua_load_file(L, name, name);
    lua_call(L, 0, 1);
}

/* Builds the nodes of an optimiser. Arguments: the function and a request. */
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

/* A file that returns a loss or an optimiser, in a state of its own. It is given by path, or by
 * the name of a shipped one. */
typedef struct part_file {
    cnri_script script;
    char *path;
    const char *takes; /* parameters of the function, for messages */
    int function;      /* stack index in the script's state */
} part_file;

static int run_file(lua_State *L) {
    const part_file *f = lua_touserdata(L, 1);
    cnri_lua_load_file(L, f->path, f->path);
    lua_call(L, 0, 1);
    if (!lua_isfunction(L, -1))
        luaL_error(L, "%s:1: it returns a %s value, want function(%s)", f->path,
                   luaL_typename(L, -1), f->takes);
    luaL_checkstack(L, 8, NULL);
    return 1;
}

static void close_file(part_file *f) {
    if (f->script.L) cnri_script_close(&f->script);
    cnri_free(f->path);
    cnri_free(f);
}

/* Path of an installed script: "focal" is losses/focal.lua. */
static char *path_of(const char *folder, const char *name) {
    if (strchr(name, '/') || strchr(name, '.'))
        return access(name, F_OK) == 0 ? cnri_strdup(name) : NULL;
    char *file = cnri_format("%s/%s.lua", folder, name),
         *path = file ? cnri_lua_shipped(file) : NULL;
    cnri_free(file);
    return path;
}

static cnr_status open_file(const char *folder, const char *name, const char *takes,
                            part_file **out, cnr_error *err) {
    part_file *f = cnri_alloc_zero(sizeof *f);
    *out = f;
    if (!f) return cnri_out_of_memory(err, name);
    f->takes = takes;
    f->path = path_of(folder, name);
    cnr_status status = f->path ? CNR_OK : cnri_fail(err, CNR_E_NOT_FOUND, name, "no such file");
    if (!status) status = cnri_script_open(&f->script, NULL, f->path, false, err);
    if (!status) status = cnri_script_guard(&f->script, run_file, f, 1, err);
    if (!status) f->function = lua_gettop(f->script.L);
    else close_file(f);
    return status;
}

typedef struct loss_file {
    cnri_lua_loss loss;
    part_file *file;
} loss_file;

cnr_status cnri_lua_loss_open(const char *name, cnri_own_loss *out, cnr_error *err) {
    loss_file *f = cnri_alloc_zero(sizeof *f);
    *out = (cnri_own_loss){0};
    if (!f) return cnri_out_of_memory(err, name);
    const cnr_status status = open_file("losses", name, "scores, labels, net", &f->file, err);
    if (status) {
        cnri_free(f);
        return status;
    }
    f->loss = (cnri_lua_loss){.L = f->file->script.L, .function = f->file->function};
    *out = (cnri_own_loss){build_loss, &f->loss, 0};
    return CNR_OK;
}

void cnri_lua_loss_close(cnri_own_loss *loss) {
    loss_file *f = (loss_file *)(void *)((char *)loss->arg - offsetof(loss_file, loss));
    close_file(f->file);
    cnri_free(f);
}

typedef struct optimizer_file {
    cnri_lua_optimizer optimizer;
    part_file *file;
} optimizer_file;

cnr_status cnri_lua_optimizer_open(const char *name, cnri_own_optimizer *out, cnr_error *err) {
    optimizer_file *f = cnri_alloc_zero(sizeof *f);
    *out = (cnri_own_optimizer){0};
    if (!f) return cnri_out_of_memory(err, name);
    const cnr_status status =
        open_file("optimisers", name, "weight, gradient, state, how", &f->file, err);
    if (status) {
        cnri_free(f);
        return status;
    }
    f->optimizer = (cnri_lua_optimizer){.L = f->file->script.L, .function = f->file->function};
    *out = (cnri_own_optimizer){build_optimizer, &f->optimizer};
    return CNR_OK;
}

void cnri_lua_optimizer_close(cnri_own_optimizer *optimizer) {
    optimizer_file *f =
        (optimizer_file *)(void *)((char *)optimizer->arg - offsetof(optimizer_file, optimizer));
    close_file(f->file);
    cnri_free(f);
}
