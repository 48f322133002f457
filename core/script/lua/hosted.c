/* Finds the script of a Lua state if the state belongs to a stock interpreter. */
#include "lua/state.h"

static const char hosted; /* its address is the registry key of the script */
_Atomic bool cnri_lua_has_hosts;

/* The script of a state, hosted or our own. (The state's extra space belongs to the interpreter,
 * and its coroutines have copies of it.) */
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
