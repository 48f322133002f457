/* Parts of tensors for scripts: indices of large numbers, regions, parts, transposed axes. */
#include "lua/tensor.h"
#include <string.h>

/* t:above(least, from, to, step): indices (from 1) of the elements above `least`, among from,
 * from + step ... to. */
int cnri_lua_tensor_above(lua_State *L) {
    const cnr_tensor *t = cnri_lua_tensor_at(L, 1);
    const double minimum = luaL_checknumber(L, 2);
    const int64_t n = cnr_count(t);
    const lua_Integer from = luaL_optinteger(L, 3, 1), to = luaL_optinteger(L, 4, n);
    const lua_Integer step = luaL_optinteger(L, 5, 1);
    luaL_argcheck(L, from >= 1, 3, "want 1 or more");
    luaL_argcheck(L, to <= n, 4, "the tensor ends before");
    luaL_argcheck(L, step >= 1, 5, "want 1 or more");
    lua_newtable(L);
    if (to < from) return 1;
    const int64_t looks = (to - from) / step + 1;
    cnri_script_charge(L, looks / 4);
    lua_Integer found = 0;
    for (int64_t k = 0, i = from - 1; k < looks; k++, i += step) {
        if (!(cnri_element(t->dtype, t->data, i) > minimum)) continue;
        cnri_script_charge(L, 2);
        lua_pushinteger(L, i + 1);
        lua_rawseti(L, -2, ++found);
    }
    return 1;
}

/* Reads a list of exactly n whole numbers into out; raises errors. */
static void whole_numbers(lua_State *L, int table, int32_t n, int64_t *out) {
    luaL_checktype(L, table, LUA_TTABLE);
    if ((int64_t)lua_rawlen(L, table) != n)
        luaL_error(L, "want %d numbers, one a dimension, got %d", (int)n,
                   (int)lua_rawlen(L, table));
    for (int32_t i = 0; i < n; i++) {
        lua_rawgeti(L, table, i + 1);
        if (!lua_isinteger(L, -1))
            luaL_error(L, "want a list of whole numbers, got %s", luaL_tolstring(L, -1, NULL));
        out[i] = lua_tointeger(L, -1);
        lua_pop(L, 1);
    }
}

/* Copies elements axis by axis: element [i, j ...] of `to` is at `at` + i * step[0] + j *
 * step[1] ... Elements have whole bytes. */
typedef struct walk {
    const cnr_tensor *from;
    cnr_tensor *to;
    int64_t step[CNR_MAX_RANK];
    size_t width;
    int64_t done;
} walk;

/* Copies the elements of a view, axis by axis. */
static void copy(walk *w, int32_t axis, int64_t at) {
    if (axis == w->to->rank) {
        memcpy((char *)w->to->data + (size_t)w->done++ * w->width,
               (const char *)w->from->data + (size_t)at * w->width, w->width);
        return;
    }
    for (int64_t i = 0; i < w->to->dim[axis]; i++) copy(w, axis + 1, at + i * w->step[axis]);
}

/* Bytes of an element; raises an error for smaller ones. */
static size_t element_width(lua_State *L, const cnr_tensor *t) {
    const unsigned bits = cnr_dtype_bits(t->dtype);
    if (bits % 8 != 0) luaL_error(L, "elements of %u bits are not to be moved", bits);
    return bits / 8;
}

/* Steps of the axes of a dense tensor, in elements. */
static void own_steps(const cnr_tensor *t, int64_t *step) {
    int64_t n = 1;
    for (int32_t i = t->rank; i-- > 0; n *= t->dim[i]) step[i] = n;
}

/* t:transposed{ 2, 1, 3 }: axis i of the result is axis order[i]. */
int cnri_lua_tensor_transposed(lua_State *L) {
    const cnr_tensor *t = cnri_lua_tensor_at(L, 1);
    int64_t order[CNR_MAX_RANK], dim[CNR_MAX_RANK], step[CNR_MAX_RANK];
    unsigned seen = 0;
    whole_numbers(L, 2, t->rank, order);
    walk w = {.from = t, .width = element_width(L, t)};
    own_steps(t, step);
    for (int32_t i = 0; i < t->rank; i++) {
        if (order[i] < 1 || order[i] > t->rank || seen >> order[i] & 1)
            return luaL_error(L, "want each of the axes 1 to %d once", (int)t->rank);
        seen |= 1u << order[i];
        dim[i] = t->dim[order[i] - 1];
        w.step[i] = step[order[i] - 1];
    }
    cnri_script_charge(L, cnr_count(t) / 4);
    w.to = cnri_lua_push_tensor(L, t->dtype, t->rank, dim);
    if (cnr_count(t) > 0) copy(&w, 0, 0);
    return 1;
}

