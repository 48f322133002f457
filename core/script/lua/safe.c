/* The harmless globals, and guarded versions of those that could run without end or hide an
 * error. */
#include "lua/state.h"
#include "people/people.h"
#include <limits.h>
#include <string.h>

/* ---- protected calls: an exhausted budget passes through them ---- */

/* Ends pcall: true and results, or false and the error; limits of scripts are not caught. */
static int finish_pcall(lua_State *L, int status, lua_KContext extra) {
    if (status != LUA_OK && status != LUA_YIELD) {
        cnri_script_check(L);
        lua_pushboolean(L, 0);
        lua_pushvalue(L, -2);
        return 2;
    }
    return lua_gettop(L) - (int)extra;
}

/* Implements pcall, which can't catch the errors of the script's limits. */
static int safe_pcall(lua_State *L) {
    luaL_checkany(L, 1);
    lua_pushboolean(L, 1);
    lua_insert(L, 1);
    return finish_pcall(L, lua_pcallk(L, lua_gettop(L) - 2, LUA_MULTRET, 0, 0, finish_pcall), 0);
}

/* Message handler of safe_xpcall: calls the script's own (upvalue), but not once the script was
 * stopped, as Lua runs handlers without hooks then. */
static int handle(lua_State *L) {
    if (cnri_script_of(L)->stopped) return 1;
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

/* Implements xpcall, which can't catch the errors of the script's limits. */
static int safe_xpcall(lua_State *L) {
    const int n = lua_gettop(L);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_pushvalue(L, 2);
    lua_pushcclosure(L, handle, 1);
    lua_replace(L, 2);
    lua_pushboolean(L, 1);
    lua_pushvalue(L, 1);
    lua_rotate(L, 3, 2); /* f, handler, true, f, arguments */
    return finish_pcall(L, lua_pcallk(L, n - 2, LUA_MULTRET, 2, 2, finish_pcall), 2);
}

/* ---- coroutines ---- */

/* Resumes a coroutine with n arguments; returns the number of results, -1: it failed. */
static int resume(lua_State *L, lua_State *co, int n) {
    int results;
    if (!lua_checkstack(co, n)) return luaL_error(L, "too many arguments to a coroutine");
    lua_xmove(L, co, n);
    const int status = lua_resume(co, L, n, &results);
    if (status != LUA_OK && status != LUA_YIELD) {
        cnri_script_check(L);
        lua_xmove(co, L, 1);
        return -1;
    }
    if (!lua_checkstack(L, results + 1)) {
        lua_pop(co, results);
        return luaL_error(L, "too many results of a coroutine");
    }
    lua_xmove(co, L, results);
    return results;
}

/* Implements coroutine.resume, which can't catch the errors of the script's limits. */
static int safe_resume(lua_State *L) {
    lua_State *co = lua_tothread(L, 1);
    luaL_argexpected(L, co, 1, "coroutine");
    const int results = resume(L, co, lua_gettop(L) - 1);
    lua_pushboolean(L, results >= 0);
    lua_insert(L, results >= 0 ? -(results + 1) : -2);
    return results >= 0 ? results + 1 : 2;
}

/* Lua function that coroutine.wrap returns: resumes the coroutine (upvalue) and raises its
 * errors. */
static int call_wrapped(lua_State *L) {
    lua_State *co = lua_tothread(L, lua_upvalueindex(1));
    const int results = resume(L, co, lua_gettop(L));
    return results >= 0 ? results : lua_error(L);
}

/* Implements coroutine.wrap, which can't catch the errors of the script's limits. */
static int safe_wrap(lua_State *L) {
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_State *co = lua_newthread(L); /* inherits the hook */
    lua_pushvalue(L, 1);
    lua_xmove(L, co, 1);
    lua_pushcclosure(L, call_wrapped, 1);
    return 1;
}

/* ---- metatables ---- */

/* Implements setmetatable; raises an error for finalizers (__gc), which nothing could stop. */
static int safe_setmetatable(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_argexpected(L, lua_isnoneornil(L, 2) || lua_istable(L, 2), 2, "nil or table");
    if (luaL_getmetafield(L, 1, "__metatable") != LUA_TNIL)
        return luaL_error(L, "cannot change a protected metatable");
    if (lua_istable(L, 2)) {
        lua_pushliteral(L, "__gc");
        /* Finalizers run without hooks: nothing could stop one. */
        if (lua_rawget(L, 2) != LUA_TNIL) return luaL_error(L, "scripts may not have finalizers");
        lua_pop(L, 1);
    }
    lua_settop(L, 2);
    lua_setmetatable(L, 1);
    return 1;
}

/* ---- print: an experiment's results are results, a net has none; a table as { 1, a = "b" } ----
 */

enum { MOST_DEPTH = 4, MOST_SHOWN = 100 };

static void push_shown(lua_State *L, int at, int depth);

/* Appends ", " where `n` entries stand before, and the text on top, to the text below it. */
static void append(lua_State *L, int n) {
    lua_pushstring(L, n > 0 ? ", " : " ");
    lua_insert(L, -2);
    lua_concat(L, 3);
}

/* Pushes a table of keys by name and, above it, the sorted list of the names, without keys of the
 * list part (1 .. listed); returns their number, at most MOST_SHOWN. */
static int push_names(lua_State *L, int table, lua_Integer listed) {
    int n = 0;
    lua_newtable(L);
    lua_newtable(L);
    const int keys = lua_gettop(L) - 1, names = lua_gettop(L);
    lua_pushnil(L);
    while (lua_next(L, table)) {
        lua_pop(L, 1);
        if (lua_isinteger(L, -1) && lua_tointeger(L, -1) >= 1 && lua_tointeger(L, -1) <= listed)
            continue;
        if (n == MOST_SHOWN) break;
        luaL_tolstring(L, -1, NULL);
        lua_pushvalue(L, -1);
        lua_pushvalue(L, -3);
        lua_rawset(L, keys);
        int to = ++n;
        for (; to > 1; to--) {
            lua_rawgeti(L, names, to - 1);
            const bool before = lua_compare(L, -1, -2, LUA_OPLT);
            if (before) lua_pop(L, 1);
            else lua_rawseti(L, names, to);
            if (before) break;
        }
        lua_rawseti(L, names, to);
    }
    lua_settop(L, names);
    return n;
}

/* Pushes a table as text, for print; nested tables to a limited depth, and at most MOST_SHOWN
 * entries. */
static void push_table(lua_State *L, int table, int depth) {
    const lua_Integer listed = (lua_Integer)lua_rawlen(L, table);
    int shown = 0;
    luaL_checkstack(L, 16, NULL);
    lua_pushliteral(L, "{");
    for (lua_Integer i = 1; i <= listed && shown < MOST_SHOWN; i++, shown++) {
        lua_rawgeti(L, table, i);
        push_shown(L, lua_gettop(L), depth);
        lua_remove(L, -2);
        append(L, shown);
    }
    const int text = lua_gettop(L), n = push_names(L, table, listed);
    const int keys = text + 1, names = text + 2;
    lua_pushvalue(L, text);
    for (int i = 1; i <= n && shown < MOST_SHOWN; i++, shown++) {
        lua_rawgeti(L, names, i);
        lua_pushliteral(L, " = ");
        lua_pushvalue(L, -2);
        lua_rawget(L, keys);
        lua_rawget(L, table);
        push_shown(L, lua_gettop(L), depth);
        lua_remove(L, -2);
        lua_concat(L, 3);
        append(L, shown);
    }
    lua_pushstring(L, shown == MOST_SHOWN ? ", ... }" : shown > 0 ? " }" : "}");
    lua_concat(L, 2);
    lua_replace(L, text);
    lua_settop(L, text);
}

/* Texts within tables have quotes; what says itself how it is shown is asked. */
static void push_shown(lua_State *L, int at, int depth) {
    cnri_script_charge(L, 16);
    if (lua_istable(L, at) && luaL_getmetafield(L, at, "__tostring") == LUA_TNIL) {
        if (depth < MOST_DEPTH) push_table(L, at, depth + 1);
        else lua_pushliteral(L, "{ ... }");
    } else if (lua_type(L, at) == LUA_TSTRING && depth > 0)
        lua_pushfstring(L, "\"%s\"", lua_tostring(L, at));
    else {
        lua_settop(L, lua_gettop(L) - (lua_istable(L, at) ? 1 : 0)); /* the field */
        luaL_tolstring(L, at, NULL);
    }
}

/* Implements print: shows tables and escapes control characters, on stdout for experiments, else on
 * stderr. */
static int safe_print(lua_State *L) {
    FILE *to = cnri_script_of(L)->experiment ? stdout : stderr;
    const int n = lua_gettop(L);
    for (int i = 1; i <= n; i++) {
        size_t bytes;
        push_shown(L, i, 0);
        const char *text = lua_tolstring(L, -1, &bytes);
        if (i > 1) cnri_say(to, "\t");
        cnri_say_lines(to, text, bytes);
        lua_pop(L, 1);
    }
    cnri_say(to, "\n");
    if (to != stdout || !ferror(to)) return 0;
    cnr_error err = CNR_ERROR_INIT; /* a camera has no end at which this would be told */
    cnri_fail(&err, CNR_E_IO, "output", "can't write");
    return cnri_script_raise(L, &err);
}

/* ---- table functions: the standard ones behind a charge for what they are about to do. A __len
 * could make them loop for ever over nothing, without one instruction of Lua's. ---- */

/* Number of entries from argument `first` to argument `last`. */
static int64_t span(lua_State *L, int first, int last, int64_t length) {
    const int64_t i = luaL_optinteger(L, first, 1), j = luaL_optinteger(L, last, length);
    int64_t n;
    if (j < i) return 0;
    return __builtin_sub_overflow(j, i, &n) ? INT64_MAX : n;
}

/* Bytes that table.concat will join, plus one for each piece. */
static int64_t joined(lua_State *L, int64_t length) {
    const int64_t first = luaL_optinteger(L, 3, 1), last = luaL_optinteger(L, 4, length);
    const int64_t n = span(L, 3, 4, length);
    int64_t bytes = 0;
    if (n > length) return n; /* it fails at a nil, soon */
    cnri_script_charge(L, n);
    for (int64_t i = first; i <= last && lua_istable(L, 1); i++) {
        if (lua_rawgeti(L, 1, i) == LUA_TSTRING) bytes += (int64_t)lua_rawlen(L, -1);
        lua_pop(L, 1);
    }
    if (lua_type(L, 2) == LUA_TSTRING &&
        __builtin_add_overflow(bytes, n > 0 ? (int64_t)lua_rawlen(L, 2) * n : 0, &bytes))
        return INT64_MAX;
    return bytes / 8;
}

/* How the cost of a table function is found. */
typedef enum work { WORK_SPAN, WORK_JOIN, WORK_MOVE, WORK_SHIFT, WORK_SORT } work;

/* Lua function: calls a function of `table` after its cost was counted to the script. Upvalues: the
 * function, how its cost is found. */
static int guarded(lua_State *L) {
    const int n = lua_gettop(L);
    int64_t cost = 0;
    if (luaL_getmetafield(L, 1, "__len") != LUA_TNIL)
        return luaL_error(L, "a table with __len is not accepted here");
    const int64_t length = lua_istable(L, 1) ? (int64_t)lua_rawlen(L, 1) : 0;
    switch ((work)lua_tointeger(L, lua_upvalueindex(2))) {
    case WORK_SPAN: cost = span(L, 2, 3, length); break;
    case WORK_JOIN: cost = joined(L, length); break;
    case WORK_MOVE: cost = span(L, 2, 3, 0); break;
    case WORK_SHIFT: cost = length / 4; break;
    case WORK_SORT:
        for (int64_t m = length; m > 1; m /= 2) cost += 2 * length;
        break;
    }
    cnri_script_charge(L, cost);
    lua_settop(L, n);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, n, LUA_MULTRET);
    return lua_gettop(L);
}

