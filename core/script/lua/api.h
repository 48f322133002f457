/* Inside the room: what scripts can say, as tables. The module and its types are made of them, the
 * help and the annotations for editors are printed from them. */
#ifndef CNRI_LUA_API_H
#define CNRI_LUA_API_H

#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A key of a table that a function takes. Lists end with a row of zeros. */
typedef enum cnri_lua_kind {
    CNRI_KEY_OTHER, /* read by whoever it is for */
    CNRI_KEY_TEXT,  /* const char * */
    CNRI_KEY_WHOLE, /* int64_t, least to most */
    CNRI_KEY_REAL,  /* double, the same */
    CNRI_KEY_FLAG   /* int32_t, 0 or 1 */
} cnri_lua_kind;
typedef struct cnri_lua_key {
    const char *text; /* its name, a colon, one line of help */
    cnri_lua_kind kind;
    const char *type; /* as annotations have it */
    size_t offset;    /* in the struct that cnri_lua_take fills */
    double minimum, maximum;
    const char *const *choices; /* all that a text may be, to a NULL; NULL: any */
} cnri_lua_key;
#define CNRI_OTHER(text, type) \
    { text, CNRI_KEY_OTHER, type, 0, 0, 0, NULL }
#define CNRI_TEXT(text, in, field) \
    { text, CNRI_KEY_TEXT, "string", offsetof(in, field), 0, 0, NULL }
#define CNRI_CHOICE(text, in, field, choices) \
    { text, CNRI_KEY_TEXT, "string", offsetof(in, field), 0, 0, choices }
#define CNRI_FLAG(text, in, field) \
    { text, CNRI_KEY_FLAG, "boolean", offsetof(in, field), 0, 1, NULL }
#define CNRI_WHOLE(text, in, field, minimum, maximum) \
    { text, CNRI_KEY_WHOLE, "integer", offsetof(in, field), minimum, maximum, NULL }
#define CNRI_REAL(text, in, field, minimum, maximum) \
    { text, CNRI_KEY_REAL, "number", offsetof(in, field), minimum, maximum, NULL }

/* A function or a method. Types are written as annotations for editors have them: "string",
 * "cnnrun.Tensor", "{ n: integer, top1: number }"; "x?: string" may be left out. Lists end with
 * zeros. Names are the beginnings of texts, since some are operators' as well, which no string of
 * the core is. */
typedef struct cnri_lua_row {
    const char *text; /* "load(path: string, options?: table)": `options` is what `keys` describe */
    lua_CFunction f;
    const char *gives; /* "cnnrun.Tensor, string?"; "": nothing */
    const char *help;  /* one line */
    /* of the table that it takes; NULL: there is none, or any key will do */
    const cnri_lua_key *keys;
} cnri_lua_row;

/* All of it, in the order of the help: the module's functions in several, then a section a type. */
typedef struct cnri_lua_section {
    const char *name; /* "cnnrun", or of a type: "cnnrun.Tensor", "cnnrun.Layer: cnnrun.Value" */
    const char *how;  /* what is written before a function's name: "c.", "tensor:" */
    const char *help;
    const cnri_lua_row *rows; /* NULL: values that only other functions take */
    const char *marks; /* what is no method, as annotations have it, a line each; NULL: nothing */
} cnri_lua_section;
extern const cnri_lua_section cnri_lua_sections[]; /* module.c */
/* The module `cnnrun`. It stands above the files whose functions it has, and registers itself with
 * those that open types and answer `require`. */
typedef struct cnri_lua_module {
    void (*push)(lua_State *L); /* the table that require "cnnrun" gives */
    const cnri_lua_section *sections;
} cnri_lua_module;
extern const cnri_lua_module cnri_lua_cnnrun; /* module.c */

/* ---- rows.c ---- */
/* Before the first state is opened (cnri_lua_install does); any thread. */
void cnri_lua_module_register(const cnri_lua_module *module);
void cnri_lua_push_module(lua_State *L);                        /* the registered one's table */
void cnri_lua_set_rows(lua_State *L, const cnri_lua_row *rows); /* into the table on top */
/* t.name, with the upvalues methods and `what`: the method, or an error. */
int cnri_lua_find_method(lua_State *L);
/* A type of userdata: events are its metatable's; `index` is called for t[k] with the upvalues of
 * cnri_lua_find_method, or NULL: that is. `what` is how messages call it: "a tensor"; `methods` are
 * the sections of that name, or NULL. Scripts never see the metatable. */
void cnri_lua_new_type(lua_State *L, const char *type, const char *what, const luaL_Reg *events,
                       const char *methods, lua_CFunction index);
/* The first of the list at `args` that is no name: 2 when [1] is a string. */
int cnri_lua_first_item(lua_State *L, int args);
/* How long the name is that a text such as "track(picture) -> box" begins with. */
size_t cnri_word_length(const char *text);
/* Pushes t[name that `text` begins with] unasked of metatables; returns its type. */
int cnri_lua_get(lua_State *L, int t, const char *text);
bool cnri_lua_is_key(const cnri_lua_key *keys, const char *name);
/* Push " (did you mean 'x'?)" or "": of names that texts begin with. */
void cnri_lua_suggest(lua_State *L, const char *word, const char *const *texts, int32_t n);
void cnri_lua_suggest_key(lua_State *L, const char *word, const cnri_lua_key *keys);
/* Raises unless each key of the table at `t` is one of `keys`. */
void cnri_lua_check_keys(lua_State *L, int t, const cnri_lua_key *keys);
/* ... and reads those that are no CNRI_KEY_OTHER into the struct at `to`; what is not there stays
 * as it is. Texts stay on the stack, since what the work calls back may change the table. Nothing
 * at `t` is as an empty table. Raises. */
void cnri_lua_take(lua_State *L, int t, const cnri_lua_key *keys, void *to);

#endif
