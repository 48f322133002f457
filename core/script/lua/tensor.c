/* Tensors in scripts: c.tensor{ shape = ..., data = ... }, t[i], t:shape(), t:save("x.npy"). */
#include "lua/tensor.h"
#include "lua/files.h"
#include "lua/model.h"
#include <math.h>
#include <string.h>

enum { ALIGNMENT = 64 };

cnr_tensor *cnri_lua_push_tensor(lua_State *L, int32_t dtype, int32_t rank, const int64_t *dim) {
    cnr_tensor type = {.size = sizeof type, .dtype = dtype, .rank = rank};
    if (rank > 0) memcpy(type.dim, dim, (size_t)rank * sizeof *dim);
    type.bytes = cnr_dense_bytes(&type);
    if (type.bytes > cnri_script_of(L)->limit) luaL_error(L, "the tensor is too large");
    cnri_script_charge(L, (int64_t)(type.bytes / 64));
    cnr_tensor *t = lua_newuserdatauv(L, sizeof *t + ALIGNMENT + (size_t)type.bytes, 0);
    *t = type;
    const uintptr_t from = (uintptr_t)(t + 1);
    t->data = (void *)((from + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    memset(t->data, 0, (size_t)type.bytes);
    luaL_setmetatable(L, CNRI_TENSOR_TYPE);
    return t;
}

cnr_tensor *cnri_lua_push_copy(lua_State *L, const cnr_tensor *from) {
    cnr_tensor *t = cnri_lua_push_tensor(L, from->dtype, from->rank, from->dim);
    if (t->bytes) memcpy(t->data, from->data, (size_t)t->bytes);
    return t;
}

cnr_tensor *cnri_lua_tensor_at(lua_State *L, int i) {
    return luaL_checkudata(L, i, CNRI_TENSOR_TYPE);
}

int32_t cnri_lua_dims(lua_State *L, int i, int64_t *dim) {
    luaL_checktype(L, i, LUA_TTABLE);
    const lua_Unsigned n = lua_rawlen(L, i);
    if (n > CNR_MAX_RANK) luaL_error(L, "a tensor has at most %d dimensions", CNR_MAX_RANK);
    for (lua_Unsigned k = 0; k < n; k++) {
        lua_rawgeti(L, i, (lua_Integer)k + 1);
        if (!lua_isinteger(L, -1) || lua_tointeger(L, -1) < 0)
            luaL_error(L, "shape[%d]: want a whole number >= 0, got %s", (int)k + 1,
                       luaL_tolstring(L, -1, NULL));
        dim[k] = lua_tointeger(L, -1);
        lua_pop(L, 1);
    }
    return (int32_t)n;
}

/* ---- making ---- */

/* Copies numbers of a list into a tensor. */
static void take_numbers(lua_State *L, cnr_tensor *t, int list) {
    const int64_t n = cnr_count(t);
    if ((int64_t)lua_rawlen(L, list) != n)
        luaL_error(L, "data: %I numbers for a shape of %I elements",
                   (LUAI_UACINT)lua_rawlen(L, list), (LUAI_UACINT)n);
    cnri_script_charge(L, n);
    for (int64_t i = 0; i < n; i++) {
        if (lua_rawgeti(L, list, i + 1) != LUA_TNUMBER)
            luaL_error(L, "data[%I]: want a number, got a %s value", (LUAI_UACINT)i + 1,
                       luaL_typename(L, -1));
        if (t->dtype == CNR_i64 && lua_isinteger(L, -1))
            ((int64_t *)t->data)[i] = lua_tointeger(L, -1);
        else cnri_element_set(t->dtype, t->data, i, lua_tonumber(L, -1));
        lua_pop(L, 1);
    }
}

/* Implements c.tensor "x.npy": pushes the tensor of a NumPy file; raises errors. */
static int tensor_from_file(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    const char *path = lua_tostring(L, 1);
    char *text;
    size_t bytes, offset;
    cnr_tensor type = {0};
    cnri_lua_check_file(L, path, false);
    void **held = cnri_lua_push_holder(L);
    if (cnri_read_file(path, cnri_script_of(L)->limit, &text, &bytes, &err))
        return cnri_script_raise(L, &err);
    *held = text;
    if (cnri_npy_read(path, text, bytes, &type, &offset, &err)) return cnri_script_raise(L, &err);
    cnr_tensor *t = cnri_lua_push_tensor(L, type.dtype, type.rank, type.dim);
    memcpy(t->data, text + offset, (size_t)t->bytes);
    cnri_free(text); /* now, not when the collector comes by */
    *held = NULL;
    return 1;
}

/* Implements c.tensor: pushes a tensor made from a table (shape, data, dtype), or from a file by
 * name. Raises errors. */
static int make_tensor(lua_State *L) {
    int64_t dim[CNR_MAX_RANK];
    if (lua_type(L, 1) == LUA_TSTRING) return tensor_from_file(L);
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    cnri_lua_get(L, 1, "shape: dimensions");
    cnri_lua_get(L, 1, "data");
    cnri_lua_get(L, 1, "dtype");
    const char *word = luaL_optstring(L, 4, "f32");
    const int32_t dtype = cnri_dtype_of(word);
    if (dtype == CNR_DTYPE_NONE) return luaL_error(L, "dtype: there is no type '%s'", word);
    if (!lua_isnil(L, 3)) luaL_checktype(L, 3, LUA_TTABLE);
    int32_t rank = 1;
    if (lua_isnil(L, 2) && lua_istable(L, 3)) dim[0] = (int64_t)lua_rawlen(L, 3);
    else rank = cnri_lua_dims(L, 2, dim);
    cnr_tensor *t = cnri_lua_push_tensor(L, dtype, rank, dim);
    if (lua_istable(L, 3)) take_numbers(L, t, 3);
    return 1;
}

/* ---- methods ---- */

/* Index at argument 2, from 0 on; raises an error if it is outside. */
static int64_t index_of(lua_State *L, const cnr_tensor *t) {
    const lua_Integer i = luaL_checkinteger(L, 2);
    const int64_t n = cnr_count(t);
    if (i < 1 || i > n)
        luaL_error(L, "index %I of a tensor of %I elements", (LUAI_UACINT)i, (LUAI_UACINT)n);
    return i - 1;
}

/* Implements t[i]: pushes element i, from 1, or a method by name. Upvalues as in
 * cnri_lua_find_method. */
static int tensor_index(lua_State *L) {
    const cnr_tensor *t = cnri_lua_tensor_at(L, 1);
    if (lua_type(L, 2) == LUA_TSTRING) return cnri_lua_find_method(L);
    const int64_t i = index_of(L, t);
    if (t->dtype == CNR_i64) lua_pushinteger(L, ((const int64_t *)t->data)[i]);
    else lua_pushnumber(L, cnri_element(t->dtype, t->data, i));
    return 1;
}

/* Implements t[i] = number: sets element i, from 1, in place; raises an error beyond the tensor. */
static int tensor_assign(lua_State *L) {
    cnr_tensor *t = cnri_lua_tensor_at(L, 1);
    cnri_element_set(t->dtype, t->data, index_of(L, t), luaL_checknumber(L, 3));
    return 0;
}

/* Implements #t: pushes the number of elements. */
static int tensor_length(lua_State *L) {
    lua_pushinteger(L, cnr_count(cnri_lua_tensor_at(L, 1)));
    return 1;
}

/* Implements t:shape(): pushes the list of dimensions. */
static int tensor_shape(lua_State *L) {
    const cnr_tensor *t = cnri_lua_tensor_at(L, 1);
    lua_createtable(L, t->rank, 0);
    for (int32_t i = 0; i < t->rank; i++) {
        lua_pushinteger(L, t->dim[i]);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* Implements t:dtype(): pushes the name of the element type, such as "f32". */
static int tensor_dtype(lua_State *L) {
    lua_pushstring(L, cnr_dtype_name(cnri_lua_tensor_at(L, 1)->dtype));
    return 1;
}

/* Implements t:reshaped(shape): pushes a copy of the elements in another shape of as many. */
static int tensor_reshaped(lua_State *L) {
    int64_t dim[CNR_MAX_RANK];
    const cnr_tensor *t = cnri_lua_tensor_at(L, 1);
    cnr_tensor type = {.rank = cnri_lua_dims(L, 2, dim)};
    memcpy(type.dim, dim, sizeof dim);
    if (cnr_count(&type) != cnr_count(t))
        return luaL_error(L, "%I elements do not fill a shape of %I", (LUAI_UACINT)cnr_count(t),
                          (LUAI_UACINT)cnr_count(&type));
    memcpy(cnri_lua_push_tensor(L, t->dtype, type.rank, dim)->data, t->data, (size_t)t->bytes);
    return 1;
}

/* Implements t:as(type): pushes a copy with another element type; whole types round towards 0 and
 * limit. */
static int tensor_as(lua_State *L) {
    const cnr_tensor *t = cnri_lua_tensor_at(L, 1);
    const int32_t dtype = cnri_dtype_of(luaL_checkstring(L, 2));
    if (dtype == CNR_DTYPE_NONE) return luaL_argerror(L, 2, "want the name of a type");
    cnr_tensor *to = cnri_lua_push_tensor(L, dtype, t->rank, t->dim);
    const int64_t n = cnr_count(t);
    cnri_script_charge(L, n / 4);
    for (int64_t i = 0; i < n; i++)
        cnri_element_set(to->dtype, to->data, i, cnri_element(t->dtype, t->data, i));
    return 1;
}

/* t:topk(k) returns { {index = , score = }, ... }; indices start at 0, like labels. */
static int tensor_topk(lua_State *L) {
    cnr_top best[100];
    const cnr_tensor *t = cnri_lua_tensor_at(L, 1);
    const lua_Integer k = luaL_optinteger(L, 2, 5);
    luaL_argcheck(L, k >= 1 && k <= (lua_Integer)CNRI_COUNT(best), 2, "want 1 to 100");
    cnri_script_charge(L, cnr_count(t) / 4);
    const int32_t n = cnr_topk(t, (int32_t)k, best);
    lua_createtable(L, n, 0);
    for (int32_t i = 0; i < n; i++) {
        lua_createtable(L, 0, 2);
        lua_pushinteger(L, best[i].index);
        lua_setfield(L, -2, "index");
        lua_pushnumber(L, (double)best[i].score);
        lua_setfield(L, -2, "score");
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

int cnri_lua_tensor_save(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    const cnr_tensor *t = cnri_lua_tensor_at(L, 1);
    const char *path = luaL_checkstring(L, 2);
    cnri_lua_check_file(L, path, true);
    const uint64_t left = cnri_script_leave();
    const cnr_status status = cnri_picture_writable(path) ? cnri_picture_write(path, t, &err)
                                                          : cnri_npy_write(path, t, &err);
    cnri_script_return(L, left);
    return status ? cnri_script_raise(L, &err) : 0;
}

/* Pushes the text of a tensor for print: type and shape, such as "f32[2,3]". */
static int tensor_show(lua_State *L) {
    const cnr_tensor *t = cnri_lua_tensor_at(L, 1);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    luaL_addstring(&b, cnr_dtype_name(t->dtype));
    for (int32_t i = 0; i < t->rank; i++) {
        char number[32];
        snprintf(number, sizeof number, "%s%lld", i ? "," : "[", (long long)t->dim[i]);
        luaL_addstring(&b, number);
    }
    luaL_addstring(&b, t->rank ? "]" : "[]");
    luaL_pushresult(&b);
    return 1;
}

static const cnri_lua_key keys[] =
    {CNRI_OTHER("shape: its dimensions; as many as there are data when left out", "integer[]"),
     CNRI_OTHER("data: its elements, the last axis first; zeros when left out", "number[]"),
     CNRI_OTHER("dtype: f32 when left out", "string"),
     {0}};

const cnri_lua_row cnri_tensor_rows[] = {{"tensor(tensor: table|string)", make_tensor,
                                          "cnnrun.Tensor",
                                          "a tensor of shape, data and dtype, or of a .npy file",
                                          keys},
                                         {0}};

const cnri_lua_row cnri_tensor_methods[] =
    {{"shape()", tensor_shape, "integer[]", "its dimensions", NULL},
     {"dtype()", tensor_dtype, "string", "its type's name", NULL},
     {"reshaped(shape: integer[])", tensor_reshaped, "cnnrun.Tensor",
      "a copy with other dimensions", NULL},
     {"as(dtype: string)", tensor_as, "cnnrun.Tensor", "a copy of another type", NULL},
     {"topk(k?: integer)", tensor_topk, "{ index: integer, score: number }[]",
      "the k largest elements (5), indices from 0 as labels count", NULL},
     {"above(least: number, from?: integer, to?: integer, step?: integer)", cnri_lua_tensor_above,
      "integer[]", "where elements are larger, from 1", NULL},
     {"transposed(order: integer[])", cnri_lua_tensor_transposed, "cnnrun.Tensor",
      "a copy with its axes in that order", NULL},
     {"region(starts: integer[], sizes: integer[])", cnri_lua_tensor_region, "cnnrun.Tensor",
      "a copy of a part, zeros where it reaches over the edge", NULL},
     {"plus(other: cnnrun.Tensor, factor?: number)", cnri_lua_tensor_plus, "cnnrun.Tensor",
      "a copy with the other one added, times the factor (1)", NULL},
     {"times(other: cnnrun.Tensor|number)", cnri_lua_tensor_times, "cnnrun.Tensor",
      "a copy, element by element times another's, or times one number", NULL},
     {"taken(axis: integer, indices: integer[])", cnri_lua_tensor_taken, "cnnrun.Tensor",
      "a copy of those parts along an axis, all from 1", NULL},
     {"pruned(keep: number, options?: table)", cnri_lua_tensor_pruned, "cnnrun.Tensor",
      "a copy in which only that part of the elements, the largest in size, is not 0",
      cnri_pruning_keys},
     {"density(least?: number)", cnri_lua_tensor_density, "number",
      "the part of its elements that is not 0, or larger than that in size", NULL},
     {"norms()", cnri_lua_tensor_norms, "number[]",
      "the root of the sum of squares of each part along the first axis", NULL},
     {"save(path: string)", cnri_lua_tensor_save, "",
      "writes a .npy, or a picture (u8 [height,width,channels]) such as a .png", NULL},
     {0}};

void cnri_lua_open_tensors(lua_State *L) {
    static const luaL_Reg events[] = {{"__newindex", tensor_assign},
                                      {"__len", tensor_length},
                                      {"__tostring", tensor_show},
                                      {0}};
    cnri_lua_new_type(L, CNRI_TENSOR_TYPE, "a tensor", events, "cnnrun.Tensor", tensor_index);
}
