/* Frequency policies in Lua: { step = function(seen, memory) ... end, start = ... (optional) }.
 * Each runs in a sandboxed state of its own that lives as long as the policy. A tick has a
 * budget of instructions, processor time and memory. The policy returns wishes, which
 * core/power/govern/ keeps within bounds. */
#include "govern/govern.h"
#include "lua/files.h"
#include "lua/library.h"
#include "lua/model.h"
#include "lua/script.h"
#include "people/people.h"
#include <math.h>
#include <string.h>
#include <sys/stat.h>

enum { POLICY_BYTES = 24 << 20 };
#define TICK_INSTRUCTIONS INT64_C(300000)
#define TICK_CPU_NS UINT64_C(10000000)
#define START_INSTRUCTIONS INT64_C(500000000)
#define START_CPU_NS UINT64_C(10000000000)

/* A policy of frequencies in Lua, in a state of its own. */
typedef struct lua_governor {
    cnri_script script;
    char *path;
    const char *spec;
    int policy, seen, memory; /* references in the registry */
    const cnri_seen *now;     /* of the present tick */
    cnri_wish *wishes;
    double *period;
    char why[80]; /* the reason that the policy gave last */
    cnri_learns from;
} lua_governor;

/* ---- what it sees ---- */

/* Sets a number field of the table on top; NAN: nil. */
static void put(lua_State *L, const char *key, double value) {
    if (isnan(value)) lua_pushnil(L);
    else lua_pushnumber(L, value);
    lua_setfield(L, -2, key);
}

