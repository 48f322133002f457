/* Long work that scripts ask for: progress, being interrupted, results that no error leaks. */
#include "lua/model.h"
#include <string.h>

/* ---- results: freed by the collector, whatever happens while they become tables ---- */

#define RESULT_TYPE "cnnrun result"

/* A result that the collector frees. */
typedef struct result {
    void (*free)(void *);
    union {
        long double align;
        char at[1];
    } data;
} result;

void *cnri_lua_push_result(lua_State *L, size_t bytes, void (*free)(void *)) {
    result *r = lua_newuserdatauv(L, sizeof *r + bytes, 0);
    memset(r, 0, sizeof *r + bytes);
    r->free = free;
    luaL_setmetatable(L, RESULT_TYPE);
    return r->data.at;
}

/* Collector: calls the result's own free function on its memory. */
static int free_result(lua_State *L) {
    result *r = lua_touserdata(L, 1);
    r->free(r->data.at);
    return 0;
}

/* Makes the type of results known to Lua. */
void cnri_lua_open_work(lua_State *L) {
    static const luaL_Reg events[] = {{"__gc", free_result}, {0}};
    cnri_lua_new_type(L, RESULT_TYPE, "a result", events, NULL, NULL);
}

/* ---- while it lasts ---- */

/* Passes progress on; not 0: the script is cancelled. */
static int32_t tell_progress(void *arg, const cnr_progress *p) {
    const cnri_lua_work *w = arg;
    const cnr_observer *watch = w->script->watch;
    if (cnri_script_cancelled(w->script)) return 1;
    if (watch && watch->progress && watch->progress(watch->arg, p)) w->script->stop_wanted = true;
    return w->script->stop_wanted;
}

/* Passes an event on to the function that the script's call set; returns what it returns, 0: go
 * on. */
static int32_t tell_event(void *arg, int32_t kind, const void *of) {
    const cnri_lua_work *w = arg;
    return w->event ? w->event(w->arg, kind, of) : 0;
}

void cnri_lua_clear_progress(const cnri_script *s) {
    if (s->watch && s->watch->event)
        s->watch->event(s->watch->arg, CNRI_EVENT_CLEAR_PROGRESS, NULL);
}

const cnr_observer *cnri_lua_begin(lua_State *L, cnri_lua_work *w) {
    w->script = cnri_script_of(L);
    const cnr_observer *watch = w->script->watch;
    w->observer = (cnr_observer){.size = sizeof w->observer,
                                 .arg = w,
                                 .progress = tell_progress,
                                 .event = tell_event,
                                 .cancel = watch ? watch->cancel : NULL};
    w->failures = cnri_alloc_failures();
    w->left = cnri_script_leave();
    return &w->observer;
}

void cnri_lua_end(lua_State *L, const cnri_lua_work *w, cnr_status status, cnr_error *err) {
    cnri_script *s = w->script;
    cnri_script_return(L, w->left);
    status = cnri_alloc_verdict(w->failures, status, "", err);
    cnri_lua_clear_progress(s);
    if (cnri_script_cancelled(s)) s->stopped = true; /* no pcall goes on behind this */
    cnri_script_check(L);
    if (status) cnri_script_raise(L, err);
}

/* ---- tables ---- */

void cnri_lua_set_number(lua_State *L, const char *key, double value) {
    if (value != value) return; /* not known */
    lua_pushnumber(L, value);
    lua_setfield(L, -2, key);
}

void cnri_lua_set_interval(lua_State *L, const char *name, double part, int64_t n) {
    double range[2];
    char key[32];
    cnr_wilson_interval(part, n, range);
    for (int i = 0; i < 2; i++) {
        snprintf(key, sizeof key, "%s_%s", name, i ? "high" : "low");
        cnri_lua_set_number(L, key, range[i]);
    }
}

void cnri_lua_set_simulated(lua_State *L) {
    if (cnri_clock_is_real()) return;
    lua_pushboolean(L, true);
    lua_setfield(L, -2, "simulated");
}

void cnri_lua_set_whole(lua_State *L, const char *key, int64_t value) {
    lua_pushinteger(L, value);
    lua_setfield(L, -2, key);
}

void cnri_lua_set_text(lua_State *L, const char *key, const char *value) {
    if (!value) return;
    lua_pushstring(L, value);
    lua_setfield(L, -2, key);
}
