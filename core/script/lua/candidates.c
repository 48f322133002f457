/* Candidates of a plan for scripts: rows, nodes, devices, links. */
#include "lua/candidates.h"
#include "people/people.h"
#include <math.h>
#include <string.h>

/* Sets a text field of the table on top, unless it is NULL. */
static void set_text(lua_State *L, const char *key, const char *value) {
    if (!value) return;
    lua_pushstring(L, value);
    lua_setfield(L, -2, key);
}

/* Sets a number field of the table on top. */
static void set_number(lua_State *L, const char *key, double value) {
    lua_pushnumber(L, value);
    lua_setfield(L, -2, key);
}

/* Sets a number field, unless it is 0 or less. */
static void set_known(lua_State *L, const char *key, double value) {
    if (value > 0) set_number(L, key, value);
}

/* Sets a whole-number field of the table on top. */
static void set_count(lua_State *L, const char *key, uint64_t value) {
    lua_pushinteger(L, (lua_Integer)value);
    lua_setfield(L, -2, key);
}

/* Sets a true-or-false field of the table on top. */
static void set_flag(lua_State *L, const char *key, bool value) {
    lua_pushboolean(L, value);
    lua_setfield(L, -2, key);
}

/* ---- rows ---- */

/* The text of the last option "WHAT@A@B=..."; NULL: it is not given. */
static const char *given_text(const char *const *words, const char *what, const char *a,
                              const char *b) {
    const size_t n = strlen(what), na = strlen(a), nb = strlen(b);
    const char *last = NULL;
    for (; words && *words; words++) {
        const char *at = *words;
        if (strncmp(at, what, n) == 0 && at[n] == '@' && strncmp(at + n + 1, a, na) == 0 &&
            at[n + 1 + na] == '@' && strncmp(at + n + na + 2, b, nb) == 0 &&
            at[n + na + 2 + nb] == '=')
            last = at + n + na + 3 + nb;
    }
    return last;
}

/* The number of the policy's option for `what` of the devices a and b; 0: it is not given, or no
 * number. */
static double given_number(const char *const *words, const char *what, const char *a,
                           const char *b) {
    const char *text = given_text(words, what, a, b), *end;
    double value = 0;
    return text && cnri_parse_double(text, &end, &value) && !*end ? value : 0;
}

/* Gives the row on top what place has just measured of its kernel. */
static void set_measured(lua_State *L, const cnri_table *t, const cnri_table_row *r,
                         const char *const *words) {
    const char *device = t->devices.at[r->device].name, *node = t->nodes.at[r->node].name;
    const char *kernel = given_text(words, "kernel", device, node);
    const double ns = given_number(words, "ns", device, node),
                 joules = given_number(words, "joules", device, node);
    if (!kernel || strcmp(kernel, r->kernel) != 0 || !(ns > 0)) return;
    set_number(L, "ns", ns);
    set_text(L, "ns_from", "measured");
    if (!(joules > 0)) return;
    set_number(L, "joules", joules);
    set_text(L, "joules_from", "measured");
}

/* Pushes a row of the table as a Lua table, with times in ns and joules. */
static void push_row(lua_State *L, const cnri_table *t, int32_t row) {
    const cnri_table_row *r = &t->rows.at[row];
    lua_createtable(L, 0, 24);
    set_text(L, "node", t->nodes.at[r->node].name);
    set_count(L, "index", (uint64_t)r->node + 1);
    set_text(L, "operator", t->nodes.at[r->node].op);
    set_text(L, "kernel", r->kernel);
    set_text(L, "device", t->devices.at[r->device].name);
    set_count(L, "takes", (uint64_t)r->takes);
    set_text(L, "layout_in", r->layout_in);
    set_text(L, "layout_out", r->layout_out);
    set_text(L, "encodings", r->encodings);
    set_number(L, "ns", r->cost.ns);
    set_text(L, "ns_from", cnri_source_name(r->cost.from));
    set_known(L, "joules", r->cost.joules);
    set_text(L, "joules_from", r->cost.joules > 0 ? cnri_source_name(r->cost.from) : NULL);
    set_known(L, "mhz", r->cost.mhz);
    set_count(L, "bytes", r->bytes);
    set_count(L, "flops", r->flops);
    set_count(L, "score", (uint64_t)r->score);
    set_flag(L, "splits", r->splits);
    set_flag(L, "extrapolated", r->extrapolated);
    set_flag(L, "chosen", r->by != NULL);
    if (!cnri_clock_is_real()) set_flag(L, "simulated", true);
    if (!r->by) return;
    set_text(L, "by", r->by);
    set_text(L, "why", cnri_row_why(t, row));
    set_number(L, "share", r->share);
}

