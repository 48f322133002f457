/* Inside the room: candidates, and the data beside them, as Lua tables. */
#ifndef CNRI_LUA_CANDIDATES_H
#define CNRI_LUA_CANDIDATES_H

#include "lua/state.h"
#include "show/show.h"

/* Pushes a table that maps each row's table to its index, and above it the list of rows. words:
 * options of a policy, which have what place measured; NULL: none. wanted: only rows of devices
 * that a policy sees. Returns the stack index of the list. */
int cnri_lua_push_rows(lua_State *L, const cnri_table *t, const char *const *words, bool wanted);
/* Pushes nodes, devices, links, options ("name=value", NULL-terminated) and between(row, row).
 * `index`: stack index of the map of rows. The functions are valid as long as `t`. */
void cnri_lua_push_seen(lua_State *L, const cnri_table *t, const char *const *options, int index);
/* Appends the value at `at` as JSON. Values other than numbers, texts, booleans and tables of these
 * become null. Raises an error for tables that are nested too deeply. */
void cnri_lua_to_json(lua_State *L, int at, cnri_text *out);

#endif
