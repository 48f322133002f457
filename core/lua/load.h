/* Inside the room: from a net of a script to a filled graph; for the loader and for experiments. */
#ifndef CNRI_LUA_LOAD_H
#define CNRI_LUA_LOAD_H

#include "core/lua/state.h"
#include "core/store/store.h"

typedef struct cnri_lua_built {
    cnr_graph *graph;
    char weights[1024]; /* the file that the net names; "" when it names none */
    char place[256];    /* of c.net */
} cnri_lua_built;

/* The script's result is on top: leaves the net on top. `wanted` may be NULL. Raises. */
void cnri_lua_pick_net(lua_State *L, const char *wanted);
/* Builds out->graph (made by the caller) from the net at `net`; mistakes become its problems. */
void cnri_lua_build(lua_State *L, int net, cnri_lua_built *out);
/* CNR_OK, or the mistakes, in the order of their lines. */
cnr_status cnri_lua_verdict(cnr_graph *g, const char *path, cnr_error *err);
/* Fills the weights: as the options say, else from the file that the net names. */
cnr_status cnri_lua_fill(cnri_lua_built *built, const cnr_load_options *options, cnr_error *err);

#endif