int cnri_lua_push_rows(lua_State *L, const cnri_table *t, const char *const *words, bool wanted) {
    lua_createtable(L, 0, t->rows.n);
    lua_createtable(L, t->rows.n, 0);
    const int list = lua_gettop(L);
    for (int32_t i = 0, n = 0; i < t->rows.n; i++) {
        if (wanted && !t->devices.at[t->rows.at[i].device].wanted) continue;
        push_row(L, t, i);
        set_measured(L, t, &t->rows.at[i], words);
        lua_pushvalue(L, -1);
        lua_pushinteger(L, i);
        lua_rawset(L, list - 1);
        lua_rawseti(L, list, ++n);
    }
    return list;
}

/* ---- what is seen beside them ---- */

/* Pushes a node of the table of costs as a Lua table. */
static void push_node(lua_State *L, const cnri_table_node *n) {
    lua_createtable(L, 0, 11);
    set_text(L, "name", n->name);
    set_text(L, "operator", n->op);
    set_count(L, "out_bytes", n->out_bytes);
    set_count(L, "flops", n->flops);
    set_flag(L, "splits", n->axes != 0);
    set_count(L, "pieces", (uint64_t)n->pieces);
    set_text(L, "with", n->with);
    set_text(L, "wished", n->wished);
    set_text(L, "forced", n->forced);
    lua_createtable(L, n->n_inputs, 0);
    for (int32_t i = 0; i < n->n_inputs; i++) {
        lua_pushinteger(L, n->inputs[i] + 1);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "inputs");
    lua_newtable(L);
    for (int32_t a = 0, k = 0; a < 32; a++)
        if (n->axes >> a & 1) {
            lua_pushinteger(L, a);
            lua_rawseti(L, -2, ++k);
        }
    lua_setfield(L, -2, "axes");
}

/* The number in an option such as "seconds@cpu=0.1"; 0: it is not given. */
static double given_value(const char *const *words, const char *what, const char *device) {
    const size_t n = strlen(what), m = strlen(device);
    const char *end;
    double value = 0;
    for (; words && *words; words++)
        if (strncmp(*words, what, n) == 0 && strncmp(*words + n, device, m) == 0 &&
            (*words)[n + m] == '=' && !cnri_parse_double(*words + n + m + 1, &end, &value))
            value = 0;
    return value;
}

/* Pushes the cost of the net on the device alone: as measured, else the sum of its rows. */
static void push_alone(lua_State *L, const cnri_table *t, int32_t device,
                       const char *const *words) {
    const char *name = t->devices.at[device].name;
    const double seconds = given_value(words, "seconds@", name),
                 watts = t->devices.at[device].busy_watts;
    double joules = given_value(words, "joules@", name);
    cnr_error err = CNR_ERROR_INIT;
    cnri_cost rows = {0};
    if (seconds > 0 && !(joules > 0)) joules = watts * seconds;
    if (!(seconds > 0) && cnri_table_alone(t, device, &rows, &err)) cnri_script_raise(L, &err);
    set_number(L, "seconds", seconds > 0 ? seconds : rows.ns * 1e-9);
    set_known(L, "joules", seconds > 0 ? joules : rows.joules);
}

