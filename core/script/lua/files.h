/* Inside the room: the rule for files that a script may open, and memory blocks that errors do
 * not leak. */
#ifndef CNRI_LUA_FILES_H
#define CNRI_LUA_FILES_H

#include "lua/state.h"

/* The rule for files: raises an error unless the script may read (or write) `path`. An
 * experiment may use the paths in its words, what lies below them, and what lies below
 * --output's folder, all with links followed. It may also read what lies beside the script. A
 * trusted script may use any file, a net's script none. A word may hold several paths separated
 * by commas, or one behind "--out=". Every function that opens a file calls this; plugins that
 * open files for a script follow the same rule (cnri_lua_may_open). */
void cnri_lua_check_file(lua_State *L, const char *path, bool write);
/* Raises an error unless the script may use an address or a device: a word, or a part of one, must
 * name it, or the script is trusted. */
void cnri_lua_check_address(lua_State *L, const char *address);
/* Pushes the path of a file that a net names: below the script's folder, or anywhere if trusted.
 * Pushes nil if it is not allowed. */
const char *cnri_lua_push_beside(lua_State *L, const char *name);

/* Pushes a holder for a block that the collector frees with cnri_free. Push it before
 * allocating, so that errors leak nothing. */
void **cnri_lua_push_holder(lua_State *L);
void cnri_lua_open_files(lua_State *L); /* Makes the type of held blocks known to Lua. */
extern const cnri_lua_row cnri_file_rows[];

#endif
