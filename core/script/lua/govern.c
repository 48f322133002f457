/* c.govern runs a frequency policy on a simulated scene, on a recording, or on this machine for
 * some seconds; c.governing runs one while the script works. */
#include "lua/files.h"
#include "lua/model.h"
#include "work/work.h"
#include <math.h>
#include <string.h>
#include <unistd.h>

/* Options of c.govern: texts or NULL, times in seconds, limit in degrees Celsius. */
typedef struct options {
    const char *policy, *board, *scene, *replay;
    double seconds, period, limit, late;
    int32_t ticks;
} options;

const cnri_lua_key cnri_govern_keys[] =
    {CNRI_TEXT("policy: a file, or an installed one's name, with options: \"fixed,at=lowest\"",
               options, policy),
     CNRI_TEXT("board: whose clocks are played", options, board),
     CNRI_TEXT("scene: what is played, with values: \"loop,seed=3\"", options, scene),
     CNRI_TEXT("replay: a recording", options, replay),
     CNRI_REAL("seconds: how long", options, seconds, 0, 1e7),
     CNRI_REAL("period: seconds between two ticks (0.1)", options, period, 0, 5),
     CNRI_REAL("limit: degrees, kept whatever a policy wishes", options, limit, 0, 1000),
     CNRI_REAL("late: passes that take longer are counted", options, late, 0, 1e6),
     CNRI_FLAG("ticks: each tick, too", options, ticks),
     {0}};

/* Raises an error if a path is not allowed; names of installed files are. */
static void check_path(lua_State *L, const char *spec) {
    if (!spec) return;
    lua_pushlstring(L, spec, strcspn(spec, ","));
    const char *path = lua_tostring(L, -1);
    if (strpbrk(path, "/.") || access(path, F_OK) == 0) cnri_lua_check_file(L, path, false);
    lua_pop(L, 1);
}

/* Sets a number field of the table on top, unless it is NAN. */
static void set(lua_State *L, const char *key, double value) {
    if (isnan(value)) return;
    lua_pushnumber(L, value);
    lua_setfield(L, -2, key);
}

/* Sets a text field of the table on top, unless it is "". */
static void set_text(lua_State *L, const char *key, const char *value) {
    if (!*value) return;
    lua_pushstring(L, value);
    lua_setfield(L, -2, key);
}

/* Sets the field "ticks" to a list of tables. */
static void push_ticks(lua_State *L, const cnr_tick *at, int32_t n) {
    lua_createtable(L, n, 0);
    for (int32_t i = 0; i < n; i++) {
        lua_createtable(L, 0, 5);
        set(L, "seconds", at[i].seconds);
        set(L, "hz", at[i].hz);
        set(L, "load", at[i].load);
        set(L, "watts", at[i].watts);
        set(L, "temperature", at[i].temperature);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "ticks");
}

/* Pushes the result of governing as a table. */
static void push_governed(lua_State *L, const cnr_governed *g) {
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"seconds", g->seconds},
                   {"runs", (double)g->runs},
                   {"fps", g->fps},
                   {"run_seconds", g->run_seconds},
                   {"joules", g->joules},
                   {"watts", g->watts},
                   {"run_joules", g->run_joules},
                   {"edp", g->edp},
                   {"load", g->load},
                   {"hz", g->hz},
                   {"switches", (double)g->switches},
                   {"switches_a_minute", g->switches_a_minute},
                   {"n_ticks", (double)g->ticks},
                   {"late", (double)g->late},
                   {"longest_run", g->longest_run},
                   {"limited_share", g->limited_share},
                   {"hot_share", g->hot_share},
                   {"cpu_seconds", g->cpu_seconds},
                   {"longest_tick", g->longest_tick},
                   {"faults", (double)g->faults}};
    lua_createtable(L, 0, 26);
    for (size_t i = 0; i < CNRI_COUNT(numbers); i++) set(L, numbers[i].key, numbers[i].value);
    lua_pushboolean(L, g->off);
    lua_setfield(L, -2, "off");
    lua_pushboolean(L, g->advises);
    lua_setfield(L, -2, "advises");
    set_text(L, "fault", g->fault);
    set_text(L, "why", g->why);
    set_text(L, "knob", g->knob);
    set_text(L, "knob_feeds", g->feeds);
    set_text(L, "devices", g->devices);
    lua_pushboolean(L, g->simulated);
    lua_setfield(L, -2, "simulated");
}