/* Pushes a device of the table of costs as a Lua table, with watts and MHz if known. */
static void push_device(lua_State *L, const cnri_table_device *d) {
    lua_createtable(L, 0, 9);
    set_text(L, "name", d->name);
    set_text(L, "class", d->cls);
    set_flag(L, "host", d->host);
    set_count(L, "units", (uint64_t)d->units);
    set_known(L, "idle_watts", d->idle_watts);
    set_known(L, "busy_watts", d->busy_watts);
    set_known(L, "mhz", d->mhz);
}

/* Pushes the costs of transfers between two devices as a table, as measured if options give
 * them. */
static void push_link(lua_State *L, const cnri_table *t, const cnri_table_link *l,
                      const char *const *words) {
    const char *from = t->devices.at[l->from].name, *to = t->devices.at[l->to].name;
    const bool measured =
        given_text(words, "byte_ns", from, to) && given_text(words, "copy_ns", from, to);
    lua_createtable(L, 0, 5);
    set_text(L, "from", from);
    set_text(L, "to", to);
    set_number(L, "ns_per_byte",
               measured ? given_number(words, "byte_ns", from, to) : l->ns_per_byte);
    set_number(L, "ns_fixed", measured ? given_number(words, "copy_ns", from, to) : l->ns_fixed);
    set_text(L, "from_where", measured ? "measured" : cnri_source_name(l->source));
}

/* Pushes the options of a policy, name=value, as a table. */
static void push_options(lua_State *L, const char *const *words) {
    lua_newtable(L);
    for (; words && *words; words++) {
        const size_t n = strcspn(*words, "=");
        const char *value = *words + n + 1, *end;
        double number;
        lua_pushlstring(L, *words, n);
        if (*value && cnri_parse_double(value, &end, &number) && !*end && isfinite(number))
            lua_pushnumber(L, number);
        else lua_pushstring(L, value);
        lua_rawset(L, -3);
    }
}

/* Implements between(row, row): pushes the ns of moving values between them. Upvalues: the
 * cnri_table, and the indices of the rows. */
static int between(lua_State *L) {
    const cnri_table *t = lua_touserdata(L, lua_upvalueindex(1));
    int32_t row[2];
    for (int i = 0; i < 2; i++) {
        luaL_checktype(L, i + 1, LUA_TTABLE);
        lua_pushvalue(L, i + 1);
        if (lua_rawget(L, lua_upvalueindex(2)) != LUA_TNUMBER)
            return luaL_argerror(L, i + 1, "want one of the rows");
        row[i] = (int32_t)lua_tointeger(L, -1);
        lua_pop(L, 1);
    }
    lua_pushnumber(L, cnri_table_between(t, row[0], row[1]));
    return 1;
}

