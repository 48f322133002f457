/* The API inside a stock Lua 5.4: require "cnnrun". Its program is trusted, so nothing is
 * limited. core/bind/lua calls this. */
#include "lua/files.h"
#include "lua/model.h"

/* Collector: closes the host's runtime. Finalizers run in reverse order of creation, so nets are
 * released before. */
static int close_host(lua_State *L) {
    cnri_script *s = lua_touserdata(L, 1);
    if (s->rt) cnri_lua_drop(s->rt);
    cnr_close(s->rt);
    s->rt = NULL;
    return 0;
}

/* Options of cnnrun.open, as those of cnr_open. */
typedef struct options {
    int64_t threads;
    const char *cache, *board, *cpu_isa, *sysfs_root;
} options;
static const cnri_lua_key keys[] =
    {CNRI_WHOLE("threads: of the processor; 0: one for each core", options, threads, 0, 1024),
     CNRI_TEXT("cache: folder of what is kept between runs", options, cache),
     CNRI_TEXT("board: describes the machine", options, board),
     CNRI_TEXT("cpu_isa: the instruction set of the processor's kernels", options, cpu_isa),
     CNRI_TEXT("sysfs_root: where meters and knobs look for /sys", options, sysfs_root),
     CNRI_OTHER("plugin_dirs: folders that are searched first", "string[]"),
     {0}};

/* Reads the list `plugin_dirs` of the table at t, at most 63 texts, ended with NULL; list and texts
 * stay on the stack. Raises errors. */
static const char **take_folders(lua_State *L, int t) {
    const lua_Integer n = cnri_lua_get(L, t, "plugin_dirs") == LUA_TTABLE ? luaL_len(L, -1) : 0;
    luaL_argcheck(L, n < 64, t, "plugin_dirs: want at most 63");
    const char **at = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *at, 0);
    luaL_checkstack(L, (int)n + 20, "plugin_dirs");
    const int list = lua_gettop(L) - 1;
    for (lua_Integer i = 0; i < n; i++) {
        lua_rawgeti(L, list, i + 1);
        at[i] = luaL_checkstring(L, -1);
    }
    at[n] = NULL;
    return at;
}

/* Opens a runtime by the table at t, if there is one. */
static void open_runtime(lua_State *L, cnri_script *s, int t) {
    cnr_error err = CNR_ERROR_INIT;
    options o = {0};
    cnr_open_options open = {.size = sizeof open, .trust_scripts = true};
    if (lua_istable(L, t)) {
        cnri_lua_take(L, t, keys, &o);
        open.plugin_dirs = take_folders(L, t);
    }
    open.threads = (int32_t)o.threads;
    open.cache = o.cache;
    open.board = o.board;
    open.cpu_isa = o.cpu_isa;
    open.sysfs_root = o.sysfs_root;
    if (cnr_open(&s->rt, &open, &err))
        luaL_error(L, "%s%s%s", err.where, *err.where ? ": " : "", err.text);
}

/* Returns the module's table. Takes a table of options; any other value counts as no options. */
__attribute__((visibility("default"))) int cnr_lua_open(lua_State *L) {
    static char here[] = ".";
    luaL_checkversion(L);
    lua_settop(L, 1);
    cnri_script *s = lua_newuserdatauv(L, sizeof *s, 0);
    *s = (cnri_script){.path = "lua", .dir = here, .trust = true, .experiment = true};
    s->limit = SIZE_MAX;
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    s->L = lua_tothread(L, -1);
    lua_pop(L, 1);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, close_host);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    cnri_script_set_host(L);
    open_runtime(L, s, 1);
    cnri_lua_open_files(L);
    cnri_lua_push_module(L);
    return 1;
}
