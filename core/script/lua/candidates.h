/* Inside the room: candidates and what is seen beside them, as tables of Lua. */
#ifndef CNRI_LUA_CANDIDATES_H
#define CNRI_LUA_CANDIDATES_H

#include "lua/state.h"
#include "show/show.h"

/* Pushes a table that gives the index of each row's table, and above it the list of rows; wanted:
 * only of devices that a policy is to see. Returns where the list is. */
int cnri_lua_push_rows(lua_State *L, const cnri_table *t, bool wanted);
/* Pushes nodes, devices, links, options ("name=value", NULL-terminated) and between(row, row);
 * `index` is where the rows' table is. Both hold while `t` does. */
void cnri_lua_push_seen(lua_State *L, const cnri_table *t, const char *const *options, int index);
/* A value as JSON; what is neither number, text, boolean nor table of such becomes null. Raises. */
void cnri_lua_to_json(lua_State *L, int at, cnri_text *out);

#endif