/* t:region({ y, x, c }, { h, w, c }), with a number for each axis of t: a new tensor of these
 * sizes, of the elements from that position (counted from 1, may lie outside) on, with zeros
 * beyond t's edge. Raises an error for elements of less than a byte and other numbers of axes. */
int cnri_lua_tensor_region(lua_State *L) {
    const cnr_tensor *t = cnri_lua_tensor_at(L, 1);
    int64_t start[CNR_MAX_RANK], dim[CNR_MAX_RANK], step[CNR_MAX_RANK];
    int64_t first = 0, skip[CNR_MAX_RANK], inner[CNR_MAX_RANK];
    const size_t width = element_width(L, t);
    whole_numbers(L, 2, t->rank, start);
    if (cnri_lua_dims(L, 3, dim) != t->rank) return luaL_error(L, "want a size a dimension");
    own_steps(t, step);
    cnr_tensor *to = cnri_lua_push_tensor(L, t->dtype, t->rank, dim);
    if (t->rank == 0) {
        memcpy(to->data, t->data, width);
        return 1;
    }
    for (int32_t i = 0; i < t->rank; i++) { /* what lies inside, along each axis */
        int64_t end;
        if (__builtin_sub_overflow(start[i], 1, &start[i]) ||
            __builtin_add_overflow(start[i], dim[i], &end))
            return luaL_error(L, "the region is too far away");
        skip[i] = start[i] < 0 ? -start[i] : 0;
        if (end > t->dim[i]) end = t->dim[i];
        inner[i] = end - (start[i] < 0 ? 0 : start[i]);
        if (inner[i] <= 0) return 1;
        first += (start[i] < 0 ? 0 : start[i]) * step[i];
    }
    const int32_t last = t->rank - 1; /* whole runs of the last axis */
    int64_t runs = 1, at[CNR_MAX_RANK] = {0}, out_step[CNR_MAX_RANK];
    own_steps(to, out_step);
    for (int32_t i = 0; i < last; i++) runs *= inner[i];
    cnri_script_charge(L, runs);
    for (int64_t r = 0; r < runs; r++) {
        int64_t from = first, put = skip[last];
        for (int32_t i = 0; i < last; i++) {
            from += at[i] * step[i];
            put += (at[i] + skip[i]) * out_step[i];
        }
        memcpy((char *)to->data + (size_t)put * width, (const char *)t->data + (size_t)from * width,
               (size_t)inner[last] * width);
        for (int32_t i = last; i-- > 0 && ++at[i] == inner[i];) at[i] = 0;
    }
    return 1;
}

/* t:taken(axis, { 1, 4 }): parts 1 and 4 along that axis. */
int cnri_lua_tensor_taken(lua_State *L) {
    const cnr_tensor *t = cnri_lua_tensor_at(L, 1);
    const lua_Integer axis = luaL_checkinteger(L, 2);
    const size_t width = element_width(L, t);
    int64_t dim[CNR_MAX_RANK], outer = 1, inner = (int64_t)width;
    luaL_argcheck(L, axis >= 1 && axis <= t->rank, 2, "the tensor has no such axis");
    luaL_checktype(L, 3, LUA_TTABLE);
    const int64_t n = (int64_t)lua_rawlen(L, 3), all = t->dim[axis - 1];
    for (int32_t i = 0; i < t->rank; i++) {
        dim[i] = i == axis - 1 ? n : t->dim[i];
        if (i < axis - 1) outer *= t->dim[i];
        if (i > axis - 1) inner *= t->dim[i];
    }
    cnr_tensor *to = cnri_lua_push_tensor(L, t->dtype, t->rank, dim);
    cnri_script_charge(L, n * outer);
    for (int64_t k = 0; k < n; k++) {
        lua_rawgeti(L, 3, k + 1);
        const lua_Integer from = lua_tointeger(L, -1);
        if (!lua_isinteger(L, -1) || from < 1 || from > all)
            return luaL_error(L, "indices[%I]: want 1 to %I", (LUAI_UACINT)k + 1, (LUAI_UACINT)all);
        lua_pop(L, 1);
        for (int64_t o = 0; o < outer; o++)
            memcpy((char *)to->data + (o * n + k) * inner,
                   (const char *)t->data + (o * all + from - 1) * inner, (size_t)inner);
    }
    return 1;
}