/* ---- opening ---- */

/* Copies library[name] from the standard library on top to the table below it. */
static void take(lua_State *L, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++) {
        lua_getfield(L, -1, names[i]);
        lua_setfield(L, -3, names[i]);
    }
}

/* Adds the base functions that scripts may use. */
static void open_base(lua_State *L) {
    static const char *const names[] = {"assert", "error",    "getmetatable", "ipairs", "next",
                                        "pairs",  "rawequal", "rawget",       "rawlen", "rawset",
                                        "select", "tonumber", "tostring",     "type",   "_VERSION"};
    static const luaL_Reg ours[] = {{"pcall", safe_pcall},
                                    {"xpcall", safe_xpcall},
                                    {"setmetatable", safe_setmetatable},
                                    {"print", safe_print},
                                    {0}};
    /* luaopen_base fills the state's globals, which no script ever sees. */
    lua_pushcfunction(L, luaopen_base);
    lua_call(L, 0, 1);
    take(L, names, CNRI_COUNT(names));
    lua_pop(L, 1);
    luaL_setfuncs(L, ours, 0);
}

/* Adds the library `coroutine`, in its safe form, to the table on top. */
static void open_coroutine(lua_State *L) {
    static const char *const names[] = {"create", "yield", "status", "running", "isyieldable"};
    static const luaL_Reg ours[] = {{"resume", safe_resume}, {"wrap", safe_wrap}, {0}};
    lua_newtable(L);
    lua_pushcfunction(L, luaopen_coroutine);
    lua_call(L, 0, 1);
    take(L, names, CNRI_COUNT(names));
    lua_pop(L, 1);
    luaL_setfuncs(L, ours, 0);
    lua_setfield(L, -2, "coroutine");
}

