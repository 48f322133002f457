/* Boards: a file that returns a table which describes a machine, or a function that returns such
 * a table for given values. It is flattened into numbers and texts by their path. */
#include "lua/script.h"
#include "lua/state.h"
#include "board/board.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 8, MAX_ENTRIES = 20000, MAX_PATH = 240 };

/* A board or scene that is being read. */
typedef struct reading {
    const char *name; /* name or file of the board: "odroid_xu3", "mine.lua" */
    char *values;     /* "seed=3,dry": the text after the name, cut at its commas */
    size_t bytes;     /* length of `values` with the zero bytes that its commas became */
    cnri_board *board;
    int32_t n;
    bool scene; /* the file describes a scene, not a board: its keys are not checked against the
                   board's schema */
} reading;

/* The next of the values, which lie one behind the other; `at` NULL: the first; returns NULL at the
 * end. */
static const char *next_value(const reading *r, const char *at) {
    const char *next = at ? at + strlen(at) + 1 : r->values;
    return next < r->values + r->bytes ? next : NULL;
}

/* Returns the length of the key in "seed=3", and sets *value behind the "=". "dry" alone has the
 * value "1". */
static size_t split_value(const char *word, const char **value) {
    const size_t n = strcspn(word, "=");
    *value = word[n] ? word + n + 1 : "1";
    return n;
}

/* Reads a number, or true and false as 1 and 0. False: it is a text. */
static bool as_number(const char *text, double *out) {
    const char *end;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        *out = *text == 't';
        return true;
    }
    return cnri_parse_double(text, &end, out) && !*end;
}

/* ---- the script ---- */

/* Pushes the values behind the name as a table. */
static void push_values(lua_State *L, const reading *r) {
    lua_newtable(L);
    for (const char *word = NULL, *value; (word = next_value(r, word));) {
        double number;
        lua_pushlstring(L, word, split_value(word, &value));
        if (as_number(value, &number)) lua_pushnumber(L, number);
        else lua_pushstring(L, value);
        lua_settable(L, -3);
    }
}

/* Stores an entry of this kind at `path`: its number and text; raises an error if there are too
 * many. */
static void put(lua_State *L, reading *r, const char *path, int kind, double number,
                const char *text) {
    if (++r->n > MAX_ENTRIES) luaL_error(L, "%s: more than %d entries", path, (int)MAX_ENTRIES);
    if (!cnri_board_set(r->board, path, kind, number, text)) luaL_error(L, "out of memory");
}

static void flatten(lua_State *L, reading *r, const char *path, int depth);

/* Stores entry `key` of `path`, whose value is on top; depth: tables around it. Raises an
 * error that names `path` if the path of the entry is too long. */
static void flatten_entry(lua_State *L, reading *r, const char *path, const char *key, int depth) {
    char inner[MAX_PATH];
    const int n = snprintf(inner, sizeof inner, "%s%s%s", path, *path ? "." : "", key);
    if (n >= (int)sizeof inner)
        luaL_error(L, "%s: the path of an entry is longer than %d bytes", path, MAX_PATH - 1);
    flatten(L, r, inner, depth + 1);
}

/* Stores all entries of the table on top, with paths like units.2.name. */
static void flatten_table(lua_State *L, reading *r, const char *path, int depth) {
    const int table = lua_gettop(L);
    const lua_Integer n = (lua_Integer)lua_rawlen(L, table);
    char key[32];
    luaL_checkstack(L, 8, "board");
    if (depth > MAX_DEPTH)
        luaL_error(L, "%s: tables in each other more than %d deep", path, (int)MAX_DEPTH);
    if (*path) put(L, r, path, CNRI_BOARD_LIST, (double)n, "");
    lua_pushnil(L);
    while (lua_next(L, table)) {
        const lua_Integer at = lua_isinteger(L, -2) ? lua_tointeger(L, -2) : 0;
        const bool listed = at >= 1 && at <= n;
        if (!listed && lua_type(L, -2) != LUA_TSTRING)
            luaL_error(L, "%s: want names and lists, got the key %s", *path ? path : "the board",
                       luaL_tolstring(L, -2, NULL));
        if (listed) snprintf(key, sizeof key, "%d", (int)at);
        flatten_entry(L, r, path, listed ? key : lua_tostring(L, -2), depth);
        lua_pop(L, 1);
    }
}

/* Stores the value on top at `path`: numbers, flags and texts; of tables each entry, by the path
 * PATH.KEY. Raises an error for other types. */
static void flatten(lua_State *L, reading *r, const char *path, int depth) {
    switch (lua_type(L, -1)) {
    case LUA_TNUMBER: put(L, r, path, CNRI_BOARD_NUMBER, lua_tonumber(L, -1), ""); break;
    case LUA_TBOOLEAN:
        if (!r->scene && !cnri_board_takes_flag(path))
            luaL_error(L, "%s: can't be true or false", path);
        put(L, r, path, CNRI_BOARD_NUMBER, lua_toboolean(L, -1), "");
        break;
    case LUA_TSTRING: put(L, r, path, CNRI_BOARD_TEXT, 0, lua_tostring(L, -1)); break;
    case LUA_TTABLE: flatten_table(L, r, path, depth); break;
    default:
        luaL_error(L, "%s: want a number, a text or a table, got a %s value", path,
                   luaL_typename(L, -1));
    }
}

