/* c.gauges: the present readings of this machine's meters and knobs, one table for each domain. */
#include "lua/files.h"
#include "lua/model.h"
#include "work/work.h"

/* Options of c.gauges: root of sysfs, and address of a meter; NULL: not given. */
typedef struct options {
    const char *root, *address;
} options;

const cnri_lua_key cnri_gauge_keys[] =
    {CNRI_TEXT("root: a tree to look in instead of /", options, root),
     CNRI_TEXT("address: of what is no file there: a power supply's", options, address),
     {0}};

/* Sets a text field of the table on top, unless it is "". */
static void set_text(lua_State *L, const char *key, const char *value) {
    if (!*value) return;
    lua_pushstring(L, value);
    lua_setfield(L, -2, key);
}

/* Pushes a reading in joules, watts, degrees or hertz; unknown figures are nil. */
static void push_gauge(lua_State *L, const cnr_gauge *g) {
    static const char *const quantities[] = {"knob", "energy", "power", "temperature"};
    lua_createtable(L, 0, 12);
    set_text(L, "plugin", g->plugin);
    set_text(L, "name", g->name);
    set_text(L, "feeds", g->feeds);
    set_text(L, "quantity", quantities[g->quantity]);
    set_text(L, "error", g->why);
    lua_pushboolean(L, g->estimated);
    lua_setfield(L, -2, "estimated");
    cnri_lua_set_simulated(L);
    cnri_lua_set_number(L, "period", g->period_ms * 1e-3);
    if (g->quantity == 0) {
        cnri_lua_set_number(L, "min_hz", (double)g->min_hz);
        cnri_lua_set_number(L, "max_hz", (double)g->max_hz);
    }
    if (g->status) return;
    cnri_lua_set_number(L, "time", (double)g->time_ns * 1e-9);
    if (g->quantity)
        cnri_lua_set_number(L, "value",
                            (double)g->value *
                                (g->quantity == CNR_QUANTITY_TEMPERATURE ? 1e-3 : 1e-6));
    else cnri_lua_set_number(L, "hz", (double)g->hz);
    if (g->writable >= 0) {
        lua_pushboolean(L, g->writable);
        lua_setfield(L, -2, "writable");
    }
    if (g->load_percent >= 0) cnri_lua_set_number(L, "load", g->load_percent * 0.01);
    if (g->cores >= 0) cnri_lua_set_number(L, "cores", g->cores);
    if (g->temperature_mc != INT32_MIN)
        cnri_lua_set_number(L, "temperature", g->temperature_mc * 1e-3);
}

int cnri_lua_gauges(lua_State *L) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_gauge_list list = {0};
    cnri_lua_experiment(L);
    options o = {0};
    cnri_lua_take(L, 1, cnri_gauge_keys, &o);
    if (o.root) cnri_lua_check_file(L, o.root, false);
    if (o.address) cnri_lua_check_address(L, o.address);
    const uint64_t left = cnri_script_leave();
    const cnr_status status = cnr_gauges(cnri_script_of(L)->rt, o.root, o.address, &list, &err);
    cnri_script_return(L, left);
    if (status) return cnri_script_raise(L, &err);
    /* rows are copied into memory that Lua frees, since it may raise an error while it makes tables
     */
    cnr_gauge *rows = lua_newuserdatauv(L, ((size_t)list.n + 1) * sizeof *rows, 0);
    const int32_t n = list.n;
    memcpy(rows, list.at, (size_t)n * sizeof *rows);
    cnr_gauges_free(&list);
    lua_createtable(L, n, 0);
    for (int32_t i = 0; i < n; i++) {
        push_gauge(L, &rows[i]);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}
