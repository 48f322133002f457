/* Placement policies in Lua: { place = function(rows, seen) ... end, devices = { ... },
 * objective = "edp" }. Each plan is asked for in a new state, so that the same rows give the
 * same answer. Only one runs at a time, so that the limits hold for all of them together. */
#include "lua/candidates.h"
#include "lua/script.h"
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { POLICY_FILE_BYTES = 1 << 20, MAX_DEVICES = 16 };
#define POLICY_INSTRUCTIONS INT64_C(500000000)
#define POLICY_CPU_NS UINT64_C(5000000000)

/* A policy in Lua; it runs in a new state each time. */
typedef struct lua_policy {
    cnri_policy base;
    char *name, *where, *text;
    size_t bytes;
    CNRI_VEC(const char *) options, devices; /* NULL-terminated; the policy owns them */
    CNRI_VEC(struct {
        char *name;
        double value;
    })
    adapt; /* numbers of its table `adapt` */
    /* Code not 0: a fault of the top level, or a limit that was exceeded; the policy is not
     * asked again. */
    cnr_error fault;
    pthread_mutex_t lock; /* held while it is asked */
} lua_policy;

/* ---- the state ---- */

/* Lua function in place of those that read files: raises an error. */
static int no_files(lua_State *L) {
    return luaL_error(L, "a policy reads no files: it has rows and what is seen");
}

/* Leaves the table that the script returns on top, with its function `place` above. */
static void run_top(lua_State *L, lua_policy *p) {
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
    lua_pushcfunction(L, no_files);
    lua_setfield(L, -2, "require");
    lua_pop(L, 1);
    cnri_lua_load_text(L, p->text, p->bytes, p->name);
    lua_call(L, 0, 1);
    if (!lua_istable(L, -1))
        luaL_error(L, "%s:1: it returns %s, want a table: { place = function(rows, seen) ... end }",
                   p->name, luaL_typename(L, -1));
    lua_getfield(L, -1, "place");
    if (!lua_isfunction(L, -1)) luaL_error(L, "%s:1: its table has no function 'place'", p->name);
}

/* Opens the state *s with a policy's limits of instructions and processor time; close it with
 * cnri_script_close. */
static cnr_status open_state(lua_policy *p, cnri_script *s, cnr_error *err) {
    const cnr_status status = cnri_script_open(s, NULL, p->name, false, err);
    if (status) return status;
    s->budget = POLICY_INSTRUCTIONS;
    s->cpu_limit_ns = POLICY_CPU_NS;
    return CNR_OK;
}

/* ---- opening ---- */

/* Reads the policy's list of devices, 1 to MAX_DEVICES names, into p; raises an error for another
 * type. */
static void read_devices(lua_State *L, int table, lua_policy *p) {
    if (lua_getfield(L, table, "devices") == LUA_TNIL) return;
    const lua_Integer n = lua_istable(L, -1) ? (lua_Integer)lua_rawlen(L, -1) : 0;
    if (n < 1 || n > MAX_DEVICES)
        luaL_error(L, "%s:1: devices: want a list of 1 to %d names", p->name, MAX_DEVICES);
    for (lua_Integer i = 1; i <= n; i++) {
        if (lua_rawgeti(L, -1, i) != LUA_TSTRING)
            luaL_error(L, "%s:1: devices[%d]: want the name of a device", p->name, (int)i);
        const char **slot = cnri_push(&p->devices);
        if (slot) *slot = cnri_strdup(lua_tostring(L, -1));
        if (!slot || !*slot) luaL_error(L, "out of memory");
        lua_pop(L, 1);
    }
}

/* Reads what the policy's plans minimise: "edp", "energy" or "time"; raises an error for others. */
static void read_objective(lua_State *L, int table, lua_policy *p) {
    static const char *const known[] = {"edp", "energy", "time"};
    if (lua_getfield(L, table, "objective") == LUA_TNIL) return;
    const char *text = lua_tostring(L, -1);
    for (size_t i = 0; text && i < sizeof known / sizeof *known; i++)
        if (strcmp(text, known[i]) == 0) p->base.objective = known[i];
    if (!p->base.objective) luaL_error(L, "%s:1: objective: want edp, energy or time", p->name);
}

