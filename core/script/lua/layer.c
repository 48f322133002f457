/* Layers and values: results of constructors, and layers applied to values. */
#include "lua/layer.h"
#include "lua/tensor.h"
#include <string.h>

enum { DEEPEST_LIST = 100, MAX_NODES = 1000000 };
static char nodes_key, mistakes_key;

/* ---- mistakes ---- */

void cnri_lua_push_mistakes(lua_State *L) { lua_rawgetp(L, LUA_REGISTRYINDEX, &mistakes_key); }

void cnri_lua_mistake(lua_State *L, const char *where) {
    cnri_lua_push_mistakes(L);
    const lua_Integer n = (lua_Integer)lua_rawlen(L, -1);
    lua_pushstring(L, where);
    lua_rawseti(L, -2, n + 1);
    lua_pushvalue(L, -2);
    lua_rawseti(L, -2, n + 2);
    lua_pop(L, 2);
}

/* ---- what is what ---- */

/* True for a table without a metatable. */
static bool is_plain_table(lua_State *L, int i) {
    if (!lua_istable(L, i)) return false;
    if (!lua_getmetatable(L, i)) return true;
    lua_pop(L, 1);
    return false;
}

/* True for a plain table that begins with a number. */
static bool is_numbers(lua_State *L, int i) {
    if (!is_plain_table(L, i)) return false;
    const bool number = lua_rawgeti(L, i, 1) == LUA_TNUMBER;
    lua_pop(L, 1);
    return number;
}

bool cnri_lua_is_operand(lua_State *L, int i) {
    return luaL_testudata(L, i, CNRI_VALUE_TYPE) || lua_type(L, i) == LUA_TNUMBER ||
           is_numbers(L, i) || luaL_testudata(L, i, CNRI_TENSOR_TYPE);
}

/* True if the value at `i` can be applied: a layer, list or function. */
static bool is_layer(lua_State *L, int i) {
    return luaL_testudata(L, i, CNRI_LAYER_TYPE) || lua_isfunction(L, i) ||
           (is_plain_table(L, i) && !is_numbers(L, i));
}

/* ---- nodes ---- */

void cnri_lua_push_node(lua_State *L, int32_t node) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &nodes_key);
    lua_rawgeti(L, -1, node);
    lua_remove(L, -2);
}

/* Pushes output `output` of a node as a value. */
static void push_value(lua_State *L, int32_t node, int32_t output) {
    cnri_lua_value *v = lua_newuserdatauv(L, sizeof *v, 0);
    *v = (cnri_lua_value){node, output};
    luaL_setmetatable(L, CNRI_VALUE_TYPE);
}

/* Sets entry `at` of the table on top to a text. */
static void set_text(lua_State *L, int at, const char *text) {
    lua_pushstring(L, text);
    lua_rawseti(L, -2, at);
}

/* Pops a node's private table and pushes its first value. */
static void add_node(lua_State *L) {
    cnri_script *s = cnri_script_of(L);
    if (s->n_nodes >= MAX_NODES) luaL_error(L, "a script makes at most %d layers", MAX_NODES);
    lua_pushinteger(L, 1);
    lua_rawseti(L, -2, CNRI_AT_OUTPUTS);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &nodes_key);
    lua_insert(L, -2);
    lua_rawseti(L, -2, s->n_nodes + 1);
    lua_pop(L, 1);
    push_value(L, ++s->n_nodes, 0);
}

/* ---- constructors ---- */

/* Pushes a place such as "lib/blocks.lua:7 (from net.lua:30)", because a builder's line alone
 * would not say which layer it is. */
static void push_where(lua_State *L) {
    const cnri_script *s = cnri_script_of(L);
    lua_Debug ar;
    cnri_script_where(L, 1);
    for (int level = 1; level < 20 && lua_getstack(L, level, &ar); level++) {
        lua_getinfo(L, "Sl", &ar);
        if (ar.currentline <= 0 || strcmp(ar.source + 1, s->path) != 0) continue;
        if (level == 1) return;
        lua_pushfstring(L, "%s (from %s:%d)", lua_tostring(L, -1), ar.short_src, ar.currentline);
        lua_remove(L, -2);
        return;
    }
}

/* Raises an error if a text contains a zero byte, which would be cut there. */
static void check_texts(lua_State *L) {
    size_t n;
    for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1))
        if (lua_type(L, -1) == LUA_TSTRING && strlen(lua_tolstring(L, -1, &n)) != n)
            luaL_error(L, "a text with a zero byte in it: \"%s\"", lua_tostring(L, -1));
}

