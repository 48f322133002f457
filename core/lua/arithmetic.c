/* Arithmetic of tensors in scripts: t:plus(u, factor), t:times(u), t:pruned(keep), t:density(). */
#include "core/lua/tensor.h"
#include "core/work/work.h"
#include <string.h>

/* The tensor at `i`, of the shape of t. */
static const cnr_tensor *like(lua_State *L, int i, const cnr_tensor *t) {
    const cnr_tensor *u = cnri_lua_tensor_at(L, i);
    if (!cnr_same_shape(t, u))
        luaL_argerror(L, i, "want a tensor of the same shape");
    return u;
}

static cnr_tensor *copy(lua_State *L, const cnr_tensor *t) {
    cnri_script_charge(L, cnr_count(t) / 4);
    return cnri_lua_push_copy(L, t);
}

/* t + factor u */
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
        cnri_element_set(to->dtype, to->data, i, cnri_element(t->dtype, t->data, i) +
                                                     factor * cnri_element(u->dtype, u->data, i));
    return 1;
}

/* Element by element, or all by one number. */
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

/* The part `keep` of the elements that is largest in size; the others are 0. */
int cnri_lua_tensor_pruned(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    const cnr_tensor *t = cnri_lua_tensor_at(L, 1);
    const double keep = luaL_checknumber(L, 2);
    cnr_tensor *to = copy(L, t);
    return cnri_prune(to, keep, &err) ? cnri_script_raise(L, &err) : 1;
}

int cnri_lua_tensor_density(lua_State *L) {
    const cnr_tensor *t = cnri_lua_tensor_at(L, 1);
    const int64_t n = cnr_count(t);
    int64_t some = 0;
    cnri_script_charge(L, n / 4);
    for (int64_t i = 0; i < n; i++) some += cnri_element(t->dtype, t->data, i) != 0;
    lua_pushnumber(L, n ? (double)some / (double)n : 0);
    return 1;
}
