/* The graph of the net that a script returns, and what belongs to the net beside its layers. */
#include "lua/files.h"
#include "lua/layer.h"
#include "lua/load.h"
#include <stdlib.h>
#include <string.h>

/* ---- which net ---- */

/* Pushes and returns the name of the net with the arguments at `args`: its own, or the file's
 * without its ending. */
static const char *push_name(lua_State *L, int args) {
    lua_rawgeti(L, args, 1);
    if (lua_type(L, -1) == LUA_TSTRING) return lua_tostring(L, -1);
    lua_pop(L, 1);
    if (cnri_lua_get(L, args, "name") == LUA_TSTRING) return lua_tostring(L, -1);
    lua_pop(L, 1);
    const char *path = cnri_script_of(L)->path, *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path, *dot = strrchr(file, '.');
    return lua_pushlstring(L, file, dot && dot != file ? (size_t)(dot - file) : strlen(file));
}

/* Raises an error: the table of nets has none of that name; lists its nets. */
static void no_such_net(lua_State *L, int table, const char *wanted) {
    CNRI_VEC(const char *) names = {0};
    lua_pushnil(L);
    while (lua_next(L, table)) {
        if (lua_type(L, -2) == LUA_TSTRING && luaL_testudata(L, -1, CNRI_NET_TYPE)) {
            const char **slot = cnri_push(&names);
            if (slot) *slot = lua_tostring(L, -2); /* the table keeps it */
        }
        lua_pop(L, 1);
    }
    for (int32_t i = 1; i < names.n; i++) /* in order */
        for (int32_t k = i; k > 0 && strcmp(names.at[k - 1], names.at[k]) > 0; k--) {
            const char *name = names.at[k];
            names.at[k] = names.at[k - 1];
            names.at[k - 1] = name;
        }
    char list[512] = "";
    size_t n = 0;
    for (int32_t i = 0; i < names.n && n < sizeof list; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", names.at[i]);
    cnri_vec_free(&names);
    if (!*list) luaL_error(L, "the script returns a table without nets");
    if (wanted) luaL_error(L, "the script holds no net '%s', but %s", wanted, list);
    luaL_error(L, "the script holds several nets, of which one is wanted (--net): %s", list);
}

void cnri_lua_pick_net(lua_State *L, const char *wanted) {
    const int result = lua_gettop(L);
    if (luaL_testudata(L, result, CNRI_NET_TYPE)) {
        lua_getiuservalue(L, result, 1);
        lua_rawgeti(L, -1, CNRI_NET_ARGS);
        const char *name = push_name(L, lua_gettop(L));
        if (wanted && strcmp(name, wanted) != 0)
            luaL_error(L, "the script holds one net, '%s', not '%s'", name, wanted);
        lua_settop(L, result);
        return;
    }
    if (lua_isfunction(L, result))
        luaL_error(L, "the script is an experiment, not a net: it returns a function");
    if (!lua_istable(L, result))
        luaL_error(L, "the script returns %s, want a net: 'return c.net{ ... }'",
                   lua_isnil(L, result) ? "nothing" : luaL_typename(L, result));
    if (wanted) {
        lua_pushstring(L, wanted);
        lua_rawget(L, result);
        if (luaL_testudata(L, -1, CNRI_NET_TYPE)) return;
        no_such_net(L, result, wanted);
    }
    int n = 0;
    lua_pushnil(L);
    while (lua_next(L, result)) {
        if (luaL_testudata(L, -1, CNRI_NET_TYPE) && n++ == 0) {
            lua_pushvalue(L, -1);
            lua_insert(L, result + 1);
        }
        lua_pop(L, 1);
    }
    if (n != 1) no_such_net(L, result, NULL);
    lua_settop(L, result + 1);
}

/* ---- what belongs to a net beside its layers ---- */

/* Adds the labels of a net: a file, or a list of texts. */
static void add_labels(lua_State *L, cnr_graph *g, int args, const char *where) {
    const int top = lua_gettop(L);
    const int type = cnri_lua_get(L, args, "labels");
    if (type == LUA_TSTRING) {
        cnr_error err = CNR_ERROR_INIT;
        char *text;
        size_t bytes;
        void **held = cnri_lua_push_holder(L);
        const char *path = cnri_lua_push_beside(L, lua_tostring(L, top + 1));
        if (!path)
            cnri_graph_problem(g, where,
                               "labels: '%s' lies outside the script's folder, or leads there",
                               lua_tostring(L, top + 1));
        else if (cnri_read_file(path, CNRI_SCRIPT_FILE_BYTES, &text, &bytes, &err))
            cnri_graph_problem(g, where, "labels: %s: %s", err.where, err.text);
        else {
            *held = text;
            while (bytes && (text[bytes - 1] == '\n' || text[bytes - 1] == '\r')) text[--bytes] = 0;
            cnri_graph_set_meta(g, "labels", text);
        }
    } else if (type == LUA_TTABLE) {
        luaL_Buffer b;
        const int n = (int)lua_rawlen(L, top + 1);
        luaL_buffinit(L, &b);
        for (int i = 1; i <= n; i++) {
            lua_rawgeti(L, top + 1, i);
            if (!lua_isstring(L, -1))
                luaL_error(L, "labels[%d]: want a text, got a %s value", i, luaL_typename(L, -1));
            luaL_addvalue(&b);
            if (i < n) luaL_addchar(&b, '\n');
        }
        luaL_pushresult(&b);
        cnri_graph_set_meta(g, "labels", lua_tostring(L, -1));
    } else if (type != LUA_TNIL) {
        cnri_graph_problem(g, where, "labels: want a list of texts or a file's name");
    }
    lua_settop(L, top);
}

/* policy = "fastest.lua", a file beside the script: its text goes with the net. */
static void add_policy(lua_State *L, cnr_graph *g, int args, const char *where) {
    const int top = lua_gettop(L), type = cnri_lua_get(L, args, "policy");
    cnr_error err = CNR_ERROR_INIT;
    char *text;
    size_t bytes;
    if (type == LUA_TSTRING) {
        void **held = cnri_lua_push_holder(L);
        const char *name = lua_tostring(L, top + 1), *path = cnri_lua_push_beside(L, name);
        if (!path)
            cnri_graph_problem(g, where,
                               "policy: '%s' lies outside the script's folder, or leads there",
                               name);
        else if (cnri_read_file(path, CNRI_SCRIPT_FILE_BYTES, &text, &bytes, &err))
            cnri_graph_problem(g, where, "policy: %s: %s", err.where, err.text);
        else {
            *held = text;
            cnri_graph_set_meta(g, CNRI_POLICY_META, text);
            cnri_graph_set_meta(g, CNRI_POLICY_META ".name", name);
        }
    } else if (type != LUA_TNIL) {
        cnri_graph_problem(g, where, "policy: want a file's name");
    }
    lua_settop(L, top);
}

/* adapt = true: kernels and devices are tried in the first runs. */
static void add_adapt(lua_State *L, cnr_graph *g, int args, const char *where) {
    const int type = cnri_lua_get(L, args, "adapt");
    if (type == LUA_TBOOLEAN)
        cnri_graph_set_meta(g, "plan.adapt", lua_toboolean(L, -1) ? "1" : "0");
    else if (type != LUA_TNIL) cnri_graph_problem(g, where, "adapt: want true or false");
    lua_pop(L, 1);
}

/* Names the graph: by its arguments, else by the script's file name. Out of memory: sets
 * g->out_of_memory. */
static void add_name(lua_State *L, cnr_graph *g, int args) {
    char *own = cnri_strdup(push_name(L, args));
    lua_pop(L, 1);
    if (!own) {
        g->out_of_memory = true;
        return;
    }
    cnri_free(g->name);
    g->name = own;
}

/* Notes that a placement names no layer, with a similar name. */
static void complain_of_place(cnr_graph *g, const char *where, const char *layer) {
    CNRI_VEC(const char *) names = {0};
    for (int32_t i = 0; i < g->nodes.n; i++) {
        const char **slot = g->nodes.at[i]->name ? cnri_push(&names) : NULL;
        if (slot) *slot = g->nodes.at[i]->name;
    }
    const char *near = cnri_nearest_word(layer, names.at, names.n);
    cnri_graph_problem(g, where,
                       "place.%s: no layer is called so%s%s%s; conv* means all whose names "
                       "begin with conv",
                       layer, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    cnri_vec_free(&names);
}

/* Adds the net's placements, place = { conv1 = "opencl:0", ["*"] = "cpu" }, to g, as those in
 * layers. Mistakes become the graph's problems, at `where`. */
void cnri_lua_add_places(lua_State *L, cnr_graph *g, int args, const char *where) {
    const int top = lua_gettop(L), type = cnri_lua_get(L, args, "place");
    if (type != LUA_TNIL && type != LUA_TTABLE)
        cnri_graph_problem(g, where, "place: want { layer = where, ... }");
    if (type == LUA_TTABLE) {
        lua_pushnil(L);
        while (lua_next(L, top + 1)) {
            const char *layer = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";
            const char *want = cnri_lua_set_place(L, g, layer);
            if (want) cnri_graph_problem(g, where, "place.%s: %s", layer, want);
            else if (!cnri_lua_place_names(g, layer)) complain_of_place(g, where, layer);
            lua_pop(L, 1);
        }
    }
    lua_settop(L, top);
}

void cnri_lua_build(lua_State *L, int net, cnri_lua_built *out) {
    const int top = lua_gettop(L);
    net = lua_absindex(L, net);
    lua_getiuservalue(L, net, 1);
    lua_rawgeti(L, -1, CNRI_NET_ARGS);
    lua_rawgeti(L, -2, CNRI_NET_PLACE);
    const int args = top + 2;
    const char *where = lua_tostring(L, top + 3);
    snprintf(out->where, sizeof out->where, "%s", where);
    add_name(L, out->graph, args);
    cnri_lua_compile(L, net, out->graph);
    add_labels(L, out->graph, args, where);
    add_policy(L, out->graph, args, where);
    add_adapt(L, out->graph, args, where);
    cnri_lua_add_places(L, out->graph, args, where);
    cnri_lua_read_weights(L, args, out);
    lua_settop(L, top);
}

/* ---- the verdict: one mistake with where it is, several as a list ---- */

/* The line number in a place such as "net.lua:14", with or without " (from ...)" behind it; 0:
 * none. */
static int64_t line_of(const char *where) {
    const char *colon = strchr(where, ':');
    return colon ? strtoll(colon + 1, NULL, 10) : 0;
}

/* By lines: some mistakes are found when the script runs, others when the graph is built. */
static void sort_problems(cnr_graph *g) {
    for (int32_t i = 1; i < g->problems.n && i < 1000; i++) {
        const cnri_problem p = g->problems.at[i];
        int32_t k = i;
        for (; k > 0 && line_of(g->problems.at[k - 1].where) > line_of(p.where); k--)
            g->problems.at[k] = g->problems.at[k - 1];
        g->problems.at[k] = p;
    }
}

cnr_status cnri_lua_verdict(cnr_graph *g, const char *path, cnr_error *err) {
    const int32_t n = g->problems.n;
    if (g->out_of_memory || n == 0) return cnri_graph_status(g, false, err);
    sort_problems(g);
    if (n == 1)
        return cnri_fail(err, CNR_E_SCRIPT, g->problems.at[0].where, "%s", g->problems.at[0].text);
    cnri_text all = {0};
    int32_t shown = 0;
    for (; shown < n; shown++) {
        const cnri_problem *p = &g->problems.at[shown];
        if (shown > 0 && all.n + strlen(p->where) + strlen(p->text) > 900) break;
        cnri_text_add(&all, "\n  %s: %s", p->where, p->text);
    }
    for (int32_t i = shown; i < n; i++)
        cnri_log(CNR_LOG_ERROR, path, "%s: %s", g->problems.at[i].where, g->problems.at[i].text);
    if (shown < n) cnri_text_add(&all, "\n  (%d more are in the log)", n - shown);
    const cnr_status status =
        cnri_fail(err, CNR_E_SCRIPT, path, "%d mistakes:%s", n, all.at ? all.at : "");
    cnri_text_free(&all);
    return status;
}