void cnri_lua_take_args(lua_State *L) {
    lua_settop(L, 1);
    if (!is_plain_table(L, 1)) {
        lua_newtable(L);
        lua_insert(L, 1);
        if (cnri_lua_is_operand(L, 2) || is_layer(L, 2) || lua_isstring(L, 2)) lua_rawseti(L, 1, 1);
        else if (!lua_isnil(L, 2))
            luaL_error(L, "want a table of arguments, got a %s value", luaL_typename(L, 2));
        lua_settop(L, 1);
    }
    check_texts(L);
    push_where(L);
}

/* Pushes the private table of a constructed object from the arguments at 1 and the place at 2. */
static void push_private(lua_State *L, cnri_layer_kind kind, const char *word) {
    lua_createtable(L, CNRI_AT_OUTPUTS, 0);
    lua_pushinteger(L, kind);
    lua_rawseti(L, -2, CNRI_AT_KIND);
    set_text(L, CNRI_AT_WORD, word);
    lua_pushvalue(L, 1);
    lua_rawseti(L, -2, CNRI_AT_ARGS);
    lua_pushvalue(L, 2);
    lua_rawseti(L, -2, CNRI_AT_WHERE);
}

/* Pops a private table and pushes a layer that holds it. */
static void wrap_layer(lua_State *L, cnri_layer_kind kind) {
    cnri_layer *layer = lua_newuserdatauv(L, sizeof *layer, 1);
    layer->kind = kind;
    luaL_setmetatable(L, CNRI_LAYER_TYPE);
    lua_insert(L, -2);
    lua_setiuservalue(L, -2, 1);
}

/* Does a layer with the arguments at 1 compute at once (it holds values) or wait (it holds none,
 * or layers to apply first)? Complains about what is neither. */
static bool is_bound(lua_State *L, const cnr_op *op) {
    const int n = (int)lua_rawlen(L, 1);
    bool values = false, layers = false;
    for (int i = cnri_lua_first_item(L, 1); i <= n; i++) {
        lua_rawgeti(L, 1, i);
        if (luaL_testudata(L, -1, CNRI_VALUE_TYPE)) values = true;
        else if (is_layer(L, -1)) layers = true;
        else if (!cnri_lua_is_operand(L, -1)) {
            lua_pushfstring(L, "%s[%d]: want a layer or a value, got a %s value",
                            lua_tostring(L, lua_upvalueindex(2)), i, luaL_typename(L, -1));
            cnri_lua_mistake(L, lua_tostring(L, 2));
        }
        lua_pop(L, 1);
    }
    if (!values && op && op->n_inputs > 0) { /* the first input by its name: c.gemm{ a = x } */
        lua_getfield(L, 1, op->inputs[0].name);
        values = luaL_testudata(L, -1, CNRI_VALUE_TYPE) != NULL;
        lua_pop(L, 1);
    }
    return values && !layers;
}

/* Pushes a copy of the positional arguments at index 1, without the name. */
static void push_items(lua_State *L) {
    const int n = (int)lua_rawlen(L, 1), first = cnri_lua_first_item(L, 1);
    lua_createtable(L, n, 0);
    for (int i = first; i <= n; i++) {
        lua_rawgeti(L, 1, i);
        lua_rawseti(L, -2, i - first + 1);
    }
}

int cnri_lua_construct(lua_State *L) {
    const cnr_op *op = lua_touserdata(L, lua_upvalueindex(1));
    cnri_lua_take_args(L);
    push_private(L, CNRI_LAYER_OP, lua_tostring(L, lua_upvalueindex(2)));
    if (op) {
        lua_pushlightuserdata(L, (void *)op);
        lua_rawseti(L, -2, CNRI_AT_OP);
    }
    if (!is_bound(L, op)) {
        wrap_layer(L, CNRI_LAYER_OP);
        return 1;
    }
    push_items(L);
    lua_rawseti(L, -2, CNRI_AT_INPUTS);
    set_text(L, CNRI_AT_PATH, lua_tostring(L, lua_upvalueindex(2)));
    set_text(L, CNRI_AT_PREFIX, "");
    add_node(L);
    return 1;
}

/* Pushes a layer that is a list or branches, with the arguments at 1; returns 1. */
static int construct_group(lua_State *L, cnri_layer_kind kind, const char *word) {
    cnri_lua_take_args(L);
    push_private(L, kind, word);
    wrap_layer(L, kind);
    return 1;
}

static int construct_seq(lua_State *L) { return construct_group(L, CNRI_LAYER_LIST, "seq"); }

