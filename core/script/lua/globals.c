/* What a script begins with: its globals, and what plugins may touch for it. */
#include "lua/state.h"

/* Makes the globals: the safe subset of the standard libraries, text functions and `require`, which
 * finds the module `cnnrun`. */
static int open_libraries(lua_State *L) {
    lua_newtable(L);
    cnri_lua_open_safe(L);
    cnri_lua_open_text(L);
    cnri_lua_open_require(L);
    lua_pushvalue(L, -1);
    lua_rawseti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
    return 0;
}

cnr_status cnri_script_open(cnri_script *s, cnr_runtime *rt, const char *path, bool trust,
                            cnr_error *err) {
    cnr_status status = cnri_script_new(s, rt, path, trust, err);
    if (status) return status;
    s->limits = (cnri_limits){cnri_lua_may_open, cnri_lua_is_named, cnri_lua_is_vouched, s};
    status = cnri_script_guard(s, open_libraries, NULL, 0, err);
    if (status) cnri_script_close(s);
    return status;
}
