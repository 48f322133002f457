/* Which script a Lua state belongs to, where the state is a stock interpreter's. */
#include "lua/state.h"

static const char hosted; /* its address: where the registry of such a state has its script */
_Atomic bool cnri_lua_has_hosts;

/* The state's extra space is not ours here: its coroutines, some older than we are, have copies. */
cnri_script *cnri_script_hosted(lua_State *L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &hosted);
    cnri_script *s = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return s ? s : *(cnri_script **)lua_getextraspace(L);
}

void cnri_script_set_host(lua_State *L) {
    lua_rawsetp(L, LUA_REGISTRYINDEX, &hosted);
    cnri_lua_has_hosts = true;
}
