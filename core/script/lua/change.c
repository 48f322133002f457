/* Nets that scripts change, copy and write: net:copy(), net:set_weight(), net:mask(),
 * net:resized(), net:save() and others. */
#include "lua/files.h"
#include "lua/model.h"
#include "lua/tensor.h"
#include "store/store.h"
#include "work/work.h"
#include <string.h>

/* Implements net:copy(): pushes a net with the same layers and weights of its own; raises
 * errors. */
static int copy_net(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    const cnr_model *from = cnri_lua_net_at(L, 1)->model;
    cnri_lua_model *to = cnri_lua_push_net(L);
    cnri_lua_work w = {0};
    (void)cnri_lua_begin(L, &w);
    cnri_lua_end(L, &w, cnr_copy(from, &to->model, &err), &err);
    return 1;
}

/* Implements net:close(): frees the model; later calls of its methods raise errors. */
static int close_net(lua_State *L) {
    cnri_lua_close_net(L, cnri_lua_net_at(L, 1));
    return 0;
}

/* ---- weights ---- */

/* The name at index 2; raises an error if it contains a zero byte. */
static const char *name_at(lua_State *L) {
    size_t n;
    const char *name = luaL_checklstring(L, 2, &n);
    luaL_argcheck(L, strlen(name) == n, 2, "a name with a zero byte in it");
    return name;
}

/* Implements net:weights(): pushes a list of the weights' names. */
static int list_weights(lua_State *L) {
    const cnr_model *m = cnri_lua_model_at(L, 1);
    const char *name;
    lua_newtable(L);
    for (int32_t i = 0; (name = cnr_weight_name(m, i)) != NULL; i++) {
        lua_pushstring(L, name);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* Implements net:weight(name): pushes a copy as a tensor; raises an error if it is encoded or
 * unknown. */
static int copy_weight(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    const cnr_tensor *t;
    const char *name = name_at(L);
    if (cnr_weight(cnri_lua_model_at(L, 1), name, &t, &err)) return cnri_script_raise(L, &err);
    if (t->encoding) return luaL_error(L, "'%s' is encoded as %s", name, cnri_name(t->encoding));
    cnri_lua_push_copy(L, t);
    return 1;
}

/* Implements net:set_weight(name, tensor): replaces a weight by a copy of the tensor; raises
 * errors. */
static int set_weight(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    const cnri_lua_model *net = cnri_lua_net_at(L, 1);
    const char *name = name_at(L);
    const cnr_tensor *t = cnri_lua_tensor_at(L, 3);
    cnri_lua_work w = {0};
    (void)cnri_lua_begin(L, &w);
    cnri_lua_end(L, &w, cnr_set_weight(net->model, name, t, &err), &err);
    return 0;
}

/* Implements net:mask(name, on): training keeps the zeros of a weight, or no longer. */
static int mask(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    const cnri_lua_model *net = cnri_lua_net_at(L, 1);
    const char *name = name_at(L);
    luaL_checktype(L, 3, LUA_TBOOLEAN);
    if (cnr_mask(net->model, name, lua_toboolean(L, 3), &err)) return cnri_script_raise(L, &err);
    return 0;
}

/* ---- other sizes ---- */

enum { MAX_RESIZED = 4096 };

/* Weights and attributes that resized changes. */
typedef struct resizing {
    cnri_resizing *at; /* in memory that the collector frees, like all that it points to */
    int32_t n;
} resizing;

/* Returns the next free entry, zeroed; raises an error if there are too many. */
static cnri_resizing *one_more(lua_State *L, resizing *r) {
    if (r->n == MAX_RESIZED) luaL_error(L, "want at most %d weights and attributes", MAX_RESIZED);
    return &r->at[r->n++];
}

/* Reads weights = { ["conv1.weight"] = tensor }. */
static void read_weights(lua_State *L, resizing *r) {
    if (cnri_lua_get(L, 2, "weights") == LUA_TNIL) return;
    luaL_checktype(L, -1, LUA_TTABLE);
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING) luaL_error(L, "weights: want their names as keys");
        *one_more(L, r) = (cnri_resizing){.name = lua_tostring(L, -2),
                                          .data = luaL_checkudata(L, -1, CNRI_TENSOR_TYPE)};
    }
}

/* Reads attributes = { conv1 = { out = 12 } }. */
static void read_attributes(lua_State *L, resizing *r) {
    if (cnri_lua_get(L, 2, "attributes") == LUA_TNIL) return;
    luaL_checktype(L, -1, LUA_TTABLE);
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TTABLE)
            luaL_error(L, "attributes: want a table for each layer's name");
        const int layer = lua_gettop(L) - 1;
        for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
            if (lua_type(L, -2) != LUA_TSTRING || !lua_isinteger(L, -1))
                luaL_error(L, "attributes: want whole numbers by name");
            *one_more(L, r) = (cnri_resizing){.name = lua_tostring(L, layer),
                                              .attribute = lua_tostring(L, -2),
                                              .value = lua_tointeger(L, -1)};
        }
    }
}

