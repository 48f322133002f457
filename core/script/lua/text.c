/* The string library: Lua's own functions where they are harmless, cnnrun's where a call could
 * run without end. */
#define _GNU_SOURCE /* memmem */
#include "lua/pattern.h"
#include <string.h>

/* True if a pattern has no special characters. */
static bool plain_text(const char *pattern, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strchr("^$*+?.([%-", pattern[i])) return false; /* a NUL counts as special too */
    return true;
}

/* A match of a pattern of m bytes in a text of n bytes, with no captures yet; it borrows both. */
static cnri_match begin(lua_State *L, const char *text, size_t n, const char *pattern, size_t m) {
    return (cnri_match){.L = L, .text = text, .text_end = text + n, .pattern_end = pattern + m};
}

/* Converts a position (1: the first, -1: the last) to an offset; past the end: n + 1. */
static size_t offset(lua_Integer at, size_t n) {
    if (at > 0) return (size_t)at - 1 <= n ? (size_t)at - 1 : n + 1;
    if (at == 0 || at < -(lua_Integer)n) return 0;
    return n - (size_t)-at;
}

/* Implements string.find (find) and string.match: pushes the first match's place or captures; nil:
 * none. */
static int search(lua_State *L, bool find) {
    size_t n, m;
    const char *text = luaL_checklstring(L, 1, &n), *pattern = luaL_checklstring(L, 2, &m);
    const size_t from = offset(luaL_optinteger(L, 3, 1), n);
    if (from > n) {
        luaL_pushfail(L);
        return 1;
    }
    if (find && (lua_toboolean(L, 4) || plain_text(pattern, m))) {
        cnri_script_charge(L, (int64_t)(n - from) / 16);
        const char *at = memmem(text + from, n - from, pattern, m);
        if (at) {
            lua_pushinteger(L, at - text + 1);
            lua_pushinteger(L, at - text + (lua_Integer)m);
            return 2;
        }
        luaL_pushfail(L);
        return 1;
    }
    cnri_match match = begin(L, text, n, pattern, m);
    const bool anchored = m > 0 && *pattern == '^';
    const char *s = text + from;
    do {
        cnri_script_charge(L, 1);
        const char *e = cnri_pattern_match(&match, s, pattern + anchored);
        if (!e) continue;
        if (!find) return cnri_pattern_push_all(&match, s, e);
        lua_pushinteger(L, s - text + 1);
        lua_pushinteger(L, e - text);
        return 2 + (match.n ? cnri_pattern_push_all(&match, s, e) : 0);
    } while (s++ < match.text_end && !anchored);
    luaL_pushfail(L);
    return 1;
}

static int text_find(lua_State *L) { return search(L, true); }

static int text_match(lua_State *L) { return search(L, false); }

/* Iterates for gmatch. Upvalues: text, pattern, next offset, end of the last match (-1: none
 * yet). */
static int next_match(lua_State *L) {
    size_t n, m;
    const char *text = lua_tolstring(L, lua_upvalueindex(1), &n);
    const char *pattern = lua_tolstring(L, lua_upvalueindex(2), &m);
    cnri_match match = begin(L, text, n, pattern, m);
    const lua_Integer last = lua_tointeger(L, lua_upvalueindex(4));
    for (size_t at = (size_t)lua_tointeger(L, lua_upvalueindex(3)); at <= n; at++) {
        cnri_script_charge(L, 1);
        const char *e = cnri_pattern_match(&match, text + at, pattern);
        if (!e || e - text == last) continue; /* an empty match where the last one ended */
        lua_pushinteger(L, e - text);
        lua_pushvalue(L, -1);
        lua_replace(L, lua_upvalueindex(3));
        lua_replace(L, lua_upvalueindex(4));
        return cnri_pattern_push_all(&match, text + at, e);
    }
    return 0;
}

/* Implements string.gmatch: pushes an iterator over the matches. */
static int text_gmatch(lua_State *L) {
    size_t n;
    luaL_checklstring(L, 1, &n);
    luaL_checkstring(L, 2);
    const size_t from = offset(luaL_optinteger(L, 3, 1), n);
    lua_settop(L, 2);
    lua_pushinteger(L, (lua_Integer)from);
    lua_pushinteger(L, -1);
    lua_pushcclosure(L, next_match, 4);
    return 1;
}

/* Expands the replacement text "%1 and %%" for one match. */
static void expand(cnri_match *m, luaL_Buffer *b, const char *s, const char *e) {
    size_t n;
    const char *p = lua_tolstring(m->L, 3, &n);
    cnri_script_charge(m->L, (int64_t)n / 8);
    for (const char *end = p + n; p < end; p++) {
        if (*p != '%') {
            luaL_addchar(b, *p);
            continue;
        }
        p++;
        if (p < end && *p == '%') luaL_addchar(b, '%');
        else if (p < end && *p == '0') luaL_addlstring(b, s, (size_t)(e - s));
        else if (p < end && *p >= '1' && *p <= '9') {
            cnri_pattern_push(m, *p - '1', s, e);
            luaL_tolstring(m->L, -1, NULL);
            lua_remove(m->L, -2);
            luaL_addvalue(b);
        } else luaL_error(m->L, "'%%' in a replacement wants a digit or '%%' behind it");
    }
}

