/* Loads script files as text, each with globals of its own, and implements require. */
#include "lua/files.h"
#include "lua/library.h"
#include "lua/script.h"
#include <string.h>
#include <sys/stat.h>

/* ---- a file's own _ENV ---- */

/* Raises an error for an unknown global. Upvalue 1: the globals. */
static int unknown_global(lua_State *L) {
    const char *name = lua_tostring(L, 2);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL) return 1;
    const char *words[64];
    int32_t n = 0;
    lua_pushnil(L);
    while (n < 64 && lua_next(L, lua_upvalueindex(1))) {
        if (lua_type(L, -2) == LUA_TSTRING) words[n++] = lua_tostring(L, -2);
        lua_pop(L, 1);
    }
    const char *best = cnri_nearest_word(name, words, n);
    return luaL_error(L, "unknown global '%s'%s%s%s", name ? name : "?",
                      best ? " (did you mean '" : "", best ? best : "", best ? "'?)" : "");
}

/* Raises an error for an assignment to a global. */
static int assigned_global(lua_State *L) {
    const char *name = lua_tostring(L, 2);
    return luaL_error(L, "'%s' is assigned as a global: say 'local %s'", name ? name : "?",
                      name ? name : "x");
}

/* Pushes an _ENV for a file: globals can be read, but not assigned. */
static void push_environment(lua_State *L) {
    lua_newtable(L);
    lua_createtable(L, 0, 3);
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
    lua_pushcclosure(L, unknown_global, 1);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, assigned_global);
    lua_setfield(L, -2, "__newindex");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
}

/* ---- loading ---- */

/* Rest of a script's text that the parser has not read yet; read_piece hands it out 4 KiB at a
 * time. */
typedef struct piece {
    const char *at;
    size_t n;
} piece;

/* Returns the next piece of a script for the parser, *n bytes; NULL: the end. Parsing has no hook,
 * and may take time quadratic in the text's length, so a script that exceeded its time gets no
 * more. */
static const char *read_piece(lua_State *L, void *arg, size_t *n) {
    enum { AT_A_TIME = 4096 };
    piece *p = arg;
    const char *at = p->at;
    cnri_script_charge(L, 0);
    *n = p->n < AT_A_TIME ? p->n : AT_A_TIME;
    p->at += *n;
    p->n -= *n;
    return *n ? at : NULL;
}

void cnri_lua_load_text(lua_State *L, const char *text, size_t bytes, const char *name) {
    piece p = {text, bytes};
    lua_pushfstring(L, "@%s", name);
    if (bytes && text[0] == '#') { /* #!/usr/bin/env cnnrun: kept as an empty line */
        p.at = memchr(text, '\n', bytes);
        p.n = p.at ? bytes - (size_t)(p.at - text) : 0;
    }
    if (lua_load(L, read_piece, &p, lua_tostring(L, -1), "t") != LUA_OK) lua_error(L);
    push_environment(L);
    lua_setupvalue(L, -2, 1);
    lua_remove(L, -2);
}

void cnri_lua_load_file(lua_State *L, const char *path, const char *name) {
    cnr_error err = CNR_ERROR_INIT;
    char *text;
    size_t bytes;
    void **held = cnri_lua_push_holder(L);
    if (cnri_read_file(path, CNRI_SCRIPT_FILE_BYTES, &text, &bytes, &err))
        luaL_error(L, "%s: %s", err.where, err.text);
    *held = text;
    cnri_lua_load_text(L, text, bytes, name);
    cnri_free(text);
    *held = NULL;
    lua_remove(L, -2);
}

/* ---- require ---- */

/* True for "blocks" or "lib.blocks": words separated by dots. */
static bool is_plain(const char *name) {
    bool word = false;
    for (; *name; name++) {
        if (*name == '.') {
            if (!word) return false;
            word = false;
        } else if (cnri_word_length(name) == 0 && *name != '-') return false;
        else word = true;
    }
    return word;
}

/* Pushes the path of file `name` in `directory`, and its name for messages; false: it is not
 * there. */
static bool find_in(lua_State *L, const char *directory, const char *name, bool own) {
    struct stat info;
    const cnri_script *s = cnri_script_of(L);
    const char *path = lua_pushfstring(L, "%s/%s", directory, name);
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) {
        lua_pop(L, 1);
        return false;
    }
    if (own && !s->trust) {
        cnr_error err = CNR_ERROR_INIT;
        char *real;
        if (cnri_path_beside(s->path, name, &real, &err)) cnri_script_raise(L, &err);
        cnri_free(real);
    }
    lua_pushstring(L, own && strcmp(directory, ".") == 0 ? name : path);
    return true;
}

/* Pushes the path and the name for messages of a shipped file; false: there is none. */
static bool find_installed(lua_State *L, const char *name) {
    void **holder = cnri_lua_push_holder(L); /* the path is freed whatever happens */
    *holder = cnri_lua_shipped(name);
    const bool found = *holder != NULL;
    if (found) lua_pushstring(L, *holder);
    if (found) lua_pushvalue(L, -1);
    lua_remove(L, found ? -3 : -1);
    return found;
}

/* Pushes and returns the file of a module: lib/blocks.lua for "lib.blocks". */
static const char *push_file(lua_State *L, const char *name) {
    luaL_gsub(L, name, ".", "/");
    lua_pushliteral(L, ".lua");
    lua_concat(L, 2);
    return lua_tostring(L, -1);
}

/* Finds a module's file beside the script or among the installed ones, and pushes its path and its
 * name for messages; false: there is none, and nothing is pushed. */
static bool find_file(lua_State *L, const char *file) {
    return find_in(L, cnri_script_of(L)->dir, file, true) || find_installed(L, file);
}

bool cnri_lua_find_module(lua_State *L, const char *name) {
    if (!is_plain(name) || !find_file(L, push_file(L, name))) return false;
    lua_pop(L, 1); /* how messages call it */
    return true;
}

/* require(name). Upvalue 1: loaded modules by name; false while one is being loaded. */
static int script_require(lua_State *L) {
    const char *name = luaL_checkstring(L, 1);
    lua_settop(L, 1);
    lua_pushvalue(L, 1);
    if (lua_rawget(L, lua_upvalueindex(1)) == LUA_TBOOLEAN && !lua_toboolean(L, -1))
        return luaL_error(L, "'%s' requires itself", name);
    if (!lua_isnil(L, -1)) return 1;
    if (!is_plain(name))
        return luaL_error(L,
                          "require wants a plain name such as 'blocks' or 'lib.blocks', "
                          "got '%s'",
                          name);
    lua_settop(L, 1);
    const char *file = push_file(L, name);
    if (!find_file(L, file))
        return luaL_error(L,
                          "no module '%s': there is no %s beside the script, nor among the "
                          "installed scripts",
                          name, file);
    lua_pushvalue(L, 1);
    lua_pushboolean(L, 0);
    lua_rawset(L, lua_upvalueindex(1));
    cnri_lua_load_file(L, lua_tostring(L, -2), lua_tostring(L, -1));
    lua_call(L, 0, 1);
    if (lua_isnil(L, -1)) return luaL_error(L, "module '%s' returns nothing", name);
    lua_pushvalue(L, 1);
    lua_pushvalue(L, -2);
    lua_rawset(L, lua_upvalueindex(1));
    return 1;
}

void cnri_lua_open_require(lua_State *L) {
    cnri_lua_open_files(L);
    lua_newtable(L);
    cnri_lua_push_module(L);
    lua_setfield(L, -2, "cnnrun");
    lua_pushcclosure(L, script_require, 1);
    lua_setfield(L, -2, "require");
}
