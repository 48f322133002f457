/* Tables of functions and keys: makes types, reads options, reports mistakes in them. */
#include "lua/state.h"
#include <math.h>
#include <string.h>

static const cnri_lua_module *_Atomic module;

void cnri_lua_module_register(const cnri_lua_module *m) { module = m; }

void cnri_lua_push_module(lua_State *L) { module->push(L); }

/* ---- functions ---- */

void cnri_lua_set_rows(lua_State *L, const cnri_lua_row *rows) {
    for (; rows->text; rows++) {
        lua_pushlstring(L, rows->text, cnri_word_length(rows->text));
        lua_pushcfunction(L, rows->f);
        lua_rawset(L, -3);
    }
}

enum { MAX_WORDS = 64 };

/* Names to suggest from, which are the beginnings of texts on the stack. */
typedef struct words {
    const char *at[MAX_WORDS];
    int32_t n;
} words;

/* Adds the name at the start of a text to a list of words. */
static void add_word(lua_State *L, words *w, const char *text) {
    if (w->n == MAX_WORDS) return;
    luaL_checkstack(L, 8, "too many names");
    w->at[w->n++] = lua_pushlstring(L, text, cnri_word_length(text));
}

/* Pushes the suggestion at the end of a message. */
static void push_near(lua_State *L, const char *word, const words *w) {
    const char *best = cnri_nearest_word(word, w->at, w->n);
    if (best) lua_pushfstring(L, " (did you mean '%s'?)", best);
    else lua_pushliteral(L, "");
}

void cnri_lua_suggest(lua_State *L, const char *word, const char *const *texts, int32_t n) {
    const int top = lua_gettop(L);
    words w = {.n = 0};
    for (int32_t i = 0; i < n; i++) add_word(L, &w, texts[i]);
    push_near(L, word, &w);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
}

int cnri_lua_find_method(lua_State *L) {
    words w = {.n = 0};
    lua_settop(L, 2);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL) return 1;
    const char *word = luaL_tolstring(L, 2, NULL);
    lua_pushnil(L);
    while (lua_next(L, lua_upvalueindex(1)) && w.n < MAX_WORDS) { /* the table holds its words */
        w.at[w.n++] = lua_tostring(L, -2);
        lua_pop(L, 1);
    }
    push_near(L, word, &w);
    return luaL_error(L, "%s has no '%s'%s", lua_tostring(L, lua_upvalueindex(2)), word,
                      lua_tostring(L, -1));
}

void cnri_lua_new_type(lua_State *L, const char *type, const char *what, const luaL_Reg *events,
                       const char *methods, lua_CFunction index) {
    luaL_newmetatable(L, type);
    luaL_setfuncs(L, events, 0);
    if (methods) {
        lua_newtable(L);
        for (const cnri_lua_section *s = module->sections; s->name; s++)
            if (strcmp(s->name, methods) == 0) cnri_lua_set_rows(L, s->rows);
        lua_pushstring(L, what);
        lua_pushcclosure(L, index ? index : cnri_lua_find_method, 2);
        lua_setfield(L, -2, "__index");
    }
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}

/* ---- keys ---- */

size_t cnri_word_length(const char *text) {
    return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
}

int cnri_lua_get(lua_State *L, int t, const char *text) {
    t = lua_absindex(L, t);
    lua_pushlstring(L, text, cnri_word_length(text));
    return lua_rawget(L, t);
}

int cnri_lua_first_item(lua_State *L, int args) {
    const bool named = lua_rawgeti(L, args, 1) == LUA_TSTRING;
    lua_pop(L, 1);
    return named ? 2 : 1;
}

bool cnri_lua_is_key(const cnri_lua_key *keys, const char *name) {
    const size_t n = strlen(name);
    for (; keys->text; keys++)
        if (cnri_word_length(keys->text) == n && memcmp(keys->text, name, n) == 0) return true;
    return false;
}

void cnri_lua_suggest_key(lua_State *L, const char *word, const cnri_lua_key *keys) {
    const int top = lua_gettop(L);
    words w = {.n = 0};
    for (; keys->text; keys++) add_word(L, &w, keys->text);
    push_near(L, word, &w);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
}

