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

/* A script in its own Lua state, with limits. */
typedef struct cnri_script {
    lua_State *L;
    cnr_runtime *rt; /* NULL: the script may only describe nets */
    const char *path;
    char *dir;               /* folder of the script */
    const char *const *args; /* words of an experiment */
    int32_t n_args;
    CNRI_VEC(const char *) may_name; /* words by which paths may be named */
    const char *output;              /* folder below which it may write; NULL: none */
    bool trust, experiment;
    cnri_limits limits; /* limits of plugins that act for it; not for a trusted script */
    size_t used, limit;
    bool out_of_memory; /* the system's memory was out, not the script's limit */
    bool limit_hit;
    int64_t budget;
    uint64_t cpu_limit_ns, cpu_excepted_ns, checked_ns;
    bool stopped;
    const cnr_observer *watch; /* observer of long work; NULL: none */
    bool (*cancelled)(void);   /* true: ends the script like a used-up budget; NULL: never */
    bool stop_wanted;          /* the observer asked to stop */
    int32_t n_nodes;           /* number of values made so far (layer.c) */
    cnr_error raised;          /* the core's last error that was raised in Lua */
} cnri_script;

/* Limits of a script that describes nets; an experiment's main gets more, and a trusted script
 * has none. */
enum { CNRI_SCRIPT_BYTES = 256 << 20, CNRI_SCRIPT_FILE_BYTES = 4 << 20 };
#define CNRI_SCRIPT_INSTRUCTIONS INT64_C(50000000)
#define CNRI_MAIN_INSTRUCTIONS INT64_C(20000000000)
#define CNRI_MAIN_BYTES ((size_t)(sizeof(size_t) > 4 ? UINT64_C(4) << 30 : UINT64_C(1) << 30))

/* ---- state.c ---- */
/* cnri_script_open without globals, and with nothing that plugins may touch. */
cnr_status cnri_script_new(cnri_script *s, cnr_runtime *rt, const char *path, bool trust,
                           cnr_error *err);
void cnri_script_close(cnri_script *s); /* not opened: nothing */
/* Gives the script a new budget, even after one was used up: for scripts that are called
 * repeatedly, on any thread. */
void cnri_script_again(cnri_script *s, int64_t instructions, uint64_t cpu_limit_ns);
/* hosted.c: true if a state of a stock interpreter exists in the process; the script of any
 * state */
extern _Atomic bool cnri_lua_has_hosts;
/* The script of a state, hosted by another program or our own. */
cnri_script *cnri_script_hosted(lua_State *L);
void cnri_script_set_host(lua_State *L); /* takes the script, a userdata, from the top */
/* stock.c: opens the module in a host's state; exported for core/bind/lua only */
int cnr_lua_open(lua_State *L);
/* Script of a state. */
static inline cnri_script *cnri_script_of(lua_State *L) {
    return cnri_lua_has_hosts ? cnri_script_hosted(L) : *(cnri_script **)lua_getextraspace(L);
}
/* Calls f in protected mode with `arg` as light userdata and keeps `results` values on the
 * stack. Errors become *err, with the script's line as the place. */
cnr_status cnri_script_guard(cnri_script *s, lua_CFunction f, void *arg, int results,
                             cnr_error *err);
/* Raises `err`, with which a C function failed, as a Lua error with the script's place before it;
 * never returns. */
int cnri_script_raise(lua_State *L, const cnr_error *err);
/* True if the error text was raised from *out's error, which is then restored. */
bool cnri_script_raised(const cnri_script *s, const char *text, cnr_error *out);
/* Takes `n` instructions from the budget, for work that C is about to do. Raises an error if the
 * budget is used up. */
void cnri_script_charge(lua_State *L, int64_t n);
/* Gives an experiment a new budget, while it works on data that keeps coming from outside. */
void cnri_script_refill(lua_State *L);
/* Returns the thread's CPU time in ns, for cnri_script_return. Bracket calls that may take long
 * with both, so that their processor time does not count as the script's. */
uint64_t cnri_script_leave(void);
/* Ends the time that is not counted to the script, which cnri_script_leave began. */
void cnri_script_return(lua_State *L, uint64_t left);
/* Raises the stop error if the budget is used up; call it after a protected call. */
void cnri_script_check(lua_State *L);
/* True if the script is to stop. */
bool cnri_script_cancelled(const cnri_script *s);
/* Pushes "net.lua:14" for the function at `level`; "" if it is no Lua function. */
void cnri_script_where(lua_State *L, int level);

/* ---- globals.c ---- */
/* Makes an empty Lua state with the safe libraries; it reads and runs no file yet. path, borrowed:
 * the script's file, shown in messages; modules are searched in its folder. trust: no bounds on the
 * files that the script opens and on its instructions. On failure `s` is closed. */
cnr_status cnri_script_open(cnri_script *s, cnr_runtime *rt, const char *path, bool trust,
                            cnr_error *err);

/* ---- files.c: cnri_limits of a script ---- */
/* Fails unless the script may read (or write) this path. */
cnr_status cnri_lua_may_open(const void *script, const char *path, int32_t writes, cnr_error *err);
/* True if the user named that file to the script. */
bool cnri_lua_is_named(const void *script, const char *name);
/* True if the user named that source to the script. */
bool cnri_lua_is_vouched(const void *script, const char *spec);

/* ---- safe.c, text.c, require.c: the globals ---- */
/* Adds the safe parts of Lua's own libraries. */
void cnri_lua_open_safe(
    lua_State *L); /* adds base, math, table, coroutine and utf8 to the table on top */
void cnri_lua_open_text(lua_State *L); /* Adds the library `string` to the table on top. */
/* Adds require, which finds modules beside the script and installed ones. */
void cnri_lua_open_require(lua_State *L);
/* Loads the text file `path` as a function with an _ENV of its own and pushes it; `name` is for
 * messages. Raises errors. */
void cnri_lua_load_file(lua_State *L, const char *path, const char *name);
/* Pushes the function of a script's text in memory, named `name` in messages; raises syntax errors.
 * A first line with '#' is skipped. */
void cnri_lua_load_text(lua_State *L, const char *text, size_t bytes, const char *name);
/* Pushes the path of the file that require "lib.blocks" would load; false: there is none. */
bool cnri_lua_find_module(lua_State *L, const char *name);

#endif