/* Reads adapt = { stop = 1.5, ... }, the numbers for adapting nets. */
static void read_adapt(lua_State *L, int table, lua_policy *p) {
    if (lua_getfield(L, table, "adapt") == LUA_TNIL) return;
    if (!lua_istable(L, -1)) luaL_error(L, "%s:1: adapt: want a table of numbers", p->name);
    const int adapt = lua_gettop(L);
    lua_pushnil(L);
    while (lua_next(L, adapt)) {
        const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";
        if (lua_type(L, -1) != LUA_TNUMBER)
            luaL_error(L, "%s:1: adapt.%s: want a number", p->name, name);
        __typeof__(p->adapt.at) slot = cnri_push(&p->adapt);
        if (slot) slot->name = cnri_strdup(name);
        if (!slot || !slot->name) luaL_error(L, "out of memory");
        slot->value = lua_tonumber(L, -1);
        lua_pop(L, 1);
    }
}

/* Number of the policy's table; NAN: there is none. */
static double number_of(const cnri_policy *base, const char *table, const char *name) {
    const lua_policy *p = (const lua_policy *)base;
    for (int32_t i = 0; i < p->adapt.n; i++)
        if (strcmp(table, "adapt") == 0 && strcmp(p->adapt.at[i].name, name) == 0)
            return p->adapt.at[i].value;
    return NAN;
}

/* Lua function: runs the policy's file once to read its tables of devices, objective and
 * adaptation. */
static int look_at(lua_State *L) {
    lua_policy *p = lua_touserdata(L, 1);
    lua_Debug ar;
    run_top(L, p);
    lua_pushvalue(L, -1);
    lua_getinfo(L, ">S", &ar);
    cnri_free(p->where);
    p->where = cnri_format("%s:%d", p->name, ar.linedefined > 0 ? ar.linedefined : 1);
    const int table = lua_gettop(L) - 1;
    read_devices(L, table, p);
    read_objective(L, table, p);
    read_adapt(L, table, p);
    return 0;
}

/* Frees n texts and their list. */
static void free_words(const char **at, int32_t n) {
    for (int32_t i = 0; i < n; i++) cnri_free((void *)at[i]);
    cnri_free((void *)at);
}

/* Frees a policy with its texts. */
static void free_policy(cnri_policy *base) {
    lua_policy *p = (lua_policy *)base;
    free_words(p->options.at, p->options.n);
    free_words(p->devices.at, p->devices.n);
    for (int32_t i = 0; i < p->adapt.n; i++) cnri_free(p->adapt.at[i].name);
    cnri_vec_free(&p->adapt);
    cnri_free(p->name);
    cnri_free(p->where);
    cnri_free(p->text);
    pthread_mutex_destroy(&p->lock);
    cnri_free(p);
}

/* Copies the options of a policy, each name=value. */
static cnr_status copy_options(lua_policy *p, const char *const *options, cnr_error *err) {
    for (; options && *options; options++) {
        const char *equals = strchr(*options, '=');
        if (!equals || equals == *options)
            return cnri_fail(err, CNR_E_ARG, *options, "want NAME=VALUE for the policy");
        const char **slot = cnri_push(&p->options);
        if (!slot || !(*slot = cnri_strdup(*options))) return cnri_out_of_memory(err, p->name);
    }
    return cnri_push(&p->options) ? CNR_OK : cnri_out_of_memory(err, p->name);
}

/* Computes the fingerprint of the policy's text and options, on which plans depend. */
static void take_print(lua_policy *p) {
    cnri_text all = {0};
    uint8_t digest[32];
    cnri_text_bytes(&all, p->text, p->bytes);
    for (int32_t i = 0; i + 1 < p->options.n; i++) cnri_text_add(&all, "\n%s", p->options.at[i]);
    cnri_sha256_of(all.at, all.failed ? 0 : all.n, digest);
    memcpy(p->base.print, digest, sizeof p->base.print);
    cnri_text_free(&all);
}

/* Asks the policy for the placement of all nodes. *notes: JSON that it added, or NULL. */
static cnr_status place(cnri_policy *base, const cnri_table *t, cnri_policy_answer *answers,
                        char **notes, cnr_error *err);

/* True for a name that can only be an installed policy. */
static bool is_plain(const char *name) {
    return !strchr(name, '/') && !strchr(name, '.') && access(name, F_OK) != 0;
}

char *cnri_lua_policy_file(const char *name) {
    char *file = is_plain(name) ? cnri_format("place/%s.lua", name) : NULL;
    char *path = file ? cnri_lua_shipped(file) : NULL;
    cnri_free(file);
    return path ? path : cnri_strdup(name);
}

/* Reads a policy's file, or the installed one of that name, into p->text. CNR_E_NOT_FOUND:
 * neither. */