/* Implements c.parallel: pushes a layer of branches side by side. */
static int construct_parallel(lua_State *L) {
    return construct_group(L, CNRI_LAYER_BRANCHES, "parallel");
}

/* Makes a node without inputs: an input, constant or weight. */
static void make_source(lua_State *L, cnri_layer_kind kind, const char *word) {
    push_private(L, kind, word);
    lua_newtable(L);
    lua_rawseti(L, -2, CNRI_AT_INPUTS);
    set_text(L, CNRI_AT_PATH, word);
    set_text(L, CNRI_AT_PREFIX, "");
    add_node(L);
}

int cnri_lua_make_input(lua_State *L) {
    make_source(L, CNRI_LAYER_INPUT, "input");
    return 1;
}

int cnri_lua_make_nothing(lua_State *L) {
    make_source(L, CNRI_LAYER_OP, "input");
    return 1;
}

/* Implements c.input: pushes the value of a new input of the net. */
static int construct_input(lua_State *L) {
    cnri_lua_take_args(L);
    return cnri_lua_make_input(L);
}

/* Implements c.data: pushes the value of a constant. */
static int construct_data(lua_State *L) {
    cnri_lua_take_args(L);
    make_source(L, CNRI_LAYER_DATA, "data");
    return 1;
}

/* Implements c.weight: pushes the value of a weight. */
static int construct_weight(lua_State *L) {
    cnri_lua_take_args(L);
    make_source(L, CNRI_LAYER_WEIGHT, "weight");
    return 1;
}

const cnri_lua_row cnri_layer_rows[] = {{"seq(layers: table)", construct_seq, "cnnrun.Layer",
                                         "layers one behind the other", NULL},
                                        {"parallel(layers: table)", construct_parallel,
                                         "cnnrun.Layer", "each of the layers on the same input",
                                         NULL},
                                        {"input(input: table)", construct_input, "cnnrun.Value",
                                         "a value that comes from outside", cnri_input_keys},
                                        {"data(data: table)", construct_data, "cnnrun.Value",
                                         "a constant: its numbers, or a tensor", cnri_data_keys},
                                        {"weight(weight: table)", construct_weight, "cnnrun.Value",
                                         "a parameter by its name", cnri_weight_keys},
                                        {"net(net: table)", cnri_lua_net, "cnnrun.Description",
                                         "a whole net: layers behind an input", cnri_net_keys},
                                        {0}};

/* ---- applying ---- */

/* Appends the list on top to the list below it. */
static void append(lua_State *L) {
    const lua_Integer n = (lua_Integer)lua_rawlen(L, -2), m = (lua_Integer)lua_rawlen(L, -1);
    cnri_script_charge(L, m);
    for (lua_Integer i = 1; i <= m; i++) {
        lua_rawgeti(L, -1, i);
        lua_rawseti(L, -3, n + i);
    }
    lua_pop(L, 1);
}

/* Pushes and returns "PATH[i]", the place of an item for messages. */
static const char *item_path(lua_State *L, const char *path, int i) {
    return lua_pushfstring(L, "%s[%d]", path, i);
}

/* Pushes and returns the prefix of names inside the list at `args`: `prefix`, then the list's own
 * name and a point if it has one. */
static const char *push_prefix(lua_State *L, int args, const char *prefix) {
    if (lua_rawgeti(L, args, 1) != LUA_TSTRING) {
        lua_pop(L, 1);
        cnri_lua_get(L, args, "name");
    }
    if (lua_type(L, -1) == LUA_TSTRING) lua_pushfstring(L, "%s%s.", prefix, lua_tostring(L, -1));
    else lua_pushstring(L, prefix);
    lua_remove(L, -2);
    return lua_tostring(L, -1);
}

/* Applies the items of the table at `args` to the values at `values`: one after the other (`row`),
 * or side by side. Pushes the resulting values. */
static void apply_items(lua_State *L, int args, int values, const char *path, const char *prefix,
                        bool row) {
    const int n = (int)lua_rawlen(L, args), first = cnri_lua_first_item(L, args);
    prefix = push_prefix(L, args, prefix);
    if (row) lua_pushvalue(L, values);
    else lua_newtable(L);
    const int out = lua_gettop(L);
    for (int i = first; i <= n; i++) {
        const char *at = item_path(L, path, i - first + 1);
        lua_rawgeti(L, args, i);
        cnri_lua_apply(L, out + 2, row ? out : values, at, prefix);
        if (row) lua_replace(L, out);
        else {
            lua_pushvalue(L, out);
            lua_insert(L, -2);
            append(L);
        }
        lua_settop(L, out);
    }
    lua_remove(L, out - 1);
}

