/* Values that no layer computes: inputs with their preprocessing, constants, weights. */
#include "lua/layer.h"
#include "lua/tensor.h"
#include <string.h>

#define NAME_KEY CNRI_OTHER("name: of the value", "string")
#define DTYPE_KEY CNRI_OTHER("dtype: the type of its elements; f32 when left out", "string")
static const cnri_lua_key own_keys[] = {/* of an input; the others say how pictures become it */
                                        NAME_KEY,
                                        DTYPE_KEY,
                                        CNRI_OTHER("shape: its dimensions, numbers or names",
                                                   "(integer|string)[]"),
                                        {0}};
const cnri_lua_key cnri_input_keys[] =
    {NAME_KEY,
     DTYPE_KEY,
     CNRI_OTHER("shape: its dimensions, numbers or names: { \"batch\", 3, 224, 224 }",
                "(integer|string)[]"),
     CNRI_OTHER("preset: how pictures are prepared: torchvision", "string"),
     CNRI_OTHER("resize: height and width, or the shorter side", "integer|integer[]|string"),
     CNRI_OTHER("crop: the middle of that size, or that part", "number|integer[]|string"),
     CNRI_OTHER("mean: what is subtracted: one number, one a channel, or a whole picture's",
                "number|number[]"),
     CNRI_OTHER("std: what is divided by", "number|number[]"),
     CNRI_OTHER("scale: what is multiplied by", "number"),
     CNRI_OTHER("channels: rgb, bgr or gray", "string"),
     CNRI_OTHER("letterbox: true, or the grey of the border", "boolean|integer|string"),
     {0}};
const cnri_lua_key cnri_data_keys[] =
    {NAME_KEY, DTYPE_KEY, CNRI_OTHER("shape: its dimensions; one when left out", "integer[]"), {0}};
const cnri_lua_key cnri_weight_keys[] =
    {NAME_KEY,
     DTYPE_KEY,
     CNRI_OTHER("shape: its dimensions", "integer[]"),
     CNRI_OTHER("init: what a new one is filled with; He's at random when left out", "number"),
     {0}};

/* Reads dtype = "f32", which is also the default. False: a problem was added. */
static bool read_dtype(lua_State *L, cnr_graph *g, int args, const char *name, const char *where,
                       int32_t *dtype) {
    const int type = cnri_lua_get(L, args, "dtype");
    *dtype = type == LUA_TSTRING ? cnri_dtype_of(lua_tostring(L, -1)) : CNR_f32;
    const bool good = (type == LUA_TNIL || type == LUA_TSTRING) && *dtype != CNR_DTYPE_NONE;
    if (!good)
        cnri_graph_problem(g, where, "%s.dtype: want the name of a type such as f32, got %s", name,
                           type == LUA_TSTRING ? lua_tostring(L, -1) : luaL_typename(L, -1));
    lua_pop(L, 1);
    return good;
}

/* Reads a dimension, on top: a whole number, or a word that stands for any size. False: failed. */
static bool read_dim(lua_State *L, cnr_graph *g, bool symbols, int64_t *dim) {
    if (lua_isinteger(L, -1) && lua_tointeger(L, -1) >= 0) {
        *dim = lua_tointeger(L, -1);
        return true;
    }
    if (lua_type(L, -1) != LUA_TSTRING || !symbols || !*lua_tostring(L, -1)) return false;
    const int32_t symbol = cnri_graph_symbol(g, lua_tostring(L, -1));
    *dim = symbol >= 0 ? CNR_DIM_SYMBOL(symbol) : CNR_DIM_UNKNOWN;
    return true;
}