static cnr_status read_policy(lua_policy *p, const char *name, cnr_error *err) {
    char *path = cnri_lua_policy_file(name);
    if (!path) return cnri_out_of_memory(err, name);
    const bool shipped = strcmp(path, name) != 0;
    cnr_status status = cnri_read_file(path, POLICY_FILE_BYTES, &p->text, &p->bytes, err);
    if (status == CNR_E_NOT_FOUND && is_plain(name) && !shipped)
        status = cnri_fail(err, CNR_E_NOT_FOUND, name,
                           "no such file, nor a policy among the installed scripts: cnnrun help "
                           "place names them");
    cnri_free(path);
    return status;
}

/* Takes a policy's text, or with NULL reads its file. */
static cnr_status read_text(lua_policy *p, const char *name, const char *text, cnr_error *err) {
    const char *slash = strrchr(name, '/');
    p->name = cnri_strdup(text || !slash ? name : slash + 1);
    p->where = cnri_strdup(p->name ? p->name : "");
    if (!p->name || !p->where) return cnri_out_of_memory(err, name);
    if (!text) return read_policy(p, name, err);
    p->bytes = strlen(text);
    return (p->text = cnri_strdup(text)) ? CNR_OK : cnri_out_of_memory(err, name);
}

/* Runs the script once. A fault is stored and reported when the policy is asked, because nets
 * run without their policies too. */
static cnr_status look(lua_policy *p, cnr_error *err) {
    cnri_script s;
    cnr_status status = open_state(p, &s, err);
    if (status) return status;
    status = cnri_script_guard(&s, look_at, p, 0, &p->fault);
    cnri_script_close(&s);
    if (status == CNR_E_MEMORY || !p->where || (p->devices.n > 0 && !cnri_push(&p->devices)))
        return cnri_out_of_memory(err, p->name);
    p->base.devices = p->devices.n > 0 && !status ? p->devices.at : NULL;
    return CNR_OK;
}

cnr_status cnri_lua_policy_open(const char *name, const char *text, const char *const *options,
                                cnri_policy **out, cnr_error *err) {
    lua_policy *p = cnri_alloc_zero(sizeof *p);
    *out = NULL;
    if (!p) return cnri_out_of_memory(err, name);
    pthread_mutex_init(&p->lock, NULL);
    p->fault = (cnr_error)CNR_ERROR_INIT;
    cnr_status status = read_text(p, name, text, err);
    if (!status) status = copy_options(p, options, err);
    if (!status) status = look(p, err);
    if (status) {
        free_policy(&p->base);
        return status;
    }
    take_print(p);
    p->base.name = p->name;
    p->base.where = p->where;
    p->base.place = place;
    p->base.number = number_of;
    p->base.free = free_policy;
    *out = &p->base;
    return CNR_OK;
}

/* ---- asking ---- */

/* A question to a policy: the table of costs, its answers by node, and notes. */
typedef struct asking {
    lua_policy *p;
    const cnri_table *t;
    cnri_policy_answer *answers;
    cnri_text notes;
} asking;

/* Raises an error: the answer names no node; the text offers a similar name. */
static int unknown_node(lua_State *L, const asking *a, const char *name) {
    CNRI_VEC(const char *) names = {0};
    for (int32_t i = 0; i < a->t->nodes.n; i++) {
        const char **slot = cnri_push(&names);
        if (slot) *slot = a->t->nodes.at[i].name;
    }
    const char *near = cnri_nearest_word(name, names.at, names.n);
    cnri_vec_free(&names);
    return luaL_error(L, "%s: its answer for '%s': the net as it is planned has no such node%s%s%s",
                      a->p->where, name, near ? " (did you mean '" : "", near ? near : "",
                      near ? "'?)" : "");
}

/* Reads shares such as { cpu = 0.3, ["opencl:0"] = 0.7, axis = 1 } on top into `to`, sorted by
 * name; false: malformed, or too many. */