/* Pushes a knob as a table, with clocks in Hz. */
static void push_knob(lua_State *L, const cnri_seen_knob *k) {
    lua_createtable(L, 0, 14);
    lua_pushstring(L, k->name);
    lua_setfield(L, -2, "name");
    lua_pushstring(L, k->feeds);
    lua_setfield(L, -2, "feeds");
    lua_createtable(L, k->n_steps, 0);
    for (int32_t i = 0; i < k->n_steps; i++) {
        lua_pushnumber(L, (double)k->steps[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "steps");
    put(L, "low", (double)k->min_hz);
    put(L, "high", (double)k->max_hz);
    lua_pushboolean(L, k->writable);
    lua_setfield(L, -2, "writable");
    if (k->max_cores) put(L, "max_cores", k->max_cores);
}

/* Sets in the table on top, at `runs`, what is known of runs: counts, seconds, joules. */
static void push_runs(lua_State *L, const cnri_seen *s) {
    lua_getfield(L, -1, "runs");
    put(L, "count", (double)s->runs.count);
    put(L, "fresh", (double)s->runs.fresh);
    put(L, "seconds", s->runs.seconds);
    put(L, "cycle", s->runs.cycle);
    put(L, "joules", s->runs.joules);
    lua_pop(L, 1);
}

/* Pushes the recordings that the policy learns from. */
static void push_traces(lua_State *L, const lua_governor *g) {
    lua_createtable(L, g->from.n, 0);
    for (int32_t i = 0; i < g->from.n; i++) {
        const cnri_trace_column *load =
            cnri_trace_column_of(&g->from.traces[i], NULL, CNRI_COLUMN_LOAD);
        lua_createtable(L, 0, 3);
        lua_pushstring(L, g->from.names[i]);
        lua_setfield(L, -2, "name");
        lua_pushstring(L, g->from.traces[i].note);
        lua_setfield(L, -2, "note");
        lua_createtable(L, load ? g->from.traces[i].n : 0, 0);
        for (int32_t row = 0; load && row < g->from.traces[i].n; row++) {
            lua_pushnumber(L, isnan(load->at[row]) ? 0 : load->at[row]);
            lua_rawseti(L, -2, row + 1);
        }
        lua_setfield(L, -2, "load");
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "traces");
}

/* Pushes the options of a spec such as "fixed,at=lowest" as a table. */
static void push_options(lua_State *L, const char *spec) {
    lua_newtable(L);
    for (const char *word = strchr(spec, ','); word; word = strchr(word + 1, ',')) {
        const size_t n = strcspn(word + 1, ","), key = strcspn(word + 1, "=,");
        char text[128];
        const char *end;
        double number;
        if (key == 0 || n - key > sizeof text)
            luaL_error(L, "%s: want NAME=VALUE behind a comma", spec);
        lua_pushlstring(L, word + 1, key);
        snprintf(text, sizeof text, "%.*s", key < n ? (int)(n - key - 1) : 0, word + 2 + key);
        if (key == n) lua_pushboolean(L, 1);
        else if (cnri_parse_double(text, &end, &number) && !*end && isfinite(number))
            lua_pushnumber(L, number);
        else lua_pushstring(L, text);
        lua_settable(L, -3);
    }
    lua_setfield(L, -2, "options");
}

/* Makes, once, the part of `seen` that does not change. Knobs are there by number and by name. */
static void make_seen(lua_State *L, lua_governor *g, const cnri_seen *s) {
    lua_createtable(L, 0, 12);
    push_options(L, g->spec);
    push_traces(L, g);
    lua_newtable(L);
    lua_setfield(L, -2, "runs");
    lua_createtable(L, s->n_knobs, s->n_knobs);
    for (int32_t i = 0; i < s->n_knobs; i++) {
        push_knob(L, &s->knobs[i]);
        lua_pushvalue(L, -1);
        lua_setfield(L, -3, s->knobs[i].name);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "knobs");
    lua_createtable(L, s->n_meters, s->n_meters);
    for (int32_t i = 0; i < s->n_meters; i++) {
        lua_createtable(L, 0, 5);
        lua_pushstring(L, s->meters[i].name);
        lua_setfield(L, -2, "name");
        lua_pushstring(L, s->meters[i].feeds);
        lua_setfield(L, -2, "feeds");
        lua_pushvalue(L, -1);
        lua_setfield(L, -3, s->meters[i].name);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "meters");
    g->seen = luaL_ref(L, LUA_REGISTRYINDEX);
}

/* Updates what changed since the last tick, and leaves the table on top. */
static void push_seen(lua_State *L, lua_governor *g) {
    const cnri_seen *s = g->now;
    if (g->seen == LUA_NOREF) make_seen(L, g, s);
    lua_rawgeti(L, LUA_REGISTRYINDEX, g->seen);
    put(L, "time", s->time);
    put(L, "period", s->period);
    put(L, "watts", s->watts);
    put(L, "joules", s->joules);
    put(L, "temperature", s->temperature);
    push_runs(L, s);
    lua_getfield(L, -1, "knobs");
    if (s->n_knobs) { /* which one it is may change with what runs */
        lua_rawgeti(L, -1, cnri_seen_main(s) + 1);
        lua_setfield(L, -3, "knob");
    }
    for (int32_t i = 0; i < s->n_knobs; i++) {
        lua_rawgeti(L, -1, i + 1);
        put(L, "hz", (double)s->knobs[i].hz);
        put(L, "asked", s->knobs[i].asked ? (double)s->knobs[i].asked : (double)NAN);
        put(L, "load", s->knobs[i].load);
        put(L, "temperature", s->knobs[i].temperature);
        if (s->knobs[i].cores >= 0) put(L, "cores", s->knobs[i].cores);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    lua_getfield(L, -1, "meters");
    for (int32_t i = 0; i < s->n_meters; i++) {
        lua_rawgeti(L, -1, i + 1);
        put(L, "watts", s->meters[i].watts);
        put(L, "joules", s->meters[i].joules);
        put(L, "temperature", s->meters[i].temperature);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* ---- what it wishes ---- */

/* The step `by` (1 or -1) places from the one in force, in Hz, at most the last; without steps 10%
 * more or less. */
static double neighbour_step(const cnri_seen_knob *k, int by) {
    const uint64_t is = k->asked ? k->asked : k->hz;
    int32_t i = 0;
    if (k->n_steps == 0) return (double)is * (by > 0 ? 1.1 : 0.9);
    while (i + 1 < k->n_steps && k->steps[i + 1] <= is) i++;
    i += by;
    return (double)k->steps[i < 0 ? 0 : i >= k->n_steps ? k->n_steps - 1 : i];
}

/* Frequency in Hz that the policy's answer on top asks for: a number, or a word such as "highest";
 * NaN: none (0). */
static double hz_of(lua_State *L, const cnri_seen_knob *k) {
    static const char *const words[] = {"lowest", "highest", "up", "down"};
    if (lua_type(L, -1) == LUA_TNUMBER) {
        const double hz = lua_tonumber(L, -1);
        return hz == 0 ? (double)NAN : hz; /* 0 is "as it is" to us, and nonsense from a policy */
    }
    const char *word = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    if (strcmp(word, "lowest") == 0) return (double)(k->n_steps ? k->steps[0] : k->min_hz);
    if (strcmp(word, "highest") == 0)
        return (double)(k->n_steps ? k->steps[k->n_steps - 1] : k->max_hz);
    if (strcmp(word, "up") == 0) return neighbour_step(k, 1);
    if (strcmp(word, "down") == 0) return neighbour_step(k, -1);
    const char *best = cnri_nearest_word(word, words, 4);
    luaL_error(L, "the policy wants %s of '%s'%s%s%s: want hertz, lowest, highest, up or down",
               *word ? word : luaL_typename(L, -1), k->name, best ? " (did you mean '" : "",
               best ? best : "", best ? "'?)" : "");
    return 0;
}

/* Takes what a policy wants of one knob: a frequency, or { hz, cores }. */
static void take_wish(lua_State *L, const cnri_seen_knob *k, cnri_wish *w) {
    if (!lua_istable(L, -1)) {
        w->hz = hz_of(L, k);
        return;
    }
    if (lua_getfield(L, -1, "hz") != LUA_TNIL) w->hz = hz_of(L, k);
    lua_pop(L, 1);
    if (lua_getfield(L, -1, "cores") != LUA_TNIL) {
        const double n = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : -1;
        if (!(n >= 0 && n < 4096))
            luaL_error(L, "the policy wants no number of cores of '%s'", k->name);
        const int32_t cores = (int32_t)n;
        w->cores = cores < k->min_cores   ? k->min_cores
                   : cores > k->max_cores ? k->max_cores
                                          : cores;
        if (k->max_cores == 0) w->cores = -1;
    }
    lua_pop(L, 1);
}

/* Applies a wish to the knobs of this name, or that feed this device; "*": to all. */
static void take_entry(lua_State *L, lua_governor *g, const char *key) {
    const cnri_seen *s = g->now;
    int32_t found = 0;
    if (strcmp(key, "why") == 0) {
        snprintf(g->why, sizeof g->why, "%s",
                 lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "");
        return;
    }
    if (strcmp(key, "period") == 0) {
        if (lua_type(L, -1) != LUA_TNUMBER || !(lua_tonumber(L, -1) > 0))
            luaL_error(L, "the policy's period: want seconds, got %s", luaL_tolstring(L, -1, NULL));
        *g->period = lua_tonumber(L, -1);
        return;
    }
    for (int32_t i = 0; i < s->n_knobs; i++) {
        const cnri_seen_knob *k = &s->knobs[i];
        if (strcmp(key, "*") && strcmp(key, k->name) && (!*k->feeds || strcmp(key, k->feeds)))
            continue;
        take_wish(L, k, &g->wishes[i]);
        found++;
    }
    if (found) return;
    const char *names[CNRI_MAX_KNOBS];
    for (int32_t i = 0; i < s->n_knobs; i++) names[i] = s->knobs[i].name;
    const char *best = cnri_nearest_word(key, names, s->n_knobs);
    luaL_error(L, "the policy sets '%s', which is no knob%s%s%s", key,
               best ? " (did you mean '" : "", best ? best : "", best ? "'?)" : "");
}

/* Takes a policy's answer: one frequency, or a table by knob. */
static void take_answer(lua_State *L, lua_governor *g) {
    const int answer = lua_gettop(L);
    if (lua_isnil(L, answer)) return;
    if (!lua_istable(L, answer)) {
        if (!g->now->n_knobs) return;
        const int32_t main = cnri_seen_main(g->now);
        for (int32_t i = 0; i < g->now->n_knobs; i++)
            if (i == main || cnri_seen_feeds(g->now, i))
                take_wish(L, &g->now->knobs[i], &g->wishes[i]);
        return;
    }
    for (lua_pushnil(L); lua_next(L, answer); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            luaL_error(L, "the policy's answer: want names of knobs as keys, got a %s value",
                       luaL_typename(L, -2));
        take_entry(L, g, lua_tostring(L, -2));
    }
}

/* Calls a function of the policy with what is seen and its memory; 1: its result is on top, 0: it
 * has none of that name. Raises its errors. */
static int call(lua_State *L, const char *name) {
    lua_governor *g = lua_touserdata(L, 1);
    lua_rawgeti(L, LUA_REGISTRYINDEX, g->policy);
    if (lua_getfield(L, -1, name) == LUA_TNIL) return 0;
    push_seen(L, g);
    lua_rawgeti(L, LUA_REGISTRYINDEX, g->memory);
    lua_call(L, 2, 1);
    return 1;
}

/* Lua function: calls the policy's step and takes its answer; without one nothing changes. */
static int step(lua_State *L) {
    if (call(L, "step")) take_answer(L, lua_touserdata(L, 1));
    return 0;
}

/* Lua function: calls the policy's function start, if it has one. */
static int start(lua_State *L) {
    call(L, "start");
    return 0;
}

/* Calls the policy for one tick; before the first also its start. */
static cnr_status run_step(void *arg, const cnri_seen *seen, cnri_wish *wishes, double *period,
                           cnr_error *err) {
    lua_governor *g = arg;
    g->now = seen;
    g->wishes = wishes;
    g->period = period;
    if (g->seen == LUA_NOREF) { /* what it learns first, it may take its time for */
        cnri_script_again(&g->script, START_INSTRUCTIONS, START_CPU_NS);
        const cnr_status status = cnri_script_guard(&g->script, start, g, 0, err);
        if (status) return status;
    }
    cnri_script_again(&g->script, TICK_INSTRUCTIONS, TICK_CPU_NS);
    return cnri_script_guard(&g->script, step, g, 0, err);
}

/* ---- opening ---- */

/* Lua function: runs the policy's file, which must return a table with step. */
static int load(lua_State *L) {
    lua_governor *g = lua_touserdata(L, 1);
    cnri_lua_load_file(L, g->path, g->path);
    lua_call(L, 0, 1);
    if (!lua_istable(L, -1) || lua_getfield(L, -1, "step") != LUA_TFUNCTION)
        luaL_error(L, "%s:1: want a table { step = function(seen, memory) ... end }", g->path);
    lua_pop(L, 1);
    g->policy = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_newtable(L);
    g->memory = luaL_ref(L, LUA_REGISTRYINDEX);
    return 0;
}

char *cnri_lua_governors_folder(void) {
    char *scripts = cnri_lua_scripts(),
         *path = scripts ? cnri_format("%s/../governors", scripts) : NULL;
    cnri_free(scripts);
    return path;
}

/* Finds the policy's file: "edp" is governors/edp.lua of the installation, unless the text looks
 * like a path. */
static cnr_status find(lua_governor *g, cnr_error *err) {
    struct stat info;
    char near[4096] = "";
    const char *spec = g->spec;
    const int n = (int)strcspn(spec, ",");
    if (memchr(spec, '/', (size_t)n) || (n > 4 && strncmp(spec + n - 4, ".lua", 4) == 0)) {
        g->path = cnri_format("%.*s", n, spec);
        return g->path ? CNR_OK : cnri_out_of_memory(err, spec);
    }
    char *folder = cnri_lua_governors_folder();
    g->path = folder ? cnri_format("%s/%.*s.lua", folder, n, spec) : NULL;
    cnri_free(folder);
    if (g->path && stat(g->path, &info) == 0) return CNR_OK;
    const char *name =
        g->path && cnri_nearest_path(g->path, near, sizeof near) ? strrchr(near, '/') : NULL;
    const int length = name ? (int)strcspn(++name, ".") : 0;
    return cnri_fail(err, CNR_E_NOT_FOUND, spec,
                     "there is no policy \"%.*s\" among the installed ones, and it "
                     "is no file%s%.*s",
                     n, spec, length ? "; did you mean " : "", length, length ? name : "");
}

static const char *reason_of(void *arg) { return ((lua_governor *)arg)->why; }

/* Frees a policy with its script. */
static void close_policy(void *arg) {
    lua_governor *g = arg;
    if (g->script.L) cnri_script_close(&g->script);
    cnri_free(g->path);
    cnri_free(g);
}

cnr_status cnri_lua_frequency_policy_open(const char *spec, const cnri_learns *from,
                                          cnri_frequency_policy *out, cnr_error *err) {
    lua_governor *g = cnri_alloc_zero(sizeof *g);
    *out = (cnri_frequency_policy){0};
    if (!g) return cnri_out_of_memory(err, spec);
    g->spec = spec;
    g->seen = LUA_NOREF;
    if (from) g->from = *from;
    cnr_status status = find(g, err);
    if (!status) status = cnri_script_open(&g->script, NULL, g->path, false, err);
    if (!status) {
        g->script.limit = POLICY_BYTES;
        status = cnri_script_guard(&g->script, load, g, 0, err);
    }
    if (status) close_policy(g);
    else *out = (cnri_frequency_policy){g, run_step, reason_of, close_policy};
    return status;
}

/* ---- c.dtw ---- */

/* Options of dtw: band as a share of the length, maximum: the distance at which it gives up. */
typedef struct dtw_options {
    double band, maximum;
} dtw_options;
const cnri_lua_key cnri_dtw_keys[] =
    {CNRI_REAL("band: how far the path may stray from the diagonal, as a part (1)", dtw_options,
               band, 0, 1),
     CNRI_REAL("most: given up, and infinite, as soon as it is above", dtw_options, maximum, 0,
               INFINITY),
     {0}};

/* Copies the list of 1 to 100000 numbers at `at` into memory on the stack; *n: how many. Raises
 * errors. */
static double *series(lua_State *L, int at, int32_t *n) {
    luaL_checktype(L, at, LUA_TTABLE);
    const lua_Unsigned length = lua_rawlen(L, at);
    if (length < 1 || length > 100000)
        luaL_error(L, "dtw: want 1 to 100000 numbers, got %d", (int)length);
    double *values = lua_newuserdatauv(L, length * sizeof *values, 0);
    for (lua_Unsigned i = 0; i < length; i++) {
        if (lua_rawgeti(L, at, (lua_Integer)i + 1) != LUA_TNUMBER)
            luaL_error(L, "dtw: want numbers, got a %s value at %d", luaL_typename(L, -1),
                       (int)i + 1);
        values[i] = lua_tonumber(L, -1);
        lua_pop(L, 1);
    }
    *n = (int32_t)length;
    return values;
}

/* Implements c.dtw(a, b, options): pushes the distance of two series by dynamic time warping. */
int cnri_lua_dtw(lua_State *L) {
    dtw_options o = {.band = 1, .maximum = INFINITY};
    int32_t n, m;
    cnri_lua_take(L, 3, cnri_dtw_keys, &o);
    const double *a = series(L, 1, &n), *b = series(L, 2, &m);
    cnri_script_charge(L, (int64_t)n * m / 4 + 1); /* some four cells to an instruction of Lua's */
    const double d = cnri_dtw(a, n, b, m, o.band, o.maximum);
    if (isnan(d)) return luaL_error(L, "dtw: out of memory, or no numbers");
    lua_pushnumber(L, d);
    return 1;
}