static const cnri_lua_key resizing_keys[] =
    {CNRI_OTHER("weights: new data of any shape, by name", "table<string, cnnrun.Tensor>"),
     CNRI_OTHER("attributes: whole numbers, by layer and name",
                "table<string, table<string, integer>>"),
     {0}};

/* Implements net:resized(options): pushes a copy of the net with weights of other shapes. */
static int resized(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    const cnr_model *from = cnri_lua_net_at(L, 1)->model;
    resizing r = {0};
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    cnri_lua_check_keys(L, 2, resizing_keys);
    r.at = lua_newuserdatauv(L, MAX_RESIZED * sizeof *r.at, 0);
    read_weights(L, &r);
    read_attributes(L, &r);
    cnri_lua_model *to = cnri_lua_push_net(L);
    cnri_lua_work w = {0};
    (void)cnri_lua_begin(L, &w);
    cnri_lua_end(L, &w, cnri_model_resized(from, r.at, r.n, &to->model, &err), &err);
    return 1;
}

/* ---- encodings ---- */

static void free_encoded(void *e) { cnri_encoded_free(e); }

/* Implements net:encode(encoding, layers): stores weights in an encoding, in place, and pushes what
 * became of the layers. */
static int encode(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    const cnri_lua_model *net = cnri_lua_net_at(L, 1);
    const char *encoding = luaL_checkstring(L, 2), *layers = luaL_optstring(L, 3, NULL);
    cnri_encoded *done = cnri_lua_push_result(L, sizeof *done, free_encoded);
    cnri_lua_work w = {0};
    (void)cnri_lua_begin(L, &w);
    cnri_lua_end(L, &w, cnri_encode_model(net->model, encoding, layers, done, &err), &err);
    lua_pushinteger(L, done->encoded);
    lua_pushinteger(L, (lua_Integer)done->before);
    lua_pushinteger(L, (lua_Integer)done->after);
    return 3;
}

/* ---- layers ---- */

