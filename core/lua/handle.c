/* A net of a script: c.load(path or net, options), and whether it may be run and changed just now. */
#include "core/lua/model.h"
#include "core/lua/files.h"
#include "core/lua/layer.h"
#include "core/lua/load.h"
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

cnri_script *cnri_lua_experiment(lua_State *L) {
    cnri_script *s = cnri_script_of(L);
    if (!s->experiment || !s->rt)
        luaL_error(L, "only an experiment may do this: a script that returns a function main(args)");
    return s;
}

static cnri_lua_model *open_net(lua_State *L, int i) {
    cnri_lua_model *net = luaL_checkudata(L, i, CNRI_MODEL_TYPE);
    if (!net->model) luaL_error(L, "the net was closed");
    return net;
}

cnr_model *cnri_lua_model_at(lua_State *L, int i) { return open_net(L, i)->model; }

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
    if (net->feed) cnri_feed_apart(*net->feed);
    net->feed = NULL;
    if (net->model) cnr_release(net->model);
    net->model = NULL;
    cnri_lua_forget_place(net);
}

/* ---- loading ---- */

typedef struct options {
    cnr_load_options load;
    const char *names[16], *import[17], *kernels[17], *devices[17], *fallback[17], *settings[17];
    int64_t sizes[16];
    int32_t verify;
    const char *placed;
} options;

const cnri_lua_key cnri_load_keys[] = {
    CNRI_TEXT("weights: a file, or several with commas between, or random:SEED", options, load.weights),
    CNRI_TEXT("labels: a file of the classes' names, one a line", options, load.labels),
    CNRI_TEXT("net: which of the script's nets", options, load.net),
    CNRI_TEXT("device: cpu, opencl:0; the best when left out", options, load.device),
    CNRI_OTHER("sizes: of dimensions with a name: { batch = 16 }", "table<string, integer>"),
    CNRI_FLAG("deterministic: true: no choice by times", options, load.deterministic),
    CNRI_OTHER("place: which layer runs where: { conv1 = \"opencl:0\", [\"*\"] = \"cpu\" }",
               "table<string, string|table>"),
    CNRI_OTHER("import: for the importer: { \"shape=3,224,224\" }", "string[]"),
    CNRI_FLAG("verify: false believes weights unread", options, verify),
    CNRI_TEXT("preset: how pictures are prepared: torchvision", options, load.preset),
    CNRI_OTHER("kernels: what must run: { \"conv1=NAME\", \"conv@cpu=NAME\" }", "string[]"),
    CNRI_WHOLE("memory_limit: bytes that running may take", options, load.memory_limit, 1, 9e18),
    CNRI_TEXT("policy: a file of Lua that picks among candidates", options, load.policy),
    CNRI_OTHER("policy_options: its settings: { threshold = 1 }", "table<string, string|number>"),
    CNRI_OTHER("fallback: where the device fails, these in turn: { \"cpu\" }", "string[]"),
    CNRI_TEXT("weights_type: fp16, bf16: how kernels that can store weights", options, load.weights_type),
    CNRI_TEXT("arithmetic: fp16: what kernels that can multiply in", options, load.arithmetic),
    CNRI_OTHER("devices: of which candidates are made: { \"cpu\", \"opencl:0\" }", "string[]"),
    CNRI_TEXT("placed: a folder that place keeps the net's placement in: by that, if it is for these devices", options, placed),
    {0}};

static void read_sizes(lua_State *L, int table, options *o) {
    if (cnri_lua_get(L, table, "sizes") == LUA_TTABLE) {
        lua_pushnil(L);
        while (lua_next(L, -2)) {
            if (lua_type(L, -2) != LUA_TSTRING || !lua_isinteger(L, -1) || o->load.n_symbols == 16)
                luaL_error(L, "want sizes: { batch = 16 }");
            o->names[o->load.n_symbols] = lua_tostring(L, -2);
            o->sizes[o->load.n_symbols++] = lua_tointeger(L, -1);
            lua_pop(L, 1);
        }
    }
    lua_pop(L, 1);
}

