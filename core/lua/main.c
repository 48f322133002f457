/* Experiments: scripts that return a function main(args). */
#include "core/lua/model.h"
#include <string.h>

typedef struct job {
    bool only_look, is_main;
    int exit_code;
} job;

static void push_args(lua_State *L, const cnri_script *s) {
    lua_createtable(L, s->n_args, 1);
    lua_pushstring(L, s->path);
    lua_rawseti(L, -2, 0);
    for (int32_t i = 0; i < s->n_args; i++) {
        lua_pushstring(L, s->args[i]);
        lua_rawseti(L, -2, i + 1);
    }
}

static int run_main(lua_State *L) {
    job *j = lua_touserdata(L, 1);
    cnri_script *s = cnri_script_of(L);
    cnri_lua_load_file(L, s->path, s->path);
    lua_call(L, 0, 1);
    j->is_main = lua_isfunction(L, -1);
    if (!j->is_main || j->only_look) return 0;
    s->experiment = true;
    if (!s->stopped) s->budget = CNRI_MAIN_INSTRUCTIONS;
    s->cpu_limit_ns = UINT64_MAX;
    s->limit = CNRI_MAIN_BYTES;
    push_args(L, s);
    lua_call(L, 1, 1);
    if (lua_isinteger(L, -1)) j->exit_code = (int)lua_tointeger(L, -1);
    return 0;
}

cnr_status cnri_lua_main(cnr_runtime *rt, const char *path, int argc, char **argv, bool trust,
                         bool (*cancelled)(void), int *exit_code, cnr_error *err) {
    cnri_script s;
    job j = {0};
    cnr_status status = cnri_script_open(&s, rt, path, trust, err);
    if (status) return status;
    s.args = (const char *const *)argv;
    s.n_args = argc;
    s.cancelled = cancelled;
    status = cnri_script_guard(&s, run_main, &j, 0, err);
    cnri_script_close(&s);
    if (status) return status;
    if (exit_code) *exit_code = j.exit_code;
    if (j.is_main) return CNR_OK;
    return cnri_fail(err, CNR_E_NOT_FOUND, path, "no experiment: it returns no function main(args)");
}

cnr_status cnri_lua_is_main(cnr_runtime *rt, const char *path, bool *out, cnr_error *err) {
    cnri_script s;
    job j = {.only_look = true};
    *out = false;
    cnr_status status = cnri_script_open(&s, rt, path, false, err);
    if (status) return status;
    status = cnri_script_guard(&s, run_main, &j, 0, err);
    cnri_script_close(&s);
    *out = j.is_main;
    return status;
}