void cnri_lua_check_keys(lua_State *L, int t, const cnri_lua_key *keys) {
    lua_pushnil(L);
    while (lua_next(L, t)) {
        lua_pop(L, 1);
        const bool word = lua_type(L, -1) == LUA_TSTRING;
        if (word && cnri_lua_is_key(keys, lua_tostring(L, -1))) continue;
        lua_pushvalue(L, -1); /* a number would become a text, and lua_next lose its place */
        const char *shown = luaL_tolstring(L, -1, NULL);
        cnri_lua_suggest_key(L, shown, keys);
        luaL_error(L, "no option '%s'%s", shown, lua_tostring(L, -1));
    }
}

/* Raises an error for the value on top: what key and type were wanted, and what it is. */
static int refuse(lua_State *L, const cnri_lua_key *key, const char *want) {
    const char *got = lua_type(L, -1) == LUA_TNUMBER
                          ? luaL_tolstring(L, -1, NULL)
                          : lua_pushfstring(L, "a %s value", luaL_typename(L, -1));
    return luaL_error(L, "want %s (%s), got %s", key->text, want, got);
}

/* Pushes and returns both bounds as text, or the lower one alone if there is no upper one. */
static const char *push_range(lua_State *L, const cnri_lua_key *key, const char *what) {
    char minimum[40], maximum[40];
    cnri_print_double(minimum, sizeof minimum, key->minimum);
    cnri_print_double(maximum, sizeof maximum, key->maximum);
    if (key->maximum >= 1e15) return lua_pushfstring(L, "%s, %s or more", what, minimum);
    return lua_pushfstring(L, "%s from %s to %s", what, minimum, maximum);
}

/* Takes a number, if it is in the key's range. */
static void take_number(lua_State *L, const cnri_lua_key *key, char *at) {
    const bool whole = key->kind == CNRI_KEY_WHOLE;
    const char *what = whole ? "a whole number" : "a number";
    const lua_Number x = lua_tonumber(L, -1);
    if (lua_type(L, -1) != LUA_TNUMBER || (whole && !lua_isinteger(L, -1) && x != floor(x)) ||
        !(x >= key->minimum && x <= key->maximum)) {
        const char *want = push_range(L, key, what);
        lua_pushvalue(L, -2);
        refuse(L, key, want);
    }
    if (whole) *(int64_t *)(void *)at = (int64_t)x;
    else *(double *)(void *)at = x;
}

/* Reads the value on top for the key. */
static void take_one(lua_State *L, const cnri_lua_key *key, char *at) {
    const int type = lua_type(L, -1);
    if (key->kind == CNRI_KEY_WHOLE || key->kind == CNRI_KEY_REAL) take_number(L, key, at);
    else if (key->kind == CNRI_KEY_FLAG) {
        if (type != LUA_TBOOLEAN) refuse(L, key, "true or false");
        *(int32_t *)(void *)at = lua_toboolean(L, -1);
    } else {
        if (type != LUA_TSTRING) refuse(L, key, "a text");
        if (strlen(lua_tostring(L, -1)) != lua_rawlen(L, -1)) /* it would go on as another */
            luaL_error(L, "%s: a text with a zero byte in it", key->text);
        *(const char **)(void *)at = lua_tostring(L, -1);
    }
}

void cnri_lua_take(lua_State *L, int t, const cnri_lua_key *keys, void *to) {
    if (lua_isnoneornil(L, t)) return;
    luaL_checktype(L, t, LUA_TTABLE);
    cnri_lua_check_keys(L, t, keys);
    for (; keys->text; keys++) {
        if (keys->kind == CNRI_KEY_OTHER) continue;
        luaL_checkstack(L, LUA_MINSTACK, "too many options");
        if (cnri_lua_get(L, t, keys->text) != LUA_TNIL)
            take_one(L, keys, (char *)to + keys->offset);
        if (lua_type(L, -1) != LUA_TSTRING) lua_pop(L, 1);
    }
}
