/* Which files a script may touch; blocks in the collector's care. */
#include "core/lua/files.h"
#include <string.h>

#define HOLDER_TYPE "cnnrun holder"

/* `path` is `given`, or lies below the directory `given`. */
static bool below(const char *path, const char *given) {
    const size_t n = strlen(given);
    if (strcmp(path, given) == 0) return true;
    if (n == 0 || strncmp(path, given, n) != 0) return false;
    if (given[n - 1] != '/' && path[n] != '/') return false;
    return cnri_path_is_inside(path + n + (path[n] == '/'));
}

void cnri_lua_check_file(lua_State *L, const char *path, bool write) {
    const cnri_script *s = cnri_script_of(L);
    if (s->trust) return;
    if (!s->experiment) luaL_error(L, "'%s': a net's script touches no files", path);
    for (int32_t i = 0; i < s->n_args; i++)
        if (below(path, s->args[i])) return;
    if (!write && (below(path, s->dir) || (strcmp(s->dir, ".") == 0 && cnri_path_is_inside(path))))
        return;
    luaL_error(L, "'%s' may not be %s: it is none of the paths on the command line (--trust lifts "
               "this)", path, write ? "written" : "read");
}

const char *cnri_lua_push_beside(lua_State *L, const char *name) {
    const cnri_script *s = cnri_script_of(L);
    if (name[0] == '/' && s->trust) return lua_pushstring(L, name);
    if (!s->trust && !cnri_path_is_inside(name)) {
        lua_pushnil(L);
        return NULL;
    }
    if (strcmp(s->dir, ".") == 0) return lua_pushstring(L, name);
    return lua_pushfstring(L, "%s/%s", s->dir, name);
}

/* ---- held blocks ---- */

void **cnri_lua_push_holder(lua_State *L) {
    void **block = lua_newuserdatauv(L, sizeof *block, 0);
    *block = NULL;
    luaL_setmetatable(L, HOLDER_TYPE);
    return block;
}

static int free_held(lua_State *L) {
    void **block = lua_touserdata(L, 1);
    cnri_free(*block);
    *block = NULL;
    return 0;
}

void cnri_lua_open_files(lua_State *L) {
    static const luaL_Reg events[] = {{"__gc", free_held}, {0}};
    cnri_lua_new_type(L, HOLDER_TYPE, events, NULL, 0, NULL);
}