/* True if a script returns a board, or a function that makes one of the option's values. */
static bool is_board(const char *path) {
    char *text = NULL;
    size_t bytes;
    const bool is =
        path && !cnri_read_file(path, CNRI_SCRIPT_FILE_BYTES, &text, &bytes, NULL) &&
        (strstr(text, "\nreturn board.new") || strstr(text, "\nreturn function(values)"));
    cnri_free(text);
    return is;
}

/* Fails with the names of the installed boards. */
static void no_such_board(lua_State *L, const char *name) {
    struct dirent **list = NULL;
    char *scripts = cnri_lua_scripts(),
         *folder = scripts ? cnri_path_join(scripts, "boards") : NULL;
    const int n = folder ? scandir(folder, &list, NULL, alphasort) : -1;
    cnri_text all = {0};
    for (int i = 0; i < n; i++) {
        char *path = cnri_path_join(folder, list[i]->d_name);
        const int length = (int)strcspn(list[i]->d_name, ".");
        if (is_board(path))
            cnri_text_add(&all, "%s%.*s", all.n ? ", " : "", length, list[i]->d_name);
        cnri_free(path);
        free(list[i]);
    }
    free(list);
    cnri_free(folder);
    cnri_free(scripts);
    lua_pushstring(L, all.at && all.n ? all.at : "no board is installed");
    cnri_text_free(&all);
    luaL_error(L, "no board of that name: want a file (./%s.lua) or one of: %s", name,
               lua_tostring(L, -1));
}

/* Lua function: runs the board's file, or the module "boards.NAME", and reads the table that it
 * returns. */
static int run(lua_State *L) {
    reading *r = lua_touserdata(L, 1);
    if (strchr(r->name, '/') || strstr(r->name, ".lua")) {
        cnri_lua_load_file(L, r->name, r->name);
        lua_call(L, 0, 1);
    } else {
        lua_pushfstring(L, "boards.%s", r->name);
        if (!cnri_lua_find_module(L, lua_tostring(L, -1))) no_such_board(L, r->name);
        lua_getglobal(L, "require");
        lua_pushfstring(L, "boards.%s", r->name);
        lua_call(L, 1, 1);
    }
    if (lua_isfunction(L, -1)) {
        push_values(L, r);
        lua_call(L, 1, 1);
    }
    if (!lua_istable(L, -1))
        luaL_error(L, "the board is a %s value, want a table that describes it",
                   luaL_typename(L, -1));
    flatten(L, r, "", 0);
    return 0;
}

/* ---- what was asked to be otherwise ---- */

/* Says that the board has no value of that path, with a similar one. */
static cnr_status unknown(const reading *r, const char *path, cnr_error *err) {
    CNRI_VEC(const char *) known = {0};
    const char *at, **slot;
    for (int32_t i = 0, kind; (at = cnri_board_at(r->board, i, &kind)); i++)
        if (kind != CNRI_BOARD_LIST && (slot = cnri_push(&known))) *slot = at;
    const char *near = cnri_nearest_word(path, known.at, known.n);
    cnri_vec_free(&known);
    return cnri_fail(err, CNR_E_NOT_FOUND, r->name, "the board has no value \"%s\"%s%s", path,
                     near ? "; did you mean " : "", near ? near : "");
}

/* Replaces values of the board by the words "NAME=VALUE" behind its name; CNR_E_ARG for one that
 * does not fit. */
static cnr_status replace(reading *r, cnr_error *err) {
    for (const char *word = NULL, *value; (word = next_value(r, word));) {
        char path[MAX_PATH];
        double number = 0;
        const size_t n = split_value(word, &value);
        if (n == 0 || n >= sizeof path)
            return cnri_fail(err, CNR_E_ARG, r->name,
                             "wanted NAME=VALUE behind a comma, got \"%s\"", word);
        memcpy(path, word, n);
        path[n] = 0;
        const int32_t was = cnri_board_kind(r->board, path);
        if (was == 0 || was == CNRI_BOARD_LIST) return unknown(r, path, err);
        if (strspn(value, "truefals") == strlen(value) && !r->scene && !cnri_board_takes_flag(path))
            return cnri_fail(err, CNR_E_ARG, r->name, "%s: can't be true or false", path);
        const int kind = as_number(value, &number) ? CNRI_BOARD_NUMBER : CNRI_BOARD_TEXT;
        if (!cnri_board_set(r->board, path, kind, number, value))
            return cnri_out_of_memory(err, r->name);
    }
    return cnri_board_seal(r->board, err);
}

cnr_status cnri_lua_board_read(const char *spec, bool scene, cnri_board **out, cnr_error *err) {
    cnri_script script;
    char *text = cnri_strdup(spec);
    const size_t n = strcspn(spec, ","), all = strlen(spec);
    reading r = {.name = text, .board = cnri_board_new(), .scene = scene};
    *out = NULL;
    cnr_status status = text && r.board ? CNR_OK : cnri_out_of_memory(err, "board");
    if (!status && n == 0)
        status = cnri_fail(err, CNR_E_ARG, "board", "wanted the name of a board or its file");
    if (!status) {
        r.values = text + (n < all ? n + 1 : n);
        r.bytes = n < all ? all - n - 1 : 0;
        for (size_t i = n; i < all; i++)
            if (text[i] == ',') text[i] = 0;
        status = cnri_script_open(&script, NULL, r.name, false, err);
    }
    if (!status) {
        status = cnri_script_guard(&script, run, &r, 0, err);
        cnri_script_close(&script);
    }
    if (!status) status = replace(&r, err);
    if (!status && !scene) status = cnri_board_check(r.board, r.name, err);
    cnri_free(text);
    if (status) cnri_board_free(r.board);
    else *out = r.board;
    return status;
}
