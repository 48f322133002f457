/* The module `cnnrun`: a constructor for every registered operator, under its name and aliases, and
 * the functions of the other files. */
#include "lua/files.h"
#include "lua/layer.h"
#include "lua/model.h"
#include "lua/tensor.h"
#include <stdlib.h>
#include <string.h>

#define FUNCTION "c."

const cnri_lua_section cnri_lua_sections[] =
    {{"cnnrun", FUNCTION, "nets", cnri_layer_rows, NULL},
     {"cnnrun", FUNCTION, "tensors", cnri_tensor_rows, NULL},
     {"cnnrun", FUNCTION, "experiments: a script that returns a function main(args)",
      cnri_model_rows, NULL},
     {"cnnrun", FUNCTION, "files and messages", cnri_file_rows, NULL},
     {"cnnrun.Net", "net:", "a net that runs: what c.load gives", cnri_model_methods, NULL},
     {"cnnrun.Net", "net:", "trained", cnri_learn_methods, NULL},
     {"cnnrun.Net", "net:", "judged, timed, quantised", cnri_judge_methods, NULL},
     {"cnnrun.Net", "net:", "shared among devices", cnri_place_methods, NULL},
     {"cnnrun.Net", "net:", "changed, looked into, written", cnri_change_methods, NULL},
     {"cnnrun.Tensor", "tensor:", "numbers of one type in a shape; t[i], #t", cnri_tensor_methods,
      "operator len: integer\nfield [integer] number"},
     {"cnnrun.Samples", "samples:", "pictures with labels: what c.samples gives",
      cnri_samples_methods, "operator len: integer"},
     {"cnnrun.Writer", "writer:", "pictures on their way out: what c.writer gives",
      cnri_writer_methods, NULL},
     {"cnnrun.Feed", "feed:", "pictures prepared and run on threads: what c.feed gives",
      cnri_feed_methods, NULL},
     {"cnnrun.Worker", "worker:", "calls on a thread of their own: what c.worker gives",
      cnri_worker_methods, NULL},
     {"cnnrun.Governing", "governing:", "a policy of frequencies at work: what c.governing gives",
      cnri_governing_methods, NULL},
     {"cnnrun.Object", "object:", "something with a state; its methods are its plugin's", NULL,
      NULL},
     {"cnnrun.Description", "", "a net as c.net describes it", NULL, NULL},
     {"cnnrun.Value", "", "what a net computes; v[2]: the second output of its layer", NULL,
      "field [integer] cnnrun.Value"},
     {"cnnrun.Layer: cnnrun.Value", "",
      "what a constructor gives: with values among its arguments it is "
      "one; else it waits, to be put in lists, or called with values",
      NULL, "overload fun(...: cnnrun.Value): cnnrun.Value"},
     {0}};

/* Adds the constructor of an operator under a name. */
static void add_constructor(lua_State *L, const cnr_op *op, const char *word) {
    lua_pushlightuserdata(L, (void *)op);
    lua_pushstring(L, word);
    lua_pushcclosure(L, cnri_lua_construct, 2);
    lua_setfield(L, -2, word);
}

/* Adds constructors of all operators and their aliases. */
static void add_operators(lua_State *L) {
    const int32_t n = cnri_descriptor_count(CNR_KIND_OPERATOR);
    for (int32_t i = 0; i < n; i++) {
        const cnr_op *op = cnri_descriptor_at(CNR_KIND_OPERATOR, i);
        add_constructor(L, op, op->name);
        const char *const *alias = CNRI_HAS(op, aliases) ? op->aliases : NULL;
        for (; alias && *alias; alias++) add_constructor(L, op, *alias);
    }
}