int cnri_lua_govern(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_governed got = {.size = sizeof got};
    options o = {0};
    cnri_lua_experiment(L);
    cnri_lua_take(L, 1, cnri_govern_keys, &o);
    check_path(L, o.policy);
    check_path(L, o.scene);
    check_path(L, o.replay);
    check_path(L, o.board);
    const cnr_govern_options options = {.size = sizeof options,
                                        .keep_ticks = 1,
                                        .policy = o.policy,
                                        .board = o.board,
                                        .scene = o.scene,
                                        .replay = o.replay,
                                        .seconds = o.seconds,
                                        .period = o.period,
                                        .limit = o.limit,
                                        .late_after = o.late};
    if (!o.board && !o.scene && !o.replay && !(o.seconds > 0))
        return luaL_error(L, "govern: how long? want seconds, a scene, a board or a recording");
    const uint64_t left = cnri_script_leave();
    const cnr_status status = cnr_govern(cnri_script_of(L)->rt, &options, NULL, &got, &err);
    cnri_script_return(L, left);
    if (status) return cnri_script_raise(L, &err);
    /* ticks are copied into memory that Lua frees, since it may raise an error while it makes
     * tables */
    const int32_t n = o.ticks ? got.n_ticks : 0;
    cnr_tick *ticks = lua_newuserdatauv(L, ((size_t)n + 1) * sizeof *ticks, 0);
    if (n) memcpy(ticks, got.ticks_at, (size_t)n * sizeof *ticks);
    cnr_governed_free(&got);
    push_governed(L, &got);
    if (o.ticks) push_ticks(L, ticks, n);
    return 1;
}

/* ---- beside what runs ---- */

#define GOVERNING_TYPE "cnnrun.governing"

/* A governing that runs beside a script; NULL: ended. */
typedef struct governing {
    cnr_governing *at;
} governing;

/* Implements c.governing(policy): begins to govern clocks and pushes the object that ends it.
 * Raises errors. */
int cnri_lua_governing(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    cnri_lua_experiment(L);
    const char *policy = luaL_checkstring(L, 1);
    check_path(L, policy);
    governing *g = lua_newuserdatauv(L, sizeof *g, 0);
    g->at = NULL;
    luaL_setmetatable(L, GOVERNING_TYPE);
    const cnr_govern_options o = {.size = sizeof o, .policy = policy};
    const uint64_t left = cnri_script_leave();
    const cnr_status status = cnr_govern_begin(cnri_script_of(L)->rt, &o, &g->at, &err);
    cnri_script_return(L, left);
    return status ? cnri_script_raise(L, &err) : 1;
}

/* Restores all knobs. Returns the result, or nothing if it was stopped before. */
static int stop_governing(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_governed got = {.size = sizeof got};
    governing *g = luaL_checkudata(L, 1, GOVERNING_TYPE);
    cnr_governing *at = g->at;
    if (!at) return 0;
    g->at = NULL;
    const uint64_t left = cnri_script_leave();
    const cnr_status status = cnr_govern_end(at, &got, &err);
    cnri_script_return(L, left);
    if (status) return cnri_script_raise(L, &err);
    cnr_governed_free(&got);
    push_governed(L, &got);
    return 1;
}

/* Collector: ends a governing, without its result. */
static int drop_governing(lua_State *L) {
    governing *g = lua_touserdata(L, 1);
    if (g->at) (void)cnr_govern_end(g->at, NULL, NULL);
    g->at = NULL;
    return 0;
}

const cnri_lua_row cnri_governing_methods[] =
    {{"stop()", stop_governing, "table?",
      "puts back what was found; what came of it, as c.govern gives it", NULL},
     {0}};

/* Makes the type of governings known to Lua. */
void cnri_lua_open_governing(lua_State *L) {
    static const luaL_Reg ends[] = {{"__gc", drop_governing}, {"__close", drop_governing}, {0}};
    cnri_lua_new_type(L, GOVERNING_TYPE, "a governing", ends, "cnnrun.Governing", NULL);
}