/* Adds the library `table`, whose functions count their cost, to the table on top. */
static void open_table(lua_State *L) {
    static const struct {
        const char *row;
        work kind;
    } rows[] = {{"concat(list, between, i, j)", WORK_JOIN},
                {"insert(list, at, value)", WORK_SHIFT},
                {"move(from, i, j, at, to)", WORK_MOVE},
                {"remove(list, at)", WORK_SHIFT},
                {"sort(list, less)", WORK_SORT},
                {"unpack(list, i, j)", WORK_SPAN}};
    lua_newtable(L);
    lua_pushcfunction(L, luaopen_table);
    lua_call(L, 0, 1);
    lua_getfield(L, -1, "pack");
    lua_setfield(L, -3, "pack");
    for (size_t i = 0; i < CNRI_COUNT(rows); i++) {
        lua_pushlstring(L, rows[i].row, cnri_word_length(rows[i].row));
        lua_pushvalue(L, -1);
        lua_rawget(L, -3);
        lua_pushinteger(L, rows[i].kind);
        lua_pushcclosure(L, guarded, 2);
        lua_rawset(L, -4);
    }
    lua_pop(L, 1);
    lua_setfield(L, -2, "table");
}

void cnri_lua_open_safe(lua_State *L) {
    open_base(L);
    open_coroutine(L);
    open_table(L);
    lua_pushcfunction(L, luaopen_utf8);
    lua_call(L, 0, 1);
    lua_setfield(L, -2, "utf8");
    lua_pushcfunction(L, luaopen_math);
    lua_call(L, 0, 1);
    /* The same script gives the same net: Lua seeds its generator from the clock. */
    lua_getfield(L, -1, "randomseed");
    lua_pushinteger(L, 0);
    lua_call(L, 1, 0);
    lua_setfield(L, -2, "math");
}
