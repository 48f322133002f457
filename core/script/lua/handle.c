/* Nets that scripts load with c.load(path or net, options), and whether one may be run and
 * changed at the moment. */
#include "lua/model.h"
#include "lua/files.h"
#include "lua/layer.h"
#include "lua/load.h"
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

cnri_script *cnri_lua_experiment(lua_State *L) {
    cnri_script *s = cnri_script_of(L);
    if (!s->experiment || !s->rt)
        luaL_error(L,
                   "only an experiment may do this: a script that returns a function main(args)");
    return s;
}

/* The open net at index i of the stack; raises an error otherwise. */
static cnri_lua_model *open_net(lua_State *L, int i) {
    cnri_lua_model *net = luaL_checkudata(L, i, CNRI_MODEL_TYPE);
    if (!net->model) luaL_error(L, "the net was closed");
    return net;
}

cnr_model *cnri_lua_model_at(lua_State *L, int i) { return open_net(L, i)->model; }

/* Raises an error if the net is being trained or the like. */
static void refuse_busy(lua_State *L, const cnri_lua_model *net) {
    if (net->busy)
        luaL_error(L, "the net is being %s: till that ends it may be looked at, not run or changed",
                   net->busy);
}

cnri_lua_model *cnri_lua_net_at(lua_State *L, int i) {
    cnri_lua_model *net = open_net(L, i);
    refuse_busy(L, net);
    return net;
}

cnri_lua_model *cnri_lua_push_net(lua_State *L) {
    lua_gc(L, LUA_GCCOLLECT);
    cnri_lua_model *net = lua_newuserdatauv(L, sizeof *net, 0);
    *net = (cnri_lua_model){0};
    luaL_setmetatable(L, CNRI_MODEL_TYPE);
    return net;
}

void cnri_lua_close_net(lua_State *L, cnri_lua_model *net) {
    refuse_busy(L, net);
    if (net->feed) cnri_feed_detach(*net->feed);
    net->feed = NULL;
    if (net->model && !net->lent) cnr_release(net->model);
    net->model = NULL;
    cnri_lua_forget_place(net);
}

/* ---- loading ---- */

enum { MAX_WORDS = 16 };

/* Options of c.load, and the memory of their lists. */
typedef struct options {
    cnr_load_options load;
    const char *lists[CNRI_N_LOAD_OPTIONS][MAX_WORDS + 1];
    int64_t sizes[MAX_WORDS];
    const char *placed;
} options;

/* Row of a load option with a text. */
#define TEXT_KEY(key, text, usual, member, argument, choices) \
    CNRI_CHOICE(key text usual, options, load.member, choices),
#define FILE_KEY TEXT_KEY
/* Row of a load option that is true or false. */
#define FLAG_KEY(key, text, usual, member, ...) CNRI_FLAG(key text, options, load.member),
/* Row of a load option that is given as false. */
#define NOT_KEY(key, text, ...) CNRI_OTHER(key "false: " text, "boolean"),
/* Row of a load option in bytes. */
#define BYTES_KEY(key, text, usual, member, ...) \
    CNRI_WHOLE(key text usual, options, load.member, 1, 9e18),
/* Row of a load option with a list of texts. */
#define LIST_KEY(key, text, usual, member, argument, ...) \
    CNRI_OTHER(key text ": { \"" argument "\" }", "string[]"),
/* Row of a load option whose texts are joined by commas. */
#define COMMAS_KEY(key, text, usual, ...) CNRI_OTHER(key text usual, "string[]"),
/* Row of a load option with settings by name. */
#define SETTINGS_KEY(key, text, ...) \
    CNRI_OTHER(key text ": { name = value }", "table<string, string|number>"),
/* Row of a load option with sizes by name. */
#define SIZES_KEY(key, text, ...) CNRI_OTHER(key text ": { batch = 16 }", "table<string, integer>"),
/* Row of an option that scripts have. */
#define KEY_OF_ALL(kind, ...) kind##_KEY(__VA_ARGS__)
#define KEY_OF_SCRIPT KEY_OF_ALL
/* Nothing: an option that only the program has. */
#define KEY_OF_PROGRAM(...)
/* Row of cnri_load_keys for one load option. */
#define KEY(who, kind, member, key, option, argument, choices, enters, usual, help) \
    KEY_OF_##who(kind, key ": ", help, usual, member, argument, choices)
const cnri_lua_key cnri_load_keys[] =
    {CNRI_LOAD_OPTIONS(KEY)
         CNRI_OTHER("place: which layer runs where: { conv1 = \"opencl:0\", [\"*\"] = \"cpu\" }",
                    "table<string, string|table>"),
     CNRI_TEXT("placed: a folder that place keeps the net's placement in: by that, if it is for "
               "these devices",
               options, placed),
     CNRI_TEXT("cache: a folder of stored plans; for trusted scripts (the user's own)", options,
               load.cache),
     {0}};