/* A list of up to 16 words; NULL when there is none. */
static const char *const *read_words(lua_State *L, int table, const char *name, const char **to) {
    int n = 0;
    const int type = cnri_lua_get(L, table, name);
    if (type != LUA_TNIL && type != LUA_TTABLE) luaL_error(L, "%s: want a list of texts", name);
    if (type == LUA_TTABLE) {
        while (lua_rawgeti(L, -1, n + 1) != LUA_TNIL) {
            if (lua_type(L, -1) != LUA_TSTRING || n == 16) luaL_error(L, "%s: want up to 16 texts", name);
            to[n++] = lua_tostring(L, -1);
            lua_pop(L, 1);
        }
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return n ? to : NULL;
}

/* Pushes a table that keeps "name=value" texts, for as long as it is on the stack. */
static void push_settings(lua_State *L, int table, options *o) {
    int n = 0;
    lua_newtable(L);
    const int type = cnri_lua_get(L, table, "policy_options");
    if (type != LUA_TNIL && type != LUA_TTABLE)
        luaL_error(L, "policy_options: want { name = value, ... }");
    if (type == LUA_TTABLE) {
        lua_pushnil(L);
        while (lua_next(L, -2)) {
            if (lua_type(L, -2) != LUA_TSTRING || !lua_isstring(L, -1) || n == 16)
                luaL_error(L, "policy_options: want up to 16 names with numbers or texts");
            o->settings[n] = lua_pushfstring(L, "%s=%s", lua_tostring(L, -2), lua_tostring(L, -1));
            lua_rawseti(L, -5, ++n);
            lua_pop(L, 1);
        }
    }
    lua_pop(L, 1);
    o->load.policy_options = n ? o->settings : NULL;
}

/* The texts belong to the table at `table`, and to another that is pushed; both stay on the stack. */
static void read_options(lua_State *L, int table, options *o) {
    memset(o, 0, sizeof *o);
    o->load.size = sizeof o->load;
    o->verify = 1;
    if (lua_isnoneornil(L, table)) {
        lua_pushnil(L);
        return;
    }
    cnri_lua_take(L, table, cnri_load_keys, o);
    read_sizes(L, table, o);
    o->load.import_options = read_words(L, table, "import", o->import);
    o->load.kernels = read_words(L, table, "kernels", o->kernels);
    o->load.devices = read_words(L, table, "devices", o->devices);
    o->load.fallback = read_words(L, table, "fallback", o->fallback);
    push_settings(L, table, o);
    o->load.symbols = o->names;
    o->load.symbol_values = o->sizes;
    o->load.no_verify = !o->verify;
    const char *weights = o->load.weights;
    if (weights && cnri_weights_are_file(weights)) cnri_lua_check_file(L, weights, false);
    if (o->load.labels) cnri_lua_check_file(L, o->load.labels, false);
    if (o->placed) cnri_lua_check_file(L, o->placed, false);
    const char *policy = o->load.policy; /* a plain name is one that ships, or a file here */
    if (policy && (strpbrk(policy, "/.") || access(policy, F_OK) == 0))
        cnri_lua_check_file(L, policy, false);
}

static int build_net(lua_State *L) {
    cnri_lua_build(L, 1, lua_touserdata(L, 2));
    return 0;
}

/* The net at index 1, made by this script, becomes a model at once. */
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
    if (!status) return cnri_model_from_graph(s->rt, built.graph, &o->load, out, err);
    cnri_graph_free(built.graph);
    return status;
}

/* A file; or, where there is none of that name, "nets.lenet5" as require finds it. */
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

/* place = { conv1 = "opencl:0" }, as of c.net, for a net of any kind. */
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
    if (!status && o.placed) status = cnr_follow(m->model, o.placed, &follows, &err);
    cnri_lua_end(L, &w, status, &err);
    if (lua_istable(L, 2)) place_layers(L, m->model->graph);
    return 1;
}

int cnri_lua_release_net(lua_State *L) {
    cnri_lua_close_net(L, lua_touserdata(L, 1));
    return 0;
}
