/* net:place{...} measures the net on each device and places it by a policy; net:unplace() undoes
 * that. */
#include "lua/files.h"
#include "lua/model.h"
#include "work/work.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_WORDS = 16 };

static const cnri_lua_key place_keys[] =
    {CNRI_TEXT("policy: a file, or the name of one that ships: \"best\"", cnri_place_options,
               policy),
     CNRI_OTHER("policy_options: its settings: { threshold = 1 }", "table<string, string|number>"),
     CNRI_OTHER("devices: among which it is shared (those taken unasked)", "string[]"),
     CNRI_WHOLE("runs: that are timed of each (5)", cnri_place_options, runs, 1, 100000),
     CNRI_WHOLE("batch: pictures at a time (1)", cnri_place_options, batch, 1, 65536),
     CNRI_TEXT("folder: where it is kept, and found again", cnri_place_options, folder),
     CNRI_FLAG("again: measures, even if one is kept there (false)", cnri_place_options, again),
     CNRI_FLAG("guard: one device alone is kept where it is better than the policy's plan (true)",
               cnri_place_options, guard),
     {0}};

/* Lists the texts of `devices` in the table at 2, which keeps them; returns how many. Raises
 * errors. */
static int read_devices(lua_State *L, const char **to) {
    int n = 0;
    const int top = lua_gettop(L), type = cnri_lua_get(L, 2, "devices");
    if (type != LUA_TNIL && type != LUA_TTABLE) luaL_error(L, "devices: want a list of names");
    for (; type == LUA_TTABLE && lua_rawgeti(L, top + 1, n + 1) != LUA_TNIL; n++) {
        if (lua_type(L, -1) != LUA_TSTRING || n == MAX_WORDS)
            luaL_error(L, "devices: want up to %d names", (int)MAX_WORDS);
        to[n] = lua_tostring(L, -1);
        lua_pop(L, 1);
    }
    lua_settop(L, top);
    return n;
}

/* Compares two texts, for qsort. */
static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Lists the texts "NAME=VALUE" of `policy_options`, sorted because a table's order changes. Leaves
 * a table that keeps the texts; returns how many. */
static int read_settings(lua_State *L, const char **to) {
    int n = 0;
    lua_newtable(L);
    const int kept = lua_gettop(L), type = cnri_lua_get(L, 2, "policy_options");
    if (type != LUA_TNIL && type != LUA_TTABLE)
        luaL_error(L, "policy_options: want { name = value, ... }");
    if (type == LUA_TTABLE) lua_pushnil(L);
    while (type == LUA_TTABLE && lua_next(L, kept + 1)) {
        if (lua_type(L, -2) != LUA_TSTRING || !lua_isstring(L, -1) || n == MAX_WORDS)
            luaL_error(L, "policy_options: want up to %d names with numbers or texts",
                       (int)MAX_WORDS);
        to[n++] = lua_pushfstring(L, "%s=%s", lua_tostring(L, -2), lua_tostring(L, -1));
        lua_rawseti(L, kept, n);
        lua_pop(L, 1);
    }
    lua_settop(L, kept);
    qsort(to, (size_t)n, sizeof *to, by_text);
    return n;
}

/* Pushes time and energy of one placement as a table. */
static void push_row(lua_State *L, const cnri_place_row *r) {
    lua_createtable(L, 0, 5);
    cnri_lua_set_text(L, "name", r->name);
    cnri_lua_set_number(L, "seconds", r->seconds);
    cnri_lua_set_number(L, "joules", r->joules); /* NaN: left out */
    cnri_lua_set_number(L, "watts", r->watts);
    cnri_lua_set_number(L, "edp", r->edp);
    cnri_lua_set_simulated(L);
}

