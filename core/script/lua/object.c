/* Objects in scripts: local t = c.object("NAME", { options }); box = t:track(picture). */
#include "lua/files.h"
#include "lua/model.h"
#include "lua/tensor.h"
#include <string.h>

#define OBJECT_TYPE "cnnrun object"

enum { MAX_OPTIONS = 32, MAX_INPUTS = 32, MAX_RESULTS = 8 };

typedef cnri_lua_instance object;

cnri_lua_instance *cnri_lua_object_at(lua_State *L, int i) {
    object *o = luaL_checkudata(L, i, OBJECT_TYPE);
    if (!o->open) luaL_error(L, "the object was closed");
    return o;
}

/* Implements object:close(), and the collector: destroys the plugin's object once. */
static int close_object(lua_State *L) {
    object *o = lua_touserdata(L, 1);
    pthread_mutex_lock(&o->lock);
    if (o->open) o->about->destroy(o->state);
    o->open = false;
    pthread_mutex_unlock(&o->lock);
    return 0;
}

/* ---- making ---- */

/* Pushes the numbers of the list on top as a block that the collector frees, and makes them the
 * value of *a; raises an error for other items. */
static void list_option(lua_State *L, cnr_attr *a) {
    const int list = lua_gettop(L);
    a->n = (int64_t)lua_rawlen(L, list);
    double *numbers = lua_newuserdatauv(L, (size_t)(a->n + 1) * sizeof *numbers, 0);
    for (int64_t i = 0; i < a->n; i++) {
        if (lua_rawgeti(L, list, i + 1) != LUA_TNUMBER)
            luaL_error(L, "%s: want a list of numbers", a->name);
        numbers[i] = lua_tonumber(L, -1);
        lua_pop(L, 1);
    }
    a->type = CNR_ATTR_FLOATS;
    a->floats = numbers;
}

/* Reads an option whose value is on top. Data that it refers to stays on the stack. */
static void read_option(lua_State *L, cnr_attr *a) {
    a->set = 1;
    switch (lua_type(L, -1)) {
    case LUA_TBOOLEAN:
        a->type = CNR_ATTR_BOOL;
        a->i = lua_toboolean(L, -1);
        break;
    case LUA_TNUMBER:
        a->type = lua_isinteger(L, -1) ? CNR_ATTR_INT : CNR_ATTR_FLOAT;
        a->i = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : 0;
        a->f = lua_tonumber(L, -1);
        break;
    case LUA_TSTRING:
        a->type = CNR_ATTR_STRING;
        a->s = lua_tostring(L, -1);
        break;
    case LUA_TTABLE: list_option(L, a); break;
    default: luaL_error(L, "%s: want a number, a text, true, false or a list of numbers", a->name);
    }
}

/* Reads the options in the table at 2 into attrs, at most MAX_OPTIONS; returns how many. Names and
 * values stay on the stack. Raises errors. */
static int32_t read_options(lua_State *L, cnr_attr *attrs) {
    int32_t n = 0;
    if (lua_isnoneornil(L, 2)) return 0;
    luaL_checktype(L, 2, LUA_TTABLE);
    luaL_checkstack(L, 3 * MAX_OPTIONS, "too many options");
    lua_pushnil(L);
    while (lua_next(L, 2)) {
        if (lua_type(L, -2) != LUA_TSTRING || n == MAX_OPTIONS)
            luaL_error(L, "want at most %d options, each with a name", MAX_OPTIONS);
        attrs[n] = (cnr_attr){.name = lua_tostring(L, -2)};
        read_option(L, &attrs[n]);
        lua_pushvalue(L, attrs[n].type == CNR_ATTR_FLOATS ? -3 : -2); /* the key, for lua_next */
        n++;
    }
    return n;
}

/* Raises an error: no plugin brings such an object; lists them. */
static void unknown(lua_State *L, const char *name) {
    cnri_text known = {0};
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_OBJECT); i++) {
        const cnr_object *one = cnri_descriptor_at(CNR_KIND_OBJECT, i);
        cnri_text_add(&known, "%s%s", i ? ", " : "", one->name);
    }
    lua_pushstring(L, known.n ? known.at : "none");
    cnri_text_free(&known);
    luaL_error(L, "no plugin brings an object '%s'; there are: %s", name, lua_tostring(L, -1));
}

