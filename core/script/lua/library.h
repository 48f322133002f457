/* Inside the room: gathers the manual of the scripting API. */
#ifndef CNRI_LUA_LIBRARY_H
#define CNRI_LUA_LIBRARY_H

#include "lua/script.h"

/* ---- entries.c ---- */
/* Adds a part with copies of both texts. All functions here set r->failed if memory is out. */
void cnri_manual_part(cnri_lua_manual *r, const char *name, const char *help);
/* Adds a row with empty texts to the last part. NULL: out of memory. */
cnri_lua_help *cnri_manual_row(cnri_lua_manual *r, const char *owner, const char *name, size_t n);
/* Sets *slot to a copy of the text, appended to what it holds. */
void cnri_manual_text(cnri_lua_manual *r, char **slot, const char *text, size_t n);
/* Adds an option of a table with copies of `name` (n bytes) and `type`. NULL after a failure. */
cnri_lua_option *cnri_manual_option(cnri_lua_manual *r, cnri_lua_help *row, const char *name,
                                    size_t n, const char *type);

/* library.c: gathers the files of scripts/lib that begin with a class of their name, "---@class
 * lib.csv" */
void cnri_library_gather(cnri_lua_manual *r);

#endif