/* Sets a field of the table on top to a list of texts. */
static void push_names(lua_State *L, const char *key, const char *const *names, int32_t n) {
    lua_createtable(L, n, 0);
    for (int32_t i = 0; i < n; i++) {
        lua_pushstring(L, names[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, key);
}

/* Pushes a layer's description as a Lua table. */
static void push_layer(lua_State *L, const cnr_layer *l) {
    lua_createtable(L, 0, 7);
    cnri_lua_set_text(L, "name", l->name);
    cnri_lua_set_text(L, "operator", l->op);
    cnri_lua_set_text(L, "dtype", cnr_dtype_name(l->type->dtype));
    cnri_lua_set_number(L, "flops", l->flops);
    push_names(L, "inputs", l->inputs, l->n_inputs);
    push_names(L, "weights", l->weights, l->n_weights);
    lua_pushliteral(L, "sizes");
    lua_createtable(L, l->type->rank, 0);
    for (int32_t i = 0; i < l->type->rank; i++) {
        lua_pushinteger(L, l->type->dim[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_rawset(L, -3);
}

/* Implements net:layers(): pushes a list of tables, one for each layer in the net's order. */
static int list_layers(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_layer l = {.size = sizeof l};
    cnr_model *m = cnri_lua_model_at(L, 1);
    lua_newtable(L);
    for (int32_t i = 0; !cnr_layer_at(m, i, &l, &err); i++) {
        push_layer(L, &l);
        lua_rawseti(L, -2, i + 1);
    }
    return err.code == CNR_E_NOT_FOUND ? 1 : cnri_script_raise(L, &err);
}

/* ---- files ---- */

/* Implements net:save(path) (native) and net:export(path); the script must be allowed to write
 * there. */
static int write_net(lua_State *L, bool native) {
    cnr_error err = CNR_ERROR_INIT;
    const cnri_lua_model *net = cnri_lua_net_at(L, 1);
    const char *path = name_at(L);
    if (native && !cnri_is_native(path))
        return luaL_error(L, "'%s': save writes files named *.cnr, export those of other formats",
                          path);
    cnri_lua_check_file(L, path, true);
    cnri_lua_work w = {0};
    (void)cnri_lua_begin(L, &w);
    cnri_lua_end(L, &w, cnr_save(net->model, path, &err), &err);
    return 0;
}

static int save(lua_State *L) { return write_net(L, true); }

static int export(lua_State *L) { return write_net(L, false); }

/* ---- c.devices() ---- */

/* Adds the properties that the device's plugin reports to the table on top: "caches.l2" becomes
 * l2 of a table `caches`. */
static cnr_status add_facts(lua_State *L, cnr_runtime *rt, const char *device, bool measure,
                            cnr_error *err) {
    cnri_fact_list list = {0};
    const uint64_t left = cnri_script_leave();
    const cnr_status status = cnri_device_facts(rt, device, measure, &list, err);
    cnri_script_return(L, left);
    for (int32_t i = 0; i < list.n; i++) {
        const cnri_fact *f = &list.at[i];
        const char *dot = strchr(f->name, '.');
        lua_pushvalue(L, -1);
        if (dot) {
            lua_pushlstring(L, f->name, (size_t)(dot - f->name));
            lua_pushvalue(L, -1);
            if (lua_rawget(L, -3) != LUA_TTABLE) {
                lua_pop(L, 1);
                lua_newtable(L);
                lua_pushvalue(L, -2);
                lua_pushvalue(L, -2);
                lua_rawset(L, -5);
            }
            lua_remove(L, -2);
            lua_remove(L, -2);
        }
        if (f->text) cnri_lua_set_text(L, dot ? dot + 1 : f->name, f->text);
        else cnri_lua_set_number(L, dot ? dot + 1 : f->name, f->value);
        lua_pop(L, 1);
    }
    cnri_facts_free(&list);
    return status;
}

/* Sets `default` and `default_reason` in the table on top. */
static cnr_status add_default(lua_State *L, cnr_runtime *rt, const char *device, cnr_error *err) {
    int32_t is_default = 0;
    char reason[256] = "";
    const uint64_t left = cnri_script_leave();
    const cnr_status status =
        cnr_device_default(rt, device, &is_default, reason, sizeof reason, err);
    cnri_script_return(L, left);
    lua_pushboolean(L, is_default);
    lua_setfield(L, -2, "default");
    cnri_lua_set_text(L, "default_reason", reason);
    return status;
}

int cnri_lua_devices(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    bool measure = false;
    if (!lua_isnoneornil(L, 1)) {
        luaL_checktype(L, 1, LUA_TTABLE);
        lua_getfield(L, 1, "measure");
        measure = lua_toboolean(L, -1);
    }
    cnr_device_entry d = {.size = sizeof d};
    cnr_runtime *rt = cnri_lua_experiment(L)->rt;
    lua_newtable(L);
    for (int32_t i = 0;; i++) {
        const uint64_t left = cnri_script_leave();
        const cnr_status status = cnr_device_at(rt, i, &d, &err);
        cnri_script_return(L, left);
        if (status == CNR_E_NOT_FOUND) return 1;
        if (status) return cnri_script_raise(L, &err);
        lua_createtable(L, 0, 7);
        cnri_lua_set_text(L, "name", d.name);
        cnri_lua_set_text(L, "family", d.family);
        cnri_lua_set_text(L, "hardware", d.hardware);
        cnri_lua_set_text(L, "driver", d.driver);
        cnri_lua_set_text(L, "plugin", d.plugin);
        cnri_lua_set_whole(L, "concurrency", d.concurrency);
        if (d.memory_bytes) cnri_lua_set_whole(L, "memory_bytes", (int64_t)d.memory_bytes);
        if (add_default(L, rt, d.name, &err) || add_facts(L, rt, d.name, measure, &err))
            return cnri_script_raise(L, &err);
        lua_rawseti(L, -2, i + 1);
    }
}

const cnri_lua_row cnri_change_methods[] =
    {{"copy()", copy_net, "cnnrun.Net", "one that goes its own way, weights, masks and all", NULL},
     {"close()", close_net, "", "lets its memory go now", NULL},
     {"weights()", list_weights, "string[]", "the names of its weights", NULL},
     {"weight(name: string)", copy_weight, "cnnrun.Tensor", "a copy of a weight", NULL},
     {"set_weight(name: string, tensor: cnnrun.Tensor)", set_weight, "",
      "new data for a weight, of its shape and type", NULL},
     {"resized(changes: table)", resized, "cnnrun.Net",
      "a copy with weights of other shapes, and what follows from them", resizing_keys},
     {"mask(name: string, on: boolean)", mask, "",
      "true: what is 0 in the weight stays 0 while the net trains; false lets go", NULL},
     {"layers()", list_layers,
      "{ name: string, operator: string, inputs: string[], weights: string[], sizes: integer[], "
      "dtype: string, flops: number }[]",
      "in order, with the sizes of their outputs for one picture", NULL},
     {"encode(encoding: string, layers?: string)", encode, "integer, integer, integer",
      "stores weights so from now on, as convert --encode does: how many, bytes before, after",
      NULL},
     {"save(path: string)", save, "", "writes it as a .cnr", NULL},
     {"export(path: string)", export, "", "writes it in another format, which its name tells",
      NULL},
     {0}};