int cnri_lua_object(lua_State *L) {
    cnr_attr attrs[MAX_OPTIONS];
    const cnr_attr *list[MAX_OPTIONS];
    cnr_error err = CNR_ERROR_INIT;
    cnri_lua_experiment(L);
    const char *name = luaL_checkstring(L, 1);
    lua_settop(L, 2);
    const cnr_object *about = cnri_descriptor_find(CNR_KIND_OBJECT, name);
    if (!about) unknown(L, name);
    const int32_t n = read_options(L, attrs);
    for (int32_t i = 0; i < n; i++) list[i] = &attrs[i];
    object *o = lua_newuserdatauv(L, sizeof *o, 0);
    *o = (object){.about = about, .limits = cnri_limits_of_thread()};
    pthread_mutex_init(&o->lock, NULL);
    luaL_setmetatable(L, OBJECT_TYPE);
    const uint64_t left = cnri_script_leave();
    const cnri_limits *outer = cnri_limits_enter(o->limits);
    cnr_status status = cnri_limits_object(o->limits, about, list, n, &err);
    if (!status) status = about->create(list, n, &o->state, &err);
    cnri_limits_enter(outer);
    cnri_script_return(L, left);
    o->open = status == CNR_OK;
    return status ? cnri_script_raise(L, &err) : 1;
}

/* ---- calling ---- */

/* Number of words behind the arrow in "track(picture) -> box, score". */
static int32_t results_of(const char *signature) {
    const char *p = strstr(signature, "->");
    int32_t n = p != NULL;
    for (; p && *p; p++) n += *p == ',';
    return n;
}

/* The argument at `i` as a tensor; a text, number or flag becomes one, which replaces it on the
 * stack. Raises an error for other types. */
static const cnr_tensor *argument(lua_State *L, int i) {
    const int type = lua_type(L, i);
    cnr_tensor *t = luaL_testudata(L, i, CNRI_TENSOR_TYPE);
    if (t) return t;
    if (type == LUA_TSTRING) {
        size_t bytes;
        const char *text = lua_tolstring(L, i, &bytes);
        const int64_t dim[] = {(int64_t)bytes};
        t = cnri_lua_push_tensor(L, CNR_u8, 1, dim);
        memcpy(t->data, text, bytes);
    } else if (type == LUA_TNUMBER || type == LUA_TBOOLEAN) {
        t = cnri_lua_push_tensor(L, CNR_f64, 0, NULL);
        *(double *)t->data = type == LUA_TNUMBER ? lua_tonumber(L, i) : lua_toboolean(L, i);
    } else if (type == LUA_TTABLE) {
        const int64_t dim[] = {(int64_t)lua_rawlen(L, i)};
        t = cnri_lua_push_tensor(L, CNR_f64, 1, dim);
        for (int64_t k = 0; k < dim[0]; k++) {
            if (lua_rawgeti(L, i, k + 1) != LUA_TNUMBER) luaL_argerror(L, i, "want numbers");
            ((double *)t->data)[k] = lua_tonumber(L, -1);
            lua_pop(L, 1);
        }
    } else {
        luaL_argerror(L, i, "want a tensor, a number, a list of numbers or a text");
        return NULL;
    }
    lua_replace(L, i);
    return t;
}

/* Pushes a result of a method: a number or text if it is one, else a tensor. */
static void push_result(lua_State *L, const cnr_tensor *t, const char *method) {
    if (t->rank < 0 || t->rank > CNR_MAX_RANK || t->encoding || cnr_dense_bytes(t) == UINT64_MAX ||
        (!t->data && cnr_dense_bytes(t) > 0))
        luaL_error(L, "'%s' gave no proper tensor", method);
    if (t->dtype == CNR_u8 && t->rank == 1) {
        cnri_script_charge(L, t->dim[0] / 64);
        lua_pushlstring(L, t->data ? t->data : "", (size_t)t->dim[0]);
        return;
    }
    cnr_tensor *own = cnri_lua_push_tensor(L, t->dtype, t->rank, t->dim);
    if (own->bytes) memcpy(own->data, t->data, (size_t)own->bytes);
    if (t->rank > 0) return;
    lua_pushnumber(L, cnri_element(own->dtype, own->data, 0));
    lua_remove(L, -2);
}

