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

typedef enum cnri_layer_kind {
    CNRI_LAYER_OP,
    CNRI_LAYER_LIST,
    CNRI_LAYER_BRANCHES,
    CNRI_LAYER_INPUT,
    CNRI_LAYER_DATA,
    CNRI_LAYER_WEIGHT /* nodes only */
} cnri_layer_kind;

typedef struct cnri_layer {
    cnri_layer_kind kind;
} cnri_layer;
typedef struct cnri_lua_value {
    int32_t node, output;
} cnri_lua_value;

/* Indices in the private table of a layer and of a node. */
enum {
    CNRI_AT_KIND = 1, /* cnri_layer_kind */
    CNRI_AT_OP,       /* const cnr_op *; nil: the script's word names none */
    CNRI_AT_WORD,     /* the name by which the script called it */
    CNRI_AT_ARGS,     /* the table it was given */
    CNRI_AT_WHERE,    /* "net.lua:14" */
    CNRI_AT_INPUTS,   /* nodes: values, numbers, lists of numbers, tensors */
    CNRI_AT_PATH,     /* nodes: "body[3]" */
    CNRI_AT_PREFIX,   /* nodes: "block1." */
    CNRI_AT_LAYER,    /* nodes: the layer it was made from, or nil */
    CNRI_AT_OUTPUTS   /* nodes: how many of its outputs are used */
};
/* Indices in a net's. */
enum { CNRI_NET_ARGS = 1, CNRI_NET_INPUTS, CNRI_NET_OUTPUTS, CNRI_NET_PLACE };

/* ---- layer.c ---- */
void cnri_lua_open_layers(lua_State *L); /* the types and the registry's tables */
/* A constructor of operators: upvalues op (or nil) and word. */
int cnri_lua_construct(lua_State *L);
extern const cnri_lua_row cnri_layer_rows[];
/* Applies the layer, list or function at `what` to the values in the list at `values`; pushes the
 * list of its results. */
void cnri_lua_apply(lua_State *L, int what, int values, const char *path, const char *prefix);
/* Remembers a mistake; all are told together. Pops the text on top. */
void cnri_lua_mistake(lua_State *L, const char *where);
void cnri_lua_push_mistakes(lua_State *L); /* the list: where, text, where, text ... */
void cnri_lua_push_node(lua_State *L, int32_t node);
/* Checks the constructor's argument and leaves the table alone at 1: a table, a value, a string or
 * nothing will do. Pushes where it is called from, "net.lua:14", at 2. */
void cnri_lua_take_args(lua_State *L);
/* Called with an argument table and where it stands: gives the value of a new input. */
int cnri_lua_make_input(lua_State *L);
/* The same, but a value of which nothing is known: what follows a mistake. */
int cnri_lua_make_nothing(lua_State *L);
/* Is the value at `i` one that a layer's port takes: a value, number, list of numbers, tensor? */
bool cnri_lua_is_operand(lua_State *L, int i);

/* ---- net.c ---- */
extern const cnri_lua_key cnri_net_keys[];
int cnri_lua_net(lua_State *L); /* c.net{...} */

/* ---- compile.c ---- */
/* Builds the graph of the net at `net`; mistakes become the graph's problems. */
void cnri_lua_compile(lua_State *L, int net, cnr_graph *g);
/* Adds to g what the values of the list are made of. The table `made` says which values stand for
 * some of g, and gets the others. Raises where one is made of values older than the node `first`
 * that are not in it. */
void cnri_lua_compile_values(lua_State *L, int list, int made, cnr_graph *g, int32_t first);
/* Pushes a value that stands for v, one of g, and notes that in the table `made`. */
void cnri_lua_push_given(lua_State *L, int made, cnr_value v);
/* What the value at `value` is in g; -1: nothing, after a mistake which g then has. */
cnr_value cnri_lua_made(lua_State *L, int made, int value);

/* ---- place.c ---- */
/* The wish on top of the stack, where `layer` ("*": all) is to run, as the graph's metadata. NULL,
 * or what was wanted instead. */
const char *cnri_lua_set_place(lua_State *L, cnr_graph *g, const char *layer);

/* Some node is called so, or as the pattern says. */
bool cnri_lua_place_names(const cnr_graph *g, const char *layer);

/* ---- source.c: values without inputs. `args` is the table that their constructor was given. -1
 * after a mistake, which is the graph's problem. ---- */
extern const cnri_lua_key cnri_input_keys[], cnri_data_keys[], cnri_weight_keys[];
cnr_value cnri_lua_add_input(lua_State *L, cnr_graph *g, int args, const char *name,
                             const char *where);
cnr_value cnri_lua_add_data(lua_State *L, cnr_graph *g, int args, const char *name,
                            const char *where);
/* Pushes the text that preprocessing keeps for the value on top: numbers with commas between.
 * False: it is nothing such. */
bool cnri_lua_push_step(lua_State *L);
cnr_value cnri_lua_add_weight(lua_State *L, cnr_graph *g, int args, const char *name,
                              const char *where);

#endif