static bool read_shares(lua_State *L, cnri_policy_answer *to) {
    const int table = lua_gettop(L);
    const int32_t capacity = CNRI_COUNT(to->parts);
    lua_pushnil(L);
    while (lua_next(L, table)) {
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
        const bool number = lua_type(L, -1) == LUA_TNUMBER;
        const double value = lua_tonumber(L, -1);
        lua_pop(L, 1);
        if (!key || !number) return false;
        if (strcmp(key, "axis") == 0) {
            if (!(value >= 0 && value < CNR_MAX_RANK)) return false;
            to->axis = (int32_t)value;
            continue;
        }
        if (to->n_parts == capacity || strlen(key) >= sizeof to->parts[0].device) return false;
        int32_t at = to->n_parts++;
        for (; at > 0 && strcmp(to->parts[at - 1].device, key) > 0; at--)
            to->parts[at] = to->parts[at - 1];
        snprintf(to->parts[at].device, sizeof to->parts[at].device, "%s", key);
        to->parts[at].ratio = value;
    }
    if (to->n_parts == 1 && to->parts[0].ratio != 1) return false;
    return to->n_parts > 0;
}

/* Reads the answer for a node, on top. `rows`: stack index of the map from rows to indices. False:
 * it failed. */
static bool read_answer(lua_State *L, int rows, cnri_policy_answer *to) {
    if (lua_type(L, -1) == LUA_TSTRING) {
        if (strlen(lua_tostring(L, -1)) >= sizeof to->parts[0].device) return false;
        snprintf(to->parts[0].device, sizeof to->parts[0].device, "%s", lua_tostring(L, -1));
        to->parts[0].ratio = 1;
        to->n_parts = 1;
        return true;
    }
    if (!lua_istable(L, -1)) return false;
    lua_pushvalue(L, -1);
    if (lua_rawget(L, rows) == LUA_TNUMBER) to->row = (int32_t)lua_tointeger(L, -1);
    lua_pop(L, 1);
    return to->row >= 0 || read_shares(L, to);
}

/* Reads a policy's answer, a table by node. */
static void read_answers(lua_State *L, asking *a, int answer, int rows) {
    if (lua_isnil(L, answer)) return;
    if (!lua_istable(L, answer))
        luaL_error(L, "%s: place returns %s, want { node = row, ... } or nil", a->p->where,
                   luaL_typename(L, answer));
    lua_pushnil(L);
    while (lua_next(L, answer)) {
        const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
        if (!name) luaL_error(L, "%s: place returns a list, want { node = row, ... }", a->p->where);
        const int32_t node = CNRI_INDEX_OF(a->t->nodes.at, a->t->nodes.n, name);
        if (node < 0) unknown_node(L, a, name);
        if (!read_answer(L, rows, &a->answers[node]))
            luaL_error(L,
                       "%s: its answer for '%s': want one of the rows, a device's name, or "
                       "{ device = share, ... }",
                       a->p->where, name);
        lua_pop(L, 1);
    }
}

/* Lua function: runs the policy with rows and what is seen, and takes its answers and notes. */
static int ask(lua_State *L) {
    asking *a = lua_touserdata(L, 1);
    run_top(L, a->p);
    lua_remove(L, -2);
    const uint64_t left = cnri_script_leave();
    const int rows = cnri_lua_push_rows(L, a->t, a->p->options.at, true), index = rows - 1,
              function = rows - 2;
    lua_pushvalue(L, function);
    lua_pushvalue(L, rows);
    cnri_lua_push_seen(L, a->t, a->p->options.at, index);
    cnri_script_return(L, left);
    lua_call(L, 2, 2);
    const int top = lua_gettop(L);
    read_answers(L, a, top - 1, index);
    if (!lua_isnil(L, top)) cnri_lua_to_json(L, top, &a->notes);
    return 0;
}

static cnr_status place(cnri_policy *base, const cnri_table *t, cnri_policy_answer *answers,
                        char **notes, cnr_error *err) {
    lua_policy *p = (lua_policy *)base;
    asking a = {p, t, answers, {0}};
    cnri_script s;
    cnr_error fault = CNR_ERROR_INIT;
    pthread_mutex_lock(&p->lock);
    cnr_status status = p->fault.code;
    if (status) fault = p->fault;
    else if (!(status = open_state(p, &s, &fault))) {
        status = cnri_script_guard(&s, ask, &a, 0, &fault);
        cnri_script_close(&s);
        if (status && strcmp(fault.where, p->name) == 0) /* no line: memory ran out in a call */
            snprintf(fault.where, sizeof fault.where, "%s", p->where);
        if (status == CNR_E_LIMIT) p->fault = fault;
    }
    pthread_mutex_unlock(&p->lock);
    if (!status && a.notes.failed)
        status = cnri_fail(&fault, CNR_E_MEMORY, p->name, "out of memory");
    if (!status) *notes = a.notes.at;
    else cnri_text_free(&a.notes);
    return status ? cnri_fail(err, status, fault.where, "%s", fault.text) : CNR_OK;
}
