/* The module `cnnrun`: a constructor for every registered operator, under its name and aliases, and
 * the functions of the other files. */
#include "core/lua/files.h"
#include "core/lua/layer.h"
#include "core/lua/model.h"
#include "core/lua/tensor.h"
#include <string.h>

#define FUNCTION "c."

const cnri_lua_section cnri_lua_sections[] = {
    {"cnnrun", FUNCTION, "nets", cnri_layer_rows},
    {"cnnrun", FUNCTION, "tensors", cnri_tensor_rows},
    {"cnnrun", FUNCTION, "experiments: a script that returns a function main(args)", cnri_model_rows},
    {"cnnrun", FUNCTION, "files and messages", cnri_file_rows},
    {"cnnrun.Net", "net:", "a net that runs: what c.load gives", cnri_model_methods},
    {"cnnrun.Tensor", "tensor:", "numbers of one type in a shape; t[i], #t", cnri_tensor_methods},
    {"cnnrun.Samples", "samples:", "pictures with labels: what c.samples gives",
     cnri_samples_methods},
    {"cnnrun.Writer", "writer:", "pictures on their way out: what c.writer gives",
     cnri_writer_methods},
    {"cnnrun.Object", "object:", "something with a state; its methods are its plugin's", NULL},
    {"cnnrun.Description", "", "a net as c.net describes it", NULL},
    {"cnnrun.Layer", "", "what a constructor gives that got no value: to be put in lists, or called "
     "with values", NULL},
    {"cnnrun.Value", "", "what a net computes; v[2]: the second output of its layer", NULL},
    {0}};

static void add_constructor(lua_State *L, const cnr_op *op, const char *word) {
    lua_pushlightuserdata(L, (void *)op);
    lua_pushstring(L, word);
    lua_pushcclosure(L, cnri_lua_construct, 2);
    lua_setfield(L, -2, word);
}

static void add_operators(lua_State *L) {
    const int32_t n = cnri_count(CNR_KIND_OPERATOR);
    for (int32_t i = 0; i < n; i++) {
        const cnr_op *op = cnri_at(CNR_KIND_OPERATOR, i);
        add_constructor(L, op, op->name);
        const char *const *alias = CNRI_HAS(op, aliases) ? op->aliases : NULL;
        for (; alias && *alias; alias++)
            add_constructor(L, op, *alias);
    }
}

/* Pushes the entry of the module (upvalue 1) that is nearest to `word`, or "". */
static void push_nearest(lua_State *L, const char *word) {
    CNRI_VEC(const char *) words = {0};
    lua_pushnil(L);
    while (lua_next(L, lua_upvalueindex(1))) { /* the words stay where they are: the table holds them */
        const char **slot = cnri_push(&words);
        if (slot) *slot = lua_tostring(L, -2);
        lua_pop(L, 1);
    }
    const char *best = cnri_nearest(word, words.at, words.n);
    cnri_vec_free(&words);
    lua_pushstring(L, best ? best : "");
}

/* c.conv2dd: a mistake; a net's script goes on, so that all its mistakes are found. An experiment,
 * whose mistakes nobody asks for, ends there. */
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

static int read_only(lua_State *L) {
    return luaL_error(L, "the module is not to be changed");
}

void cnri_lua_open_module(lua_State *L) {
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
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, read_only);
    lua_setfield(L, -2, "__newindex");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
}