/* Appends what replaces the match s .. e, by argument 3 (text, function or table), to b; false or
 * nil keeps it. */
static void replace(cnri_match *m, luaL_Buffer *b, int type, const char *s, const char *e) {
    lua_State *L = m->L;
    if (type == LUA_TSTRING || type == LUA_TNUMBER) {
        expand(m, b, s, e);
        return;
    }
    if (type == LUA_TFUNCTION) {
        lua_pushvalue(L, 3);
        lua_call(L, cnri_pattern_push_all(m, s, e), 1);
    } else {
        cnri_pattern_push(m, 0, s, e);
        lua_gettable(L, 3);
    }
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        luaL_addlstring(b, s, (size_t)(e - s));
    } else if (lua_isstring(L, -1)) luaL_addvalue(b);
    else luaL_error(L, "a replacement is a %s value", luaL_typename(L, -1));
}

/* Implements string.gsub: pushes the text with matches replaced, and how many were. */
static int text_gsub(lua_State *L) {
    size_t n, m;
    const char *text = luaL_checklstring(L, 1, &n), *pattern = luaL_checklstring(L, 2, &m);
    const int type = lua_type(L, 3);
    const lua_Integer maximum = luaL_optinteger(L, 4, LUA_MAXINTEGER);
    luaL_argexpected(L,
                     type == LUA_TSTRING || type == LUA_TNUMBER || type == LUA_TTABLE ||
                         type == LUA_TFUNCTION,
                     3, "string, function or table");
    cnri_match match = begin(L, text, n, pattern, m);
    const bool anchored = m > 0 && *pattern == '^';
    const char *s = text, *last = NULL;
    lua_Integer count = 0;
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    while (count < maximum) {
        cnri_script_charge(L, 1);
        const char *e = cnri_pattern_match(&match, s, pattern + anchored);
        if (e && e != last) {
            count++;
            replace(&match, &b, type, s, e);
            s = last = e;
        } else if (s < match.text_end) luaL_addchar(&b, *s++);
        else break;
        if (anchored) break;
    }
    luaL_addlstring(&b, s, (size_t)(match.text_end - s));
    luaL_pushresult(&b);
    lua_pushinteger(L, count);
    return 2;
}

/* Implements string.rep; raises an error if the result exceeds the script's memory. Lua's own would
 * loop n times even for an empty string. */
static int text_rep(lua_State *L) {
    size_t n, m;
    const char *text = luaL_checklstring(L, 1, &n);
    const lua_Integer times = luaL_checkinteger(L, 2);
    const char *between = luaL_optlstring(L, 3, "", &m);
    lua_Integer bytes;
    if (times <= 0 || n + m == 0) {
        lua_pushliteral(L, "");
        return 1;
    }
    if (__builtin_mul_overflow(times, (lua_Integer)(n + m), &bytes) ||
        (size_t)bytes > cnri_script_of(L)->limit)
        return luaL_error(L, "the repeated string would be too large");
    cnri_script_charge(L, bytes / 16 + times);
    luaL_Buffer b;
    char *to = luaL_buffinitsize(L, &b, (size_t)bytes);
    for (lua_Integer i = 0; i < times; i++) {
        memcpy(to, text, n);
        to += n;
        if (i + 1 == times) break;
        memcpy(to, between, m);
        to += m;
    }
    luaL_pushresultsize(&b, (size_t)bytes - m);
    return 1;
}

/* Calls a standard function (upvalue 1) after charging for the bytes it is given, all of which
 * it reads and may write. */
static int by_length(lua_State *L) {
    const int n = lua_gettop(L);
    int64_t bytes = 0;
    for (int i = 1; i <= n; i++)
        if (lua_type(L, i) == LUA_TSTRING) bytes += (int64_t)lua_rawlen(L, i);
    cnri_script_charge(L, bytes / 4);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, n, LUA_MULTRET);
    return lua_gettop(L);
}

void cnri_lua_open_text(lua_State *L) {
    static const char *const harmless[] = {"byte", "char", "len", "sub"};
    static const char *const charged[] = {"format", "lower", "reverse", "upper"};
    static const luaL_Reg ours[] = {{"find", text_find},     {"match", text_match},
                                    {"gmatch", text_gmatch}, {"gsub", text_gsub},
                                    {"rep", text_rep},       {0}};
    lua_newtable(L);
    lua_pushcfunction(L, luaopen_string); /* gives strings their metatable as well */
    lua_call(L, 0, 1);
    for (size_t i = 0; i < CNRI_COUNT(harmless); i++) {
        lua_getfield(L, -1, harmless[i]);
        lua_setfield(L, -3, harmless[i]);
    }
    for (size_t i = 0; i < CNRI_COUNT(charged); i++) {
        lua_getfield(L, -1, charged[i]);
        lua_pushcclosure(L, by_length, 1);
        lua_setfield(L, -3, charged[i]);
    }
    lua_pop(L, 1);
    luaL_setfuncs(L, ours, 0);
    /* s:find(...) must be ours too, and the metatable is nobody's to change. Arithmetic on
     * strings goes with the old one: what it would do is better said by tonumber. */
    lua_pushliteral(L, "");
    lua_createtable(L, 0, 2);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
    lua_setfield(L, -2, "string");
}
