/* A sandboxed Lua state: its memory, its budget, and protected calls into it. */
#include "lua/state.h"
#include <string.h>
#include <time.h>

enum {
    HOOK_EVERY = 200, /* instructions between two calls of the hook */
    BLOCK_COST = 64   /* bytes that the allocator puts before each block */
};
#define CHECK_TIME_NS UINT64_C(10000000)

uint64_t cnri_script_cpu_ns = UINT64_C(2000000000);

/* ---- memory ---- */

/* Allocates for Lua and counts it; NULL if the script's limit is reached. */
static void *allocate(void *arg, void *block, size_t old, size_t bytes) {
    cnri_script *s = arg;
    if (!block) old = 0; /* then it says what kind of object is wanted */
    const size_t held = block ? old + BLOCK_COST : 0;
    if (bytes == 0) {
        cnri_free(block);
        s->used -= held;
        return NULL;
    }
    if (bytes > old && (s->used - held > s->limit || bytes > s->limit - (s->used - held))) {
        s->limit_hit = true;
        return NULL;
    }
    void *to = cnri_resize(block, bytes);
    if (!to) {
        if (block && bytes <= old) return block; /* Lua counts on this */
        s->out_of_memory = true;
        return NULL;
    }
    s->used += bytes + BLOCK_COST - held;
    return to;
}

/* ---- instructions and time ---- */

/* CPU time of this thread in ns. */
static uint64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

uint64_t cnri_script_leave(void) { return cpu_ns(); }

void cnri_script_return(lua_State *L, uint64_t left) {
    cnri_script_of(L)->cpu_excepted_ns += cpu_ns() - left;
}

/* True if the script used more CPU time than it may; looks only now and then. */
static bool is_out_of_time(cnri_script *s) {
    const uint64_t now = cnri_real_ns();
    if (s->trust || now - s->checked_ns < CHECK_TIME_NS) return false;
    s->checked_ns = now;
    return cpu_ns() - s->cpu_excepted_ns > s->cpu_limit_ns;
}

bool cnri_script_cancelled(const cnri_script *s) {
    const volatile int32_t *flag = s->watch ? s->watch->cancel : NULL;
    return s->stop_wanted || (flag && *flag) || (s->cancelled && s->cancelled());
}

/* Why a script was stopped, as a constant text: by a signal, or by its limit. */
static const char *reason(const cnri_script *s) {
    return cnri_script_cancelled(s)
               ? "stopped"
               : "the script ran for longer than it may (its limit of instructions)";
}

static int stop(lua_State *L) { return luaL_error(L, "%s", reason(cnri_script_of(L))); }

/* Hook of Lua: stops a script that is cancelled or over its limits. */
static void hook(lua_State *L, lua_Debug *ar) {
    cnri_script *s = cnri_script_of(L);
    if (!s->stopped) {
        if (!s->trust) s->budget -= HOOK_EVERY;
        if (!cnri_script_cancelled(s) && s->budget >= 0 && !is_out_of_time(s)) return;
        s->stopped = true;
    }
    /* Stay armed: a pcall in a loop must not get another 200 instructions each time. */
    lua_sethook(L, hook, LUA_MASKLINE | LUA_MASKCOUNT, 1);
    /* luaL_error has no position inside a hook. */
    lua_getinfo(L, "Sl", ar);
    lua_pushfstring(L, "%s:%d: %s", ar->short_src, ar->currentline, reason(s));
    lua_error(L);
}

void cnri_script_again(cnri_script *s, int64_t instructions, uint64_t cpu_limit_ns) {
    s->budget = instructions;
    s->stopped = false;
    s->cpu_excepted_ns = cpu_ns(); /* of this thread, which may be another */
    s->cpu_limit_ns = cpu_limit_ns;
    s->checked_ns = cnri_real_ns();
    lua_sethook(s->L, hook, LUA_MASKCOUNT, HOOK_EVERY);
}

void cnri_script_refill(lua_State *L) {
    cnri_script *s = cnri_script_of(L);
    if (s->experiment && !s->stopped) s->budget = CNRI_MAIN_INSTRUCTIONS;
}

void cnri_script_charge(lua_State *L, int64_t n) {
    cnri_script *s = cnri_script_of(L);
    if (s->trust) return;
    if (!s->stopped && n <= s->budget && !is_out_of_time(s)) {
        s->budget -= n;
        return;
    }
    s->stopped = true;
    stop(L);
}

void cnri_script_check(lua_State *L) {
    if (cnri_script_of(L)->stopped) stop(L);
}

/* ---- where in a script ---- */

void cnri_script_where(lua_State *L, int level) {
    lua_Debug ar;
    if (lua_getstack(L, level, &ar) && lua_getinfo(L, "Sl", &ar) && ar.currentline > 0)
        lua_pushfstring(L, "%s:%d", ar.short_src, ar.currentline);
    else lua_pushliteral(L, "");
}

/* Length of "net.lua:14" in "net.lua:14: text"; 0: the text begins with no line. */
static size_t where_length(const char *text) {
    for (const char *p = strchr(text, ':'); p; p = strchr(p + 1, ':')) {
        const size_t digits = strspn(p + 1, "0123456789");
        if (digits && p[1 + digits] == ':' && p != text) return (size_t)(p - text) + 1 + digits;
        if (p[1] == ' ') return 0;
    }
    return 0;
}

/* Message handler: appends the calls that led to the error, one a line. An error without a place
 * (level 0) is meant for people and stays as it is. It runs no Lua code, which would run without
 * hooks if a hook raised the error. */