/* Appends the text on top to the list; the table at `kept` keeps it alive. */
static void take_word(lua_State *L, int kept, const cnri_load_option *row, const char **list) {
    const int32_t n = cnri_count_options(list);
    if (lua_type(L, -1) != LUA_TSTRING || n == MAX_WORDS)
        luaL_error(L, "%s: want up to %d texts", row->key, (int)MAX_WORDS);
    list[n] = lua_tostring(L, -1);
    lua_rawseti(L, kept, (lua_Integer)lua_rawlen(L, kept) + 1);
}

/* Appends the entries of { name = value } on top as "name=value", or `name` with its size. */
static void take_named(lua_State *L, int kept, const cnri_load_option *row, const char **list,
                       int64_t *size) {
    const bool sizes = row->kind == CNRI_LOAD_SIZES;
    if (lua_type(L, -2) != LUA_TSTRING || !(sizes ? lua_isinteger(L, -1) : lua_isstring(L, -1)))
        luaL_error(L, sizes ? "want %s: { batch = 16 }" : "%s: want names with numbers or texts",
                   row->key);
    if (sizes) lua_pushvalue(L, -2);
    else lua_pushfstring(L, "%s=%s", lua_tostring(L, -2), lua_tostring(L, -1));
    take_word(L, kept, row, list);
    if (sizes) *size = lua_tointeger(L, -1);
}

/* Reads a list or a table by name into an option. */
static void read_list(lua_State *L, int table, int kept, const cnri_load_option *row, options *o) {
    const char **list = o->lists[row - cnri_load_options];
    const bool sizes = row->kind == CNRI_LOAD_SIZES,
               named = sizes || row->kind == CNRI_LOAD_SETTINGS;
    const int type = cnri_lua_get(L, table, row->key), at = lua_gettop(L);
    if (type != LUA_TNIL && type != LUA_TTABLE)
        luaL_error(L, "%s: want a %s", row->key,
                   named ? "table { name = value }" : "list of texts");
    for (lua_Integer i = 1; type && !sizes && lua_rawgeti(L, at, i) != LUA_TNIL; i++)
        take_word(L, kept, row, list);
    lua_settop(L, at);
    for (lua_pushnil(L); type && named && lua_next(L, at); lua_pop(L, 1))
        if (sizes || !lua_isinteger(L, -2))
            take_named(L, kept, row, list, &o->sizes[cnri_count_options(list) % MAX_WORDS]);
    lua_settop(L, at - 1);
    if (*list) *(const char *const **)(void *)((char *)&o->load + row->at) = list;
}

/* 1 if the key is there and false, else 0; raises an error for other types. */
static int32_t read_not(lua_State *L, int table, const char *key) {
    const int type = cnri_lua_get(L, table, key);
    if (type != LUA_TNIL && type != LUA_TBOOLEAN) luaL_error(L, "%s: want true or false", key);
    const int32_t is_off = type == LUA_TBOOLEAN && !lua_toboolean(L, -1);
    lua_pop(L, 1);
    return is_off;
}

/* Raises an error if the script may not read `path`. A plain name without a file here is no
 * path: it names an installed net or random weights. */
static void check_file(lua_State *L, const char *path) {
    if (path && (strpbrk(path, "/.,") || access(path, F_OK) == 0))
        cnri_lua_check_file(L, path, false);
}

/* Reads the options. The texts belong to the table at `table` and to another that is pushed;
 * both stay on the stack. */
static void read_options(lua_State *L, int table, options *o) {
    memset(o, 0, sizeof *o);
    o->load.size = sizeof o->load;
    o->load.no_cache = !cnri_script_of(L)->trust;
    lua_newtable(L);
    const int kept = lua_gettop(L);
    if (lua_isnoneornil(L, table)) return;
    cnri_lua_take(L, table, cnri_load_keys, o);
    for (int32_t i = 0; i < CNRI_N_LOAD_OPTIONS; i++) {
        const cnri_load_option *row = &cnri_load_options[i];
        void *at = (char *)&o->load + row->at;
        if (row->kind == CNRI_LOAD_NOT) *(int32_t *)at = read_not(L, table, row->key);
        if (row->kind == CNRI_LOAD_FILE) check_file(L, *(const char **)at);
        if (row->kind >= CNRI_LOAD_LIST) read_list(L, table, kept, row, o);
    }
    o->load.symbol_values = o->sizes;
    o->load.n_symbols = cnri_count_options(o->load.symbols);
    if (o->placed) cnri_lua_check_file(L, o->placed, false);
    /* Who writes a cache chooses what kernels read as prepared weights. */
    if (cnri_script_of(L)->trust) return;
    o->load.no_cache = true;
    if (o->load.cache) luaL_error(L, "cache: for trusted scripts (--trust)");
}

/* Pushes a list of texts, or of sizes by name. */
static void push_list(lua_State *L, const char *const *list, const cnr_load_options *sizes) {
    const int32_t n = sizes ? sizes->n_symbols : cnri_count_options(list);
    lua_newtable(L);
    for (int32_t i = 0; i < n; i++) {
        if (sizes) lua_pushinteger(L, sizes->symbol_values[i]);
        lua_pushstring(L, list[i]);
        if (sizes) lua_insert(L, -2);
        if (sizes) lua_rawset(L, -3);
        else lua_rawseti(L, -2, i + 1);
    }
}