cnr_status cnri_lua_object_call(cnri_lua_instance *o, int32_t method, const cnr_tensor *const *in,
                                int32_t n_in, cnr_tensor *const *out, int32_t n_out,
                                cnr_error *err) {
    pthread_mutex_lock(&o->lock);
    const cnri_limits *outer = cnri_limits_enter(o->limits);
    const cnr_status status = o->open ? o->about->call(o->state, method, in, n_in, out, n_out, err)
                                      : cnri_fail(err, CNR_E_STATE, o->about->name, "was closed");
    cnri_limits_enter(outer);
    pthread_mutex_unlock(&o->lock);
    return status;
}

/* Lua function: calls a method of the object at 1 with tensors, and pushes its results. Upvalue 1:
 * the method's number. */
static int call_method(lua_State *L) {
    const cnr_tensor *in[MAX_INPUTS];
    cnr_tensor made[MAX_RESULTS], *out[MAX_RESULTS];
    void **held[MAX_RESULTS];
    cnr_error err = CNR_ERROR_INIT;
    object *o = cnri_lua_object_at(L, 1);
    const int32_t method = (int32_t)lua_tointeger(L, lua_upvalueindex(1));
    const char *text = o->about->methods[method];
    const int32_t n_in = lua_gettop(L) - 1, n_out = results_of(text);
    if (n_in > MAX_INPUTS || n_out > MAX_RESULTS)
        return luaL_error(L, "'%s' has too many arguments or results", text);
    luaL_checkstack(L, 2 * MAX_RESULTS + 8, "too many arguments");
    for (int32_t i = 0; i < n_in; i++) in[i] = argument(L, i + 2);
    for (int32_t i = 0; i < n_out; i++) {
        held[i] = cnri_lua_push_holder(L);
        made[i] = (cnr_tensor){.size = sizeof made[i]};
        out[i] = &made[i];
    }
    const uint64_t left = cnri_script_leave();
    const cnr_status status = cnri_lua_object_call(o, method, in, n_in, out, n_out, &err);
    cnri_script_return(L, left);
    for (int32_t i = 0; i < n_out; i++) *held[i] = made[i].data;
    if (status) return cnri_script_raise(L, &err);
    for (int32_t i = 0; i < n_out; i++) push_result(L, &made[i], text);
    for (int32_t i = 0; i < n_out; i++) {
        cnri_free(*held[i]);
        *held[i] = NULL;
    }
    return n_out;
}

int32_t cnri_lua_object_method(lua_State *L, const cnri_lua_instance *o, const char *word) {
    for (int32_t i = 0; i < o->about->n_methods; i++) {
        const size_t n = cnri_word_length(o->about->methods[i]);
        if (strlen(word) == n && strncmp(word, o->about->methods[i], n) == 0) return i;
    }
    cnri_lua_suggest(L, word, o->about->methods, o->about->n_methods);
    return luaL_error(L, "'%s' has no method '%s'%s", o->about->name, word, lua_tostring(L, -1));
}

int32_t cnri_lua_object_results(const cnri_lua_instance *o, int32_t method) {
    return results_of(o->about->methods[method]);
}

/* Implements object.NAME: pushes a function that calls the method; raises an error if there is
 * none. */
static int object_index(lua_State *L) {
    lua_pushinteger(L, cnri_lua_object_method(L, cnri_lua_object_at(L, 1), luaL_checkstring(L, 2)));
    lua_pushcclosure(L, call_method, 1);
    return 1;
}

void cnri_lua_open_objects(lua_State *L) {
    static const luaL_Reg events[] = {{"__gc", close_object},
                                      {"__close", close_object},
                                      {"__index", object_index},
                                      {0}};
    cnri_lua_new_type(L, OBJECT_TYPE, "an object", events, NULL, NULL);
}