/* Pushes the result of placing as a table. */
static void push_placing(lua_State *L, const cnri_placing *p) {
    lua_createtable(L, p->alone.n, 5);
    for (int32_t i = 0; i < p->alone.n; i++) {
        push_row(L, &p->alone.at[i]);
        lua_rawseti(L, -2, i + 1);
    }
    push_row(L, &p->predicted);
    lua_setfield(L, -2, "predicted");
    push_row(L, &p->measured);
    lua_setfield(L, -2, "measured");
    push_row(L, &p->chosen);
    lua_setfield(L, -2, "chosen");
    if (p->kept[0]) cnri_lua_set_text(L, "kept", p->kept);
    lua_pushboolean(L, p->found);
    lua_setfield(L, -2, "found");
    lua_createtable(L, 0, p->nodes.n);
    for (int32_t i = 0; i < p->nodes.n; i++) {
        const cnri_place_node *n = &p->nodes.at[i];
        lua_createtable(L, 0, n->n);
        for (int32_t k = 0; k < n->n; k++)
            cnri_lua_set_number(L, n->parts[k].device, n->parts[k].ratio);
        lua_setfield(L, -2, n->node);
    }
    lua_setfield(L, -2, "shares");
}

static void free_placing(void *p) { cnri_placing_free(p); }

/* ---- as it was before ---- */

/* Copies the net's options for unplace; if they were kept before, restores them, since a policy
 * would measure what an earlier one left as the net's own. */
static cnr_status begin_place(cnri_lua_model *net, cnr_error *err) {
    if (net->unplaced) return cnri_model_set_options(net->model, net->unplaced, err);
    net->unplaced = cnri_alloc_zero(sizeof *net->unplaced);
    if (net->unplaced && cnri_plan_options_copy(&net->model->plan_options, net->unplaced))
        return CNR_OK;
    cnri_lua_forget_place(net);
    return cnri_out_of_memory(err, "place");
}

/* Implements net:unplace(): returns to the options from before net:place; never placed: nothing. */
static int unplace(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    cnri_lua_model *net = cnri_lua_net_at(L, 1);
    if (!net->unplaced) return 0;
    if (cnri_model_set_options(net->model, net->unplaced, &err)) return cnri_script_raise(L, &err);
    cnri_lua_forget_place(net);
    return 0;
}

/* Implements net:place(options): places the net's layers by a policy, and pushes predicted and
 * measured costs. Raises errors. */
static int place(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    const char *devices[MAX_WORDS + 1] = {0}, *settings[MAX_WORDS + 1] = {0};
    cnri_place_options o = {.runs = 5, .batch = 1, .guard = 1};
    cnri_lua_model *net = cnri_lua_net_at(L, 1);
    lua_settop(L, 2);
    cnri_lua_take(L, 2, place_keys, &o);
    if (!o.policy) return luaL_error(L, "policy: wanted, such as \"best\"");
    if (strpbrk(o.policy, "/.") || access(o.policy, F_OK) == 0)
        cnri_lua_check_file(L, o.policy, false);
    if (o.folder) cnri_lua_check_file(L, o.folder, true);
    if (read_devices(L, devices)) o.devices = devices;
    if (read_settings(L, settings)) o.settings = settings;
    cnri_placing *p = cnri_lua_push_result(L, sizeof *p, free_placing);
    cnri_lua_work w = {0};
    if (begin_place(net, &err)) return cnri_script_raise(L, &err);
    const cnr_status status = cnri_place(net->model, &o, cnri_lua_begin(L, &w), p, &err);
    cnri_lua_end(L, &w, status, &err);
    push_placing(L, p);
    return 1;
}

const cnri_lua_row cnri_place_methods[] =
    {{"place(options: table)", place,
      "{ [integer]: table, predicted: table, measured: table, chosen: table, kept: string?, found: "
      "boolean, shares: table }",
      "a row a device alone: name, seconds, joules, watts, edp; the policy's plan; chosen: how it "
      "is run from now on",
      place_keys},
     {"unplace()", unplace, "", "runs as it did before any policy", NULL},
     {0}};
