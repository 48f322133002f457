/* Inside the room: the manual of what scripts can say, while it is gathered. */
#ifndef CNRI_LUA_LIBRARY_H
#define CNRI_LUA_LIBRARY_H

#include "lua/script.h"

/* ---- entries.c ---- */
/* Each notes in r->failed that there was no memory. */
void cnri_manual_part(cnri_lua_manual *r, const char *name, const char *help);
/* Into the last part, with empty texts. NULL after a failure. */
cnri_lua_help *cnri_manual_row(cnri_lua_manual *r, const char *owner, const char *name, size_t n);
/* *slot becomes a copy of the text, behind what it holds by now. */
void cnri_manual_text(cnri_lua_manual *r, char **slot, const char *text, size_t n);
/* `type` may be replaced by a text of the same kind later. */
cnri_lua_option *cnri_manual_option(cnri_lua_manual *r, cnri_lua_help *row, const char *name,
                                    size_t n, const char *type);

/* library.c: the files of scripts/lib that begin with a class of their name, "---@class lib.csv" */
void cnri_library_gather(cnri_lua_manual *r);

#endif
