/* c.net{...}: checks the table, applies its layers to its inputs, keeps what comes out. */
#include "core/lua/layer.h"
#include <string.h>

enum { KEY_NAME, KEY_WEIGHTS, KEY_LABELS, KEY_INPUT, KEY_INPUTS, KEY_OUTPUT, KEY_OUTPUTS, KEY_BODY };
static const char *const keys[] = {
    "name: of the net", "weights: a file beside the script, or { files, name = setting }",
    "labels: a list, or a file", "input: { \"name\", shape = ... }", "inputs: a list of them",
    "output: a value", "outputs: a list of values",
    "body: the list of layers, instead of behind the other keys", "place: { layer = where, ... }"};

/* Stack of cnri_lua_net: 1 args, 2 line, 3 private table, 4 inputs, 5 outputs. */
enum { ARGS = 1, LINE, PRIVATE, INPUTS, OUTPUTS };

static void mistake(lua_State *L, const char *text) {
    lua_pushstring(L, text);
    cnri_lua_mistake(L, lua_tostring(L, LINE));
}

static void check_keys(lua_State *L) {
    lua_pushnil(L);
    while (lua_next(L, ARGS)) {
        lua_pop(L, 1);
        bool known = lua_isinteger(L, -1);
        const char *word = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
        for (size_t i = 0; word && !known && i < CNRI_COUNT(keys); i++)
            known = strlen(word) == cnri_word_length(keys[i]) &&
                    strncmp(word, keys[i], strlen(word)) == 0;
        if (known) continue;
        cnri_lua_suggest(L, word ? word : "", keys, CNRI_COUNT(keys));
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

/* The value on top of the stack describes an input: a value, or the table that c.input takes. */
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

static void take_inputs(lua_State *L) {
    cnri_lua_get(L, ARGS, keys[KEY_INPUT]);
    if (!lua_isnil(L, -1)) add_input(L);
    cnri_lua_get(L, ARGS, keys[KEY_INPUTS]);
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

static void add_output(lua_State *L) {
    if (luaL_testudata(L, -1, CNRI_VALUE_TYPE)) add(L, OUTPUTS);
    else mistake(L, "outputs: want values, which layers that are given one return");
}

static void take_outputs(lua_State *L) {
    cnri_lua_get(L, ARGS, keys[KEY_OUTPUT]);
    if (!lua_isnil(L, -1)) add_output(L);
    cnri_lua_get(L, ARGS, keys[KEY_OUTPUTS]);
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

/* The layers behind the other keys, or those of `body`, on the inputs. */
static void take_body(lua_State *L) {
    const bool listed = cnri_lua_get(L, ARGS, keys[KEY_BODY]) != LUA_TNIL;
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
