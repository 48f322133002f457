/* Inside the room: from a net of a script to a filled graph; for the loader and for experiments. */
#ifndef CNRI_LUA_LOAD_H
#define CNRI_LUA_LOAD_H

#include "lua/state.h"

typedef CNRI_VEC(char *) cnri_lua_words;
typedef struct cnri_lua_built {
    cnr_graph *graph;
    /* the net's `weights`: paths, and "name=value" for whoever imports them */
    cnri_lua_words files, settings;
    char where[256]; /* of c.net */
} cnri_lua_built;

/* The script's result is on top: leaves the net on top. `wanted` may be NULL. Raises. */
void cnri_lua_pick_net(lua_State *L, const char *wanted);
/* Builds out->graph (made by the caller) from the net at `net`; mistakes become its problems. */
void cnri_lua_build(lua_State *L, int net, cnri_lua_built *out);
/* `place` of the table at `args`, as wishes of the graph; mistakes become its problems. */
void cnri_lua_add_places(lua_State *L, cnr_graph *g, int args, const char *where);
/* CNR_OK, or the mistakes, in the order of their lines. */
cnr_status cnri_lua_verdict(cnr_graph *g, const char *path, cnr_error *err);
/* ---- weights.c ---- */
/* Reads `weights` of the net's arguments at `args`. */
void cnri_lua_read_weights(lua_State *L, int args, cnri_lua_built *out);
/* Frees all but the graph. */
void cnri_lua_built_free(cnri_lua_built *built);
/* Fills the weights: as the options say, else from the files that the net names. */
cnr_status cnri_lua_fill(cnri_lua_built *built, const cnr_load_options *options, cnr_error *err);

#endif
