/* Where a script wants layers to run: place = "opencl:0", or shares of a layer, place = { axis =
 * 1, cpu = 0.25, ["opencl:0"] = 0.75 }. Stored as metadata "place.LAYER" of the graph, which the
 * planner reads: "opencl:0", "axis=1 cpu=0.25 opencl:0=0.75". */
#include "lua/layer.h"
#include <string.h>

enum { MAX_DEVICES = 8 };
static const char *const wanted =
    "want a device's name, or { axis = A, device = share, ... } with shares that sum to 1";

/* True if a text can be the name of a device. */
static bool is_device(const char *name) {
    return name && *name && strlen(name) < 32 && !strpbrk(name, " =");
}

/* Reads the names of the table on top, sorted; the first one's share comes first. -1: the table
 * is malformed. */
static int32_t read_names(lua_State *L, const char **names) {
    int32_t n = 0;
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
        const bool number = lua_type(L, -1) == LUA_TNUMBER;
        lua_pop(L, 1);
        if (name && number && strcmp(name, "axis") == 0) continue;
        if (!number || !is_device(name) || n == MAX_DEVICES) {
            lua_pop(L, 1);
            return -1;
        }
        int32_t at = n++;
        for (; at > 0 && strcmp(names[at - 1], name) > 0; at--) names[at] = names[at - 1];
        names[at] = name;
    }
    return n;
}

/* Appends the devices and shares of the table on top. False: they are wrong. */
static bool add_shares(lua_State *L, cnri_text *text) {
    const char *names[MAX_DEVICES] = {0};
    const int32_t n = read_names(L, names);
    double sum = 0;
    lua_getfield(L, -1, "axis");
    const lua_Integer given = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : -1;
    const lua_Integer axis = lua_isnil(L, -1) ? 1 : given;
    lua_pop(L, 1);
    if (n < 1 || axis < 0 || axis >= CNR_MAX_RANK) return false;
    cnri_text_add(text, "axis=%d", (int)axis);
    for (int32_t i = 0; i < n; i++) {
        char number[40];
        lua_getfield(L, -1, names[i]);
        const double share = lua_tonumber(L, -1);
        lua_pop(L, 1);
        if (!(share >= 0)) return false;
        sum += share;
        cnri_print_double(number, sizeof number, share);
        cnri_text_add(text, " %s=%s", names[i], number);
    }
    return sum > 0.999 && sum < 1.001;
}

const char *cnri_lua_set_place(lua_State *L, cnr_graph *g, const char *layer) {
    cnri_text text = {0}, key = {0};
    bool good = false;
    if (lua_type(L, -1) == LUA_TSTRING) {
        good = is_device(lua_tostring(L, -1));
        cnri_text_add(&text, "%s", lua_tostring(L, -1));
    } else if (lua_istable(L, -1)) {
        good = add_shares(L, &text);
    }
    cnri_text_add(&key, "place.%s", layer);
    if (text.failed || key.failed) g->out_of_memory = true;
    else if (good) cnri_graph_set_meta(g, key.at, text.at);
    cnri_text_free(&text);
    cnri_text_free(&key);
    return good ? NULL : wanted;
}

bool cnri_lua_place_names(const cnr_graph *g, const char *layer) {
    for (int32_t i = 0; i < g->nodes.n; i++)
        if (g->nodes.at[i]->name && cnri_matches_pattern(layer, g->nodes.at[i]->name)) return true;
    return strcmp(layer, "*") == 0;
}