void cnri_lua_push_seen(lua_State *L, const cnri_table *t, const char *const *options, int index) {
    lua_createtable(L, 0, 6);
    set_text(L, "net", t->net);
    lua_createtable(L, t->nodes.n, 0);
    for (int32_t i = 0; i < t->nodes.n; i++) {
        push_node(L, &t->nodes.at[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "nodes");
    lua_createtable(L, t->devices.n, 0);
    for (int32_t i = 0, n = 0; i < t->devices.n; i++) {
        if (!t->devices.at[i].wanted) continue;
        push_device(L, &t->devices.at[i]);
        push_alone(L, t, i, options);
        lua_rawseti(L, -2, ++n);
    }
    lua_setfield(L, -2, "devices");
    lua_createtable(L, t->links.n, 0);
    for (int32_t i = 0, n = 0; i < t->links.n; i++) {
        const cnri_table_link *l = &t->links.at[i];
        if (!t->devices.at[l->from].wanted || !t->devices.at[l->to].wanted) continue;
        push_link(L, t, l, options);
        lua_rawseti(L, -2, ++n);
    }
    lua_setfield(L, -2, "links");
    push_options(L, options);
    lua_setfield(L, -2, "options");
    lua_pushlightuserdata(L, (void *)t);
    lua_pushvalue(L, index);
    lua_pushcclosure(L, between, 2);
    lua_setfield(L, -2, "between");
}

/* ---- as JSON ---- */

enum { MAX_DEPTH = 16, MAX_BYTES = 1 << 20 };

static void add_value(lua_State *L, int at, int depth, cnri_text *out);

/* Lua function: compares two texts by bytes, for table.sort. */
static int by_text(lua_State *L) {
    lua_pushboolean(L, strcmp(lua_tostring(L, 1), lua_tostring(L, 2)) < 0);
    return 1;
}

/* Pushes a sorted list of the keys that are texts; returns its length. */
static lua_Integer push_keys(lua_State *L, int table) {
    lua_Integer n = 0;
    lua_newtable(L);
    lua_pushnil(L);
    while (lua_next(L, table)) {
        lua_pop(L, 1);
        if (lua_type(L, -1) != LUA_TSTRING) continue;
        lua_pushvalue(L, -1);
        lua_rawseti(L, -3, ++n);
    }
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
    lua_getfield(L, -1, "table");
    lua_getfield(L, -1, "sort");
    lua_replace(L, -3);
    lua_pop(L, 1);
    lua_pushvalue(L, -2);
    lua_pushcfunction(L, by_text);
    lua_call(L, 2, 0);
    return n;
}

/* Appends the n items of the list at `table` as a JSON array; raises errors. */
static void add_list(lua_State *L, int table, lua_Integer n, int depth, cnri_text *out) {
    cnri_text_add(out, "[");
    for (lua_Integer i = 1; i <= n; i++) {
        if (i > 1) cnri_text_add(out, ",");
        lua_rawgeti(L, table, i);
        add_value(L, lua_gettop(L), depth, out);
        lua_pop(L, 1);
    }
    cnri_text_add(out, "]");
}

/* Appends a table as a JSON object, sorted by key. */
static void add_object(lua_State *L, int table, int depth, cnri_text *out) {
    const lua_Integer n = push_keys(L, table);
    cnri_text_add(out, "{");
    for (lua_Integer i = 1; i <= n; i++) {
        if (i > 1) cnri_text_add(out, ",");
        lua_rawgeti(L, -1, i);
        cnri_text_json(out, lua_tostring(L, -1));
        cnri_text_add(out, ":");
        lua_rawget(L, table);
        add_value(L, lua_gettop(L), depth, out);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    cnri_text_add(out, "}");
}

/* Appends a Lua value as JSON; raises an error if it is too deep or too long. */
static void add_value(lua_State *L, int at, int depth, cnri_text *out) {
    char number[64];
    luaL_checkstack(L, 8, "what it shows");
    cnri_script_charge(L, 1);
    if (depth > MAX_DEPTH || out->n > MAX_BYTES)
        luaL_error(L, "what it shows is too much to be kept");
    switch (lua_type(L, at)) {
    case LUA_TBOOLEAN: cnri_text_add(out, "%s", lua_toboolean(L, at) ? "true" : "false"); return;
    case LUA_TSTRING: cnri_text_json(out, lua_tostring(L, at)); return;
    case LUA_TNUMBER:
        if (lua_isinteger(L, at)) cnri_text_add(out, "%lld", (long long)lua_tointeger(L, at));
        else if (!isfinite(lua_tonumber(L, at))) cnri_text_add(out, "null");
        else {
            cnri_print_double(number, sizeof number, lua_tonumber(L, at));
            cnri_text_add(out, "%s", number);
        }
        return;
    case LUA_TTABLE: {
        const lua_Integer n = (lua_Integer)lua_rawlen(L, at);
        if (n > 0) add_list(L, at, n, depth + 1, out);
        else add_object(L, at, depth + 1, out);
        return;
    }
    default: cnri_text_add(out, "null");
    }
}

void cnri_lua_to_json(lua_State *L, int at, cnri_text *out) {
    add_value(L, lua_absindex(L, at), 0, out);
}
