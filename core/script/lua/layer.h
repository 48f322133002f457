/* Inside the room: layers, values and nets as scripts make them, before a graph is built.
 *
 *   layer   what a constructor gives that got no value: an operator with its arguments, a list, or
 *           branches. Can be put in lists and applied to values, again and again: its weights are
 *           then shared.
 *   value   what a net computes: output `output` of node `node` of the state's list. A node is made
 *           when a layer is applied; its inputs are older than itself, so the list is in order.
 *   net     inputs, outputs and the table that c.net was given.
 *
 * What belongs to a layer, node or net is kept where scripts can't reach it: in the user value of
 * its userdata or in the registry, at the indices named below. */
#ifndef CNRI_LUA_LAYER_H
#define CNRI_LUA_LAYER_H

#include "lua/state.h"

#define CNRI_LAYER_TYPE "cnnrun layer"
#define CNRI_VALUE_TYPE "cnnrun value"
#define CNRI_NET_TYPE "cnnrun net"

/* Kinds of layers and nodes: operator, list, branches, input, constant, weight. */
typedef enum cnri_layer_kind {
    CNRI_LAYER_OP,
    CNRI_LAYER_LIST,
    CNRI_LAYER_BRANCHES,
    CNRI_LAYER_INPUT,
    CNRI_LAYER_DATA,
    CNRI_LAYER_WEIGHT /* for nodes only */
} cnri_layer_kind;

/* What a layer's userdata holds; the rest is in a table beside it. */
typedef struct cnri_layer {
    cnri_layer_kind kind;
} cnri_layer;
/* What a value's userdata holds: a node of the script and the number of its output. */
typedef struct cnri_lua_value {
    int32_t node, output;
} cnri_lua_value;

/* Indices in the private table of a layer or node. */
enum {
    CNRI_AT_KIND = 1, /* a cnri_layer_kind */
    CNRI_AT_OP,       /* const cnr_op *; nil: the script's word names no operator */
    CNRI_AT_WORD,     /* the name that the script used */
    CNRI_AT_ARGS,     /* the table that it was given */
    CNRI_AT_WHERE,    /* place, "net.lua:14" */
    CNRI_AT_INPUTS,   /* of nodes: values, numbers, lists of numbers, tensors */
    CNRI_AT_PATH,     /* of nodes: place in lists, "body[3]" */
    CNRI_AT_PREFIX,   /* of nodes: prefix of names, "block1." */
    CNRI_AT_LAYER,    /* of nodes: the layer that it was made from, or nil */
    CNRI_AT_OUTPUTS   /* of nodes: number of outputs in use */
};
/* Indices in the private table of a net. */
enum { CNRI_NET_ARGS = 1, CNRI_NET_INPUTS, CNRI_NET_OUTPUTS, CNRI_NET_PLACE };

/* ---- layer.c ---- */
void cnri_lua_open_layers(lua_State *L); /* makes the types and the registry's tables */
/* Constructor of an operator's layer. Upvalues: op (or nil) and word. */
int cnri_lua_construct(lua_State *L);
extern const cnri_lua_row cnri_layer_rows[];
/* Applies the layer, list or function at `what` to the list of values at `values`. Pushes the list
 * of results. If `what` can't be applied, records a mistake and pushes the values themselves. */
void cnri_lua_apply(lua_State *L, int what, int values, const char *path, const char *prefix);
/* Records a mistake, whose text it pops. All mistakes are reported together. */
void cnri_lua_mistake(lua_State *L, const char *where);
void cnri_lua_push_mistakes(lua_State *L); /* pushes the list: place, text, place, text ... */
/* Pushes the table of a node of the script, by its number from 1. */
void cnri_lua_push_node(lua_State *L, int32_t node);
/* Checks the constructor's argument and leaves the table alone at 1; a table, a value, a string
 * or nothing is allowed. Pushes the place of the call, "net.lua:14", at 2. */
void cnri_lua_take_args(lua_State *L);
/* Returns the value of a new input. Arguments: its table and its place. */
int cnri_lua_make_input(lua_State *L);
/* Pushes an unknown value, which stands for the result of a mistake; returns 1. */
int cnri_lua_make_nothing(lua_State *L);
/* Is the value at `i` one that a layer's port takes: a value, number, list of numbers, tensor? */
bool cnri_lua_is_operand(lua_State *L, int i);

/* ---- net.c ---- */
extern const cnri_lua_key cnri_net_keys[];
int cnri_lua_net(lua_State *L); /* implements c.net{...}: pushes the net */

/* ---- compile.c ---- */
/* Builds the graph of the net at `net`; mistakes become problems of the graph. */
void cnri_lua_compile(lua_State *L, int net, cnr_graph *g);
/* Adds the nodes that compute the listed values to g. The table `made` maps values of the script to
 * those of g, and gets the new ones. Raises an error if a value depends on values older than node
 * `first` that are not in the table. */
void cnri_lua_compile_values(lua_State *L, int list, int made, cnr_graph *g, int32_t first);
/* Pushes a value that stands for v of g, and notes it in the table `made`. */
void cnri_lua_push_given(lua_State *L, int made, cnr_value v);
/* The value of g for the one at `value`; -1: there is none, after a mistake that g reports. */
cnr_value cnri_lua_made(lua_State *L, int made, int value);

/* ---- place.c ---- */
/* Stores the wish on top, where `layer` ("*": all) is to run, as metadata of the graph. Returns
 * NULL, or a text that says what was expected. */
const char *cnri_lua_set_place(lua_State *L, cnr_graph *g, const char *layer);

/* True if a node of g has the name `layer` or matches it as a pattern, or if it is "*". */
bool cnri_lua_place_names(const cnr_graph *g, const char *layer);

/* ---- source.c: values without inputs. `args` is the table that their constructor was given.
 * Returns -1 after a mistake, which becomes a problem of the graph. ---- */
extern const cnri_lua_key cnri_input_keys[], cnri_data_keys[], cnri_weight_keys[];
/* Adds an input by the layer's arguments; -1: see the graph's problems. */
cnr_value cnri_lua_add_input(lua_State *L, cnr_graph *g, int args, const char *name,
                             const char *where);
/* Adds a constant by the layer's arguments; name NULL: const_N. -1: see the graph's problems. */
cnr_value cnri_lua_add_data(lua_State *L, cnr_graph *g, int args, const char *name,
                            const char *where);
/* Pushes the value on top as text for preprocessing: numbers separated by commas. False: it
 * can't be one. */
bool cnri_lua_push_step(lua_State *L);
/* Adds a weight by the layer's arguments; -1: see the graph's problems. */
cnr_value cnri_lua_add_weight(lua_State *L, cnr_graph *g, int args, const char *name,
                              const char *where);

#endif
