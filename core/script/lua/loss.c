/* A script's own loss: a function that is called once, while the training graph is built, and
 * returns a value made of operators. Their gradients follow from the operators. */
#include "lua/layer.h"
#include "lua/model.h"
#include <string.h>
#include <unistd.h>

typedef struct request {
    cnr_graph *g;
    const cnri_loss_inputs *in;
    cnr_value *loss;
} request;

/* Pushes a value that stands for one of the training graph's. */
static void push_given(lua_State *L) {
    lua_pushcfunction(L, cnri_lua_make_nothing);
    lua_newtable(L);
    lua_pushliteral(L, "loss");
    lua_call(L, 2, 1);
}

/* Raises the first mistake behind the `n` entries of the list, and forgets the new ones. */
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

/* Called with the function and a request. */
static int build_nodes(lua_State *L) {
    const request *r = lua_touserdata(L, 2);
    const cnr_value given[] = {r->in->scores, r->in->labels, r->in->logits};
    const int32_t first = cnri_script_of(L)->n_nodes + 1;
    lua_Debug about;
    cnri_lua_push_mistakes(L);
    const lua_Integer mistakes = (lua_Integer)lua_rawlen(L, -1);
    lua_settop(L, 2);
    lua_pushvalue(L, 1);
    push_given(L);
    push_given(L);
    lua_createtable(L, 0, 3);
    push_given(L);
    lua_setfield(L, -2, "logits");
    cnri_lua_set_whole(L, "batch", r->in->batch);
    cnri_lua_set_whole(L, "classes", r->in->classes);
    lua_call(L, 3, 1);
    raise_mistake(L, mistakes);
    if (!luaL_testudata(L, 3, CNRI_VALUE_TYPE)) {
        const char *got = luaL_typename(L, 3);
        lua_pushvalue(L, 1);
        lua_getinfo(L, ">S", &about);
        return luaL_error(L, "%s:%d: the function returned a %s value, want one value of layers",
                          about.short_src, about.linedefined, got);
    }
    *r->loss = cnri_lua_compile_value(L, 3, r->g, first, given, 3);
    return 0;
}

static cnr_status build(void *arg, cnr_graph *g, const cnri_loss_inputs *in, cnr_value *loss,
                        cnr_error *err) {
    const cnri_lua_loss *l = arg;
    lua_State *L = l->L;
    request r = {g, in, loss};
    lua_pushcfunction(L, build_nodes); /* the caller has made space for these three */
    lua_pushvalue(L, l->function);
    lua_pushlightuserdata(L, &r);
    if (lua_pcall(L, 2, 0, 0) == LUA_OK) return CNR_OK;
    const char *text = lua_tostring(L, -1);
    cnri_fail(err, CNR_E_ARG, "loss", "%s", text ? text : "an error that is no text");
    lua_pop(L, 1);
    return CNR_E_ARG;
}

/* A number of its own for each function of the state; it goes with the function. */
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
    } else if (type == LUA_TFUNCTION) {
        loss->function = lua_gettop(L);
        loss->own = (cnri_own_loss){build, loss, id_of(L, loss->function)};
        luaL_checkstack(L, 8, NULL);
    } else if (type != LUA_TNIL) {
        luaL_error(L, "loss: want an operator's name or a function, got a %s value",
                   luaL_typename(L, -1));
    }
}

/* ---- a loss in a file, which has a state of its own ---- */

typedef struct loss_file {
    cnri_script script;
    cnri_lua_loss loss;
    char *path;
} loss_file;

static int run_file(lua_State *L) {
    const loss_file *f = lua_touserdata(L, 1);
    cnri_lua_load_file(L, f->path, f->path);
    lua_call(L, 0, 1);
    if (!lua_isfunction(L, -1))
        luaL_error(L, "%s:1: it returns a %s value, want function(scores, labels, net)", f->path,
                   luaL_typename(L, -1));
    luaL_checkstack(L, 8, NULL);
    return 1;
}

static void free_file(loss_file *f) {
    if (f->script.L) cnri_script_close(&f->script);
    cnri_free(f->path);
    cnri_free(f);
}

/* "focal" is losses/focal.lua of the installed scripts. */
static char *path_of(const char *name) {
    if (strchr(name, '/') || strchr(name, '.'))
        return access(name, F_OK) == 0 ? cnri_strdup(name) : NULL;
    char *file = cnri_format("losses/%s.lua", name), *path = file ? cnri_lua_shipped(file) : NULL;
    cnri_free(file);
    return path;
}

cnr_status cnri_lua_loss_open(const char *name, cnri_own_loss *out, cnr_error *err) {
    loss_file *f = cnri_alloc_zero(sizeof *f);
    *out = (cnri_own_loss){0};
    if (!f) return cnri_out_of_memory(err, name);
    f->path = path_of(name);
    cnr_status status = f->path ? CNR_OK : cnri_fail(err, CNR_E_NOT_FOUND, name, "no such file");
    if (!status) status = cnri_script_open(&f->script, NULL, f->path, false, err);
    if (!status) status = cnri_script_guard(&f->script, run_file, f, 1, err);
    if (status) {
        free_file(f);
        return status;
    }
    f->loss = (cnri_lua_loss){.L = f->script.L, .function = lua_gettop(f->script.L)};
    *out = (cnri_own_loss){build, &f->loss, 0};
    return CNR_OK;
}

void cnri_lua_loss_close(cnri_own_loss *loss) {
    free_file((loss_file *)(void *)((char *)loss->arg - offsetof(loss_file, loss)));
}
