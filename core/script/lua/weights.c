/* The weights of a net: files that its script names, or those that the caller gives. *   weights
 * = "net.cnr"                          weights = { "a.npy", "b.npy", flip = true } * Entries
 * with a name are options of the importer, like `--option name=value`. */
#include "lua/files.h"
#include "lua/load.h"
#include <string.h>
#include <unistd.h>

enum { MAX_WORDS = 4096 };

/* Keeps a copy of a text for the net. */
static void keep(cnri_lua_built *out, cnri_lua_words *words, const char *text) {
    char **slot = words->n < MAX_WORDS ? cnri_push(words) : NULL;
    if (!slot || !(*slot = cnri_strdup(text))) out->graph->out_of_memory = true;
}

/* Adds a file of weights, if it lies in the script's folder. */
static void add_file(lua_State *L, cnri_lua_built *out, int at) {
    const char *name = lua_type(L, at) == LUA_TSTRING ? lua_tostring(L, at) : NULL;
    const char *path =
        name && strlen(name) == lua_rawlen(L, at) ? cnri_lua_push_beside(L, name) : NULL;
    if (path) keep(out, &out->files, path);
    else if (name)
        cnri_graph_problem(out->graph, out->where,
                           "weights: '%s' lies outside the script's "
                           "folder, or leads there: give it with --weights, or trust the script "
                           "(--trust)",
                           name);
    else
        cnri_graph_problem(out->graph, out->where,
                           "weights: want a file's name, or a list of "
                           "such, got a %s value",
                           luaL_typename(L, at));
}

/* Adds the key and the value on top as a setting. */
static void add_setting(lua_State *L, cnri_lua_built *out) {
    const char *word = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
    const int type = lua_type(L, -1);
    if (word && (type == LUA_TSTRING || type == LUA_TNUMBER || type == LUA_TBOOLEAN)) {
        const char *value = luaL_tolstring(L, -1, NULL);
        keep(out, &out->settings, lua_pushfstring(L, "%s=%s", word, value));
        lua_pop(L, 2);
    } else
        cnri_graph_problem(out->graph, out->where,
                           "weights.%s: want true, false, a number or a "
                           "text",
                           word ? word : "?");
}

void cnri_lua_read_weights(lua_State *L, int args, cnri_lua_built *out) {
    const int top = lua_gettop(L), at = top + 1;
    const int type = cnri_lua_get(L, args, "weights");
    if (type != LUA_TNIL && type != LUA_TTABLE) add_file(L, out, at);
    const lua_Integer n = type == LUA_TTABLE ? (lua_Integer)lua_rawlen(L, at) : 0;
    for (lua_Integer i = 1; i <= n && i <= MAX_WORDS + 1; i++) {
        lua_rawgeti(L, at, i);
        add_file(L, out, at + 1);
        lua_settop(L, at);
    }
    if (type == LUA_TTABLE && n == 0)
        cnri_graph_problem(out->graph, out->where, "weights: want a file's name in the list");
    lua_pushnil(L);
    while (type == LUA_TTABLE && lua_next(L, at)) {
        if (!lua_isinteger(L, -2)) add_setting(L, out);
        lua_pop(L, 1);
    }
    lua_settop(L, top);
}

void cnri_lua_built_free(cnri_lua_built *built) {
    for (int32_t i = 0; i < built->files.n; i++) cnri_free(built->files.at[i]);
    for (int32_t i = 0; i < built->settings.n; i++) cnri_free(built->settings.at[i]);
    cnri_vec_free(&built->files);
    cnri_vec_free(&built->settings);
}

/* Number of weights without data. */
static int32_t unfilled(const cnr_graph *g) {
    int32_t n = 0;
    for (int32_t i = 0; i < g->values.n; i++) n += g->values.at[i].unfilled;
    return n;
}

/* Fills weights from the named files. The caller's settings come first, so they win over the
 * script's. */
static cnr_status fill_as_named(cnri_lua_built *built, const char *const *options, cnr_error *err) {
    cnri_lua_words settings = {0};
    const cnri_lua_words *own = &built->settings;
    const int32_t n = cnri_count_options(options);
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < n + own->n && !status; i++) {
        char **slot = cnri_push(&settings);
        if (slot) *slot = i < n ? (char *)options[i] : own->at[i - n];
        else status = cnri_out_of_memory(err, built->where);
    }
    const cnr_import_args args = {.size = sizeof args,
                                  .n_paths = built->files.n,
                                  .paths = (const char *const *)built->files.at,
                                  .n_options = settings.n,
                                  .options = (const char *const *)settings.at};
    if (!status) status = cnri_weights_import(built->graph, &args, err);
    cnri_vec_free(&settings);
    return status;
}

cnr_status cnri_lua_fill(cnri_lua_built *built, const cnr_load_options *options, cnr_error *err) {
    cnr_graph *g = built->graph;
    const char *given = options && CNRI_HAS(options, weights) ? options->weights : NULL;
    const char *const *settings =
        options && CNRI_HAS(options, import_options) ? options->import_options : NULL;
    const int32_t n = unfilled(g);
    g->no_verify = options && CNRI_HAS(options, no_verify) && options->no_verify;
    if (given || n == 0) return cnri_weights_fill(g, given, settings, err);
    if (built->files.n == 0)
        return cnri_fail(err, CNR_E_NOT_FOUND, built->where,
                         "the net names no weights for its %d "
                         "parameters: say weights = \"FILE.cnr\", or give --weights FILE or "
                         "--weights random:SEED",
                         n);
    for (int32_t i = 0; i < built->files.n; i++)
        if (access(built->files.at[i], F_OK) != 0)
            return cnri_fail(err, CNR_E_NOT_FOUND, built->where,
                             "weights: there is no %s yet: "
                             "train the net, or give --weights FILE or --weights random:SEED",
                             built->files.at[i]);
    return fill_as_named(built, settings, err);
}
