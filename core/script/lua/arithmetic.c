/* Arithmetic of tensors in scripts: t:plus(u, factor), t:times(u), t:pruned(keep), t:density(),
 * t:norms(). */
#include "lua/tensor.h"
#include "work/work.h"
#include <math.h>
#include <string.h>

/* The tensor at `i`; raises an error unless it has the shape of t. */
static const cnr_tensor *like(lua_State *L, int i, const cnr_tensor *t) {
    const cnr_tensor *u = cnri_lua_tensor_at(L, i);
    if (!cnr_same_shape(t, u)) luaL_argerror(L, i, "want a tensor of the same shape");
    return u;
}

/* Pushes a copy of a tensor, and counts its cost to the script. */
static cnr_tensor *copy(lua_State *L, const cnr_tensor *t) {
    cnri_script_charge(L, cnr_count(t) / 4);
    return cnri_lua_push_copy(L, t);
}

/* Implements t:plus(u, factor): pushes t + factor * u as a new tensor; the factor is 1 by
 * default. */
int cnri_lua_tensor_plus(lua_State *L) {
    const cnr_tensor *t = cnri_lua_tensor_at(L, 1), *u = like(L, 2, t);
    const double factor = luaL_optnumber(L, 3, 1);
    cnr_tensor *to = copy(L, t);
    const int64_t n = cnr_count(t);
    if (t->dtype == CNR_f32 && u->dtype == CNR_f32) {
        float *x = to->data;
        const float *y = u->data;
        for (int64_t i = 0; i < n; i++) x[i] = (float)((double)x[i] + factor * (double)y[i]);
        return 1;
    }
    for (int64_t i = 0; i < n; i++)
        cnri_element_set(to->dtype, to->data, i,
                         cnri_element(t->dtype, t->data, i) +
                             factor * cnri_element(u->dtype, u->data, i));
    return 1;
}

/* Implements t:times(u): pushes a copy, multiplied element by element, or by a number. */
int cnri_lua_tensor_times(lua_State *L) {
    const cnr_tensor *t = cnri_lua_tensor_at(L, 1);
    const bool number = lua_type(L, 2) == LUA_TNUMBER;
    const double factor = number ? lua_tonumber(L, 2) : 1;
    const cnr_tensor *u = number ? NULL : like(L, 2, t);
    cnr_tensor *to = copy(L, t);
    for (int64_t i = 0; i < cnr_count(t); i++)
        cnri_element_set(to->dtype, to->data, i,
                         cnri_element(t->dtype, t->data, i) *
                             (u ? cnri_element(u->dtype, u->data, i) : factor));
    return 1;
}

/* ---- pruning ---- */

/* Options of t:pruned; block: rows that are kept or set to 0 together. */
typedef struct pruning {
    int64_t block;
} pruning;
const cnri_lua_key cnri_pruning_keys[] =
    {CNRI_OTHER("by: a tensor of the same shape that says what is large (itself)", "cnnrun.Tensor"),
     CNRI_WHOLE("block: so many rows stay or go together, column by column (1)", pruning, block, 1,
                65536),
     {0}};

/* Implements t:pruned(keep, options): pushes a copy that keeps the share `keep` of the elements
 * with the largest magnitude; the others become 0. Options: block, and `by`, whose magnitudes count
 * instead. */
int cnri_lua_tensor_pruned(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    const cnr_tensor *t = cnri_lua_tensor_at(L, 1), *by = NULL;
    const double keep = luaL_checknumber(L, 2);
    pruning p = {1};
    lua_settop(L, 3);
    cnri_lua_take(L, 3, cnri_pruning_keys, &p);
    if (!lua_isnil(L, 3) && cnri_lua_get(L, 3, "by") != LUA_TNIL) {
        by = luaL_testudata(L, -1, CNRI_TENSOR_TYPE);
        if (!by || !cnr_same_shape(t, by))
            return luaL_error(L, "by: want a tensor of the same shape");
    }
    cnr_tensor *to = copy(L, t);
    return cnri_prune(to, by, p.block, keep, &err) ? cnri_script_raise(L, &err) : 1;
}

/* Implements t:density(minimum): pushes the share of the elements whose magnitude exceeds the
 * minimum (0); NaN counts, too. */
int cnri_lua_tensor_density(lua_State *L) {
    const cnr_tensor *t = cnri_lua_tensor_at(L, 1);
    const double minimum = luaL_optnumber(L, 2, 0);
    const int64_t n = cnr_count(t);
    int64_t some = 0;
    cnri_script_charge(L, n / 4);
    for (int64_t i = 0; i < n; i++) some += !(fabs(cnri_element(t->dtype, t->data, i)) <= minimum);
    lua_pushnumber(L, n ? (double)some / (double)n : 0);
    return 1;
}

/* Implements t:norms(): pushes a list with the Euclidean norm of each part along the first axis. */
int cnri_lua_tensor_norms(lua_State *L) {
    const cnr_tensor *t = cnri_lua_tensor_at(L, 1);
    luaL_argcheck(L, t->rank > 0, 1, "want a dimension or more");
    const int64_t rows = t->dim[0], each = rows > 0 ? cnr_count(t) / rows : 0;
    cnri_script_charge(L, cnr_count(t) / 4);
    lua_createtable(L, (int)(rows < 65536 ? rows : 65536), 0);
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t i = r * each; i < (r + 1) * each; i++) {
            const double x = cnri_element(t->dtype, t->data, i);
            sum += x * x;
        }
        lua_pushnumber(L, sqrt(sum));
        lua_rawseti(L, -2, r + 1);
    }
    return 1;
}
