/* Inside the room: one sandboxed Lua state and what its files share.
 *
 * A script may be hostile. What keeps it in bounds:
 *   memory        our allocator counts and refuses past `limit`
 *   instructions  a hook takes from `budget`; library functions that loop in C take theirs by
 *                 cnri_script_charge. Once it is used up, `stopped` stays set: every instruction
 *                 raises again, and pcall, xpcall and coroutines pass the error on
 *   time          processor time, for single instructions that take long (joining large strings);
 *                 host calls are excepted
 *   reach         no files, no bytecode, no finalizers (they run without hooks)
 */
#ifndef CNRI_LUA_STATE_H
#define CNRI_LUA_STATE_H

#include "lua/api.h"
#include "lua/script.h"
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

typedef struct cnri_script {
    lua_State *L;
    cnr_runtime *rt; /* NULL: only descriptions */
    const char *path;
    char *dir;               /* of the script */
    const char *const *args; /* of an experiment: the words it was given */
    int32_t n_args;
    CNRI_VEC(const char *) may_name; /* these, and what else paths may be named by */
    const char *output;              /* a folder below which it may write, or NULL */
    bool trust, experiment;
    cnri_limits limits; /* what plugins may touch for it; not for a trusted one */
    size_t used, limit;
    bool out_of_memory; /* the system's, not the limit's */
    bool limit_hit;
    int64_t budget;
    uint64_t cpu_limit_ns, cpu_excepted_ns, checked_ns;
    bool stopped;
    const cnr_observer *watch; /* hears of long work; NULL: nobody does */
    bool (*cancelled)(void);   /* somebody wants an end: as a used-up budget. NULL: nobody can */
    bool stop_wanted;          /* the same, by the observer */
    int32_t n_nodes;           /* values made so far: layer.c */
    cnr_error raised;          /* the last error of ours that became one of Lua's */
} cnri_script;

/* Limits of a script that describes nets; an experiment's main gets more, a trusted one all. */
enum { CNRI_SCRIPT_BYTES = 256 << 20, CNRI_SCRIPT_FILE_BYTES = 4 << 20 };
#define CNRI_SCRIPT_INSTRUCTIONS INT64_C(50000000)
#define CNRI_MAIN_INSTRUCTIONS INT64_C(20000000000)
#define CNRI_MAIN_BYTES ((size_t)(sizeof(size_t) > 4 ? UINT64_C(4) << 30 : UINT64_C(1) << 30))

/* ---- state.c ---- */
/* cnri_script_open without globals, and with nothing that plugins may touch. */
cnr_status cnri_script_new(cnri_script *s, cnr_runtime *rt, const char *path, bool trust,
                           cnr_error *err);
void cnri_script_close(cnri_script *s);
/* A new budget, after one that was used up too: for scripts that are called again and again, each
 * time on any thread. */
void cnri_script_again(cnri_script *s, int64_t instructions, uint64_t cpu_limit_ns);
/* hosted.c: a stock interpreter's state is among those of the process; the script of any state. */
extern _Atomic bool cnri_lua_has_hosts;
cnri_script *cnri_script_hosted(lua_State *L);
void cnri_script_set_host(lua_State *L); /* takes the script from the top, a userdata */
int cnr_lua_open(lua_State *L); /* stock.c: exported; for core/bind/lua, which alone wants it */
static inline cnri_script *cnri_script_of(lua_State *L) {
    return cnri_lua_has_hosts ? cnri_script_hosted(L) : *(cnri_script **)lua_getextraspace(L);
}
/* The one protected boundary: calls f with `arg` as light userdata and keeps `results` values on
 * the stack. Errors become *err with the line of the script as `where`. */
cnr_status cnri_script_guard(cnri_script *s, lua_CFunction f, void *arg, int results,
                             cnr_error *err);
/* A C function below the boundary failed with `err`: raises it as a Lua error with its text. */
int cnri_script_raise(lua_State *L, const cnr_error *err);
bool cnri_script_raised(const cnri_script *s, const char *text, cnr_error *out);
/* `n` instructions' worth of work is about to be done in C. Raises when the budget is used up. */
void cnri_script_charge(lua_State *L, int64_t n);
/* A new budget for an experiment that works on what comes from outside, for as long as it does. */
void cnri_script_refill(lua_State *L);
/* Around calls that may take long: their processor time is not the script's. */
uint64_t cnri_script_leave(void);
void cnri_script_return(lua_State *L, uint64_t left);
/* Raises the stop error when the script has used up its budget (after a protected call). */
void cnri_script_check(lua_State *L);
/* Somebody wants it to end. */
bool cnri_script_cancelled(const cnri_script *s);
/* Pushes "net.lua:14" for the function at `level`; "" when it is not Lua. */
void cnri_script_where(lua_State *L, int level);

/* ---- globals.c ---- */
/* Makes an empty Lua state with the safe libraries; it reads and runs no file yet. path, borrowed:
 * the script's file, shown in messages; modules are searched in its folder. trust: no bounds on the
 * files that the script opens and on its instructions. On failure `s` is closed. */
cnr_status cnri_script_open(cnri_script *s, cnr_runtime *rt, const char *path, bool trust,
                            cnr_error *err);

/* ---- files.c: cnri_limits of a script ---- */
cnr_status cnri_lua_may_open(const void *script, const char *path, int32_t writes, cnr_error *err);
bool cnri_lua_is_named(const void *script, const char *name);
bool cnri_lua_is_vouched(const void *script, const char *spec);

/* ---- safe.c, text.c, require.c: the globals ---- */
void cnri_lua_open_safe(
    lua_State *L); /* base, math, table, coroutine, utf8 into the table on top */
void cnri_lua_open_text(lua_State *L); /* string */
void cnri_lua_open_require(lua_State *L);
/* Loads the text file `path` as a function with its own _ENV and pushes it; `name` is shown in
 * messages. Raises. */
void cnri_lua_load_file(lua_State *L, const char *path, const char *name);
/* The same of a text that is there. */
void cnri_lua_load_text(lua_State *L, const char *text, size_t bytes, const char *name);
/* The file that require "lib.blocks" would load: pushes its path, or returns false. */
bool cnri_lua_find_module(lua_State *L, const char *name);

#endif