static int describe(lua_State *L) {
    const char *text = lua_tostring(L, 1);
    lua_Debug ar;
    if (!text) {
        cnri_script_where(L, 1);
        text = lua_pushfstring(L, "%s%sthe error is a %s value", lua_tostring(L, -1),
                               lua_rawlen(L, -1) ? ": " : "", luaL_typename(L, 1));
    }
    luaL_Buffer b;
    const size_t where = where_length(text);
    luaL_buffinit(L, &b);
    luaL_addstring(&b, text);
    int shown = 0;
    bool first = true;
    for (int level = 1; where > 0 && shown < 8 && lua_getstack(L, level, &ar); level++) {
        char line[LUA_IDSIZE + 32];
        lua_getinfo(L, "Sl", &ar);
        if (ar.currentline <= 0) continue;
        const int n = snprintf(line, sizeof line, "%s:%d", ar.short_src, ar.currentline);
        const bool same = (size_t)n == where && strncmp(line, text, where) == 0;
        if (!(first && same)) {
            luaL_addstring(&b, "\n  called from ");
            luaL_addstring(&b, line);
            shown++;
        }
        first = false;
    }
    luaL_pushresult(&b);
    return 1;
}

/* ---- the boundary ---- */

/* Fills err with the error that the script raised. */
static cnr_status report(cnri_script *s, int status, cnr_error *err) {
    const char *text = lua_type(s->L, -1) == LUA_TSTRING ? lua_tostring(s->L, -1) : "";
    char where[sizeof err->where];
    if (status == LUA_ERRMEM && !s->limit_hit) return cnri_out_of_memory(err, s->path);
    if (status == LUA_ERRMEM)
        return cnri_fail(err, CNR_E_LIMIT, s->path,
                         "the script wants more memory than the %zu MiB "
                         "it may have",
                         s->limit >> 20);
    if (s->stopped && cnri_script_cancelled(s))
        return cnri_fail(err, CNR_E_CANCELLED, s->path, "stopped");
    size_t n = where_length(text);
    if (n == 0 || n >= sizeof where) return cnri_fail(err, CNR_E_SCRIPT, s->path, "%s", text);
    memcpy(where, text, n);
    where[n] = 0;
    text += n + 1;
    return cnri_fail(err, s->stopped ? CNR_E_LIMIT : CNR_E_SCRIPT, where, "%s",
                     text + strspn(text, " "));
}

cnr_status cnri_script_guard(cnri_script *s, lua_CFunction f, void *arg, int results,
                             cnr_error *err) {
    lua_State *L = s->L;
    /* Three values, none of which allocates, in a stack that always has space for 20. */
    lua_pushcfunction(L, describe);
    lua_pushcfunction(L, f);
    lua_pushlightuserdata(L, arg);
    const int base = lua_gettop(L) - 2;
    s->limit_hit = s->out_of_memory = false;
    const cnri_limits *outer = cnri_limits_set_thread(s->trust ? NULL : &s->limits);
    const int status = lua_pcall(L, 1, results, base);
    cnri_limits_set_thread(outer);
    lua_remove(L, base);
    if (status == LUA_OK) return CNR_OK;
    const cnr_status code = report(s, status, err);
    lua_settop(L, base - 1);
    return code;
}

/* Finds the code and place of the engine's error at the end of `text`; false: there is none. */
bool cnri_script_raised(const cnri_script *s, const char *text, cnr_error *out) {
    const cnr_error *e = &s->raised;
    char whole[sizeof e->where + sizeof e->text + 4];
    const int n = snprintf(whole, sizeof whole, "%s%s%s", e->where, *e->where ? ": " : "", e->text);
    const size_t length = strlen(text);
    if (!e->code || n <= 0 || (size_t)n > length || strcmp(text + length - n, whole) != 0)
        return false;
    *out = *e;
    return true;
}

int cnri_script_raise(lua_State *L, const cnr_error *err) {
    cnri_script_of(L)->raised = *err;
    luaL_where(L, 1);
    lua_pushfstring(L, "%s%s%s%s", lua_tostring(L, -1), err->where, err->where[0] ? ": " : "",
                    err->text);
    return lua_error(L);
}

/* ---- opening and closing ---- */

cnr_status cnri_script_new(cnri_script *s, cnr_runtime *rt, const char *path, bool trust,
                           cnr_error *err) {
    *s = (cnri_script){.rt = rt,
                       .path = path,
                       .trust = trust,
                       .limit = CNRI_SCRIPT_BYTES,
                       .budget = CNRI_SCRIPT_INSTRUCTIONS,
                       .cpu_limit_ns = cnri_script_cpu_ns};
    s->checked_ns = cnri_real_ns();
    s->cpu_excepted_ns = cpu_ns(); /* what the thread had used before */
    s->dir = cnri_path_dir(path);
    s->L = s->dir ? lua_newstate(allocate, s) : NULL;
    if (!s->L) {
        cnri_script_close(s);
        return cnri_out_of_memory(err, path);
    }
    *(cnri_script **)lua_getextraspace(s->L) = s;
    lua_sethook(s->L, hook, LUA_MASKCOUNT, HOOK_EVERY);
    return CNR_OK;
}

const char *cnri_lua_release(void) { return LUA_RELEASE; }

/* Closes the state and frees its lists; not opened: nothing. */
void cnri_script_close(cnri_script *s) {
    if (s->L) lua_close(s->L);
    cnri_free(s->dir);
    cnri_vec_free(&s->may_name);
    s->L = NULL;
    s->dir = NULL;
}
