/* c.net{...}: checks the table, applies its layers to its inputs, and keeps the outputs. */
#include "lua/layer.h"
#include <string.h>

const cnri_lua_key cnri_net_keys[] =
    {CNRI_OTHER("name: of the net; the file's when left out", "string"),
     CNRI_OTHER("weights: a file beside the script, or { files, name = setting }", "string|table"),
     CNRI_OTHER("labels: of the classes: a list, or a file", "string[]|string"),
     CNRI_OTHER("policy: a file that picks its kernels and devices", "string"),
     CNRI_OTHER("adapt: true: kernels, then devices, are tried in its first runs", "boolean"),
     CNRI_OTHER("input: { \"name\", shape = ... }, or a value", "table|cnnrun.Value"),
     CNRI_OTHER("inputs: a list of such", "(table|cnnrun.Value)[]"),
     CNRI_OTHER("output: a value", "cnnrun.Value"),
     CNRI_OTHER("outputs: a list of values", "cnnrun.Value[]|cnnrun.Value"),
     CNRI_OTHER("body: the list of layers, instead of behind the other keys", "table"),
     CNRI_OTHER("place: which layer runs where: { conv1 = \"opencl:0\", [\"*\"] = \"cpu\" }",
                "table<string, string|table>"),
     {0}};

/* Stack of cnri_lua_net: 1 args, 2 line, 3 private table, 4 inputs, 5 outputs. */
enum { ARGS = 1, LINE, PRIVATE, INPUTS, OUTPUTS };

/* Notes a mistake at the line of the call. */
static void mistake(lua_State *L, const char *text) {
    lua_pushstring(L, text);
    cnri_lua_mistake(L, lua_tostring(L, LINE));
}

/* Notes keys that a net does not have. */
static void check_keys(lua_State *L) {
    lua_pushnil(L);
    while (lua_next(L, ARGS)) {
        lua_pop(L, 1);
        const bool known = lua_isinteger(L, -1);
        const char *word = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
        if (known || (word && cnri_lua_is_key(cnri_net_keys, word))) continue;
        cnri_lua_suggest_key(L, word ? word : "", cnri_net_keys);
        lua_pushfstring(L, "a net has no '%s'%s", word ? word : "?", lua_tostring(L, -1));
        cnri_lua_mistake(L, lua_tostring(L, LINE));
        lua_pop(L, 1);
    }
}

/* Appends a copy of the value on top to the list at `list`. */
static void add(lua_State *L, int list) {
    lua_pushvalue(L, -1);
    lua_rawseti(L, list, (lua_Integer)lua_rawlen(L, list) + 1);
}

/* Adds an input from the value on top: a value, or the table of c.input. */
static void add_input(lua_State *L) {
    if (luaL_testudata(L, -1, CNRI_VALUE_TYPE)) add(L, INPUTS);
    else if (lua_istable(L, -1)) {
        lua_pushcfunction(L, cnri_lua_make_input);
        lua_pushvalue(L, -2);
        lua_pushvalue(L, LINE);
        lua_call(L, 2, 1);
        add(L, INPUTS);
        lua_pop(L, 1);
    } else mistake(L, "input: want a table { \"name\", shape = ... } or a value of c.input");
}

/* Takes the inputs of the net from `input` and `inputs` of its arguments; other types are
 * mistakes. */
static void take_inputs(lua_State *L) {
    cnri_lua_get(L, ARGS, "input: one");
    if (!lua_isnil(L, -1)) add_input(L);
    cnri_lua_get(L, ARGS, "inputs");
    if (lua_istable(L, -1)) {
        const int list = lua_gettop(L), n = (int)lua_rawlen(L, list);
        for (int i = 1; i <= n; i++) {
            lua_rawgeti(L, list, i);
            add_input(L);
            lua_pop(L, 1);
        }
    } else if (!lua_isnil(L, -1)) mistake(L, "inputs: want a list");
    lua_settop(L, OUTPUTS);
}

/* Adds the value on top as an output. */
static void add_output(lua_State *L) {
    if (luaL_testudata(L, -1, CNRI_VALUE_TYPE)) add(L, OUTPUTS);
    else mistake(L, "outputs: want values, which layers that are given one return");
}

/* Takes the outputs of the net from `output` and `outputs` of its arguments. */
static void take_outputs(lua_State *L) {
    cnri_lua_get(L, ARGS, "output");
    if (!lua_isnil(L, -1)) add_output(L);
    cnri_lua_get(L, ARGS, "outputs");
    if (lua_istable(L, -1)) {
        const int list = lua_gettop(L), n = (int)lua_rawlen(L, list);
        for (int i = 1; i <= n; i++) {
            lua_rawgeti(L, list, i);
            add_output(L);
            lua_pop(L, 1);
        }
    } else if (!lua_isnil(L, -1)) add_output(L);
    lua_settop(L, OUTPUTS);
}

/* Applies the layers in the list part, or in `body`, to the inputs; their results become outputs.
 * No layers, or both, is a mistake. */
static void take_body(lua_State *L) {
    const bool listed = cnri_lua_get(L, ARGS, "body") != LUA_TNIL;
    const bool positional = (int)lua_rawlen(L, ARGS) >= cnri_lua_first_item(L, ARGS);
    if (listed && positional) mistake(L, "body: the layers are given twice");
    if (!listed && !positional) {
        if (lua_rawlen(L, OUTPUTS) == 0)
            mistake(L, "want layers behind the input, or outputs = { values }");
        return;
    }
    if (lua_rawlen(L, OUTPUTS) > 0) mistake(L, "want layers or outputs, not both");
    if (lua_rawlen(L, INPUTS) == 0) {
        mistake(L, "want input = { \"name\", shape = ... } for the first layer");
        lua_pushcfunction(L, cnri_lua_make_nothing);
        lua_pushvalue(L, ARGS);
        lua_pushvalue(L, LINE);
        lua_call(L, 2, 1);
        lua_rawseti(L, INPUTS, 1);
    }
    if (!listed) { /* without the net's name, which is no prefix of its layers' */
        const int n = (int)lua_rawlen(L, ARGS), first = cnri_lua_first_item(L, ARGS);
        lua_createtable(L, n, 0);
        for (int i = first; i <= n; i++) {
            lua_rawgeti(L, ARGS, i);
            lua_rawseti(L, -2, i - first + 1);
        }
    }
    cnri_lua_apply(L, lua_gettop(L), INPUTS, "body", "");
    lua_replace(L, OUTPUTS);
    lua_settop(L, OUTPUTS);
}

int cnri_lua_net(lua_State *L) {
    cnri_lua_take_args(L);
    lua_createtable(L, CNRI_NET_PLACE, 0);
    lua_newtable(L);
    lua_newtable(L);
    check_keys(L);
    take_inputs(L);
    take_outputs(L);
    take_body(L);
    lua_pushvalue(L, INPUTS);
    lua_rawseti(L, PRIVATE, CNRI_NET_INPUTS);
    lua_pushvalue(L, OUTPUTS);
    lua_rawseti(L, PRIVATE, CNRI_NET_OUTPUTS);
    lua_pushvalue(L, ARGS);
    lua_rawseti(L, PRIVATE, CNRI_NET_ARGS);
    lua_pushvalue(L, LINE);
    lua_rawseti(L, PRIVATE, CNRI_NET_PLACE);
    lua_newuserdatauv(L, 1, 1);
    luaL_setmetatable(L, CNRI_NET_TYPE);
    lua_pushvalue(L, PRIVATE);
    lua_setiuservalue(L, -2, 1);
    return 1;
}
