/* c.plugins(): what each plugin brings, why it was refused, which library it lacks. */
#include "lua/files.h"
#include "lua/model.h"

/* Sets lists of names by kind in the table on top: provides.object = { "canvas" }. */
static void set_provides(lua_State *L, int32_t index) {
    int32_t kind;
    const char *name;
    lua_newtable(L);
    for (int32_t i = 0; cnri_plugin_item(index, i, &kind, &name); i++) {
        if (lua_getfield(L, -1, cnri_kind_name(kind)) == LUA_TNIL) {
            lua_newtable(L);
            lua_pushvalue(L, -1);
            lua_setfield(L, -4, cnri_kind_name(kind));
            lua_remove(L, -2);
        }
        lua_pushstring(L, name);
        lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
        lua_pop(L, 1);
    }
    lua_setfield(L, -2, "provides");
}

/* Pushes a plugin as a table; `refused` says why it was not loaded. */
static void push_plugin(lua_State *L, int32_t index) {
    const cnri_plugin *p = cnri_plugin_at(index);
    lua_createtable(L, 0, 7);
    cnri_lua_set_text(L, "name", p->name);
    cnri_lua_set_text(L, "version", p->version);
    cnri_lua_set_text(L, "file", p->path);
    cnri_lua_set_text(L, "refused", p->refused);
    cnri_lua_set_text(L, "summary", p->desc ? p->desc->summary : NULL);
    set_provides(L, index);
    void **holder = cnri_lua_push_holder(L);
    const uint64_t left = cnri_script_leave();
    *holder = cnri_plugin_lacks(p);
    cnri_script_return(L, left);
    lua_pushstring(L, *holder);
    lua_setfield(L, -3, "lacks");
    lua_pop(L, 1);
}

int cnri_lua_plugins(lua_State *L) {
    cnri_lua_experiment(L);
    const int32_t n = cnri_plugin_count();
    lua_createtable(L, n, 0);
    for (int32_t i = 0; i < n; i++) {
        push_plugin(L, i);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}