/* Pushes the inputs of an operator's layer: its applied branches or the incoming values, and
 * other operands that it was given. */
static void push_inputs(lua_State *L, int args, int values, const char *path, const char *prefix) {
    const int n = (int)lua_rawlen(L, args), first = cnri_lua_first_item(L, args);
    bool branches = false;
    for (int i = first; i <= n && !branches; i++) {
        lua_rawgeti(L, args, i);
        branches = is_layer(L, -1);
        lua_pop(L, 1);
    }
    lua_newtable(L);
    if (!branches) {
        lua_pushvalue(L, values);
        append(L);
    }
    const int out = lua_gettop(L);
    for (int i = first; i <= n; i++) {
        lua_rawgeti(L, args, i);
        if (is_layer(L, -1)) {
            const char *at = item_path(L, path, i - first + 1);
            cnri_lua_apply(L, out + 1, values, at, prefix);
            lua_pushvalue(L, out);
            lua_insert(L, -2);
            append(L);
        } else if (cnri_lua_is_operand(L, -1)) {
            lua_rawseti(L, out, (lua_Integer)lua_rawlen(L, out) + 1);
        }
        lua_settop(L, out);
    }
}

/* Makes a node of the operator's layer at `layer`, with `values` as inputs, and pushes its
 * value. */
static void apply_op(lua_State *L, int layer, int values, const char *path, const char *prefix) {
    lua_getiuservalue(L, layer, 1);
    const int from = lua_gettop(L);
    lua_createtable(L, CNRI_AT_OUTPUTS, 0);
    for (int i = CNRI_AT_KIND; i <= CNRI_AT_WHERE; i++) {
        lua_rawgeti(L, from, i);
        lua_rawseti(L, -2, i);
    }
    lua_rawgeti(L, from, CNRI_AT_ARGS);
    push_inputs(L, from + 2, values, path, prefix);
    lua_rawseti(L, from + 1, CNRI_AT_INPUTS);
    lua_settop(L, from + 1);
    set_text(L, CNRI_AT_PATH, path);
    set_text(L, CNRI_AT_PREFIX, prefix);
    lua_pushvalue(L, layer);
    lua_rawseti(L, -2, CNRI_AT_LAYER);
    add_node(L);
    lua_createtable(L, 1, 0);
    lua_insert(L, -2);
    lua_rawseti(L, -2, 1);
    lua_remove(L, from);
}

/* Applies a layer, or all layers of a group, to the values on the stack. */
static void apply_layer(lua_State *L, int layer, int values, const char *path, const char *prefix) {
    const cnri_layer_kind kind = ((cnri_layer *)lua_touserdata(L, layer))->kind;
    if (kind == CNRI_LAYER_OP) {
        apply_op(L, layer, values, path, prefix);
        return;
    }
    lua_getiuservalue(L, layer, 1);
    lua_rawgeti(L, -1, CNRI_AT_ARGS);
    lua_remove(L, -2);
    apply_items(L, lua_gettop(L), values, path, prefix, kind == CNRI_LAYER_LIST);
    lua_remove(L, -2);
}

/* Calls a function and pushes its results, each a value or a list of values. */
static void call_function(lua_State *L, int f, int values, const char *path) {
    const int base = lua_gettop(L), n = (int)lua_rawlen(L, values);
    luaL_checkstack(L, n + 4, "too many values");
    lua_pushvalue(L, f);
    for (int i = 1; i <= n; i++) lua_rawgeti(L, values, i);
    lua_call(L, n, LUA_MULTRET);
    const int results = lua_gettop(L) - base;
    lua_createtable(L, results, 0);
    for (int i = 1; i <= results; i++) {
        if (luaL_testudata(L, base + i, CNRI_VALUE_TYPE)) {
            lua_pushvalue(L, base + i);
            lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
        } else if (is_plain_table(L, base + i)) {
            lua_pushvalue(L, base + i);
            append(L);
        } else
            luaL_error(L, "%s: the function must return values, got a %s value", path,
                       luaL_typename(L, base + i));
    }
    lua_insert(L, base + 1);
    lua_settop(L, base + 1);
}

