/* Scripts that an application calls with texts and tensors (cnnrun/lab.h). */
#include "lua/model.h"
#include "lua/tensor.h"
#include <cnnrun/lab.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

/* A script whose function an application calls. */
struct cnr_script {
    cnri_script inner;
    char *path;
    cnr_model *model;     /* the application's model; NULL: none */
    cnri_lua_model *lent; /* the userdata that represents it */
    /* the observer of the present call; `watch` passes no events on, because the library has
     * further ones */
    const cnr_observer *at;
    cnr_observer watch;
    const char *text;
    const cnr_tensor *const *tensors;
    int32_t n_tensors;
    const char *result;
};

static const char function_key, net_key, result_key; /* their addresses are keys of the registry */

/* Lua function: runs the file, and keeps the function that it must return, and the application's
 * net, in the registry. No results. */
static int run_top(lua_State *L) {
    cnr_script *s = lua_touserdata(L, 1);
    cnri_lua_load_file(L, s->path, s->path);
    lua_call(L, 0, 1);
    if (!lua_isfunction(L, -1))
        luaL_error(L, "an application calls what the script returns: want a function, got a %s",
                   luaL_typename(L, -1));
    lua_rawsetp(L, LUA_REGISTRYINDEX, &function_key);
    if (s->model) {
        s->lent = cnri_lua_push_net(L);
        s->lent->model = s->model;
        s->lent->lent = true;
        lua_rawsetp(L, LUA_REGISTRYINDEX, &net_key);
    }
    return 0;
}

/* tell(text): passes text to the application. Upvalue 1: the script. */
static int tell(lua_State *L) {
    cnr_script *s = lua_touserdata(L, lua_upvalueindex(1));
    const char *text = luaL_checkstring(L, 1);
    if (!s->at || !s->at->event || !s->at->event(s->at->arg, CNR_EVENT_SCRIPT, text)) return 0;
    s->inner.stop_wanted = s->inner.stopped = true;
    cnri_script_check(L);
    return 0;
}

/* Lua function: calls the script's function with its text, a function that tells, the net and
 * copies of the tensors. Keeps the text that it returns, "" for nil; raises an error for other
 * answers. */
static int call_function(lua_State *L) {
    cnr_script *s = lua_touserdata(L, 1);
    luaL_checkstack(L, s->n_tensors + 20, "too many tensors");
    lua_rawgetp(L, LUA_REGISTRYINDEX, &function_key);
    lua_pushstring(L, s->text);
    lua_pushlightuserdata(L, s);
    lua_pushcclosure(L, tell, 1);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &net_key);
    for (int32_t i = 0; i < s->n_tensors; i++) cnri_lua_push_copy(L, s->tensors[i]);
    lua_call(L, 3 + s->n_tensors, 1);
    if (lua_isnil(L, -1)) lua_pushliteral(L, "");
    if (lua_type(L, -1) != LUA_TSTRING)
        luaL_error(L, "the script returned a %s value: want a text or nil", luaL_typename(L, -1));
    s->result = lua_tostring(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &result_key);
    return 0;
}

cnr_status cnr_script_open(cnr_runtime *rt, const char *path, cnr_model *model, cnr_script **out,
                           cnr_error *err) {
    if (out) *out = NULL;
    cnr_status status = cnri_require_arguments(err, "runtime", rt, "path", path, "out", out, NULL);
    if (!status) status = cnri_check_process(rt, err);
    if (status) return status;
    cnr_script *s = cnri_alloc_zero(sizeof *s);
    if (!s) return cnri_out_of_memory(err, path);
    s->path = access(path, R_OK) == 0 ? cnri_strdup(path) : cnri_lua_shipped(path);
    s->model = model;
    if (!s->path)
        status = cnri_fail(err, CNR_E_NOT_FOUND, path, "no such file, nor an installed script");
    if (!status) status = cnri_script_open(&s->inner, rt, s->path, true, err);
    s->inner.experiment = true;
    s->inner.limit = CNRI_MAIN_BYTES;
    if (!status) status = cnri_script_guard(&s->inner, run_top, s, 0, err);
    if (status) cnr_script_close(s);
    else *out = s;
    return status;
}

/* Restores an error of the library that passed through the script, without the script's lines. */
static cnr_status unwrap(const cnr_error *raised, cnr_status status, cnr_error *err) {
    if (!raised->code || !err || !raised->text[0] || !strstr(err->text, raised->text))
        return status;
    return cnri_fail(err, raised->code, raised->where, "%s", raised->text);
}

/* Checks that all tensors are dense and on the host. */
static cnr_status check_tensors(const cnr_tensor *const *tensors, int32_t n, cnr_error *err) {
    for (int32_t i = 0; i < n; i++) {
        const cnr_tensor *t = tensors[i];
        const uint64_t bytes =
            !t || t->rank < 0 || t->rank > CNR_MAX_RANK ? UINT64_MAX : cnr_dense_bytes(t);
        if (bytes == UINT64_MAX || t->encoding || (bytes && !t->data) ||
            (t->bytes && t->bytes < bytes))
            return cnri_fail(err, CNR_E_ARG, "tensors", "%d: want a dense tensor on the host",
                             (int)i);
    }
    return CNR_OK;
}

cnr_status cnr_script_call(cnr_script *s, const char *text, const cnr_tensor *const *tensors,
                           int32_t n_tensors, const cnr_observer *observer, const char **out,
                           cnr_error *err) {
    if (out) *out = NULL;
    cnr_status status = cnri_require_arguments(err, "script", s, NULL);
    if (!status && n_tensors > 0) status = cnri_require_arguments(err, "tensors", tensors, NULL);
    if (!status) status = cnri_check_process(s->inner.rt, err);
    if (!status) status = check_tensors(tensors, n_tensors, err);
    if (status) return status;
    s->text = text;
    s->tensors = tensors;
    s->n_tensors = n_tensors > 0 ? n_tensors : 0;
    s->at = observer;
    s->watch = (cnr_observer){.size = sizeof s->watch};
    if (observer) {
        s->watch.arg = observer->arg;
        s->watch.progress = observer->progress;
        s->watch.cancel = CNRI_HAS(observer, cancel) ? observer->cancel : NULL;
    }
    s->inner.watch = &s->watch;
    s->inner.stop_wanted = false;
    cnri_script_again(&s->inner, CNRI_MAIN_INSTRUCTIONS, UINT64_MAX);
    s->inner.raised.code = 0;
    status = cnri_script_guard(&s->inner, call_function, s, 0, err);
    if (status == CNR_E_SCRIPT) status = unwrap(&s->inner.raised, status, err);
    s->at = NULL;
    s->inner.watch = NULL;
    if (!status && out) *out = s->result;
    return status;
}

void cnr_script_close(cnr_script *s) {
    if (!s) return;
    cnri_script_close(&s->inner);
    cnri_free(s->path);
    cnri_free(s);
}
