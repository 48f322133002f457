/* c.energy: the energy of a function or of other work, as tables. */
#include "lua/model.h"
#include "work/work.h"

const cnri_lua_key cnri_energy_keys[] =
    {CNRI_WHOLE("rounds: how often the function is called at least (1)", cnr_energy_options, rounds,
                1, 1000000),
     CNRI_FLAG("no_idle: don't wait a second for what is drawn before", cnr_energy_options,
               no_idle),
     CNRI_REAL("idle_watts: idle power, instead of measuring it", cnr_energy_options, idle_watts, 0,
               1e9),
     CNRI_FLAG("idle_behind: measure idle power after the work too, in case the machine was busy "
               "before",
               cnr_energy_options, idle_behind),
     {0}};

static const char *const sources[] = {"unmeasured", "measured", "estimated", "simulated"};

/* Pushes the energy of one domain as a table. */
static void push_domain(lua_State *L, const cnr_energy_domain *d, bool simulated) {
    lua_createtable(L, 0, 14);
    cnri_lua_set_text(L, "name", d->name);
    cnri_lua_set_text(L, "meter", d->meter);
    cnri_lua_set_text(L, "feeds", *d->feeds ? d->feeds : NULL);
    cnri_lua_set_text(L, "source",
                      sources[d->status      ? 0
                              : simulated    ? CNR_ENERGY_SIMULATED
                              : d->estimated ? 2
                                             : 1]);
    cnri_lua_set_text(L, "error", d->status ? d->why : NULL);
    cnri_lua_set_text(L, "why", !d->status && *d->why ? d->why : NULL);
    cnri_lua_set_number(L, "joules", d->joules);
    cnri_lua_set_number(L, "joules_net", d->joules_net);
    cnri_lua_set_number(L, "watts", d->watts);
    cnri_lua_set_number(L, "edp", d->edp);
    cnri_lua_set_number(L, "idle_watts", d->idle_watts);
    cnri_lua_set_number(L, "idle_spread", d->idle_spread);
    cnri_lua_set_number(L, "period", d->period_ms * 1e-3);
    cnri_lua_set_whole(L, "samples", d->samples);
    lua_pushboolean(L, d->summed);
    lua_setfield(L, -2, "summed");
}

/* Pushes the energy as a table; unknown figures are nil. */
static void push_energy(lua_State *L, const cnr_energy *e) {
    lua_createtable(L, 0, 12);
    cnri_lua_set_text(L, "source", sources[e->source]);
    if (e->why[0]) cnri_lua_set_text(L, "why", e->why);
    if (e->missing[0]) cnri_lua_set_text(L, "missing", e->missing);
    cnri_lua_set_number(L, "seconds", e->seconds);
    cnri_lua_set_number(L, "joules", e->joules);
    cnri_lua_set_number(L, "joules_net", e->joules_net);
    cnri_lua_set_number(L, "watts", e->watts);
    cnri_lua_set_number(L, "idle_watts", e->idle_watts);
    cnri_lua_set_number(L, "edp", e->edp);
    cnri_lua_set_whole(L, "rounds", e->rounds);
    cnri_lua_set_whole(L, "samples", e->samples);
    lua_createtable(L, e->n, 0);
    for (int32_t i = 0; i < e->n; i++) {
        push_domain(L, &e->at[i], e->source == CNR_ENERGY_SIMULATED);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "domains");
}

void cnri_lua_set_energy(lua_State *L, const cnr_energy *e) {
    luaL_checkstack(L, 8, "energy");
    if (!e) return;
    push_energy(L, e);
    lua_setfield(L, -2, "energy");
}

/* Calls the function at 1 until the region is long enough. False: it raised the error that is on
 * top now. */
static bool rounds(lua_State *L, const cnr_energy_options *o, cnr_energy_region *region,
                   int64_t *n) {
    bool good = true;
    for (*n = 0; good && (*n == 0 || *n < o->rounds || !cnr_energy_long_enough(region)); ++*n) {
        lua_pushvalue(L, 1);
        good = lua_pcall(L, 0, 0, 0) == LUA_OK;
    }
    return good;
}

static void free_energy(void *e) { cnr_energy_free(e); }

/* Implements c.energy(work, options): calls work, and pushes its energy and its results. No error
 * may be raised while the region is open. */
int cnri_lua_energy(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_energy_options o = {.size = sizeof o};
    cnr_energy_region *region;
    int64_t n;
    cnri_lua_experiment(L);
    luaL_checktype(L, 1, LUA_TFUNCTION);
    cnri_lua_take(L, 2, cnri_energy_keys, &o);
    luaL_checkstack(L, 8, "energy");
    cnr_energy *e = cnri_lua_push_result(L, sizeof *e, free_energy);
    e->size = sizeof *e;
    cnri_lua_work w = {0};
    cnr_status status =
        cnr_energy_begin(cnri_script_of(L)->rt, &o, cnri_lua_begin(L, &w), &region, &err);
    cnri_lua_end(L, &w, status, &err);
    const bool good = rounds(L, &o, region, &n);
    status = cnr_energy_end(region, n, good ? e : NULL, &err);
    if (!good) return lua_error(L);
    if (status) return cnri_script_raise(L, &err);
    cnri_script_check(L);
    push_energy(L, e);
    return 1;
}