/* Pushes the name in the module (upvalue 1) that is nearest to `word`, or "". */
static void push_nearest(lua_State *L, const char *word) {
    CNRI_VEC(const char *) words = {0};
    lua_pushnil(L);
    while (lua_next(L, lua_upvalueindex(
                           1))) { /* the words stay where they are: the table holds them */
        const char **slot = cnri_push(&words);
        if (slot) *slot = lua_tostring(L, -2);
        lua_pop(L, 1);
    }
    const char *best = cnri_nearest_word(word, words.at, words.n);
    cnri_vec_free(&words);
    lua_pushstring(L, best ? best : "");
}

/* Handles an unknown word such as c.conv2dd. In a net's script it records a mistake and goes on,
 * so that all are found. In an experiment it raises an error. */
static int unknown_word(lua_State *L) {
    const char *word = luaL_checkstring(L, 2);
    cnri_script_where(L, 1);
    push_nearest(L, word);
    const char *best = lua_tostring(L, -1);
    if (cnri_script_of(L)->experiment)
        return luaL_error(L, "the module cnnrun has no '%s'%s%s%s", word,
                          *best ? " (did you mean '" : "", best, *best ? "'?)" : "");
    lua_pushfstring(L, "unknown operator '%s'%s%s%s", word, *best ? " (did you mean '" : "", best,
                    *best ? "'?)" : "");
    cnri_lua_mistake(L, lua_tostring(L, -3));
    lua_pushnil(L);
    lua_pushvalue(L, 2);
    lua_pushcclosure(L, cnri_lua_construct, 2);
    return 1;
}

/* Lua function: iterates for pairs(c), in order; nil at the end. Upvalues: the values, the sorted
 * list of names, the position. */
static int next_word(lua_State *L) {
    const lua_Integer i = lua_tointeger(L, lua_upvalueindex(3)) + 1;
    lua_pushinteger(L, i);
    lua_replace(L, lua_upvalueindex(3));
    if (lua_rawgeti(L, lua_upvalueindex(2), i) == LUA_TNIL) return 1;
    lua_pushvalue(L, -1);
    lua_rawget(L, lua_upvalueindex(1));
    return 2;
}

/* Compares two words, for qsort. */
static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Lua function: returns all words of the module, sorted. */
static int all_words(lua_State *L) {
    lua_Integer n = 0;
    for (lua_pushnil(L); lua_next(L, lua_upvalueindex(1)); lua_pop(L, 1)) n++;
    const char **words = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *words, 0);
    n = 0;
    for (lua_pushnil(L); lua_next(L, lua_upvalueindex(1)); lua_pop(L, 1))
        words[n++] = lua_tostring(L, -2); /* the table holds them */
    qsort(words, (size_t)n, sizeof *words, by_name);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_createtable(L, (int)n, 0);
    for (lua_Integer i = 0; i < n; i++) {
        lua_pushstring(L, words[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_pushinteger(L, 0);
    lua_pushcclosure(L, next_word, 3);
    return 1;
}

static int read_only(lua_State *L) { return luaL_error(L, "the module is not to be changed"); }

/* Makes the types, and pushes the module's table, with functions and operators. */
static void push(lua_State *L) {
    cnri_lua_open_layers(L);
    cnri_lua_open_tensors(L);
    cnri_lua_open_models(L);
    lua_newtable(L); /* what scripts hold is empty, so that every look-up and assignment is seen */
    lua_createtable(L, 0, 4);
    lua_newtable(L);
    add_operators(L);
    for (const cnri_lua_section *s = cnri_lua_sections; s->name; s++)
        if (strcmp(s->how, FUNCTION) == 0) cnri_lua_set_rows(L, s->rows);
    lua_createtable(L, 0, 1);
    lua_pushvalue(L, -2);
    lua_pushcclosure(L, unknown_word, 1);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    lua_pushvalue(L, -1);
    lua_pushcclosure(L, all_words, 1);
    lua_setfield(L, -3, "__pairs");
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, read_only);
    lua_setfield(L, -2, "__newindex");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
}

const cnri_lua_module cnri_lua_cnnrun = {push, cnri_lua_sections};