/* Reads shape = {"batch", 1, 28, 28}. False: a problem was added. */
static bool read_shape(lua_State *L, cnr_graph *g, int args, const char *name, const char *where,
                       bool symbols, cnr_tensor *type) {
    const char *want = symbols ? "want a list of sizes, numbers or names such as \"batch\""
                               : "want a list of whole numbers";
    const int kind = cnri_lua_get(L, args, "shape: dimensions");
    const lua_Unsigned n = kind == LUA_TTABLE ? lua_rawlen(L, -1) : 0;
    bool good = kind == LUA_TTABLE && n <= CNR_MAX_RANK;
    if (!good)
        cnri_graph_problem(g, where, "%s.shape: %s, got %s", name, want,
                           kind == LUA_TNIL     ? "nothing"
                           : kind == LUA_TTABLE ? "more than 8"
                                                : luaL_typename(L, -1));
    for (lua_Unsigned i = 0; good && i < n; i++) {
        lua_rawgeti(L, -1, (lua_Integer)i + 1);
        good = read_dim(L, g, symbols, &type->dim[i]);
        if (!good) {
            const char *got = luaL_tolstring(L, -1, NULL);
            cnri_graph_problem(g, where, "%s.shape[%d]: want a size%s, got %s", name, (int)i + 1,
                               symbols ? " or a name" : "", got);
            lua_pop(L, 1);
        }
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    type->rank = (int32_t)n;
    return good;
}

/* ---- inputs ---- */

bool cnri_lua_push_step(lua_State *L) {
    const int value = lua_gettop(L);
    const bool list = lua_istable(L, value);
    const int n = list ? (int)lua_rawlen(L, value) : 1;
    if (lua_isboolean(L, value)) {
        lua_pushstring(L, lua_toboolean(L, value) ? "true" : "false");
        return true;
    }
    if (lua_type(L, value) == LUA_TSTRING) {
        lua_pushvalue(L, value);
        return true;
    }
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    bool good = n > 0;
    for (int i = 1; i <= n && good; i++) {
        char number[40];
        if (list) lua_rawgeti(L, value, i);
        else lua_pushvalue(L, value);
        good = lua_type(L, -1) == LUA_TNUMBER;
        if (good) cnri_print_double(number, sizeof number, lua_tonumber(L, -1));
        lua_pop(L, 1);
        if (!good) break;
        if (i > 1) luaL_addchar(&b, ',');
        luaL_addstring(&b, number);
    }
    luaL_pushresult(&b);
    return good;
}

/* Reads how pictures become this input, from all keys that are not the value's own. */
static void read_preprocessing(lua_State *L, cnr_graph *g, int args, const char *name,
                               const char *where) {
    cnr_error why = CNR_ERROR_INIT;
    lua_getfield(L, args, "preset"); /* first: the others change it */
    if (lua_type(L, -1) == LUA_TSTRING &&
        cnri_preprocess_set(g, name, "preset", lua_tostring(L, -1), &why))
        cnri_graph_problem(g, where, "%s.preset: %s", name, why.text);
    lua_pop(L, 1);
    lua_pushnil(L);
    while (lua_next(L, args)) {
        const int top = lua_gettop(L);
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
        if (key && strcmp(key, "preset") != 0 && !cnri_lua_is_key(own_keys, key)) {
            cnr_error err = CNR_ERROR_INIT;
            if (!cnri_lua_push_step(L))
                cnri_graph_problem(g, where, "%s.%s: want a number, a text or a list of numbers",
                                   name, key);
            else if (cnri_preprocess_set(g, name, key, lua_tostring(L, -1), &err))
                cnri_graph_problem(g, where, "%s.%s: %s", name, key, err.text);
        }
        lua_settop(L, top - 1);
    }
}

cnr_value cnri_lua_add_input(lua_State *L, cnr_graph *g, int args, const char *name,
                             const char *where) {
    cnr_tensor type = {.size = sizeof type};
    if (!name) name = "data";
    bool good = read_shape(L, g, args, name, where, true, &type);
    good = read_dtype(L, g, args, name, where, &type.dtype) && good;
    const cnr_value v = good ? cnri_graph_input(g, name, &type) : -1;
    read_preprocessing(L, g, args, name, where);
    return v;
}

/* ---- constants ---- */

/* Pushes and returns a name that the graph does not have yet: the script's as it is, else
 * const_N. */
static const char *push_free_name(lua_State *L, const cnr_graph *g, const char *name) {
    if (name) return lua_pushstring(L, name);
    for (int i = g->values.n;; i++) {
        name = lua_pushfstring(L, "const_%d", i);
        if (cnri_graph_find(g, name) < 0) return name;
        lua_pop(L, 1);
    }
}

cnr_value cnri_lua_add_data(lua_State *L, cnr_graph *g, int args, const char *name,
                            const char *where) {
    const int top = lua_gettop(L), first = cnri_lua_first_item(L, args);
    cnr_tensor type = {.size = sizeof type};
    cnr_value v = -1;
    const char *shown = name ? name : "data";
    lua_rawgeti(L, args, first);
    if (luaL_testudata(L, -1, CNRI_TENSOR_TYPE)) {
        type = *cnri_lua_tensor_at(L, -1);
        v = cnri_graph_constant(g, push_free_name(L, g, name), &type);
        lua_settop(L, top);
        return v;
    }
    const int64_t n = (int64_t)lua_rawlen(L, args) - first + 1;
    type.rank = 1;
    type.dim[0] = n;
    bool good = read_dtype(L, g, args, shown, where, &type.dtype);
    if (cnri_lua_get(L, args, "shape: dimensions") != LUA_TNIL)
        good = read_shape(L, g, args, shown, where, false, &type) && good;
    if (good && cnr_count(&type) != n) {
        cnri_graph_problem(g, where, "%s: %lld numbers for a shape of %lld elements", shown,
                           (long long)n, (long long)cnr_count(&type));
        good = false;
    }
    if (good) {
        cnr_tensor *t = cnri_lua_push_tensor(L, type.dtype, type.rank, type.dim);
        for (int64_t i = 0; good && i < n; i++) {
            good = lua_rawgeti(L, args, first + i) == LUA_TNUMBER;
            if (!good)
                cnri_graph_problem(g, where, "%s[%lld]: want a number, got a %s value", shown,
                                   (long long)(first + i), luaL_typename(L, -1));
            else cnri_element_set(t->dtype, t->data, i, lua_tonumber(L, -1));
            lua_pop(L, 1);
        }
        if (good) v = cnri_graph_constant(g, push_free_name(L, g, name), t);
    }
    lua_settop(L, top);
    return v;
}

/* ---- weights ---- */

cnr_value cnri_lua_add_weight(lua_State *L, cnr_graph *g, int args, const char *name,
                              const char *where) {
    cnr_tensor type = {.size = sizeof type};
    if (!name) {
        cnri_graph_problem(g, where, "weight: want a name, by which its data is found in a file");
        return -1;
    }
    bool good = read_shape(L, g, args, name, where, false, &type);
    good = read_dtype(L, g, args, name, where, &type.dtype) && good;
    const int kind = cnri_lua_get(L, args, "init");
    const double init = lua_tonumber(L, -1);
    lua_pop(L, 1);
    if (kind != LUA_TNIL && kind != LUA_TNUMBER) {
        cnri_graph_problem(g, where, "%s.init: want a number", name);
        good = false;
    }
    const cnr_value v = good ? cnri_graph_constant(g, name, &type) : -1;
    if (v >= 0)
        g->values.at[v].init = kind == LUA_TNUMBER
                                   ? (cnr_init){.kind = CNR_INIT_CONST, .value = init}
                                   : (cnr_init){.kind = CNR_INIT_HE};
    return v;
}
