/* Inside the room: builds a filled graph from a script's net, for the loader and for
 * experiments. */
#ifndef CNRI_LUA_LOAD_H
#define CNRI_LUA_LOAD_H

#include "lua/state.h"

typedef CNRI_VEC(char *) cnri_lua_words;
/* A net that a script described. */
typedef struct cnri_lua_built {
    cnr_graph *graph;
    /* `weights` of the net: paths, and "name=value" for their importer */
    cnri_lua_words files, settings;
    char where[256]; /* place of the call of c.net */
} cnri_lua_built;

/* Leaves the net on top, from the script's result on top. `wanted`: name of the net, or NULL.
 * Raises errors. */
void cnri_lua_pick_net(lua_State *L, const char *wanted);
/* Builds out->graph, which the caller made, from the net at `net`; mistakes become its problems. */
void cnri_lua_build(lua_State *L, int net, cnri_lua_built *out);
/* Adds `place` of the table at `args` as placements of the graph; mistakes become its problems. */
void cnri_lua_add_places(lua_State *L, cnr_graph *g, int args, const char *where);
/* Returns CNR_OK, or the mistakes in the order of their lines. */
cnr_status cnri_lua_verdict(cnr_graph *g, const char *path, cnr_error *err);
/* ---- weights.c ---- */
/* Reads `weights` of the net's arguments at `args`. */
void cnri_lua_read_weights(lua_State *L, int args, cnri_lua_built *out);
/* Frees everything but the graph. */
void cnri_lua_built_free(cnri_lua_built *built);
/* Fills the weights: as the options say, else from the files that the net names. */
cnr_status cnri_lua_fill(cnri_lua_built *built, const cnr_load_options *options, cnr_error *err);

#endif