void cnri_lua_apply(lua_State *L, int what, int values, const char *path, const char *prefix) {
    luaL_checkstack(L, 24, "lists nest too deep");
    if (strlen(path) > 4 * DEEPEST_LIST)
        luaL_error(L, "lists nest deeper than %d (is one inside itself?)", DEEPEST_LIST);
    cnri_script_charge(L, 200); /* about what it takes, in instructions */
    if (luaL_testudata(L, what, CNRI_LAYER_TYPE)) apply_layer(L, what, values, path, prefix);
    else if (lua_isfunction(L, what)) call_function(L, what, values, path);
    else if (is_plain_table(L, what)) apply_items(L, what, values, path, prefix, true);
    else {
        cnri_script_where(L, 1);
        if (luaL_testudata(L, what, CNRI_VALUE_TYPE)) {
            cnri_lua_value *v = lua_touserdata(L, what);
            cnri_lua_push_node(L, v->node);
            lua_rawgeti(L, -1, CNRI_AT_WHERE);
            lua_replace(L, -3);
            lua_pop(L, 1);
            lua_pushfstring(L,
                            "%s: a layer in a list gets its input from the one before it, so it "
                            "can't be given a value",
                            path);
        } else lua_pushfstring(L, "%s: want a layer, got a %s value", path, luaL_typename(L, what));
        cnri_lua_mistake(L, lua_tostring(L, -2));
        lua_pop(L, 1);
        lua_pushvalue(L, values);
    }
}

/* layer(x, y) returns one value, or a list if there are several. */
static int call_layer(lua_State *L) {
    const int n = lua_gettop(L) - 1;
    luaL_argcheck(L, n > 0, 1, "a layer is called with the values it works on");
    for (int i = 2; i <= n + 1; i++) luaL_checkudata(L, i, CNRI_VALUE_TYPE);
    lua_createtable(L, n, 0);
    for (int i = 1; i <= n; i++) {
        lua_pushvalue(L, i + 1);
        lua_rawseti(L, -2, i);
    }
    lua_getiuservalue(L, 1, 1);
    lua_rawgeti(L, -1, CNRI_AT_WORD);
    cnri_lua_apply(L, 1, n + 2, lua_tostring(L, -1), "");
    const int results = (int)lua_rawlen(L, -1);
    luaL_checkstack(L, results, "too many values");
    const int list = lua_gettop(L);
    for (int i = 1; i <= results; i++) lua_rawgeti(L, list, i);
    return results;
}

/* ---- value[i]: another output of the same node ---- */

/* Implements value[i]: pushes output i, from 1, of the same node. */
static int index_value(lua_State *L) {
    const cnri_lua_value *v = luaL_checkudata(L, 1, CNRI_VALUE_TYPE);
    const lua_Integer i = luaL_checkinteger(L, 2);
    luaL_argcheck(L, i >= 1 && i <= 1024, 2, "outputs are numbered from 1");
    cnri_lua_push_node(L, v->node);
    lua_rawgeti(L, -1, CNRI_AT_OUTPUTS);
    if (i > lua_tointeger(L, -1)) {
        lua_pushinteger(L, i);
        lua_rawseti(L, -3, CNRI_AT_OUTPUTS);
    }
    push_value(L, v->node, (int32_t)i - 1);
    return 1;
}

/* Pushes the text of a layer for print: its word and place. */
static int show_layer(lua_State *L) {
    lua_getiuservalue(L, 1, 1);
    lua_rawgeti(L, -1, CNRI_AT_WORD);
    lua_rawgeti(L, -2, CNRI_AT_WHERE);
    lua_pushfstring(L, "layer %s of %s", lua_tostring(L, -2), lua_tostring(L, -1));
    return 1;
}

/* Pushes the text of a value for print: its word and place. */
static int show_value(lua_State *L) {
    const cnri_lua_value *v = luaL_checkudata(L, 1, CNRI_VALUE_TYPE);
    cnri_lua_push_node(L, v->node);
    lua_rawgeti(L, -1, CNRI_AT_WORD);
    lua_rawgeti(L, -2, CNRI_AT_WHERE);
    lua_pushfstring(L, "value of %s of %s", lua_tostring(L, -2), lua_tostring(L, -1));
    return 1;
}

void cnri_lua_open_layers(lua_State *L) {
    static const luaL_Reg layer[] = {{"__call", call_layer}, {"__tostring", show_layer}, {0}};
    static const luaL_Reg value[] = {{"__index", index_value}, {"__tostring", show_value}, {0}};
    static const luaL_Reg net[] = {{0}};
    cnri_lua_new_type(L, CNRI_LAYER_TYPE, "a layer", layer, NULL, NULL);
    cnri_lua_new_type(L, CNRI_VALUE_TYPE, "a value", value, NULL, NULL);
    cnri_lua_new_type(L, CNRI_NET_TYPE, "a net", net, NULL, NULL);
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &nodes_key);
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &mistakes_key);
}
