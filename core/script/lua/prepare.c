/* net:prepare(picture, ..., { ... }): pictures as a batch for the net's first input. */
#include "lua/layer.h"
#include "lua/model.h"
#include "lua/tensor.h"
#include <string.h>

const cnri_lua_key cnri_prepare_keys[] =
    {/* and whatever c.input takes */
     CNRI_OTHER("size: { height, width } of an input that leaves them open", "integer[]"),
     {0}};

/* Reads the size that a script wants, height and width. False: it gave none. */
static bool read_size(lua_State *L, int table, int64_t size[2]) {
    const bool given = table && cnri_lua_get(L, table, cnri_prepare_keys[0].text) != LUA_TNIL;
    int64_t dim[CNR_MAX_RANK];
    if (given) {
        if (cnri_lua_dims(L, lua_gettop(L), dim) != 2 || dim[0] < 1 || dim[1] < 1)
            luaL_error(L, "want %s", cnri_prepare_keys[0].text);
        size[0] = dim[0];
        size[1] = dim[1];
    }
    if (table) lua_pop(L, 1);
    return given;
}

/* Sets the shape of the input for n pictures like the one at index 2. */
static void shape_for(lua_State *L, const cnr_model *model, const cnri_preprocess *p, int32_t n,
                      int table, cnr_tensor *type) {
    int64_t size[2] = {1, 1};
    const bool given = read_size(L, table, size);
    cnri_model_sizes(model, 0,
                     (cnri_sizes){.preprocess = p,
                                  .picture = cnri_lua_tensor_at(L, 2),
                                  .batch = n,
                                  .side = given ? size : NULL},
                     type);
    const cnri_axes axes = cnri_picture_axes(cnr_input_type(model, 0));
    const int64_t takes = axes.batch < 0 ? 1 : type->dim[axes.batch];
    if (takes != n)
        luaL_error(L, "the net takes %I pictures at a time, got %d", (LUAI_UACINT)takes, n);
    if (given && axes.height >= 0 && memcmp(type->dim + axes.height, size, sizeof size) != 0)
        luaL_error(L, "the net takes pictures of %I x %I, not %I x %I",
                   (LUAI_UACINT)type->dim[axes.height], (LUAI_UACINT)type->dim[axes.height + 1],
                   (LUAI_UACINT)size[0], (LUAI_UACINT)size[1]);
}

/* Changes *p by the steps in the table, for this call only. */
static cnr_status change(lua_State *L, int table, cnri_preprocess *p, cnr_error *err) {
    cnr_status status = CNR_OK;
    lua_getfield(L, table, "preset"); /* first: the others change it */
    if (lua_type(L, -1) == LUA_TSTRING)
        status = cnri_preprocess_change(p, "preset", lua_tostring(L, -1), err);
    lua_pop(L, 1);
    lua_pushnil(L);
    while (!status && lua_next(L, table)) {
        const int top = lua_gettop(L);
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
        if (!key || !cnri_lua_push_step(L))
            status = cnri_fail(err, CNR_E_ARG, key ? key : "prepare",
                               "want a number, a text or a list of numbers");
        else if (strcmp(key, "preset") != 0 && !cnri_lua_is_key(cnri_prepare_keys, key))
            status = cnri_preprocess_change(p, key, lua_tostring(L, -1), err);
        lua_settop(L, status ? top - 2 : top - 1);
    }
    return status ? status : cnri_preprocess_units(p, "prepare", err);
}

/* Pushes { factor = { y, x }, shift = { y, x } }. */
void cnri_lua_push_framing(lua_State *L, const cnri_framing *framing) {
    static const char *const names[] = {"factor", "shift"};
    const double *numbers[] = {framing->scale, framing->shift};
    lua_createtable(L, 0, 2);
    for (int k = 0; k < 2; k++) {
        lua_createtable(L, 2, 0);
        for (int i = 0; i < 2; i++) {
            lua_pushnumber(L, numbers[k][i]);
            lua_rawseti(L, -2, i + 1);
        }
        lua_setfield(L, -2, names[k]);
    }
}

/* Pictures that are prepared: n of them, for which model and with which preprocessing. */
typedef struct job {
    const cnr_model *model;
    cnri_preprocess *p;
    int32_t n;
    int table;
    cnri_lua_instead instead;
    void *arg;
} job;

/* Lua function, in protected mode because `p` may hold a block: pushes the input tensor filled with
 * the pictures. Stack: net, pictures, table or nothing, job. */
static int fill_batch(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    const job *j = lua_touserdata(L, -1);
    cnr_tensor type;
    lua_pop(L, 1);
    if (j->table && change(L, j->table, j->p, &err)) return cnri_script_raise(L, &err);
    shape_for(L, j->model, j->p, j->n, j->table, &type);
    if (cnri_memory_fits(type.bytes, j->p->memory_limit, "prepare", "a batch", &err))
        return cnri_script_raise(L, &err);
    if (j->instead) {
        const uint64_t left = cnri_script_leave();
        const cnr_status status =
            j->instead(j->arg, j->model, j->p, &type, cnri_lua_tensor_at(L, 2), &err);
        cnri_script_return(L, left);
        return status ? cnri_script_raise(L, &err) : 0;
    }
    luaL_checkstack(L, j->n + 8, "too many pictures");
    cnr_tensor *batch = cnri_lua_push_tensor(L, type.dtype, type.rank, type.dim);
    cnr_tensor one = *batch;
    if (cnri_picture_axes(cnr_input_type(j->model, 0)).batch == 0) one.dim[0] = 1;
    one.bytes = batch->bytes / (uint64_t)j->n;
    for (int32_t i = 0; i < j->n; i++) {
        cnri_framing framing;
        one.data = (char *)batch->data + (uint64_t)i * one.bytes;
        const uint64_t left = cnri_script_leave();
        const cnr_status status =
            cnri_preprocess_framed(j->p, cnri_lua_tensor_at(L, i + 2), &one, &framing, &err);
        cnri_script_return(L, left);
        if (status) return cnri_script_raise(L, &err);
        cnri_lua_push_framing(L, &framing);
    }
    return j->n + 1;
}

int cnri_lua_prepare(lua_State *L) { return cnri_lua_prepare_with(L, NULL, NULL); }

int cnri_lua_prepare_with(lua_State *L, cnri_lua_instead instead, void *arg) {
    cnr_error err = CNR_ERROR_INIT;
    cnri_preprocess p;
    const int top = lua_gettop(L);
    const int table = top > 1 && lua_istable(L, top) ? top : 0;
    job j = {cnri_lua_model_at(L, 1), &p, top - 1 - (table != 0), table, instead, arg};
    if (j.n < 1 || cnr_input_count(j.model) < 1) return luaL_error(L, "want pictures");
    for (int32_t i = 0; i < j.n; i++) {
        const cnr_tensor *picture = cnri_lua_tensor_at(L, i + 2);
        if (picture->rank != 3 || picture->dtype != CNR_u8)
            return luaL_error(L, "a picture is a u8 tensor [height,width,channels]");
    }
    lua_pushcfunction(L, fill_batch);
    lua_insert(L, 1);
    lua_pushlightuserdata(L, &j);
    if (cnri_preprocess_read(j.model->graph, cnr_input_name(j.model, 0), &p, &err))
        return cnri_script_raise(L, &err);
    p.memory_limit = j.model->plan_options.memory_limit;
    const int status = lua_pcall(L, top + 1, LUA_MULTRET, 0);
    cnri_preprocess_free(&p);
    return status == LUA_OK ? lua_gettop(L) : lua_error(L);
}
