/* Inside the room: which files a script may touch, and blocks that survive no error. */
#ifndef CNRI_LUA_FILES_H
#define CNRI_LUA_FILES_H

#include "lua/state.h"

/* The rule of paths. Raises unless the script may read (or write) `path`. An experiment may the
 * paths that its words name and what lies below them or below --output's folder, all with links
 * followed; to read also what lies beside the script. A trusted one any, a net's script none. A
 * word may hold several with commas between, or one behind "--out=". Every door to a file asks
 * here; what plugins open for a script goes by the same rule (cnri_lua_may_open). */
void cnri_lua_check_file(lua_State *L, const char *path, bool write);
/* The same of an address or a device: a word names it, or a part of one as above. */
void cnri_lua_check_address(lua_State *L, const char *address);
/* A file that a net names, made a path: below the script's folder, or anywhere when trusted. Pushes
 * it; nil when it is not allowed. */
const char *cnri_lua_push_beside(lua_State *L, const char *name);

/* Pushes a holder of a block that the collector frees (cnri_free). Made first, then filled, so that
 * an error leaves nothing behind. */
void **cnri_lua_push_holder(lua_State *L);
void cnri_lua_open_files(lua_State *L);
extern const cnri_lua_row cnri_file_rows[];

#endif