void cnri_lua_push_load(lua_State *L, const cnr_load_options *o) {
    lua_newtable(L);
    for (int32_t i = 0; i < CNRI_N_LOAD_OPTIONS; i++) {
        const cnri_load_option *row = &cnri_load_options[i];
        const void *at = (const char *)o + row->at;
        const bool text = row->kind <= CNRI_LOAD_FILE, flag = row->kind <= CNRI_LOAD_NOT;
        if (text) lua_pushstring(L, *(const char *const *)at);
        else if (flag && *(const int32_t *)at) lua_pushboolean(L, row->kind == CNRI_LOAD_FLAG);
        else if (row->kind == CNRI_LOAD_BYTES && *(const uint64_t *)at)
            lua_pushinteger(L, (lua_Integer) * (const uint64_t *)at);
        else if (row->kind >= CNRI_LOAD_LIST && *(const char *const *const *)at)
            push_list(L, *(const char *const *const *)at, row->kind == CNRI_LOAD_SIZES ? o : NULL);
        else lua_pushnil(L);
        if (*row->key) lua_setfield(L, -2, row->key);
        else lua_pop(L, 1);
    }
}

/* Lua function: builds the graph of the net at 1 into the cnri_lua_built at 2. */
static int build_net(lua_State *L) {
    cnri_lua_build(L, 1, lua_touserdata(L, 2));
    return 0;
}

/* Makes a model of the net at index 1, which this script described. */
static cnr_status model_of_net(lua_State *L, const options *o, cnr_model **out, cnr_error *err) {
    cnri_script *s = cnri_script_of(L);
    cnri_lua_built built = {0};
    if (!(built.graph = cnri_graph_new("")))
        return cnri_fail(err, CNR_E_MEMORY, s->path, "out of memory");
    lua_pushcfunction(L, build_net);
    lua_pushvalue(L, 1);
    lua_pushlightuserdata(L, &built);
    if (lua_pcall(L, 2, 0, 0) != LUA_OK) {
        cnri_graph_free(built.graph);
        cnri_lua_built_free(&built);
        lua_error(L);
    }
    cnr_status status = cnri_lua_verdict(built.graph, s->path, err);
    if (!status) status = cnri_lua_fill(&built, &o->load, err);
    cnri_lua_built_free(&built);
    if (!status && o->load.labels) status = cnri_labels_read(built.graph, o->load.labels, err);
    if (status) cnri_graph_free(built.graph);
    else status = cnri_model_from_graph(s->rt, built.graph, &o->load, out, err);
    return status ? status : cnri_adapt_if_wanted(*out, o->load.adapt, err);
}

/* Path of the net named by argument 1, which replaces it; if there is no such file, "nets.lenet5"
 * as require finds it. Raises an error if the script may not read it. */
static const char *find_net(lua_State *L) {
    struct stat info;
    const char *path = luaL_checkstring(L, 1);
    if (stat(path, &info) != 0 && cnri_lua_find_module(L, path)) {
        lua_replace(L, 1);
        return lua_tostring(L, 1);
    }
    cnri_lua_check_file(L, path, false);
    return path;
}

/* Applies place = { conv1 = "opencl:0" }, as in c.net, to any kind of net. */
static void place_layers(lua_State *L, cnr_graph *g) {
    cnr_error err = CNR_ERROR_INIT;
    const int32_t before = g->problems.n;
    cnri_lua_add_places(L, g, 2, "options");
    if (g->problems.n == before && !g->out_of_memory) return;
    cnri_lua_verdict(g, cnri_script_of(L)->path, &err);
    cnri_script_raise(L, &err);
}

int cnri_lua_load_net(lua_State *L) {
    options o;
    cnr_error err = CNR_ERROR_INIT;
    cnri_script *s = cnri_lua_experiment(L);
    lua_settop(L, 2);
    read_options(L, 2, &o);
    const bool net = luaL_testudata(L, 1, CNRI_NET_TYPE) != NULL;
    const char *path = net ? NULL : find_net(L);
    cnri_lua_model *m = cnri_lua_push_net(L);
    cnri_lua_work w = {0};
    (void)cnri_lua_begin(L, &w);
    int32_t follows;
    cnr_status status = net ? model_of_net(L, &o, &m->model, &err)
                            : cnr_load(s->rt, path, &o.load, &m->model, &err);
    if (!status && !s->trust) m->model->graph->is_compiled = false; /* as with a cache: its net */
    if (!status && o.placed) status = cnr_follow(m->model, o.placed, &follows, &err);
    cnri_lua_end(L, &w, status, &err);
    if (lua_istable(L, 2)) place_layers(L, m->model->graph);
    return 1;
}

int cnri_lua_release_net(lua_State *L) {
    cnri_lua_close_net(L, lua_touserdata(L, 1));
    return 0;
}

void cnri_lua_forget_place(cnri_lua_model *net) {
    if (net->unplaced) cnri_plan_options_free(net->unplaced);
    cnri_free(net->unplaced);
    net->unplaced = NULL;
}
